/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/hard: which calls wait for a lost brick, and the answers of calls that the brick may have done. */
#include <fcntl.h>
#include <unistd.h>

#include "data/dict.h"
#include "event/timer.h"
#include "fs/fd.h"
#include "xlators/features/test-layers.h"

extern const struct xlator_type features_hard_xlator;

/* The bottom layer: the first `losses` calls that are no LOOKUP are answered with ENOTCONN, the later ones
 * with `then`. A LOOKUP finds `found`. */
static atomic_int losses, calls, looks;
static int then;
static struct gfid found;
static struct iatt end; /* FSTAT finds it */
static uint32_t last_flags;
static enum fop last_fop;
static enum call_hint_kind last_hint;

static xl_verdict
lose(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    last_hint = stk->call.hint.kind;
    if (stk->call.fop == FOP_lookup) {
        atomic_fetch_add(&looks, 1);
        stk->reply.stat = (struct iatt){.gfid = found, .mode = S_IFREG | 0644};
        stk->reply.op_ret = 0;
        return gfid_is_null(&found) ? -ENOENT : XL_DONE;
    }
    if (stk->call.fop == FOP_fstat) {
        stk->reply.stat = end;
        return bench_succeed(xl, stk);
    }
    atomic_fetch_add(&calls, 1);
    last_flags = stk->call.flags;
    last_fop = stk->call.fop;
    if (atomic_fetch_sub(&losses, 1) > 0)
        return -ENOTCONN;
    if (stk->call.fop == FOP_stat && !then)
        stk->reply.stat = (struct iatt){.gfid = found, .mode = S_IFDIR | 0751};
    if (stk->call.fop == FOP_create && !(stk->call.flags & O_EXCL))
        return bench_succeed(xl, stk);
    return then ? -then : bench_succeed(xl, stk);
}

static void
setup_for(const char *seconds)
{
    atomic_store(&losses, 0);
    atomic_store(&calls, 0);
    atomic_store(&looks, 0);
    then = 0;
    found = (struct gfid){0};
    bench_setup(&features_hard_xlator, (const char *const[]){"hard-timeout", seconds, NULL}, lose);
}

static void
setup(void)
{
    setup_for("60");
}

static void
teardown(void)
{
    features_hard_xlator.stop(bench_xl);
    bench_teardown();
}

static void
tell(enum child_event event)
{
    const struct layer_event e = {.kind = EVENT_CHILD, .child = &bench_layers[1], .change = event};

    (void)features_hard_xlator.event(bench_xl, &e);
}

/* A call about the name f in the root, which shall get or has this gfid. */
static struct bench_call *
name_call(enum fop fop, const struct gfid *gfid)
{
    struct bench_call *call = bench_call(fop, NULL);
    struct fop_call *c = &call->stk->call;

    c->loc = (struct loc){.parent = inode_root(bench_graph.inodes), .name = "f"};
    c->xdata = dict_new(&call->stk->arena);
    ck_assert_int_eq(dict_set_gfid(c->xdata, DICT_KEY_GFID_REQ, gfid), 0);
    return call;
}

static struct bench_call *
write_call(struct inode *inode, uint32_t flags)
{
    struct bench_call *call = bench_call(FOP_writev, NULL);

    call->stk->call.fd = fd_new(inode, NULL, flags, false);
    ck_assert_ptr_nonnull(call->stk->call.fd);
    return call;
}

static const struct gfid ours = {{7}}, others = {{8}};

START_TEST(a_call_waits_until_the_brick_is_back)
{
    struct bench_call *call = bench_call(FOP_stat, NULL);

    tell(CHILD_DOWN);
    bench_wind(call);
    usleep(30000);
    ck_assert(!bench_is_done(call));
    ck_assert_int_eq(atomic_load(&calls), 0);
    tell(CHILD_UP);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_int_eq(atomic_load(&calls), 1);
    bench_free(call);
}
END_TEST

START_TEST(a_call_in_flight_is_sent_again)
{
    atomic_store(&losses, 2);
    tell(CHILD_SOME_DOWN);
    ck_assert_int_eq(bench_run(bench_call(FOP_truncate, NULL)), 0);
    ck_assert_int_eq(atomic_load(&calls), 3);
}
END_TEST

START_TEST(a_call_in_flight_at_the_first_loss_is_sent_again)
{
    tell(CHILD_UP);
    atomic_store(&losses, 2);
    ck_assert_int_eq(bench_run(bench_call(FOP_truncate, NULL)), 0);
    ck_assert_int_eq(atomic_load(&calls), 3);
}
END_TEST

