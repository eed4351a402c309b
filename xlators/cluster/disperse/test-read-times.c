/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The choice of the children that a dispersed file is read from, by the times of their READs. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/disperse/read-times.h"

#define MS UINT64_C(1000000)

enum { CHILDREN_OF_TEST = 6, DATA = 4 };

static const child_set first_four = CHILDREN(DATA), last_two = CHILDREN(CHILDREN_OF_TEST) & ~CHILDREN(DATA);
static struct read_times times[CHILDREN_OF_TEST];
static uint64_t now_ns;
static _Atomic uint64_t explored_ns;

/* Begins a second after the latest READ that explored, unless `explores`. */
static void
times_clear(bool explores)
{
    memset(times, 0, sizeof times);
    now_ns = UINT64_C(1000000000000);
    atomic_store(&explored_ns, explores ? 0 : now_ns);
}

static void
read_child(unsigned i, uint64_t ms)
{
    read_time_begin(&times[i], now_ns);
    read_time_end(&times[i], now_ns, now_ns + ms * MS, false);
}

static void
read_all(uint64_t ms)
{
    for (unsigned i = 0; i < CHILDREN_OF_TEST; i++)
        read_child(i, ms);
}

static child_set
choose(void)
{
    return read_times_replace_slow(times, first_four, last_two, now_ns, &explored_ns);
}

START_TEST(children_of_equal_speed_are_those_of_the_gfid)
{
    times_clear(false);
    ck_assert_uint_eq(choose(), first_four); /* nothing is known */
    read_all(10);
    ck_assert_uint_eq(choose(), first_four);
    read_child(5, 1); /* its mean is 5.5 ms */
    ck_assert_uint_eq(choose(), first_four);
    ck_assert_uint_eq(read_times_replace_slow(times, first_four, 0, now_ns, &explored_ns), first_four);
    ck_assert_uint_eq(read_times_replace_slow(times, 0, last_two, now_ns, &explored_ns), 0);
}
END_TEST

START_TEST(a_slow_child_is_replaced_by_the_fastest_spare_one)
{
    times_clear(false);
    read_all(1);
    read_child(4, 3);
    read_child(2, 1000);
    ck_assert_uint_eq(choose(), (first_four & ~CHILD(2)) | CHILD(5));
    read_child(0, 1000);
    ck_assert_uint_eq(choose(), (first_four & ~CHILD(2) & ~CHILD(0)) | last_two);
    read_child(1, 1000); /* only two can be replaced */
    ck_assert_uint_eq(children_count(choose()), DATA);
    ck_assert_uint_eq(choose() & last_two, last_two);
}
END_TEST

START_TEST(a_spare_child_of_unknown_speed_replaces_none)
{
    times_clear(false);
    for (unsigned i = 0; i < DATA; i++)
        read_child(i, 1000);
    ck_assert_uint_eq(choose(), first_four);
    read_child(4, 10);
    ck_assert_uint_eq(children_count(choose() & first_four), DATA - 1);
    ck_assert_uint_eq(choose() & last_two, CHILD(4));
}
END_TEST

START_TEST(a_child_that_does_not_answer_is_slow)
{
    times_clear(false);
    read_all(1);
    read_time_begin(&times[3], now_ns);
    ck_assert_uint_eq(choose(), first_four);
    now_ns += 20 * MS;
    ck_assert_uint_eq(choose(), (first_four & ~CHILD(3)) | CHILD(4));
    ck_assert_uint_eq(read_time_expected(&times[3], now_ns), 20 * MS);
    now_ns += 5000 * MS; /* the READ of each second does not ask a child that hangs */
    for (unsigned n = 0; n < 10; n++, now_ns += 1000 * MS)
        ck_assert(!(choose() & CHILD(3)));
    read_time_end(&times[3], now_ns - 7000 * MS, now_ns, true); /* a failure is not a time */
    ck_assert_uint_eq(read_time_expected(&times[3], now_ns), 1 * MS);
}
END_TEST

START_TEST(one_read_a_second_asks_the_child_with_the_oldest_answer)
{
    times_clear(true);
    ck_assert_uint_eq(children_count(choose() & last_two), 1); /* two children are unknown */
    ck_assert_uint_eq(choose(), first_four);
    read_all(1);
    now_ns += 10 * MS;
    for (unsigned i = 0; i < DATA; i++)
        read_child(i, 2);
    read_child(5, 1);
    now_ns += 990 * MS;
    child_set chosen = choose();

    ck_assert_uint_eq(chosen & last_two, CHILD(4));
    ck_assert_uint_eq(children_count(chosen), DATA);
    ck_assert_uint_eq(choose(), first_four);
}
END_TEST

START_TEST(a_child_that_has_recovered_is_asked_again)
{
    unsigned seconds = 0;

    times_clear(false);
    read_all(1);
    for (unsigned n = 0; n < 20; n++)
        read_child(1, 100);
    ck_assert(!(choose() & CHILD(1)));
    for (; choose() != first_four && seconds < 60; seconds++) {
        now_ns += 1000 * MS;
        child_set chosen = choose();

        for_each_child (i, chosen)
            read_child(i, 1);
        ck_assert_uint_eq(children_count(chosen), DATA);
    }
    ck_assert_uint_le(seconds, 20);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        children_of_equal_speed_are_those_of_the_gfid,
        a_slow_child_is_replaced_by_the_fastest_spare_one,
        a_spare_child_of_unknown_speed_replaces_none,
        a_child_that_does_not_answer_is_slow,
        one_read_a_second_asks_the_child_with_the_oldest_answer,
        a_child_that_has_recovered_is_asked_again,
    };
    Suite *s = suite_create("read-times");
    TCase *t = tcase_create("choice");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
