/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The durations of the calls of each fop: a histogram for each brick and fop.
 *
 * At the end of a call its duration is written into a ring of the thread, which stays in the processor's
 * cache. When the ring is full, the thread moves its notes into the histograms of the bricks. A reader of
 * histograms, and the end of a brick, first empty all rings. So a call does not wait at its end for the
 * memory of its brick's histogram, which other work has evicted from the cache meanwhile, and a brick needs
 * only one histogram for all threads.
 *
 *      ring of thread 1   [A read 40 us] [B stat 9 us] [A read 35 us] ...     tail, head
 *      ring of thread 2   [B write 61 us] ...
 *                              |
 *      brick A            spreads[read]: sum; for octaves 7 and 8 a counter for each bucket; few calls of 13
 *
 * A histogram has counters for the octaves (base/histogram.h) that most calls fall into: one byte per bucket,
 * and two or eight when a counter of the octave overflows. Calls of all other octaves are kept individually.
 * There will always be calls slower than any before, and an octave for each of them would let a process grow
 * for days. An idle brick uses no memory, a busy one some 5 KB.
 *
 * locks: rings_lock, then a ring's lock, then a brick's latency_lock; inside of them only the allocator's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ticks.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

_Thread_local struct ios_ring *ios_ring_mine;

static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ios_ring *rings; /* all threads' rings; under rings_lock */
static pthread_key_t exit_key; /* its value: the thread's ring */

/* ---- a brick's histograms: under its latency_lock -------------------------------------------- */

static uint64_t
calls_at(const void *counters, unsigned width, unsigned i)
{
    if (width == 0)
        return ((const uint8_t *)counters)[i];
    return width == 1 ? ((const uint16_t *)counters)[i] : ((const uint64_t *)counters)[i];
}

/* Widens the counters of an octave. Returns false without memory. */
static bool
counters_widen(struct spread *s, unsigned octave)
{
    void **counters = &s->counters[s->octave[octave].place - 1];
    unsigned width = s->octave[octave].width;
    void *wide = malloc(HISTOGRAM_SUB * (width ? sizeof(uint64_t) : sizeof(uint16_t)));

    if (!wide)
        return false;
    for (unsigned i = 0; i < HISTOGRAM_SUB; i++) {
        if (width == 0)
            ((uint16_t *)wide)[i] = (uint16_t)calls_at(*counters, width, i);
        else
            ((uint64_t *)wide)[i] = calls_at(*counters, width, i);
    }
    free(*counters);
    *counters = wide;
    s->octave[octave].width++;
    return true;
}

/* Counts a call of an octave that has counters. Returns false if there is no memory; the call is not counted.
 */
static inline bool
counters_add(struct spread *s, unsigned bucket)
{
    static const uint64_t most[] = {UINT8_MAX, UINT16_MAX, UINT64_MAX};
    unsigned octave = bucket / HISTOGRAM_SUB, i = bucket % HISTOGRAM_SUB;
    void **counters = &s->counters[s->octave[octave].place - 1];
    unsigned width = s->octave[octave].width;

    if (__builtin_expect(calls_at(*counters, width, i) == most[width], 0) && !counters_widen(s, octave))
        return false;
    width = s->octave[octave].width;
    if (width == 0)
        ((uint8_t *)*counters)[i]++;
    else if (width == 1)
        ((uint16_t *)*counters)[i]++;
    else
        ((uint64_t *)*counters)[i]++;
    return true;
}

/* Returns the octave that most entries of `few` belong to. */
static unsigned
few_most(const struct spread *s)
{
    uint8_t calls[HISTOGRAM_OCTAVES] = {0};
    unsigned most = s->few[0] / HISTOGRAM_SUB;

    for (unsigned i = 0; i < s->few_count; i++) {
        unsigned octave = s->few[i] / HISTOGRAM_SUB;
        if (++calls[octave] > calls[most])
            most = octave;
    }
    return most;
}

/* `few` is full: gives counters to the octave that most of its entries belong to, which makes room. Returns
 * false without memory. */
