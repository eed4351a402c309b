/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The arithmetic of xattrop. test-posix-xattr tests its effects on a file. */
#include <errno.h>
#include <string.h>

#include <check.h>

#include "xlators/storage/posix/xattr/xattrop.h"

#define BYTES(...) ((const unsigned char[]){__VA_ARGS__})

START_TEST(add_is_per_number_and_wraps)
{
    unsigned char v[12] = {0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0xff};

    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD, BYTES(0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1), 12), 12);
    xattrop_apply(XATTROP_ADD, BYTES(0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1), v, 12);
    ck_assert_mem_eq(v, BYTES(0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 2, 0), 12);
    /* -1 */
    xattrop_apply(XATTROP_ADD, BYTES(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0), v, 12);
    ck_assert_mem_eq(v, BYTES(0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 2, 0), 12);
}
END_TEST

START_TEST(add64_carries)
{
    unsigned char v[8] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};

    xattrop_apply(XATTROP_ADD64, BYTES(0, 0, 0, 0, 0, 0, 0, 1), v, 8);
    ck_assert_mem_eq(v, BYTES(0, 0, 0, 1, 0, 0, 0, 0), 8);
}
END_TEST

START_TEST(defaults_count_where_nothing_is_stored)
{
    unsigned char v[8] = {0, 0, 0, 0, 0, 0, 0, 5};
    /* deltas 1 and 1, defaults 10 and 10 */
    const unsigned char *request = BYTES(0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 10, 0, 0, 0, 10);

    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD_DEFAULT, request, 16), 8);
    xattrop_apply(XATTROP_ADD_DEFAULT, request, v, 8);
    ck_assert_mem_eq(v, BYTES(0, 0, 0, 11, 0, 0, 0, 6), 8);
}
END_TEST

START_TEST(values_of_wrong_length_or_operation_are_refused)
{
    const unsigned char *zero = BYTES(0, 0, 0, 0, 0, 0, 0, 0);
    const unsigned char *one = BYTES(0, 0, 0, 0, 0, 0, 0, 1);

    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD, one, 8), 8);
    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD, one, 7), -EINVAL);
    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD64, one, 4), -EINVAL);
    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD_DEFAULT, one, 4), -EINVAL);
    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD64_DEFAULT, one, 8), -EINVAL);
    ck_assert_int_eq(xattrop_result_len(XATTROP_GET_AND_SET, one, 7), 7);
    /* or, and, and unknown operations accept only zeros */
    ck_assert_int_eq(xattrop_result_len(2, one, 8), -EINVAL);
    ck_assert_int_eq(xattrop_result_len(3, zero, 8), 8);
    ck_assert_int_eq(xattrop_result_len(99, one, 8), -EINVAL);
    ck_assert_int_eq(xattrop_result_len(XATTROP_ADD, zero, 0), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("xattrop");
    TCase *t = tcase_create("xattrop");

    tcase_add_test(t, add_is_per_number_and_wraps);
    tcase_add_test(t, add64_carries);
    tcase_add_test(t, defaults_count_where_nothing_is_stored);
    tcase_add_test(t, values_of_wrong_length_or_operation_are_refused);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
