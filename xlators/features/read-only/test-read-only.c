/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which operations a read-only volume refuses, and to which clients. */
#include <fcntl.h>

#include "xlators/features/test-layers.h"

extern const struct xlator_type features_read_only_xlator;

static void
setup(void)
{
    bench_setup(&features_read_only_xlator, (const char *const[]){"read-only", "on", NULL}, bench_succeed);
}

START_TEST(every_write_is_refused_and_every_read_passes)
{
    for (enum fop fop = FOP_null + 1; fop < FOP_COUNT; fop++) {
        bool reads_counters = fop == FOP_xattrop || fop == FOP_fxattrop;
        int want = (fop_info[fop].traits & FOP_WRITES) && !reads_counters ? -EROFS : 0;

        ck_assert_msg(bench_ask(fop, 1000, 0) == want, "%s", fop_info[fop].name);
        ck_assert_int_eq(bench_ask(fop, -6, 0), 0);
    }
}
END_TEST

START_TEST(open_for_writing_is_refused)
{
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_RDONLY), 0);
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_WRONLY), -EROFS);
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_RDWR), -EROFS);
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_RDONLY | O_TRUNC), -EROFS);
    ck_assert_int_eq(bench_ask(FOP_open, -6, O_RDWR), 0);
}
END_TEST

static int
count_up(uint32_t by, uint64_t typed)
{
    struct bench_call *call = bench_call(FOP_fxattrop, NULL);
    uint32_t value[3] = {0, 0, by};

    call->stk->caller.pid = 1000;
    call->stk->call.dict = dict_new(&call->stk->arena);
    ck_assert_int_eq(dict_set_text(call->stk->call.dict, "trusted.afr.dirty", DICT_PTR, value, sizeof value),
                     0);
    ck_assert_int_eq(dict_set_uint(call->stk->call.dict, DICT_KEY_OPEN_FD_COUNT, typed), 0);
    return bench_run(call);
}

START_TEST(counters_may_be_read)
{
    ck_assert_int_eq(count_up(0, 0), 0);
    ck_assert_int_eq(count_up(1, 0), -EROFS);
    ck_assert_int_eq(count_up(0, 1), -EROFS);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("read-only");
    TCase *t = tcase_create("read-only");

    tcase_add_checked_fixture(t, setup, bench_teardown);
    tcase_add_test(t, every_write_is_refused_and_every_read_passes);
    tcase_add_test(t, open_for_writing_is_refused);
    tcase_add_test(t, counters_may_be_read);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
