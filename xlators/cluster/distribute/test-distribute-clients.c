/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A rebalance beside clients that work with an old list of bricks, on three subvolumes in memory, each of one
 * brick. The bricks tell their clients; a file is on another subvolume than the hashed one.
 *
 * While a client is not connected to all subvolumes, the walk waits, names the client, and moves nothing.
 * After the client has taken the new list the file is moved; or after some seconds, if the client has the new
 * list besides the old one. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test-must.h"
#include "log/log.h"
#include "xlators/cluster/distribute/rebalance.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-rolls.h"

enum { SUBVOLUMES = 3, FILE_NUMBER = 10, MANY_MS = 600000, A_MOMENT_MS = 5000, A_WHILE_MS = 30000 };

static const struct rolls all_rolls[] = {
    {"no clients", {"", "", ""}, NULL, false},
    {"bricks that do not tell", {NULL, NULL, NULL}, NULL, false},
    {"a client of all subvolumes", {LOGIN("1", "0"), LOGIN("1", "0"), LOGIN("1", "0")}, NULL, false},
    {"an old client", {LOGIN("1", "0"), LOGIN("1", "0"), ""}, "process 11 on host-1", false},
    {"a client that is changing its graph",
     {LOGIN("1", "0") LOGIN("1", "2"), LOGIN("1", "2") LOGIN("1", "0"), LOGIN("1", "2")},
     "process 11 on host-1",
     true},
    {"an old client between others",
     {LOGIN("3", "1") LOGIN("1", "0") LOGIN("2", "0"), LOGIN("1", "0") LOGIN("2", "0") LOGIN("3", "1"),
      LOGIN("3", "1") LOGIN("1", "0")},
     "process 22 on host-2",
     false},
    {"an old client of one brick", {"", LOGIN("1", "0"), ""}, "process 11 on host-1", false},
    {"an old client of one brick, twice",
     {"", LOGIN("1", "0") LOGIN("1", "2"), ""},
     "process 11 on host-1",
     false},
    {"an old client of one brick that is changing its graph",
     {LOGIN("1", "0") LOGIN("1", "2"), LOGIN("1", "2"), LOGIN("1", "2")},
     "process 11 on host-1",
     true},
    {"an old client behind a changing one",
     {LOGIN("1", "0") LOGIN("1", "2") LOGIN("2", "0"), LOGIN("1", "2") LOGIN("2", "0"), LOGIN("1", "2")},
     "process 22 on host-2",
     false},
    {"a changing client behind another one",
     {LOGIN("2", "2") LOGIN("1", "2") LOGIN("2", "0") LOGIN("1", "0"), LOGIN("1", "2") LOGIN("2", "2"),
      LOGIN("1", "2") LOGIN("2", "2")},
     "process 11 on host-1",
     true},
    {"kiln-mount", {LOGIN("1", "0"), LOGIN("1", "1"), LOGIN("1", "2")}, NULL, false},
    {"kiln-mount with an old graph", {LOGIN("1", "0"), LOGIN("1", "1"), ""}, NULL, false},
    {"a brick that does not tell", {LOGIN("1", "0"), LOGIN("1", "0"), NULL}, NULL, false},
    {"a name of another form",
     {"CTX_ID:1-GRAPH_ID:0\n", "CTX_ID:1-GRAPH_ID:0\n", ""},
     "CTX_ID:1-GRAPH_ID:0",
     false},
    {"lines of other kinds", {"nothing\n\n-\n", "CTX_ID:1-GRAPH_ID:0", "\n"}, NULL, false},
};
enum { ROLLS = sizeof all_rolls / sizeof all_rolls[0] };

static bool is_number; /* the bricks answer with a number instead of a text */

static void
tell_clients_or_number(unsigned child, struct call_stack *stk, int *ret)
{
    unsigned told = rolls_told;

    tell_clients(child, stk, ret);
    if (is_number && rolls_told > told && *ret == 0)
        must(dict_set_text_int(reply_dict(stk), dict_key_text(DICT_KEY_CLIENTS), 7) == 0);
}

/* ---- the volume ------------------------------------------------------------------------------ */

static unsigned hashed;

static void
volume_begin(void)
{
    log_set_level(LOG_CRITICAL);
    scene_clear(SUBVOLUMES, false);
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    hashed = subvolume_of_hash("f");
    store_make((hashed + 1) % SUBVOLUMES, "/f", S_IFREG | 0644, FILE_NUMBER, "contents");
    rolls = &all_rolls[0];
    is_number = false;
    scene.lie = tell_clients_or_number;
}

static struct rebalancer *
rebalance_begin_now(enum rebalance_kind kind)
{
    struct rebalancer *r = rebalancer_new(scene.child[0]->parent, kind, 1, NULL, NULL);

    must(r != NULL && rebalancer_start(r) == 0);
    return r;
}

