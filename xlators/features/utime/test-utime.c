/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which calls carry which times, and how an object without times gets them. */
#include <time.h>

#include "data/dict.h"
#include "xlators/features/test-layers.h"

extern const struct xlator_type features_utime_xlator;

/* The call that the bottom layer saw last. */
static struct caller seen;
static bool has_asked, has_times;
static int times_set;
static struct mdata set;

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (stk->call.fop == FOP_setxattr && stk->caller.pid == -13) {
        const struct dict_pair *p = dict_find(stk->call.dict, DICT_KEY_SET_CTIME_MDATA);

        times_set++;
        set = p && p->type == DICT_MDATA ? *p->v.mdata : (struct mdata){0};
        stk->reply.op_ret = 0;
        return XL_DONE;
    }
    seen = stk->caller;
    if (stk->call.fop == FOP_lookup) {
        has_asked = dict_has(stk->call.xdata, DICT_KEY_MDATA);
        stk->reply.stat = (struct iatt){.gfid.b = {5}, .mode = S_IFREG, .atime = 1, .mtime = 2, .ctime = 3};
        if (has_times && (!reply_xdata(stk) || dict_set_int(reply_xdata(stk), DICT_KEY_MDATA, 0)))
            return -ENOMEM;
    }
    stk->reply.op_ret = 0;
    return XL_DONE;
}

static void
setup_with(const char *no_atime)
{
    seen = (struct caller){0};
    has_asked = has_times = false;
    times_set = 0;
    bench_setup(&features_utime_xlator, (const char *const[]){"noatime", no_atime, NULL}, bottom);
}

static void
setup(void)
{
    setup_with("on");
}

static uint32_t
flags_sent(enum fop fop, int32_t valid)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.valid = valid;
    ck_assert_int_eq(bench_run(call), 0);
    return seen.time_flags;
}

START_TEST(each_fop_sets_its_times)
{
    static const struct {
        enum fop fop;
        uint32_t flags;
    } want[] = {
        {FOP_create, 0x1f}, {FOP_mknod, 0x1f},    {FOP_mkdir, 0x1f},  {FOP_symlink, 0x1f}, {FOP_unlink, 0x19},
        {FOP_rmdir, 0x19},  {FOP_link, 0x19},     {FOP_rename, 0x19}, {FOP_writev, 3},     {FOP_truncate, 3},
        {FOP_ftruncate, 3}, {FOP_removexattr, 1}, {FOP_setxattr, 1},  {FOP_fallocate, 3},  {FOP_zerofill, 3},
        {FOP_discard, 3},   {FOP_open, 0},      {FOP_readv, 0},       {FOP_stat, 0},      {FOP_fsync, 0},
    };

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        ck_assert_msg(flags_sent(want[i].fop, 0) == want[i].flags, "%s", fop_info[want[i].fop].name);
}
END_TEST

START_TEST(setattr_changes_ctime_unless_it_sets_times_only)
{
    ck_assert_uint_eq(flags_sent(FOP_setattr, 0), 1);
    ck_assert_uint_eq(flags_sent(FOP_setattr, SETATTR_MODE), 1);
    ck_assert_uint_eq(flags_sent(FOP_fsetattr, SETATTR_UID | SETATTR_GID), 1);
    ck_assert_uint_eq(flags_sent(FOP_setattr, SETATTR_ATIME | SETATTR_MTIME), 0);
    ck_assert_uint_eq(flags_sent(FOP_setattr, 0x1b0), 0);
}
END_TEST

START_TEST(the_time_is_now)
{
    time_t before = time(NULL);

    (void)flags_sent(FOP_writev, 0);
    ck_assert_int_ge(seen.ctime_sec, before);
    ck_assert_int_le(seen.ctime_sec, time(NULL));
}
END_TEST

/* The flags do not include the ctime, but the brick sets it. */
START_TEST(a_setattr_of_times_carries_the_time)
{
    time_t before = time(NULL);

    (void)flags_sent(FOP_setattr, SETATTR_ATIME | SETATTR_MTIME);
    ck_assert_int_ge(seen.ctime_sec, before);
    (void)flags_sent(FOP_fsetattr, 0x1b0);
    ck_assert_int_ge(seen.ctime_sec, before);
}
END_TEST

START_TEST(reads_set_atime_unless_no_atime_is_on)
{
    bench_teardown();
    setup_with("off");
    ck_assert_uint_eq(flags_sent(FOP_readv, 0), TIME_ATIME);
    ck_assert_uint_eq(flags_sent(FOP_open, 0), TIME_ATIME);
}
END_TEST

START_TEST(an_object_without_times_gets_those_of_the_reply)
{
    ck_assert_uint_eq(flags_sent(FOP_lookup, 0), 0);
    ck_assert(has_asked);
    ck_assert_int_eq(times_set, 1);
    ck_assert_int_eq(set.atime, 1);
    ck_assert_int_eq(set.mtime, 2);
    ck_assert_int_eq(set.ctime, 3);
    ck_assert_int_eq(atomic_load(&bench_graph.pins), 1);
}
END_TEST

START_TEST(an_object_with_times_is_left_alone)
{
    has_times = true;
    (void)flags_sent(FOP_lookup, 0);
    ck_assert_int_eq(times_set, 0);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("utime");
    TCase *t = tcase_create("utime");

    tcase_add_checked_fixture(t, setup, bench_teardown);
    tcase_add_test(t, each_fop_sets_its_times);
    tcase_add_test(t, setattr_changes_ctime_unless_it_sets_times_only);
    tcase_add_test(t, the_time_is_now);
    tcase_add_test(t, a_setattr_of_times_carries_the_time);
    tcase_add_test(t, reads_set_atime_unless_no_atime_is_on);
    tcase_add_test(t, an_object_without_times_gets_those_of_the_reply);
    tcase_add_test(t, an_object_with_times_is_left_alone);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
