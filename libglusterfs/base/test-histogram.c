/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/histogram.h"

#include <check.h>
#include <stdlib.h>

static struct histogram a, b, both;

/* Returns durations of all sizes, the same in each run. */
static uint64_t
some_duration(unsigned i)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u;

    x ^= x >> 29;
    return x >> (27 + i % 34);
}

static void
expect_in_bucket(uint64_t ns)
{
    unsigned bucket = histogram_bucket(ns);

    ck_assert_uint_lt(bucket, HISTOGRAM_BUCKETS);
    ck_assert_uint_ge(ns, histogram_bucket_start(bucket));
    ck_assert_uint_lt(ns, histogram_bucket_start(bucket + 1));
}

START_TEST(every_duration_has_its_bucket)
{
    for (uint64_t ns = 0; ns < 5000; ns++)
        expect_in_bucket(ns);
    for (unsigned bit = 12; bit < 37; bit++) {
        expect_in_bucket((UINT64_C(1) << bit) - 1);
        expect_in_bucket(UINT64_C(1) << bit);
        expect_in_bucket((UINT64_C(1) << bit) + 1);
    }
    for (unsigned i = 1; i < HISTOGRAM_BUCKETS; i++) {
        ck_assert_uint_lt(histogram_bucket_start(i - 1), histogram_bucket_start(i));
        ck_assert_uint_eq(histogram_bucket(histogram_bucket_start(i)), i);
        ck_assert_uint_eq(histogram_bucket(histogram_bucket_start(i) - 1), i - 1);
    }
    ck_assert_uint_eq(histogram_bucket(HISTOGRAM_NS_MAX), HISTOGRAM_BUCKETS - 1);
    ck_assert_uint_eq(histogram_bucket(HISTOGRAM_NS_MAX + 1), HISTOGRAM_BUCKETS - 1);
    ck_assert_uint_eq(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}
END_TEST

/* The reported value of one duration is at most 2 % off, below 256 ns at most 4 ns. */
START_TEST(the_error_is_bounded)
{
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t ns = some_duration(i);

        if (ns > HISTOGRAM_NS_MAX)
            continue;
        a = (struct histogram){0};
        histogram_add(&a, ns);
        int64_t off = llabs((int64_t)histogram_quantile(&a, 0.5) - (int64_t)ns);
        ck_assert_msg(ns < 256 ? off <= 4 : (double)off <= 0.02 * (double)ns, "%ju is %jd off", (uintmax_t)ns,
                      (intmax_t)off);
        i += i / 64; /* each is a pass over all buckets */
    }
}
END_TEST

static int
by_size(const void *x, const void *y)
{
    uint64_t left = *(const uint64_t *)x, right = *(const uint64_t *)y;

    return (left > right) - (left < right);
}

START_TEST(quantiles_are_those_of_the_sorted_list)
{
    enum { N = 5000 };
    static uint64_t all[N];
    const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};

    a = (struct histogram){0};
    ck_assert_uint_eq(histogram_quantile(&a, 0.5), 0);
    for (unsigned i = 0; i < N; i++) {
        all[i] = 300 + some_duration(i) % 1000000000;
        histogram_add(&a, all[i]);
    }
    qsort(all, N, sizeof all[0], by_size);
    for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        unsigned rank = (unsigned)(shares[i] * N);
        double exact = (double)all[rank ? rank - 1 : 0], told = (double)histogram_quantile(&a, shares[i]);

        ck_assert_msg(told >= 0.98 * exact && told <= 1.02 * exact, "%g: %g, not %g", shares[i], told, exact);
    }
}
END_TEST

START_TEST(below_counts_whole_octaves)
{
    uint64_t below[HISTOGRAM_OCTAVES];

    a = (struct histogram){0};
    for (unsigned i = 0; i < 10000; i++)
        histogram_add(&a, some_duration(i));
    histogram_below(&a, below);
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
        uint64_t wanted = 0;

        for (unsigned i = 0; i < 10000; i++)
            wanted += some_duration(i) < UINT64_C(1) << (octave + 8) || octave == HISTOGRAM_OCTAVES - 1;
        ck_assert_uint_eq(below[octave], wanted);
    }
}
END_TEST

START_TEST(cleared_is_as_new)
{
    static const struct histogram empty;
    const double shares[] = {0.5, 1};
    uint64_t ns[2] = {1, 1};

    a = empty;
    for (unsigned i = 0; i < 10000; i++)
        histogram_add(&a, some_duration(i));
    histogram_clear(&a);
    ck_assert_mem_eq(&a, &empty, sizeof a);
    histogram_quantiles(&a, shares, 2, ns);
    ck_assert_uint_eq(ns[0] + ns[1], 0);
}
END_TEST

START_TEST(merged_is_as_if_counted_together)
{
    a = b = both = (struct histogram){0};
    for (unsigned i = 0; i < 10000; i++) {
        histogram_add(i % 3 ? &a : &b, some_duration(i));
        histogram_add(&both, some_duration(i));
    }
    histogram_merge(&a, &b);
    ck_assert_uint_eq(a.count, both.count);
    ck_assert_uint_eq(a.sum, both.sum);
    ck_assert_mem_eq(a.buckets, both.buckets, sizeof a.buckets);
    ck_assert_uint_eq(a.octaves, both.octaves);
    histogram_subtract(&both, &b);
    histogram_subtract(&both, &a); /* a count larger than the present one becomes 0 */
    ck_assert_uint_eq(both.count, 0);
    ck_assert_uint_eq(both.sum, 0);
    ck_assert_uint_eq(histogram_quantile(&both, 0.5), 0);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("histogram");
    TCase *t = tcase_create("histogram");

    tcase_add_test(t, every_duration_has_its_bucket);
    tcase_add_test(t, the_error_is_bounded);
    tcase_add_test(t, quantiles_are_those_of_the_sorted_list);
    tcase_add_test(t, below_counts_whole_octaves);
    tcase_add_test(t, cleared_is_as_new);
    tcase_add_test(t, merged_is_as_if_counted_together);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
