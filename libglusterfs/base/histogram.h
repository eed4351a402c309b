/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* histogram: durations in log-linear buckets: the memory does not grow with the number of values, and two
 * histograms are merged by adding them up.
 *
 * Each octave of nanoseconds (a power of two to the next) has 32 buckets of equal width, so that the
 * middle of a bucket is at most 1/64 (1.6 %) away from its values; below 256 ns buckets are 8 ns wide.
 *
 *     octave 0   [0, 256)        8 ns          octave 2   [512, 1024)    16 ns
 *     octave 1   [256, 512)      8 ns          octave 29  [2^36, 2^37)   2^31 ns; longer ones (137 s) too
 *
 * thread: one thread at a time uses a struct histogram. Code in which many threads count at once keeps
 * counters of its own, by histogram_bucket(), and adds them up in a struct histogram for a report
 * (debug/io-stats). */
#ifndef KILN_BASE_HISTOGRAM_H
#define KILN_BASE_HISTOGRAM_H

#include <stdint.h>
#include <string.h>

enum {
    HISTOGRAM_SUB = 32, /* buckets of an octave */
    HISTOGRAM_OCTAVES = 30,
    HISTOGRAM_BUCKETS = HISTOGRAM_SUB * HISTOGRAM_OCTAVES
};
#define HISTOGRAM_NS_MAX ((UINT64_C(1) << 37) - 1)

struct histogram {
    uint64_t count, sum; /* sum: nanoseconds, exact */
    uint32_t octaves;    /* bit N: octave N has counts, or has had; the buckets of all other octaves are 0 */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* The bucket of a duration; its octave is the bucket's number / HISTOGRAM_SUB. */
static inline unsigned
histogram_bucket(uint64_t ns)
{
    if (ns > HISTOGRAM_NS_MAX)
        ns = HISTOGRAM_NS_MAX;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns | 255) - 7;
    unsigned shift = (octave ? octave : 1) + 2;

    return octave * HISTOGRAM_SUB + ((unsigned)(ns >> shift) & (HISTOGRAM_SUB - 1));
}

/* The smallest duration of a bucket. `bucket` == HISTOGRAM_BUCKETS: the end of the last one. */
static inline uint64_t
histogram_bucket_start(unsigned bucket)
{
    unsigned octave = bucket / HISTOGRAM_SUB, sub = bucket % HISTOGRAM_SUB;

    return octave ? (uint64_t)(HISTOGRAM_SUB + sub) << (octave + 2) : (uint64_t)sub << 3;
}

/* Adds `count` to a bucket; the caller adds to `sum`. */
static inline void
histogram_put(struct histogram *h, unsigned bucket, uint64_t count)
{
    h->octaves |= UINT32_C(1) << bucket / HISTOGRAM_SUB;
    h->buckets[bucket] += count;
    h->count += count;
}

/* Empties the histogram; an octave without counts costs nothing. */
static inline void
histogram_clear(struct histogram *h)
{
    for (uint32_t left = h->octaves; left; left &= left - 1)
        memset(&h->buckets[__builtin_ctz(left) * HISTOGRAM_SUB], 0, HISTOGRAM_SUB * sizeof h->buckets[0]);
    h->count = h->sum = 0;
    h->octaves = 0;
}

/* Counts a duration. */
void histogram_add(struct histogram *h, uint64_t ns);
/* Adds all counts of `from`. */
void histogram_merge(struct histogram *h, const struct histogram *from);
/* Subtracts `before`, an earlier state of the same histogram, so `h` has the counts since then. A count
 * that has gone down (the process was restarted) becomes 0. */
void histogram_subtract(struct histogram *h, const struct histogram *before);
/* The quantile `q` (0 to 1), in ns: the middle of its bucket. 0: the histogram is empty. */
uint64_t histogram_quantile(const struct histogram *h, double q);
/* Like histogram_quantile(), for `count` increasing values of q in one pass. */
void histogram_quantiles(const struct histogram *h, const double *q, unsigned count, uint64_t *ns);
/* below[N]: number of durations below the end of octave N, which is 2^(N + 8) ns. */
void histogram_below(const struct histogram *h, uint64_t below[HISTOGRAM_OCTAVES]);

#endif
