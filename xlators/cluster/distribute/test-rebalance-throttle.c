/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A rebalance of a volume on a virtual clock while clients work, rest and stop (heal-throttle.h): a large
 * file and small ones move to the subvolumes of their names. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/distribute/rebalance.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-clients.h"

/* A block of a file beside clients; a stored byte stands for as many bytes. */
enum { BLOCK = 128 * 1024, BLOCKS = 24, SMALL_FILES = 8, WIDTH = 4 };

static const char contents[] = "twenty-four blocks long!"; /* a letter is a block */
static unsigned writes;
static uint64_t largest, largest_list;
static struct rebalancer *rebalancer;
static struct rebalance_look last;

static void
answer_as_subvolume(unsigned child, struct call_stack *stk, int *ret)
{
    const struct fop_call *call = &stk->call;

    (void)child;
    answer_client_call_age(stk, ret);
    if (call->fop == FOP_statfs && *ret >= 0) {
        struct statvfs *space = &stk->reply.statvfs;

        space->f_blocks = space->f_bfree = space->f_bavail = 1 << 20;
    }
    if (call->fop == FOP_writev) {
        writes++;
        largest = call->size > largest ? call->size : largest;
    }
    if (call->fop == FOP_readdirp)
        largest_list = call->size > largest_list ? call->size : largest_list;
}

static void
mount_begin(void)
{
    scene_begin(&cluster_distribute_xlator, "");
    must(scene_call(FOP_lookup, fill_root_inode, 0) == 0);
}

/* Makes files on subvolumes that are not the hashed ones of their names. */
static void
misplaced_make(void)
{
    scene_clear(2, false);
    scene.scale = BLOCK;
    scene.lie = answer_as_subvolume;
    mount_begin();
    for (unsigned n = 0; n <= SMALL_FILES; n++) {
        char path[STORED_TEXT_MAX];

        snprintf(path, sizeof path, "/f%u", n);
        (void)store_make(1 - subvolume_of_hash(path + 1), path, S_IFREG | 0644, (uint8_t)(10 + n),
                         n ? "s" : contents);
    }
}

static void
rebalance_begins(bool gives_way)
{
    misplaced_make();
    questions = writes = 0;
    largest = largest_list = 0;
    rebalancer = rebalancer_new(scene.child[0]->parent, REBALANCE_FILES, WIDTH, NULL, NULL);
    must(rebalancer != NULL);
    if (gives_way)
        rebalancer_give_way(rebalancer);
    must(rebalancer_start(rebalancer) == 0);
}

/* Each file is on the subvolume of its name alone. */
static void
rebalance_ends(void)
{
    scene_run(10000);
    rebalancer_look(rebalancer, &last);
    ck_assert_int_eq(last.state, REBALANCE_COMPLETED);
    ck_assert_uint_eq(last.moved, 1 + SMALL_FILES);
    ck_assert_uint_eq(last.bytes, (BLOCKS + SMALL_FILES) * (uint64_t)BLOCK);
    scene.lie = NULL;
    for (unsigned n = 0; n <= SMALL_FILES; n++) {
        char path[STORED_TEXT_MAX];

        snprintf(path, sizeof path, "/f%u", n);
        unsigned hashed = subvolume_of_hash(path + 1);
        struct stored_object *o = store_find(&scene.store[hashed], path);

        ck_assert_ptr_nonnull(o);
        ck_assert_int_eq(o->stat.mode, S_IFREG | 0644);
        ck_assert_int_eq(memcmp(o->data, n ? "s" : contents, n ? 1 : BLOCKS), 0);
        ck_assert_ptr_null(store_find(&scene.store[1 - hashed], path));
    }
    ck_assert_uint_eq(store_locks(), 0);
    rebalancer_free(rebalancer);
    scene_end();
}

