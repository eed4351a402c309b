/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/histogram.h"

#include <assert.h>

static_assert(HISTOGRAM_OCTAVES == 37 - 7, "the last octave ends at HISTOGRAM_NS_MAX");

void
histogram_add(struct histogram *h, uint64_t ns)
{
    h->count++;
    h->sum += ns;
    h->buckets[histogram_bucket(ns)]++;
}

void
histogram_merge(struct histogram *h, const struct histogram *from)
{
    h->count += from->count;
    h->sum += from->sum;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        h->buckets[i] += from->buckets[i];
}

static void
subtract(uint64_t *from, uint64_t what)
{
    *from = *from > what ? *from - what : 0;
}

void
histogram_subtract(struct histogram *h, const struct histogram *before)
{
    subtract(&h->sum, before->sum);
    h->count = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        subtract(&h->buckets[i], before->buckets[i]);
        h->count += h->buckets[i];
    }
}

uint64_t
histogram_quantile(const struct histogram *h, double q)
{
    double wanted = q * (double)h->count;
    uint64_t seen = 0;
    unsigned last = 0;

    if (!h->count)
        return 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (h->buckets[i])
            last = i;
        if (h->buckets[i] && (double)seen >= wanted)
            break;
    }
    uint64_t start = histogram_bucket_start(last), end = histogram_bucket_start(last + 1);
    return start + (end - start) / 2;
}
