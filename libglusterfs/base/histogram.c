/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/histogram.h"

#include <assert.h>

static_assert(HISTOGRAM_OCTAVES == 37 - 7, "the last octave ends at HISTOGRAM_NS_MAX");

static unsigned
first_octave(uint32_t octaves)
{
    return (unsigned)__builtin_ctz(octaves);
}

void
histogram_add(struct histogram *h, uint64_t ns)
{
    histogram_put(h, histogram_bucket(ns), 1);
    h->sum += ns;
}

void
histogram_merge(struct histogram *h, const struct histogram *from)
{
    h->count += from->count;
    h->sum += from->sum;
    h->octaves |= from->octaves;
    for (uint32_t left = from->octaves; left; left &= left - 1) {
        unsigned at = first_octave(left) * HISTOGRAM_SUB;

        for (unsigned i = at; i < at + HISTOGRAM_SUB; i++)
            h->buckets[i] += from->buckets[i];
    }
}

static void
subtract_count(uint64_t *from, uint64_t what)
{
    *from = *from > what ? *from - what : 0;
}

void
histogram_subtract(struct histogram *h, const struct histogram *before)
{
    subtract_count(&h->sum, before->sum);
    h->count = 0;
    for (uint32_t left = h->octaves; left; left &= left - 1) {
        unsigned at = first_octave(left) * HISTOGRAM_SUB;

        for (unsigned i = at; i < at + HISTOGRAM_SUB; i++) {
            subtract_count(&h->buckets[i], before->buckets[i]);
            h->count += h->buckets[i];
        }
    }
}

static uint64_t
middle_of(unsigned bucket)
{
    uint64_t start = histogram_bucket_start(bucket), end = histogram_bucket_start(bucket + 1);

    return start + (end - start) / 2;
}

static uint64_t
count_of_octave(const struct histogram *h, unsigned octave)
{
    const uint64_t *buckets = &h->buckets[octave * HISTOGRAM_SUB];
    uint64_t count = 0;

    for (unsigned i = 0; i < HISTOGRAM_SUB; i++)
        count += buckets[i];
    return count;
}

/* The number of durations, at least one, that must not be longer than the quantile. */
static uint64_t
rank_of(double q, uint64_t count)
{
    double exact = q * (double)count;
    uint64_t rank = (uint64_t)exact;

    rank += (double)rank < exact;
    return rank ? rank : 1;
}

void
histogram_quantiles(const struct histogram *h, const double *q, unsigned count, uint64_t *ns)
{
    uint64_t seen = 0, wanted = count ? rank_of(q[0], h->count) : 0;
    unsigned n = 0;

    for (uint32_t left = h->octaves; left && n < count; left &= left - 1) {
        unsigned octave = first_octave(left), i = octave * HISTOGRAM_SUB;
        uint64_t behind = seen + count_of_octave(h, octave);

        while (n < count && behind >= wanted) {
            while (seen + h->buckets[i] < wanted)
                seen += h->buckets[i++];
            ns[n++] = middle_of(i);
            wanted = n < count ? rank_of(q[n], h->count) : 0;
        }
        seen = behind;
    }
    for (; n < count; n++)
        ns[n] = 0; /* the histogram is empty */
}

uint64_t
histogram_quantile(const struct histogram *h, double q)
{
    uint64_t ns;

    histogram_quantiles(h, &q, 1, &ns);
    return ns;
}

void
histogram_below(const struct histogram *h, uint64_t below[HISTOGRAM_OCTAVES])
{
    uint64_t seen = 0;

    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
        if (h->octaves >> octave & 1)
            seen += count_of_octave(h, octave);
        below[octave] = seen;
    }
}
