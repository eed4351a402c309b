/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* simple-quota: limits as text, the state file after a process that died in the middle of a change, and
 * replies that arrive in another order than the changes. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/dict.h"
#include "graph/graph.h"
#include "graph/pools.h"
#include "xlators/features/simple-quota/squota-internal.h"

static char brick[64];
static struct graph graph;
static struct xlator layer = {.name = "quota", .graph = &graph};
static const struct gfid one = {{1}}, two = {{2}}, object = {{3}}, other = {{4}};

static void
setup(void)
{
    char text[256], error[256], path[128];

    ck_assert_int_eq(graph_pools_init(), 0);
    strcpy(brick, "/tmp/kiln-squota-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(brick));
    snprintf(path, sizeof path, "%s/.glusterfs", brick);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(text, sizeof text, "volume p\n type storage/posix\n option directory %s\nend-volume\n", brick);
    graph.volfile = volfile_parse("test", text, strlen(text), error, sizeof error);
    ck_assert_ptr_nonnull(graph.volfile);
}

static void
teardown(void)
{
    char command[128];

    volfile_free(graph.volfile);
    snprintf(command, sizeof command, "rm -r %s", brick);
    ck_assert_int_eq(system(command), 0);
}

/* Runs `act` on the state in a process that exits without closing the state. */
static void
die_after(void (*act)(struct squota_state *s))
{
    pid_t pid = fork();
    int status;

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        bool is_whole;
        struct squota_state *s = squota_state_open(&layer, &is_whole);

        if (!s)
            _exit(1);
        act(s);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static void
begin_change(struct squota_state *s)
{
    unsigned record = squota_state_add(s, &one), second = squota_state_add(s, &two);

    squota_state_counting(s, record, false);
    squota_state_set(s, record, 8192);
    squota_state_set(s, second, 512); /* a count is still running */
    squota_state_settle(s, record, 12288, squota_slot_take(s, record, &object, 0), 4096);
    squota_slot_give(s, squota_slot_take(s, record, &other, 100));
}

START_TEST(a_kill_leaves_the_usage_and_the_changing_objects)
{
    unsigned record, of_slot;
    struct gfid gfid;
    int64_t used = 0, charge;
    bool is_whole, is_counting;

    die_after(begin_change);
    struct squota_state *s = squota_state_open(&layer, &is_whole);
    ck_assert(s && is_whole);
    record = squota_state_find(s, &one, &used, &is_counting);
    ck_assert(record && !is_counting);
    ck_assert_int_eq(used, 12288);
    ck_assert(squota_state_find(s, &two, &used, &is_counting) && is_counting);
    unsigned slot = squota_slot_next(s, 0, &of_slot, &gfid, &charge);
    ck_assert(slot && of_slot == record && gfid_equal(&gfid, &object));
    ck_assert_int_eq(charge, 4096);
    ck_assert_uint_eq(squota_slot_next(s, slot, &of_slot, &gfid, &charge), 0);
    ck_assert_uint_eq(squota_state_next(s, 0, &gfid), record);
    ck_assert(gfid_equal(&gfid, &one));
    ck_assert_uint_ne(squota_state_next(s, record, &gfid), 0);
    ck_assert(gfid_equal(&gfid, &two));
    squota_state_close(s, true);
}
END_TEST

START_TEST(dropping_a_namespace_drops_its_slots)
{
    unsigned of_slot;
    struct gfid gfid;
    int64_t used, charge;
    bool is_whole, is_counting;

    die_after(begin_change);
    struct squota_state *s = squota_state_open(&layer, &is_whole);
    squota_state_drop(s, squota_state_find(s, &one, &used, &is_counting));
    ck_assert_uint_eq(squota_state_find(s, &one, &used, &is_counting), 0);
    ck_assert_uint_ne(squota_slot_next(s, 0, &of_slot, &gfid, &charge), 0);
    ck_assert_uint_eq(of_slot, 0);
    squota_state_close(s, false);
}
END_TEST

START_TEST(a_brick_that_served_without_the_layer_is_counted_anew)
{
    int64_t used;
    bool is_whole, is_counting;

    die_after(begin_change);
    squota_state_forget(&layer);
    struct squota_state *s = squota_state_open(&layer, &is_whole);
    ck_assert(s && !is_whole);
    ck_assert_uint_eq(squota_state_find(s, &one, &used, &is_counting), 0);
    squota_state_close(s, true);
}
END_TEST

static void
hear_of_others(struct squota_state *s)
{
    begin_change(s);
    squota_state_set_others(s, 1, 777);
}

START_TEST(a_kill_leaves_the_usage_of_other_bricks)
{
    bool is_whole, is_counting;
    int64_t used;

    die_after(hear_of_others);
    struct squota_state *s = squota_state_open(&layer, &is_whole);
    ck_assert(s && is_whole);
    ck_assert_int_eq(squota_state_others(s, squota_state_find(s, &one, &used, &is_counting)), 777);
    ck_assert_int_eq(squota_state_others(s, squota_state_find(s, &two, &used, &is_counting)), -1);
    squota_state_close(s, true);
}
END_TEST

/* As if the machine had crashed: the file is of another boot. */
static void
change_boot_id(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/.glusterfs/kiln-squota", brick);
    FILE *f = fopen(path, "r+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 8, SEEK_SET), 0); /* behind the magic number */
    ck_assert_int_ne(fputs("another boot", f), EOF);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_crash_of_the_machine_leaves_only_the_usage_of_other_bricks)
{
    unsigned record, of_slot;
    struct gfid gfid;
    bool is_whole, is_counting = false;
    int64_t used = -1, charge;

    die_after(hear_of_others);
    change_boot_id();
    struct squota_state *s = squota_state_open(&layer, &is_whole);
    ck_assert(s && !is_whole);
    record = squota_state_find(s, &one, &used, &is_counting);
    ck_assert(record && is_counting);
    ck_assert_int_eq(used, 0);
    ck_assert_int_eq(squota_state_others(s, record), 777);
    ck_assert_uint_eq(squota_slot_next(s, 0, &of_slot, &gfid, &charge), 0);
    squota_state_drop(s, record);
    record = squota_state_add(s, &other);
    ck_assert_int_eq(squota_state_others(s, record), -1);
    squota_state_close(s, true);
}
END_TEST

/* ---- the sum of all bricks ------------------------------------------------------------------- */

START_TEST(changes_between_the_sum_and_its_arrival_count)
{
    struct squota q = {.state = NULL};
    struct squota_ns ns = {.used = 1000, .listed = 1000, .others = -1};

    ns.used = 1400; /* after the listing, before the sum arrives */
    squota_ns_told(&q, &ns, 3000, 0);
    ck_assert_int_eq(ns.others, 2000); /* so 3400 in all */
    ns.listed = -1;
    squota_ns_told(&q, &ns, 1000, 0); /* an old sum */
    ck_assert_int_eq(ns.others, 0);
    squota_ns_untold(&q, &ns);
    ck_assert_int_eq(ns.others, -1);
}
END_TEST

START_TEST(missing_subvolumes_count_as_in_the_last_whole_sum)
{
    struct squota q = {.state = NULL};
    struct squota_ns ns = {.listed = 100, .others = -1};

    squota_ns_told(&q, &ns, 1000, 0); /* 900 elsewhere */
    squota_ns_told(&q, &ns, 400, 7);  /* 300 of them, so the missing subvolumes have 600 */
    ck_assert_int_eq(ns.others, 900);
    squota_ns_told(&q, &ns, 450, 7);
    ck_assert_int_eq(ns.others, 950);
    squota_ns_told(&q, &ns, 300, 7);
    ck_assert_int_eq(ns.others, 800);
    squota_ns_told(&q, &ns, 150, 9); /* one more is missing */
    ck_assert_int_eq(ns.others, 800);
    squota_ns_told(&q, &ns, 1100, 0);
    ck_assert_int_eq(ns.others, 1000);
    ns = (struct squota_ns){.listed = 100, .others = -1};
    squota_ns_told(&q, &ns, 400, 7); /* never a whole sum: at least the known part */
    ck_assert_int_eq(ns.others, 300);
}
END_TEST

START_TEST(shared_usage_is_that_of_the_fullest_replicas)
{
    struct squota_shared *s = simple_quota_shared_new(4, 2);

    ck_assert_ptr_nonnull(s);
    simple_quota_shared_set(s, 0, 10);
    simple_quota_shared_set(s, 1, 12);
    simple_quota_shared_set(s, 3, 5);
    simple_quota_shared_set(s, 4, 1000); /* no such brick */
    ck_assert_int_eq(squota_shared_put(s, 2, 7), 19);
    ck_assert_int_eq(squota_shared_put(s, 0, 20), 27);
    ck_assert_int_eq(squota_shared_put(s, -1, 100), 127);
    simple_quota_shared_unref(simple_quota_shared_ref(s));
    simple_quota_shared_unref(s);
}
END_TEST

/* ---- changes that run at once ---------------------------------------------------------------- */

enum { BLOCK = 4096 };

static struct {
    struct squota q;
    struct squota_ns ns;
    struct squota_inode ctx;
    struct inode *inode;
    struct call_stack *stk;
} w;

/* A file of no bytes in a namespace with a limit of four blocks. The background work is off. */
static void
setup_writes(void)
{
    ck_assert_int_eq(graph_pools_init(), 0);
    memset(&w, 0, sizeof w);
    w.q.is_stopping = true;
    pthread_mutex_init(&w.q.lock, NULL);
    pthread_mutex_init(&w.q.look_lock, NULL);
    CDS_INIT_LIST_HEAD(&w.q.queue);
    CDS_INIT_LIST_HEAD(&w.q.flyers);
    w.ns = (struct squota_ns){.limit = 4 * BLOCK, .others = -1, .listed = -1};
    w.inode = calloc(1, sizeof *w.inode + sizeof w.inode->ctx[0]);
    ck_assert_ptr_nonnull(w.inode);
    refcount_init(&w.inode->refs, 1);
    w.inode->gfid = object;
    w.inode->type = S_IFREG;
    w.inode->ctx[0] = &w.ctx;
    w.ctx = (struct squota_inode){.ns = &w.ns, .is_known = true, .inode = w.inode};
    CDS_INIT_LIST_HEAD(&w.ctx.link);
    CDS_INIT_LIST_HEAD(&w.ctx.flyers_link);
    layer.private = &w.q;
    layer.slot[CTX_INODE] = 1;
    w.stk = squota_call(FOP_writev);
    ck_assert_ptr_nonnull(w.stk);
}

static void
teardown_writes(void)
{
    call_stack_free(w.stk);
    free(w.inode);
    layer.private = NULL;
}

/* Begins a write of the block `i` of the file. Returns 0 or -errno. */
static int
write_begun(unsigned i)
{
    const struct squota_need need = {.offset = (uint64_t)i * BLOCK, .bytes = BLOCK};
    int64_t reserved;
    int err;

    (void)squota_begin(&layer, w.stk, w.inode, NULL, &need, &reserved, &err);
    ck_assert(err || reserved == BLOCK);
    return err;
}

/* Ends a change with the reply that the file has `blocks` blocks. */
static void
change_ended(unsigned blocks, int64_t reserved)
{
    const struct iatt after = {
        .mode = S_IFREG, .size = (uint64_t)blocks * BLOCK, .blocks = (uint64_t)blocks * BLOCK / 512};

    squota_end(&layer, &w.ctx, SQUOTA_CHANGED, &after, reserved);
}

START_TEST(an_old_reply_does_not_let_a_write_pass_the_limit)
{
    int64_t reserved;
    int err;

    /* While a change runs, the file gets no stat. */
    ck_assert_ptr_nonnull(squota_begin(&layer, w.stk, w.inode, NULL, NULL, &reserved, &err));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(write_begun(i), 0);
    change_ended(1, BLOCK);
    change_ended(2, BLOCK);
    change_ended(4, BLOCK);
    change_ended(3, BLOCK); /* the reply of the third write, older than that of the fourth */
    w.stk->caller.pid = 1; /* a user: the layer itself is not limited */
    ck_assert_int_eq(write_begun(4), -EDQUOT);
    ck_assert_int_eq(w.ns.used, 4 * BLOCK);
    ck_assert_int_eq(w.ctx.size, 4 * BLOCK);
    ck_assert_int_eq(w.ns.reserved, 0);
}
END_TEST

START_TEST(a_truncate_alone_returns_its_blocks_at_once)
{
    int64_t reserved;
    int err;

    ck_assert_int_eq(write_begun(0), 0);
    ck_assert_int_eq(write_begun(1), 0);
    change_ended(2, BLOCK);
    change_ended(1, BLOCK);
    ck_assert_int_eq(w.ns.used, 2 * BLOCK);
    ck_assert_ptr_nonnull(squota_begin(&layer, w.stk, w.inode, NULL, NULL, &reserved, &err));
    change_ended(0, reserved);
    ck_assert_int_eq(w.ns.used, 0);
    ck_assert_int_eq(w.ctx.size, 0);
}
END_TEST

static int64_t
parsed(const char *bytes, unsigned len)
{
    struct arena arena = {0};
    struct dict *d = dict_new(&arena);

    ck_assert(d && dict_set_text(d, SQUOTA_XATTR_LIMIT, DICT_PTR, bytes, len) == 0);
    int64_t limit = squota_limit_parse(dict_find_text(d, SQUOTA_XATTR_LIMIT));
    arena_release(&arena);
    return limit;
}

START_TEST(limits_are_decimal_text)
{
    ck_assert_int_eq(parsed("1048576", 7), 1048576);
    ck_assert_int_eq(parsed("1048576", 8), 1048576); /* with the NUL that stock's layer writes */
    ck_assert_int_eq(parsed("1048576\n", 8), 1048576);
    ck_assert_int_eq(parsed("9223372036854775807", 19), INT64_MAX);
    ck_assert_int_eq(parsed("9223372036854775808", 19), 0);
    ck_assert_int_eq(parsed("0", 1), 0);
    ck_assert_int_eq(parsed("-5", 2), 0);
    ck_assert_int_eq(parsed("10G", 3), 0);
    ck_assert_int_eq(parsed("", 0), 0);
    ck_assert_int_eq(parsed("00000000000000000000000000000000000000001", 41), 0);
    ck_assert_int_eq(squota_limit_parse(NULL), 0);
}
END_TEST

static void
pools(void)
{
    ck_assert_int_eq(graph_pools_init(), 0);
}

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("simple-quota");
    TCase *state = tcase_create("state"), *text = tcase_create("text"), *sums = tcase_create("sums"),
          *writes = tcase_create("writes");

    tcase_add_checked_fixture(state, setup, teardown);
    tcase_add_test(state, a_kill_leaves_the_usage_and_the_changing_objects);
    tcase_add_test(state, dropping_a_namespace_drops_its_slots);
    tcase_add_test(state, a_brick_that_served_without_the_layer_is_counted_anew);
    tcase_add_test(state, a_kill_leaves_the_usage_of_other_bricks);
    tcase_add_test(state, a_crash_of_the_machine_leaves_only_the_usage_of_other_bricks);
    suite_add_tcase(s, state);
    tcase_add_test(sums, changes_between_the_sum_and_its_arrival_count);
    tcase_add_test(sums, missing_subvolumes_count_as_in_the_last_whole_sum);
    tcase_add_test(sums, shared_usage_is_that_of_the_fullest_replicas);
    suite_add_tcase(s, sums);
    tcase_add_checked_fixture(writes, setup_writes, teardown_writes);
    tcase_add_test(writes, an_old_reply_does_not_let_a_write_pass_the_limit);
    tcase_add_test(writes, a_truncate_alone_returns_its_blocks_at_once);
    suite_add_tcase(s, writes);
    tcase_add_checked_fixture(text, pools, NULL);
    tcase_add_test(text, limits_are_decimal_text);
    suite_add_tcase(s, text);
    return s;
}

#include "base/test-main.h"