static void
volume_end(struct rebalancer *r)
{
    rebalancer_stop(r);
    scene_run(MANY_MS);
    rebalancer_free(r);
    scene.lie = NULL;
    scene_end();
}

static bool
is_moved(void)
{
    struct stored_object *o = store_find(&scene.store[hashed], "/f");

    return o && o->stat.mode == (S_IFREG | 0644);
}

static void
check_waits(struct rebalancer *r, const struct rolls *now)
{
    struct rebalance_look look;

    rebalancer_look(r, &look);
    ck_assert_msg(look.state == REBALANCE_WAITS, "%s: state %u", now->what, look.state);
    ck_assert_str_eq(look.waits_for, now->waits_for);
    ck_assert_msg(!is_moved(), "%s: the file is moved", now->what);
    ck_assert_uint_eq(look.folders, 0);
}

static void
check_completed(struct rebalancer *r, const char *what)
{
    struct rebalance_look look;

    rebalancer_look(r, &look);
    ck_assert_msg(look.state == REBALANCE_COMPLETED, "%s: state %u, %s", what, look.state, look.waits_for);
    ck_assert_str_eq(look.waits_for, "");
    ck_assert_msg(is_moved(), "%s: the file is not moved", what);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_rebalance_waits_for_old_clients)
{
    const struct rolls *now = &all_rolls[_i];

    volume_begin();
    rolls = now;
    struct rebalancer *r = rebalance_begin_now(REBALANCE_FILES);
    scene_run(A_MOMENT_MS);
    if (now->waits_for)
        check_waits(r, now);
    scene_run(A_WHILE_MS);
    if (now->waits_for && !now->is_changing) {
        check_waits(r, now);
        rolls = &all_rolls[0];
        scene_run(MANY_MS);
    }
    check_completed(r, now->what);
    volume_end(r);
}
END_TEST

START_TEST(a_number_is_no_list_of_clients)
{
    volume_begin();
    rolls = &all_rolls[3];
    is_number = true;
    struct rebalancer *r = rebalance_begin_now(REBALANCE_FILES);
    scene_run(MANY_MS);
    check_completed(r, "numbers");
    volume_end(r);
}
END_TEST

/* More bytes than a brick may tell do not make the healer process grow, and hold no rebalance. */
START_TEST(a_brick_that_tells_too_much_is_not_counted)
{
    static const char line[] = LOGIN("1", "0");
    const size_t lines = (5u << 20) / (sizeof line - 1);
    char *text = malloc(lines * (sizeof line - 1) + 1);

    must(text != NULL);
    for (size_t n = 0; n < lines; n++)
        memcpy(text + n * (sizeof line - 1), line, sizeof line);
    const struct rolls too_long = {"too long", {text, "", ""}, NULL, false};
    volume_begin();
    rolls = &too_long;
    struct rebalancer *r = rebalance_begin_now(REBALANCE_FILES);
    scene_run(MANY_MS);
    check_completed(r, "too long");
    volume_end(r);
    free(text);
}
END_TEST

START_TEST(a_waiting_rebalance_can_be_stopped)
{
    volume_begin();
    rolls = &all_rolls[3];
    struct rebalancer *r = rebalance_begin_now(REBALANCE_LAYOUTS);
    scene_run(A_WHILE_MS);
    check_waits(r, rolls);
    rebalancer_stop(r);
    scene_run(MANY_MS);
    struct rebalance_look look;
    rebalancer_look(r, &look);
    ck_assert_int_eq(look.state, REBALANCE_STOPPED);
    ck_assert(!is_moved());
    volume_end(r);
}
END_TEST

START_TEST(lack_of_memory_delays_the_look)
{
    unsigned begun = 0;
    bool has_begun;

    scene_init_starving();
    for (int64_t at = 1; at < 60; at++) {
        volume_begin();
        rolls = &all_rolls[3];
        struct rebalancer *r = rebalance_begin_now(REBALANCE_FILES);
        scene_starve(at);
        scene_run(A_WHILE_MS);
        scene_starve(0);
        struct rebalance_look look;
        rebalancer_look(r, &look);
        has_begun = look.state != REBALANCE_FAILED; /* else there was no memory for the walk itself */
        begun += has_begun;
        if (has_begun)
            check_waits(r, rolls);
        rolls = &all_rolls[2];
        scene_run(MANY_MS);
        if (has_begun)
            check_completed(r, "lack of memory");
        volume_end(r);
    }
    ck_assert_uint_gt(begun, 50);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("distribute-clients");
    TCase *t = tcase_create("clients");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_rebalance_waits_for_old_clients, 0, ROLLS);
    tcase_add_test(t, a_number_is_no_list_of_clients);
    tcase_add_test(t, a_brick_that_tells_too_much_is_not_counted);
    tcase_add_test(t, a_waiting_rebalance_can_be_stopped);
    tcase_add_test(t, lack_of_memory_delays_the_look);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