/* The answer ENOTCONN of bricks that stay up is no reason to wait for ever. */
START_TEST(the_time_of_an_untold_loss_counts_once)
{
    bench_teardown();
    setup_for("1");
    tell(CHILD_UP);
    atomic_store(&losses, 1000000);
    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), -ENOTCONN);
    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), -ENOTCONN);
}
END_TEST

START_TEST(without_a_loss_or_after_a_refusal_a_call_fails_at_once)
{
    atomic_store(&losses, 2);
    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), -ENOTCONN);
    tell(CHILD_DOWN);
    tell(CHILD_REFUSED);
    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), -ENOTCONN);
    ck_assert_int_eq(atomic_load(&calls), 2);
}
END_TEST

START_TEST(a_name_that_the_first_try_has_made_is_ours)
{
    static const enum fop fops[] = {FOP_mkdir, FOP_mknod, FOP_symlink};

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        struct bench_call *call = name_call(fops[i], &ours);

        atomic_store(&losses, 1);
        then = EEXIST;
        found = ours;
        tell(CHILD_SOME_DOWN);
        bench_wind(call);
        ck_assert_int_eq(bench_result(call), 0);
        ck_assert(gfid_equal(&call->stk->reply.stat.gfid, &ours));
        bench_free(call);
        found = others;
        atomic_store(&losses, 1);
        ck_assert_int_eq(bench_run(name_call(fops[i], &ours)), -EEXIST);
    }
}
END_TEST

START_TEST(an_existing_name_is_no_success_of_the_first_try)
{
    then = EEXIST;
    found = ours;
    tell(CHILD_SOME_DOWN);
    ck_assert_int_eq(bench_run(name_call(FOP_mkdir, &ours)), -EEXIST);
    ck_assert_int_eq(atomic_load(&looks), 0);
}
END_TEST

START_TEST(a_file_that_the_first_try_has_created_is_opened)
{
    struct bench_call *call = name_call(FOP_create, &ours);

    call->stk->call.flags = O_RDWR | O_EXCL;
    atomic_store(&losses, 1);
    then = EEXIST;
    found = ours;
    tell(CHILD_SOME_DOWN);
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_uint_eq(last_flags, O_RDWR);
    ck_assert_int_eq(atomic_load(&calls), 3);
}
END_TEST

START_TEST(a_removal_that_is_done_already_has_succeeded)
{
    then = ENOENT;
    tell(CHILD_SOME_DOWN);
    ck_assert_int_eq(bench_run(name_call(FOP_unlink, &ours)), -ENOENT);
    atomic_store(&losses, 1);
    ck_assert_int_eq(bench_run(name_call(FOP_unlink, &ours)), 0);
    atomic_store(&losses, 1);
    ck_assert_int_eq(bench_run(name_call(FOP_rmdir, &ours)), 0);
}
END_TEST

/* The rename of the file f. The kernel's RENAME holds the names alone, a call of libgfapi the file, too. */
static struct bench_call *
rename_call(const char *new_name, bool names_file)
{
    struct bench_call *call = name_call(FOP_rename, &others);
    struct inode *file = bench_inode("f", 7, S_IFREG);

    if (names_file)
        call->stk->call.loc.inode = inode_ref(file);
    inode_unref(file);
    call->stk->call.loc2 = (struct loc){.parent = inode_root(bench_graph.inodes), .name = new_name};
    return call;
}

static const struct gfid of_file = {{0xaa, [15] = 7}};

START_TEST(a_rename_is_done_if_the_new_name_leads_to_the_object)
{
    for (int i = 0; i < 4; i++) {
        bool is_done = i & 1;
        struct bench_call *call = rename_call("g", i & 2);

        found = is_done ? of_file : others;
        atomic_store(&losses, 1);
        then = ENOENT;
        tell(CHILD_SOME_DOWN);
        ck_assert_int_eq(bench_run(call), is_done ? 0 : -ENOENT);
        ck_assert_int_eq(last_fop, is_done ? FOP_unlink : FOP_rename); /* of the old name, if it is left */
    }
}
END_TEST

