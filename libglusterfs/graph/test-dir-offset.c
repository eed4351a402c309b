/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/dir-offset.h"

#include <check.h>
#include <stdlib.h>

static void
comes_back(uint64_t cookie, unsigned brick, unsigned bricks, uint64_t expected)
{
    unsigned got = ~0u;
    uint64_t offset = dir_offset_join(cookie, brick, bricks);

    ck_assert_uint_eq(dir_offset_split(offset, bricks, &got), expected);
    ck_assert_uint_eq(got, brick);
}

START_TEST(cookies_of_a_single_brick_are_unchanged)
{
    comes_back(1, 0, 1, 1);
    comes_back(UINT64_MAX - 1, 0, 1, UINT64_MAX - 1);
}
END_TEST

START_TEST(the_first_and_last_cookie_are_unchanged)
{
    ck_assert_uint_eq(dir_offset_join(0, 3, 4), 0);
    ck_assert_uint_eq(dir_offset_join(UINT64_MAX, 3, 4), UINT64_MAX);
}
END_TEST

START_TEST(small_cookies_come_back_whole)
{
    for (unsigned bricks = 2; bricks < 20; bricks++) {
        for (unsigned brick = 0; brick < bricks; brick++) {
            comes_back(1, brick, bricks, 1);
            comes_back(123456789, brick, bricks, 123456789);
        }
    }
    ck_assert_uint_eq(dir_offset_join(10, 3, 4), 43);
    comes_back((UINT64_C(1) << 60) - 1, 3, 4, (UINT64_C(1) << 60) - 1);
}
END_TEST

START_TEST(large_cookies_lose_their_low_bits)
{
    /* ext4's are 63 bits wide */
    comes_back(UINT64_C(0x7fffffffffffffff), 2, 4, UINT64_C(0x7ffffffffffffff8));
    comes_back(UINT64_C(0x4000000000000000), 1, 2, UINT64_C(0x4000000000000000));
    ck_assert_uint_eq(dir_offset_join(UINT64_C(1) << 60, 3, 4), UINT64_C(1) << 62 | UINT64_C(1) << 59 | 3);
}
END_TEST

START_TEST(any_number_names_a_brick)
{
    unsigned brick;

    srandom(3);
    for (int i = 0; i < 100000; i++) {
        uint64_t offset = (uint64_t)random() << 33 ^ (uint64_t)random() << 10 ^ (uint64_t)random();

        dir_offset_split(offset, 5, &brick);
        ck_assert_uint_lt(brick, 5);
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("dir-offset");
    TCase *t = tcase_create("dir-offset");

    tcase_add_test(t, cookies_of_a_single_brick_are_unchanged);
    tcase_add_test(t, the_first_and_last_cookie_are_unchanged);
    tcase_add_test(t, small_cookies_come_back_whole);
    tcase_add_test(t, large_cookies_lose_their_low_bits);
    tcase_add_test(t, any_number_names_a_brick);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
