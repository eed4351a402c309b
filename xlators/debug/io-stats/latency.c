/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* How long the calls of each fop take: a histogram for each brick and fop.
 *
 * At a call's end its duration is written into a ring of the thread, which stays in the processor's cache.
 * When the ring is full the thread puts what is in it into the histograms of the bricks; who reads
 * histograms, and who takes a brick down, empties all rings first. So no call waits at its end for the memory
 * of its brick's histogram, which other work has driven out of the cache meanwhile, and a brick needs only
 * one for all threads.
 *
 *      ring of thread 1   [A read 40 us] [B stat 9 us] [A read 35 us] ...     tail, head
 *      ring of thread 2   [B write 61 us] ...
 *                              |
 *      brick A            spreads[read]: sum, and for octaves 7, 8 and 13 a counter for each bucket
 *
 * A histogram has counters for the octaves (base/histogram.h) that calls have fallen into, 64 bytes each. A
 * counter has 16 bits; the upper 32 are in a second array, made when the first counter passes 65,535. A brick
 * at rest has nothing, a busy one some 8 KB.
 *
 * locks: rings_lock, then a ring's, then a brick's latency_lock; beneath them only the allocator's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ticks.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

_Thread_local struct ios_ring *ios_ring_mine;

static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ios_ring *rings; /* all threads'; under rings_lock */
static pthread_key_t exit_key; /* its value: the thread's ring */

/* ---- a brick's histograms: under its latency_lock -------------------------------------------- */

/* `from` with zeros for one octave more. NULL: no memory. */
static void *
widened(const void *from, unsigned octaves, size_t bytes)
{
    size_t had = (size_t)octaves * HISTOGRAM_SUB * bytes;
    char *to = malloc(had + HISTOGRAM_SUB * bytes);

    if (!to)
        return NULL;
    if (from)
        memcpy(to, from, had);
    memset(to + had, 0, HISTOGRAM_SUB * bytes);
    return to;
}

/* 0, or -ENOMEM: as before. */
static int
spread_widen(struct spread *s, unsigned octave)
{
    uint16_t *low = widened(s->low, s->octaves, sizeof *low);
    uint32_t *high = s->high ? widened(s->high, s->octaves, sizeof *high) : NULL;

    if (!low || (s->high && !high)) {
        free(low);
        free(high);
        return -ENOMEM;
    }
    free(s->low);
    free(s->high);
    s->low = low;
    s->high = high;
    s->place[octave] = ++s->octaves;
    return 0;
}

/* The counter has come round to 0. False: no memory, it is what it was before. */
static bool
carry(struct spread *s, unsigned counter)
{
    if (!s->high)
        s->high = calloc((size_t)s->octaves * HISTOGRAM_SUB, sizeof *s->high);
    if (!s->high) {
        s->low[counter] = UINT16_MAX;
        return false;
    }
    s->high[counter]++;
    return true;
}

static inline void
spread_add(struct spread *s, uint64_t ns)
{
    unsigned bucket = histogram_bucket(ns), octave = bucket / HISTOGRAM_SUB;

    if (__builtin_expect(!s->place[octave], 0) && spread_widen(s, octave))
        return;
    unsigned counter = (s->place[octave] - 1u) * HISTOGRAM_SUB + bucket % HISTOGRAM_SUB;
    if (__builtin_expect(++s->low[counter] != 0, 1) || carry(s, counter))
        s->sum += ns;
}

