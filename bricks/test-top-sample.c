/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/top-sample.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/histogram.h"

static struct top_sample s;

/* Two bricks; /a has seen 100 writes of 100 us and a STAT of 5 ms, and has two clients. */
static void
setup(void)
{
    struct histogram h = {0};

    s = (struct top_sample){.time_ns = 1};
    top_sample_add_brick(&s, "/a")->bytes_read = 7;
    for (unsigned i = 0; i < 100; i++)
        histogram_add(&h, 100000);
    top_sample_add_fop(&s, FOP_writev, 101, &h); /* a call is under way */
    histogram_clear(&h);
    histogram_add(&h, 5000000);
    top_sample_add_fop(&s, FOP_stat, 1, &h);
    top_sample_add_client(&s, &(struct sample_client){3, 1000, 500});
    top_sample_add_client(&s, &(struct sample_client){9, 10, 5});
    top_sample_add_brick(&s, "/b");
    ck_assert(!s.is_short);
}

static void
teardown(void)
{
    top_sample_free(&s);
}

START_TEST(what_was_counted_since_is_left)
{
    const struct sample_fop *f = top_sample_fop(&s, top_sample_brick(&s, "/a", 0), FOP_writev);
    struct histogram h = {0};

    ck_assert_uint_eq(f->calls, 101);
    for (unsigned i = 0; i < 100; i++)
        histogram_add(&h, 100000);
    histogram_add(&h, 2000000);
    histogram_add(&h, 100000);
    top_sample_subtract(&s, f, &h);
    ck_assert_uint_eq(h.count, 2);
    ck_assert_uint_eq(h.sum, 2100000);
    ck_assert_uint_eq(h.buckets[histogram_bucket(100000)], 1);
    ck_assert_uint_eq(h.buckets[histogram_bucket(2000000)], 1);
}
END_TEST

START_TEST(what_began_anew_is_left_whole)
{
    const struct sample_fop *f = top_sample_fop(&s, top_sample_brick(&s, "/a", 0), FOP_writev);
    struct histogram h = {0};

    histogram_add(&h, 100000);
    histogram_add(&h, 900000);
    top_sample_subtract(&s, f, &h);
    ck_assert_uint_eq(h.count, 2);
    ck_assert_uint_eq(h.sum, 1000000);
    top_sample_subtract(&s, NULL, &h);
    ck_assert_uint_eq(h.count, 2);
}
END_TEST

START_TEST(counts_above_32_bits)
{
    static struct histogram h;
    uint64_t many = (UINT64_C(1) << 33) + 5;

    histogram_put(&h, 12, many);
    h.sum = many;
    top_sample_add_fop(&s, FOP_readv, many, &h);
    histogram_put(&h, 12, 3);
    h.sum += 300;
    top_sample_subtract(&s, top_sample_fop(&s, top_sample_brick(&s, "/b", 1), FOP_readv), &h);
    ck_assert_uint_eq(h.count, 3);
    ck_assert_uint_eq(h.buckets[12], 3);
    ck_assert_uint_eq(h.sum, 300);
}
END_TEST

START_TEST(found_wherever_the_hint_leads)
{
    const struct sample_brick *a = top_sample_brick(&s, "/a", 0), *b = top_sample_brick(&s, "/b", 1);

    ck_assert_uint_eq(a->bytes_read, 7);
    ck_assert_ptr_ne(a, b);
    for (size_t hint = 0; hint < 4; hint++) {
        ck_assert_ptr_eq(top_sample_brick(&s, "/a", hint), a);
        ck_assert_ptr_eq(top_sample_brick(&s, "/b", hint), b);
        ck_assert_ptr_null(top_sample_brick(&s, "/c", hint));
        ck_assert_ptr_null(top_sample_brick(NULL, "/a", hint));
        ck_assert_uint_eq(top_sample_client(&s, a, 9, hint)->received, 10);
        ck_assert_uint_eq(top_sample_client(&s, a, 3, hint)->sent, 500);
        ck_assert_ptr_null(top_sample_client(&s, b, 3, hint));
        ck_assert_ptr_null(top_sample_client(&s, NULL, 3, hint));
    }
    ck_assert_uint_eq(top_sample_fop(&s, a, FOP_stat)->buckets, 1);
    ck_assert_ptr_null(top_sample_fop(&s, b, FOP_stat));
    ck_assert_ptr_null(top_sample_fop(&s, NULL, FOP_stat));
}
END_TEST

START_TEST(many)
{
    static struct histogram h;
    char name[32];

    for (uint64_t ns = 1; ns < 100000; ns += 100)
        histogram_add(&h, ns);
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "/bricks/%u", i);
        ck_assert_ptr_nonnull(top_sample_add_brick(&s, name));
        top_sample_add_fop(&s, FOP_lookup, i + 1, &h);
    }
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "/bricks/%u", i);
        const struct sample_brick *b = top_sample_brick(&s, name, i + 2);
        ck_assert_uint_eq(top_sample_fop(&s, b, FOP_lookup)->calls, i + 1);
    }
    ck_assert(!s.is_short);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *suite = suite_create("top-sample");
    TCase *t = tcase_create("top-sample");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_was_counted_since_is_left);
    tcase_add_test(t, what_began_anew_is_left_whole);
    tcase_add_test(t, counts_above_32_bits);
    tcase_add_test(t, found_wherever_the_hint_leads);
    tcase_add_test(t, many);
    suite_add_tcase(suite, t);
    return suite;
}

#include "base/test-main.h"
