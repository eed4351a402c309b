/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* histogram: how long things took, in log-linear buckets: memory does not grow with what is counted, and two
 * histograms are merged by adding them up.
 *
 * Each octave of nanoseconds (a power of two to the next) has 32 buckets of equal width, so that the middle
 * of a bucket is at most 1/64 (1.6 %) away from what fell into it; below 256 ns buckets are 8 ns wide.
 *
 *     octave 0   [0, 256)        8 ns          octave 2   [512, 1024)    16 ns
 *     octave 1   [256, 512)      8 ns          octave 29  [2^36, 2^37)   2^31 ns; longer ones (137 s) too
 *
 * thread: a struct histogram is one thread's at a time. What is counted by many threads at once keeps
 * counters of its own, by histogram_bucket(), and is added up here when somebody asks (debug/io-stats). */
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
    uint32_t octaves;    /* bit N: octave N has counts, or has had; the buckets of all others are 0 */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* The bucket of a duration: the octave is its number / HISTOGRAM_SUB. */
static inline unsigned
histogram_bucket(uint64_t ns)
{
    if (ns > HISTOGRAM_NS_MAX)
        ns = HISTOGRAM_NS_MAX;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns | 255) - 7;
    unsigned shift = (octave ? octave : 1) + 2;

    return octave * HISTOGRAM_SUB + ((unsigned)(ns >> shift) & (HISTOGRAM_SUB - 1));
}

/* The least duration that falls into a bucket. `bucket` == HISTOGRAM_BUCKETS: the end of the last one. */
static inline uint64_t
histogram_bucket_start(unsigned bucket)
{
    unsigned octave = bucket / HISTOGRAM_SUB, sub = bucket % HISTOGRAM_SUB;

    return octave ? (uint64_t)(HISTOGRAM_SUB + sub) << (octave + 2) : (uint64_t)sub << 3;
}

/* As many more in a bucket; `sum` is the caller's to add. */
static inline void
histogram_put(struct histogram *h, unsigned bucket, uint64_t count)
{
    h->octaves |= UINT32_C(1) << bucket / HISTOGRAM_SUB;
    h->buckets[bucket] += count;
    h->count += count;
}

/* Empty again; an octave without counts costs nothing. */
static inline void
histogram_clear(struct histogram *h)
{
    for (uint32_t left = h->octaves; left; left &= left - 1)
        memset(&h->buckets[__builtin_ctz(left) * HISTOGRAM_SUB], 0, HISTOGRAM_SUB * sizeof h->buckets[0]);
    h->count = h->sum = 0;
    h->octaves = 0;
}

/* One more. */
void histogram_add(struct histogram *h, uint64_t ns);
/* All of `from` too. */
void histogram_merge(struct histogram *h, const struct histogram *from);
/* What was counted since `before`, an earlier state of the same histogram, is left in `h`. A count that has
 * gone down since (the process is another one) counts as 0. */
void histogram_subtract(struct histogram *h, const struct histogram *before);
/* The duration that a share `q` (0 to 1) of all do not exceed, in ns: the middle of its bucket. 0: there is
 * none. */
uint64_t histogram_quantile(const struct histogram *h, double q);
/* The same of `count` shares that grow, at one go. */
void histogram_quantiles(const struct histogram *h, const double *q, unsigned count, uint64_t *ns);
/* below[N]: how many took less than the end of octave N, which is 2^(N + 8) ns. */
void histogram_below(const struct histogram *h, uint64_t below[HISTOGRAM_OCTAVES]);

#endif