START_TEST(without_clients_a_rebalance_runs_at_once)
{
    clients_rest();
    client_called_ns = _i ? UINT64_MAX : 0; /* long ago, or the brick does not know */
    rebalance_begins(true);
    scene_run(0);
    ck_assert_uint_eq(writes, BLOCKS / 8 + SMALL_FILES);
    ck_assert_uint_eq(largest, 8 * BLOCK);
    ck_assert_uint_gt(questions, 0);
    rebalance_ends();
}
END_TEST

START_TEST(beside_clients_blocks_are_small_and_one_after_the_other)
{
    unsigned lists = 8, steps = lists + 2 * (1 + SMALL_FILES) + BLOCKS + 2 * WIDTH;

    client_goes_on = true;
    rebalance_begins(true);
    scene_run(0);
    for (unsigned before = writes, i = 0; i < 20; i++) {
        scene_run(GAP_MIN_MS);
        ck_assert_uint_le(writes, before + 1);
        before = writes;
    }
    ck_assert_uint_lt(writes, BLOCKS);
    scene_run(steps * GAP_MAX_MS); /* the lower bound */
    ck_assert_uint_eq(writes, BLOCKS + SMALL_FILES);
    ck_assert_uint_eq(largest, BLOCK);
    ck_assert_uint_le(largest_list, 16 * 1024);
    rebalance_ends();
}
END_TEST

START_TEST(a_rebalance_runs_freely_when_the_clients_rest)
{
    client_goes_on = true;
    rebalance_begins(true);
    scene_run(5 * GAP_MIN_MS);
    ck_assert_uint_lt(writes, BLOCKS);
    client_goes_on = false;
    client_called_ns = scene.now_ns - CLIENTS_REST_MS * MS;
    scene_run(LOOK_MS + WIDTH * GAP_MAX_MS);
    rebalance_ends();
    ck_assert_uint_gt(largest, BLOCK);
}
END_TEST

START_TEST(a_rebalance_that_waits_can_be_stopped)
{
    client_goes_on = true;
    rebalance_begins(true);
    scene_run(10 * GAP_MIN_MS);
    rebalancer_stop(rebalancer);
    scene_run(4 * WIDTH * GAP_MAX_MS);
    rebalancer_look(rebalancer, &last);
    ck_assert_int_eq(last.state, REBALANCE_STOPPED);
    ck_assert_uint_eq(store_locks(), 0);
    rebalancer_free(rebalancer);
    rebalancer = rebalancer_new(scene.child[0]->parent, REBALANCE_FILES, WIDTH, NULL, NULL);
    must(rebalancer != NULL);
    must(rebalancer_start(rebalancer) == 0);
    uint64_t bytes = last.bytes, moved = last.moved;

    scene_run(10000);
    rebalancer_look(rebalancer, &last);
    ck_assert_int_eq(last.state, REBALANCE_COMPLETED);
    ck_assert_uint_eq(moved + last.moved, 1 + SMALL_FILES);
    ck_assert_uint_ge(bytes + last.bytes, (BLOCKS + SMALL_FILES) * (uint64_t)BLOCK);
    scene.lie = NULL;
    rebalancer_free(rebalancer);
    scene_end();
}
END_TEST

START_TEST(a_rebalance_that_does_not_give_way_asks_no_brick)
{
    client_goes_on = true;
    rebalance_begins(false);
    scene_run(0);
    ck_assert_uint_eq(writes, BLOCKS / 8 + SMALL_FILES);
    ck_assert_uint_eq(questions, 0);
    rebalance_ends();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("rebalance-throttle");
    TCase *t = tcase_create("throttle");

    tcase_add_loop_test(t, without_clients_a_rebalance_runs_at_once, 0, 2);
    tcase_add_test(t, beside_clients_blocks_are_small_and_one_after_the_other);
    tcase_add_test(t, a_rebalance_runs_freely_when_the_clients_rest);
    tcase_add_test(t, a_rebalance_that_waits_can_be_stopped);
    tcase_add_test(t, a_rebalance_that_does_not_give_way_asks_no_brick);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