START_TEST(a_repeated_rename_leaves_no_old_name)
{
    static const struct {
        bool is_lost, leads_to_file;
        const char *to;
        int calls;
        enum fop last;
    } cases[] = {
        {true, true, "g", 3, FOP_unlink},
        {true, false, "g", 2, FOP_rename},
        {true, true, "f", 2, FOP_rename}, /* the old name is the new name */
        {false, true, "g", 1, FOP_rename},
    };

    tell(CHILD_SOME_DOWN);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct bench_call *call = rename_call(cases[i / 2].to, i % 2);

        found = cases[i / 2].leads_to_file ? of_file : others;
        atomic_store(&calls, 0);
        atomic_store(&losses, cases[i / 2].is_lost);
        ck_assert_int_eq(bench_run(call), 0);
        ck_assert_int_eq(atomic_load(&calls), cases[i / 2].calls);
        ck_assert_int_eq(last_fop, cases[i / 2].last);
    }
}
END_TEST

/* Returns the result of an append of 10 bytes at 100, whose connection is lost in flight. */
static int
lost_append(struct inode *inode)
{
    struct bench_call *call = write_call(inode, O_WRONLY | O_APPEND);

    call->stk->call.offset = 100;
    call->stk->call.payload_bytes = 10;
    call->stk->caller.time_flags = TIME_MTIME | TIME_CTIME;
    call->stk->caller.ctime_sec = 5;
    call->stk->caller.ctime_nsec = 6;
    atomic_store(&losses, 1);
    atomic_store(&calls, 0);
    return bench_run(call);
}

/* A brick that has done an append does it once more when it is asked again, so the file's end must tell. */
START_TEST(an_append_is_sent_again_unless_the_end_shows_it)
{
    struct inode *inode = bench_inode("f", 7, S_IFREG);

    tell(CHILD_SOME_DOWN);
    end = (struct iatt){.mode = S_IFREG, .size = 100, .mtime = 1};
    ck_assert_int_eq(lost_append(inode), 0);
    ck_assert_int_eq(atomic_load(&calls), 2);
    end = (struct iatt){.mode = S_IFREG, .size = 110, .mtime = 5, .mtime_nsec = 6};
    ck_assert_int_eq(lost_append(inode), 10);
    ck_assert_int_eq(atomic_load(&calls), 1);
    end.mtime_nsec = 7; /* another client's append */
    ck_assert_int_eq(lost_append(inode), -ENOTCONN);
    end.size = 120;
    ck_assert_int_eq(lost_append(inode), -ENOTCONN);
    atomic_store(&losses, 1);
    ck_assert_int_eq(bench_run(write_call(inode, O_WRONLY)), 0);
    inode_unref(inode);
}
END_TEST

/* Of two subvolumes one is away: distribute says of its names that they do not exist. */
START_TEST(a_call_of_a_name_waits_for_all_subvolumes)
{
    struct bench_call *look = bench_call(FOP_lookup, NULL);

    look->stk->call.loc = (struct loc){.parent = inode_root(bench_graph.inodes), .name = "f"};
    found = ours;
    bench_xl->children = (struct xlator *[]){&bench_layers[1]};
    bench_xl->child_count = 1;
    atomic_store(&bench_layers[1].is_degraded, true);
    tell(CHILD_SOME_DOWN);
    bench_wind(look);
    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), 0);
    ck_assert(!bench_is_done(look));
    atomic_store(&bench_layers[1].is_degraded, false);
    tell(CHILD_SOME_UP);
    ck_assert_int_eq(bench_result(look), 0);
    bench_free(look);
    bench_xl->child_count = 0;
}
END_TEST

/* Calls of names and listings ask distribute to name the loss of a subvolume, until the time is over. */
START_TEST(calls_of_names_carry_the_hint)
{
    static const struct {
        enum fop fop;
        bool has_hint;
    } cases[] = {
        {FOP_lookup, true}, {FOP_unlink, true},  {FOP_opendir, true},
        {FOP_readdirp, true}, {FOP_stat, false}, {FOP_readv, false},
    };

    bench_xl->children = (struct xlator *[]){&bench_layers[1]};
    bench_xl->child_count = 1;
    found = ours;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)bench_run(bench_call(cases[i].fop, NULL));
        ck_assert_int_eq(last_hint, cases[i].has_hint ? HINT_WAITS : HINT_NONE);
    }
    atomic_store(&bench_layers[1].is_degraded, true); /* and the loss is too long ago to wait */
    (void)bench_run(bench_call(FOP_lookup, NULL));
    ck_assert_int_eq(last_hint, HINT_NONE);
    atomic_store(&bench_layers[1].is_degraded, false);
    bench_xl->child_count = 0;
}
END_TEST

