/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heals of a dispersed set of 2+1 bricks on a virtual clock while clients work, rest and stop
 * (heal-throttle.h). */
#include <check.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "xlators/cluster/disperse/crawl.h"
#include "xlators/cluster/test-clients.h"

extern const struct xlator_type cluster_disperse_xlator;

/* A block of a file beside clients is 64 KiB of each fragment; a stored byte stands for as many. */
enum { SET = 3, SINK = 2, BLOCK = 64 * 1024, BLOCKS = 24, SMALL_FILES = 3 };

static unsigned writes, locks;
static uint64_t largest;

static void
answer_as_fragment(unsigned child, struct call_stack *stk, int *ret)
{
    const struct fop_call *call = &stk->call;

    answer_client_call_age(stk, ret);
    if (call->fop == FOP_writev && child == SINK) {
        writes++;
        largest = call->size > largest ? call->size : largest;
    }
    if (call->fop == FOP_inodelk && child == 0 && strcmp(call->volume, "v") == 0 && *ret >= 0)
        locks = call->flock.type == F_UNLCK ? locks - 1 : locks + 1;
}

static void
set_words(struct stored_object *o, const char *key, uint64_t first, uint64_t second, uint32_t len)
{
    uint64_t be[2] = {htobe64(first), htobe64(second)};

    must(store_set_xattr(o, key, be, len) == 0);
}

/* Makes a file of `blocks` blocks of zeros, whose fragments are zeros, too. The sink has other bytes. */
static void
fragments_make(const char *path, uint8_t number, unsigned blocks)
{
    char text[BLOCKS + 1];

    snprintf(text, sizeof text, "%.*s", (int)blocks, "xxxxxxxxxxxxxxxxxxxxxxxx");
    for (unsigned i = 0; i < SET; i++) {
        struct stored_object *o = store_make(i, path, S_IFREG | 0644, number, text);

        if (i != SINK)
            memset(o->data, 0, blocks);
        set_words(o, "trusted.ec.version", i == SINK ? 1 : 2, 1, 16);
        set_words(o, "trusted.ec.size", (uint64_t)blocks * 2 * BLOCK, 0, 8);
        set_words(o, "trusted.ec.dirty", 1, 0, 16);
    }
}

/* The sink has old fragments of a large file and of small ones. */
static void
heal_begins(const char *options)
{
    char all[256];

    snprintf(all, sizeof all, " option redundancy 1\n option iam-self-heal-daemon on\n%s", options);
    scene_clear(SET, false);
    scene.scale = BLOCK;
    fragments_make("/large", 10, BLOCKS);
    for (unsigned n = 0; n < SMALL_FILES; n++) {
        char path[STORED_TEXT_MAX];

        snprintf(path, sizeof path, "/small%u", n);
        fragments_make(path, (uint8_t)(20 + n), 1);
    }
    questions = writes = locks = 0;
    largest = 0;
    scene_begin_top(&cluster_disperse_xlator, all);
    scene.lie = answer_as_fragment;
    ck_assert_int_eq(disperse_crawl_ask(scene.graph, false), 0);
}

static void
heal_ends(void)
{
    scene_run(10000);
    scene.lie = NULL;
    for (unsigned i = 1; i < SET; i++)
        ck_assert_ptr_null(store_difference(&scene.store[0], &scene.store[i]));
    ck_assert_uint_eq(store_locks(), 0);
    scene_end();
}

/* The crawl begins a second after the question. */
static void
crawl_begins(void)
{
    for (unsigned ms = 0; ms < 1100 && !questions; ms++)
        scene_run(1);
    ck_assert_uint_gt(questions, 0);
}

START_TEST(without_clients_a_heal_runs_at_once)
{
    clients_rest();
    client_called_ns = _i ? UINT64_MAX : 0; /* long ago, or the brick does not know */
    heal_begins(" option heal-throttle on\n");
    crawl_begins();
    scene_run(0);
    ck_assert_uint_eq(writes, 1 + SMALL_FILES);
    ck_assert_uint_eq(largest, BLOCKS * BLOCK);
    ck_assert_uint_ge(questions, SET);
    heal_ends();
}
END_TEST

START_TEST(beside_clients_blocks_are_small_and_one_after_the_other)
{
    unsigned looks = SET * (1 + SMALL_FILES), steps = looks + 2 * (BLOCKS + 2) + 2 * SMALL_FILES;

    client_goes_on = true;
    heal_begins(" option heal-throttle on\n");
    crawl_begins();
    for (unsigned before = writes, i = 0; i < 20; i++) {
        scene_run(GAP_MIN_MS);
        ck_assert_uint_le(writes, before + 1);
        ck_assert_uint_eq(locks, 0); /* a heal that waits keeps no client waiting */
        before = writes;
    }
    ck_assert_uint_lt(writes, BLOCKS);
    scene_run(steps * GAP_MAX_MS); /* the lower bound */
    ck_assert_uint_eq(writes, BLOCKS + SMALL_FILES);
    ck_assert_uint_eq(largest, BLOCK);
    heal_ends();
}
END_TEST

START_TEST(a_heal_runs_freely_when_the_clients_rest)
{
    client_goes_on = true;
    heal_begins(" option heal-throttle on\n");
    crawl_begins();
    scene_run(5 * GAP_MIN_MS);
    ck_assert_uint_lt(writes, BLOCKS);
    client_goes_on = false;
    client_called_ns = scene.now_ns;
    scene_run(CLIENTS_REST_MS / 10);
    ck_assert_uint_lt(writes, BLOCKS);
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
    scene_run(1100);
    ck_assert_uint_eq(writes, 1 + SMALL_FILES);
    ck_assert_uint_eq(questions, 0);
    heal_ends();
}
END_TEST

static void
fill_root(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

/* A mount heals an object that it meets as soon as possible. */
START_TEST(a_mount_asks_no_brick)
{
    scene_clear(SET, false);
    questions = 0;
    scene_begin(&cluster_disperse_xlator, " option redundancy 1\n option heal-throttle on\n");
    scene.lie = answer_as_fragment;
    ck_assert_int_ge(scene_call(FOP_lookup, fill_root, 0), 0);
    scene_run(5000);
    ck_assert_uint_eq(questions, 0);
    scene.lie = NULL;
    scene_end();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("disperse-throttle");
    TCase *t = tcase_create("throttle");

    tcase_add_loop_test(t, without_clients_a_heal_runs_at_once, 0, 2);
    tcase_add_test(t, beside_clients_blocks_are_small_and_one_after_the_other);
    tcase_add_test(t, a_heal_runs_freely_when_the_clients_rest);
    tcase_add_test(t, without_the_option_no_brick_is_asked);
    tcase_add_test(t, a_mount_asks_no_brick);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
