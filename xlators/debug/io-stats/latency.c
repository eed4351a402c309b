/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* How long the calls of each fop take: a histogram for each fop and stripe.
 *
 * Most bricks see few fops, and each fop takes durations of a few octaves. So a histogram is a table of
 * octaves (base/histogram.h), and both come from pools when the first call falls into them: a brick at rest
 * has none, a busy fop about 1.5 KB in each stripe, at most 8 KB. */
#include <errno.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

static struct mem_pool *spread_pool, *octave_pool;

int
ios_latency_pools_init(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (!spread_pool)
        spread_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "io-stats-latency", .xlator = "debug/io-stats", .size = sizeof(struct spread)});
    if (!octave_pool)
        octave_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "io-stats-octave", .xlator = "debug/io-stats", .size = sizeof(struct octave)});
    pthread_mutex_unlock(&once);
    return spread_pool && octave_pool ? 0 : -ENOMEM;
}

/* NULL: no memory, this one call is not counted. */
static struct spread *
spread_make(struct xlator *xl, struct stripe *s, enum fop fop)
{
    struct spread *fresh = mem_get0_owner(spread_pool, xl->graph->owner), *there = NULL;

    if (!fresh || atomic_compare_exchange_strong(&s->spreads[fop], &there, fresh))
        return fresh;
    mem_put(fresh);
    return there;
}

static struct octave *
octave_make(struct xlator *xl, struct spread *spread, unsigned number)
{
    struct octave *fresh = mem_get0_owner(octave_pool, xl->graph->owner), *there = NULL;

    if (!fresh || atomic_compare_exchange_strong(&spread->octaves[number], &there, fresh))
        return fresh;
    mem_put(fresh);
    return there;
}

void
ios_latency_count_first(struct xlator *xl, struct stripe *s, enum fop fop, uint64_t ns)
{
    struct spread *spread = atomic_load_explicit(&s->spreads[fop], memory_order_acquire);
    struct octave *octave = NULL;

    if (!spread)
        spread = spread_make(xl, s, fop);
    if (spread)
        octave = octave_make(xl, spread, histogram_bucket(ns) / HISTOGRAM_SUB);
    if (octave)
        ios_latency_count(xl, s, fop, ns);
}

static void
add_spread(const struct spread *spread, struct histogram *to)
{
    to->sum += atomic_load_explicit(&spread->sum, memory_order_relaxed);
    for (unsigned o = 0; o < HISTOGRAM_OCTAVES; o++) {
        const struct octave *octave = atomic_load_explicit(&spread->octaves[o], memory_order_acquire);

        for (unsigned i = 0; octave && i < HISTOGRAM_SUB; i++) {
            uint64_t n = atomic_load_explicit(&octave->buckets[i], memory_order_relaxed);

            to->buckets[o * HISTOGRAM_SUB + i] += n;
            to->count += n;
        }
    }
}

bool
io_stats_latencies(struct xlator *xl, enum fop fop, struct histogram *to)
{
    struct ios *ios = xl->private;
    bool is_any = false;

    for (unsigned i = 0; i < ios->stripes; i++) {
        struct spread *spread = atomic_load_explicit(&ios->counters[i].spreads[fop], memory_order_acquire);

        if (!spread)
            continue;
        add_spread(spread, to);
        is_any = true;
    }
    return is_any;
}

void
ios_latency_free(struct ios *ios)
{
    for (unsigned i = 0; i < ios->stripes; i++) {
        for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
            struct spread *spread = atomic_load(&ios->counters[i].spreads[fop]);

            for (unsigned o = 0; spread && o < HISTOGRAM_OCTAVES; o++)
                mem_put(atomic_load(&spread->octaves[o]));
            mem_put(spread);
        }
    }
}