/* A call that cannot be counted for lack of memory is not. */
static inline void
add(struct ios *ios, uint64_t what)
{
    if (__builtin_expect(!ios->spreads, 0))
        ios->spreads = calloc(FOP_COUNT, sizeof *ios->spreads);
    if (ios->spreads)
        spread_add(&ios->spreads[IOS_NOTE_FOP(what)], ticks_to_ns(IOS_NOTE_TICKS(what)));
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* Notes of one brick are put into its histograms one after the other: its lock is taken once, and its memory
 * comes into the cache once. They are chained by a hash of the brick's address; `first` and `next` are 0 at
 * the end, else the number of a note's place + 1. Bricks of one hash share a chain. */
enum { CHAINS = 64 };

static unsigned
chain_of(const struct ios *ios)
{
    return (unsigned)((uintptr_t)ios * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}
static_assert(CHAINS == 1 << (64 - 58), "the highest bits of a product");

static void
chain_add(const struct ios_ring *r, const uint16_t next[IOS_RING], unsigned place)
{
    struct ios *locked = NULL;

    for (; place; place = next[place - 1]) {
        const struct ios_note *note = &r->notes[place - 1];

        if (note->ios != locked) {
            if (locked)
                pthread_mutex_unlock(&locked->latency_lock);
            locked = note->ios;
            pthread_mutex_lock(&locked->latency_lock);
        }
        add(locked, note->what);
    }
    pthread_mutex_unlock(&locked->latency_lock);
}

/* Under the ring's lock. */
static void
ring_empty_locked(struct ios_ring *r)
{
    unsigned head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint16_t first[CHAINS] = {0}, next[IOS_RING];

    for (unsigned i = atomic_load_explicit(&r->tail, memory_order_relaxed); i != head; i++) {
        unsigned place = i % IOS_RING, chain = chain_of(r->notes[place].ios);

        __builtin_prefetch(r->notes[place].ios);
        next[place] = first[chain];
        first[chain] = (uint16_t)(place + 1);
    }
    for (unsigned chain = 0; chain < CHAINS; chain++) {
        if (first[chain])
            chain_add(r, next, first[chain]);
    }
    atomic_store_explicit(&r->tail, head, memory_order_release);
}

static void
ring_empty(struct ios_ring *r)
{
    pthread_mutex_lock(&r->lock);
    ring_empty_locked(r);
    pthread_mutex_unlock(&r->lock);
}

/* All threads', without holding up one that has nothing. */
static void
rings_empty(void)
{
    pthread_mutex_lock(&rings_lock);
    for (struct ios_ring *r = rings; r; r = r->next) {
        if (atomic_load_explicit(&r->head, memory_order_acquire) !=
            atomic_load_explicit(&r->tail, memory_order_acquire))
            ring_empty(r);
    }
    pthread_mutex_unlock(&rings_lock);
}

/* The thread ends. */
static void
ring_free(void *ring)
{
    struct ios_ring *r = ring, **at = &rings;

    pthread_mutex_lock(&rings_lock);
    ring_empty(r);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    pthread_mutex_unlock(&rings_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
    ios_ring_mine = NULL;
}

/* NULL: no memory. */
static struct ios_ring *
ring_new(void)
{
    struct ios_ring *r = aligned_alloc(_Alignof(struct ios_ring), sizeof *r);

    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    if (pthread_setspecific(exit_key, r)) {
        free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_lock(&rings_lock);
    r->next = rings;
    rings = r;
    pthread_mutex_unlock(&rings_lock);
    return r;
}

void
ios_latency_note_slowly(struct ios *ios, uint64_t what)
{
    struct ios_ring *r = ios_ring_mine;

    if (!r)
        r = ios_ring_mine = ring_new();
    if (r) {
        ring_empty(r);
        ios_ring_put(r, atomic_load_explicit(&r->head, memory_order_relaxed), ios, what);
        return;
    }
    pthread_mutex_lock(&ios->latency_lock);
    add(ios, what);
    pthread_mutex_unlock(&ios->latency_lock);
}

/* ---- of a layer ------------------------------------------------------------------------------ */

int
ios_latency_init(struct ios *ios)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool has_key;

    pthread_mutex_lock(&once);
    int err = has_key ? 0 : -pthread_key_create(&exit_key, ring_free);
    has_key = !err;
    pthread_mutex_unlock(&once);
    if (!err)
        pthread_mutex_init(&ios->latency_lock, NULL);
    return err;
}

/* Adds `octave`, whose counters begin at `counter`. Two plain loops, which the compiler makes wide. */
static void
octave_tell(const struct spread *s, unsigned octave, unsigned counter, struct histogram *to)
{
    uint64_t *buckets = &to->buckets[octave * HISTOGRAM_SUB], count = 0;
    const uint16_t *low = s->low + counter;
    const uint32_t *high = s->high ? s->high + counter : NULL;

    for (unsigned i = 0; i < HISTOGRAM_SUB; i++) {
        buckets[i] += low[i];
        count += low[i];
    }
    for (unsigned i = 0; high && i < HISTOGRAM_SUB; i++) {
        buckets[i] += (uint64_t)high[i] << 16;
        count += (uint64_t)high[i] << 16;
    }
    to->count += count;
    to->octaves |= UINT32_C(1) << octave;
}

static void
spread_tell(const struct spread *s, struct histogram *to)
{
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
        if (s->place[octave])
            octave_tell(s, octave, (s->place[octave] - 1u) * HISTOGRAM_SUB, to);
    }
    to->sum += s->sum;
}

void
io_stats_gather(void)
{
    rings_empty();
}

bool
io_stats_latencies(struct xlator *xl, enum fop fop, struct histogram *to)
{
    struct ios *ios = xl->private;

    pthread_mutex_lock(&ios->latency_lock);
    bool is_any = ios->spreads && ios->spreads[fop].octaves;
    if (is_any)
        spread_tell(&ios->spreads[fop], to);
    pthread_mutex_unlock(&ios->latency_lock);
    return is_any;
}

void
ios_latency_fini(struct ios *ios)
{
    rings_empty();
    for (enum fop fop = FOP_null; ios->spreads && fop < FOP_COUNT; fop++) {
        free(ios->spreads[fop].low);
        free(ios->spreads[fop].high);
    }
    free(ios->spreads);
    pthread_mutex_destroy(&ios->latency_lock);
}
