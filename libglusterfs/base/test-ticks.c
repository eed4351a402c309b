/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/ticks.h"

#include <check.h>

#include "event/timer.h"

/* Measures some 20 ms, or much more on a busy machine; each clock is read both before and after the other. */
static void
expect_the_same_duration(void)
{
    const struct timespec wait = {.tv_nsec = 20000000};
    uint64_t outer_ns = clock_mono_ns(), outer = ticks_now(), inner_ns = clock_mono_ns(), inner = ticks_now();

    nanosleep(&wait, NULL);
    uint64_t end_inner = ticks_now(), end_inner_ns = clock_mono_ns(), end_outer = ticks_now(),
             end_outer_ns = clock_mono_ns();
    double most = (double)(end_outer_ns - outer_ns), least = (double)(end_inner_ns - inner_ns);

    ck_assert_double_le((double)ticks_to_ns(end_inner - inner), 1.01 * most);
    ck_assert_double_ge((double)ticks_to_ns(end_outer - outer), 0.99 * least);
}

START_TEST(nanoseconds_before_the_start)
{
    ck_assert(!ticks_scale.is_counter);
    ck_assert_uint_eq(ticks_to_ns(12345), 12345);
    expect_the_same_duration();
}
END_TEST

START_TEST(ticks_match_the_kernels_clock)
{
    ticks_start();
    ticks_start();
    expect_the_same_duration();
}
END_TEST

START_TEST(a_negative_duration_is_zero)
{
    ticks_start();
    ck_assert_uint_eq(ticks_to_ns((uint64_t)-5), 0);
    ck_assert_uint_eq(ticks_to_ns(0), 0);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("ticks");
    TCase *t = tcase_create("ticks");

    tcase_add_test(t, nanoseconds_before_the_start);
    tcase_add_test(t, ticks_match_the_kernels_clock);
    tcase_add_test(t, a_negative_duration_is_zero);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