static bool
few_make_room(struct spread *s)
{
    unsigned octave = few_most(s), stay = 0;
    void *narrow = calloc(HISTOGRAM_SUB, sizeof(uint8_t));
    void **counters = narrow ? realloc(s->counters, (s->octaves + 1u) * sizeof *counters) : NULL;

    if (!counters) {
        free(narrow);
        return false;
    }
    counters[s->octaves] = narrow;
    s->counters = counters;
    s->octave[octave].place = (uint8_t)(++s->octaves & 63);
    for (unsigned i = 0; i < s->few_count; i++) {
        if (s->few[i] / HISTOGRAM_SUB == octave)
            counters_add(s, s->few[i]); /* has room: at most FEW entries */
        else
            s->few[stay++] = s->few[i];
    }
    s->few_count = (uint8_t)stay;
    return true;
}

static inline void
spread_add(struct spread *s, uint64_t ns)
{
    unsigned bucket = histogram_bucket(ns), octave = bucket / HISTOGRAM_SUB;

    if (__builtin_expect(!s->octave[octave].place && s->few_count == FEW, 0) && !few_make_room(s))
        return;
    if (__builtin_expect(s->octave[octave].place, 1)) {
        if (!counters_add(s, bucket))
            return;
    } else {
        s->few[s->few_count++] = (uint16_t)bucket;
    }
    s->sum += ns;
}

/* Returns the histogram of a fop, created at its first call. NULL: no memory. */
static struct spread *
spread_of(struct ios *ios, enum fop fop)
{
    if (!ios->spreads)
        ios->spreads = calloc(FOP_COUNT, sizeof *ios->spreads);
    if (ios->spreads && !ios->spreads[fop])
        ios->spreads[fop] = calloc(1, sizeof *ios->spreads[fop]);
    return ios->spreads ? ios->spreads[fop] : NULL;
}

/* Counts a call, or ignores it if there is no memory. */
static inline void
latency_add(struct ios *ios, uint64_t what)
{
    struct spread *s = spread_of(ios, IOS_NOTE_FOP(what));

    if (s)
        spread_add(s, ticks_to_ns(IOS_NOTE_TICKS(what)));
}

static void
spread_free(struct spread *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->octaves; i++)
        free(s->counters[i]);
    free(s->counters);
    free(s);
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* The notes of a brick are moved into the histograms in succession, so the thread takes the brick's lock
 * once, and the brick's memory enters the cache once. The notes are chained by a hash of the brick's address.
 * `first` and `next` contain the number of a note's place + 1, or 0 at the end. Bricks with the same hash
 * share a chain.
 */
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
        latency_add(locked, note->what);
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

/* Empties the rings of all threads, without taking the lock of an empty ring. */
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

/* Runs when the thread exits. */
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
    latency_add(ios, what);
    pthread_mutex_unlock(&ios->latency_lock);
}

/* ---- for the layer --------------------------------------------------------------------------- */

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

static void
spread_export(const struct spread *s, struct histogram *to)
{
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
        unsigned place = s->octave[octave].place;

        for (unsigned i = 0; place && i < HISTOGRAM_SUB; i++) {
            uint64_t calls = calls_at(s->counters[place - 1], s->octave[octave].width, i);

            if (calls)
                histogram_put(to, octave * HISTOGRAM_SUB + i, calls);
        }
    }
    for (unsigned i = 0; i < s->few_count; i++)
        histogram_put(to, s->few[i], 1);
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
    const struct spread *s = ios->spreads ? ios->spreads[fop] : NULL;
    if (s)
        spread_export(s, to);
    pthread_mutex_unlock(&ios->latency_lock);
    return s != NULL;
}

void
ios_latency_fini(struct ios *ios)
{
    rings_empty();
    for (enum fop fop = FOP_null; ios->spreads && fop < FOP_COUNT; fop++)
        spread_free(ios->spreads[fop]);
    free(ios->spreads);
    pthread_mutex_destroy(&ios->latency_lock);
}