START_TEST(an_exclusive_xattr_waits_only_before_it_is_sent)
{
    struct bench_call *call = bench_call(FOP_setxattr, NULL);

    call->stk->call.flags = 1;
    tell(CHILD_DOWN);
    bench_wind(call);
    usleep(30000);
    ck_assert(!bench_is_done(call));
    tell(CHILD_UP);
    ck_assert_int_eq(bench_result(call), 0);
    bench_free(call);
    call = bench_call(FOP_setxattr, NULL);
    call->stk->call.flags = 1;
    atomic_store(&losses, 1);
    ck_assert_int_eq(bench_run(call), -ENOTCONN);
}
END_TEST

static struct bench_call *
root_call(enum fop fop)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.loc.inode = inode_root(bench_graph.inodes);
    return call;
}

/* So that umount(8) does not wait. */
START_TEST(the_attributes_of_the_root_are_answered_while_no_brick_serves)
{
    found = gfid_root;
    ck_assert_int_eq(bench_run(root_call(FOP_stat)), 0);
    for (int is_told = 0; is_told < 2; is_told++) { /* the loss is first seen by the call, then known */
        atomic_store(&losses, is_told ? 0 : 1);
        if (is_told)
            tell(CHILD_DOWN);
        else
            tell(CHILD_UP);
        struct bench_call *call = root_call(FOP_stat);
        bench_wind(call);
        ck_assert_int_eq(bench_result(call), 0);
        ck_assert_uint_eq(call->stk->reply.stat.mode, S_IFDIR | 0751);
        bench_free(call);
    }
    ck_assert_int_eq(atomic_load(&calls), 2);
    tell(CHILD_UP);
    ck_assert_int_eq(bench_run(root_call(FOP_setattr)), 0); /* the known attributes are old now */
    tell(CHILD_DOWN);
    struct bench_call *call = root_call(FOP_stat);
    bench_wind(call);
    usleep(30000);
    ck_assert(!bench_is_done(call));
    tell(CHILD_UP);
    ck_assert_int_eq(bench_result(call), 0);
    bench_free(call);
}
END_TEST

START_TEST(the_time_counts_from_the_loss)
{
    bench_teardown();
    setup_for("1");
    tell(CHILD_DOWN);
    atomic_store(&losses, 100);
    uint64_t begun = clock_mono_ns();

    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), -ENOTCONN);
    ck_assert_uint_ge(clock_mono_ns() - begun, 900000000);
    begun = clock_mono_ns();
    ck_assert_int_eq(bench_run(bench_call(FOP_stat, NULL)), -ENOTCONN);
    ck_assert_uint_lt(clock_mono_ns() - begun, 900000000);
}
END_TEST

START_TEST(held_calls_end_with_the_mount)
{
    struct bench_call *call = bench_call(FOP_stat, NULL);

    tell(CHILD_DOWN);
    bench_wind(call);
    features_hard_xlator.stop(bench_xl);
    ck_assert_int_eq(bench_result(call), -ENOTCONN);
    bench_free(call);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("hard");
    TCase *t = tcase_create("hard");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_call_waits_until_the_brick_is_back);
    tcase_add_test(t, a_call_in_flight_is_sent_again);
    tcase_add_test(t, a_call_in_flight_at_the_first_loss_is_sent_again);
    tcase_add_test(t, the_time_of_an_untold_loss_counts_once);
    tcase_add_test(t, without_a_loss_or_after_a_refusal_a_call_fails_at_once);
    tcase_add_test(t, a_name_that_the_first_try_has_made_is_ours);
    tcase_add_test(t, an_existing_name_is_no_success_of_the_first_try);
    tcase_add_test(t, a_file_that_the_first_try_has_created_is_opened);
    tcase_add_test(t, a_removal_that_is_done_already_has_succeeded);
    tcase_add_test(t, a_rename_is_done_if_the_new_name_leads_to_the_object);
    tcase_add_test(t, a_repeated_rename_leaves_no_old_name);
    tcase_add_test(t, an_append_is_sent_again_unless_the_end_shows_it);
    tcase_add_test(t, a_call_of_a_name_waits_for_all_subvolumes);
    tcase_add_test(t, calls_of_names_carry_the_hint);
    tcase_add_test(t, an_exclusive_xattr_waits_only_before_it_is_sent);
    tcase_add_test(t, the_time_counts_from_the_loss);
    tcase_add_test(t, the_attributes_of_the_root_are_answered_while_no_brick_serves);
    tcase_add_test(t, held_calls_end_with_the_mount);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
