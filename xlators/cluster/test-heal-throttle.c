/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The throttle of heals (heal-throttle.h): its arithmetic, and heals of replicas on a virtual clock while
 * clients work, rest and stop. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "xlators/cluster/replicate/crawl.h"
#include "xlators/cluster/replicate/test-replicas.h"
#include "xlators/cluster/test-clients.h"

enum { BLOCK = 128 * 1024, BLOCKS = 24 };

static const char good[] = "twenty-four blocks long!"; /* a letter is a block */

/* ---- the arithmetic -------------------------------------------------------------------------- */

START_TEST(the_gap_follows_the_duration_of_units)
{
    static const struct {
        uint64_t unit_us, gap_us;
    } cases[] = {{0, GAP_MIN_MS * 1000},
                 {10, GAP_MIN_MS * 1000},
                 {2000, 2000 * GAP_TIMES},
                 {3000, 3000 * GAP_TIMES},
                 {GAP_MAX_MS * 1000, GAP_MAX_MS * 1000},
                 {UINT64_C(60000000), GAP_MAX_MS * 1000}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct heal_pace p = {0};

        heal_pace_note(&p, cases[i].unit_us * 1000);
        ck_assert_uint_eq(heal_pace_reserve(&p, 5 * MS), 5 * MS);
        ck_assert_uint_eq(heal_pace_reserve(&p, 5 * MS), 5 * MS + cases[i].gap_us * 1000);
    }
}
END_TEST

START_TEST(one_slow_unit_does_not_change_the_pace_much)
{
    struct heal_pace p = {0};

    for (unsigned i = 0; i < 20; i++)
        heal_pace_note(&p, MS);
    heal_pace_note(&p, 3600 * 1000 * MS); /* waited for a lock */
    ck_assert_uint_lt(p.unit_ns, (1 + GAP_MAX_MS / 8 + 1) * MS);
    for (unsigned i = 0; i < 60; i++)
        heal_pace_note(&p, MS);
    ck_assert_uint_lt(p.unit_ns, 2 * MS);
}
END_TEST

START_TEST(a_rest_saves_no_units_for_later)
{
    struct heal_pace p = {0};

    (void)heal_pace_reserve(&p, 0);
    ck_assert_uint_eq(heal_pace_reserve(&p, 1000 * MS), 1000 * MS);
    ck_assert_uint_eq(heal_pace_reserve(&p, 1000 * MS), (1000 + GAP_MIN_MS) * MS);
}
END_TEST

/* ---- heals ----------------------------------------------------------------------------------- */

static unsigned writes, held, held_most;
static uint64_t largest;

static void
answer_as_brick(unsigned child, struct call_stack *stk, int *ret)
{
    const struct fop_call *call = &stk->call;

    answer_client_call_age(stk, ret);
    if (call->fop == FOP_writev && child == 1) {
        writes++;
        largest = call->size > largest ? call->size : largest;
    }
    if (call->fop == FOP_inodelk && child == 0 && call->flock.len && call->flock.len <= 8 * BLOCK) {
        held = call->flock.type == F_UNLCK ? held - 1 : held + 1;
        held_most = held > held_most ? held : held_most;
    }
}

static struct crawler *crawler;

/* A large file, and three small ones, of which child 1 has old copies. */
static void
heal_begins(const char *options)
{
    scene_clear(2, false);
    scene.scale = BLOCK;
    for (unsigned n = 0; n < 4; n++) {
        char path[STORED_TEXT_MAX];

        snprintf(path, sizeof path, "/f%u", n);
        (void)store_make(0, path, S_IFREG | 0644, (uint8_t)(n + 3), n ? "a" : good);
        (void)store_make(1, path, S_IFREG | 0644, (uint8_t)(n + 3), n ? "b" : "");
        replica_accuse(path, 0, 1, CHANGE_DATA);
    }
    questions = writes = held = held_most = 0;
    largest = 0;
    scene_begin_top(&cluster_replicate_xlator, replicas_options(options));
    crawler = crawler_new(scene.graph, 1, true);
    must(crawler);
    scene.lie = answer_as_brick;
    ck_assert_int_eq(crawler_ask(crawler, false), 0);
}

static void
heal_ends(void)
{
    scene_run(10000);
    scene.lie = NULL;
    ck_assert_ptr_null(copies_difference());
    ck_assert_ptr_null(counters_left());
    ck_assert_uint_eq(store_locks(), 0);
    crawler_free(crawler);
    scene_end();
}

START_TEST(without_clients_a_heal_runs_at_once)
{
    clients_rest();
    client_called_ns = _i ? UINT64_MAX : 0; /* long ago, or the brick does not know */
    heal_begins(" option heal-throttle on\n");
    scene_run(0);
    ck_assert_uint_eq(writes, 3 + 3);
    ck_assert_uint_eq(largest, 8 * BLOCK);
    ck_assert_uint_gt(held_most, 1);
    ck_assert_uint_ge(questions, 2);
    heal_ends();
}
END_TEST

START_TEST(beside_clients_blocks_are_small_and_one_after_the_other)
{
    client_goes_on = true;
    heal_begins(" option heal-throttle on\n");
    scene_run(0);
    ck_assert_uint_le(writes, 3 + 1); /* the small files did not wait for the first answer */
    unsigned before = writes;
    held_most = held;
    for (unsigned i = 0; i < 10; i++) {
        scene_run(GAP_MIN_MS);
        ck_assert_uint_le(writes, before + 1);
        before = writes;
    }
    scene_run((BLOCKS + 1) * GAP_MAX_MS); /* the lower bound */
    ck_assert_uint_eq(writes, BLOCKS + 3);
    ck_assert_uint_eq(largest, BLOCK);
    ck_assert_uint_eq(held_most, 1);
    heal_ends();
}
END_TEST

START_TEST(a_heal_runs_freely_when_the_clients_rest)
{
    client_goes_on = true;
    heal_begins(" option heal-throttle on\n");
    scene_run(5 * GAP_MIN_MS);
    ck_assert_uint_lt(writes, BLOCKS);
    client_goes_on = false;
    client_called_ns = scene.now_ns;
    scene_run(CLIENTS_REST_MS / 10);
    ck_assert_uint_lt(writes, BLOCKS);
    ck_assert_uint_eq(largest, BLOCK);
    client_called_ns = scene.now_ns - CLIENTS_REST_MS * MS;
    scene_run(LOOK_MS + GAP_MAX_MS);
    ck_assert_uint_gt(largest, BLOCK);
    heal_ends();
}
END_TEST

START_TEST(without_the_option_no_brick_is_asked)
{
    client_goes_on = true;
    heal_begins("");
    scene_run(0);
    ck_assert_uint_eq(writes, 3 + 3);
    ck_assert_uint_eq(questions, 0);
    heal_ends();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("heal-throttle");
    TCase *t = tcase_create("throttle");

    tcase_add_test(t, the_gap_follows_the_duration_of_units);
    tcase_add_test(t, one_slow_unit_does_not_change_the_pace_much);
    tcase_add_test(t, a_rest_saves_no_units_for_later);
    tcase_add_loop_test(t, without_clients_a_heal_runs_at_once, 0, 2);
    tcase_add_test(t, beside_clients_blocks_are_small_and_one_after_the_other);
    tcase_add_test(t, a_heal_runs_freely_when_the_clients_rest);
    tcase_add_test(t, without_the_option_no_brick_is_asked);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
