/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-span: where objects come from and go back to.
 *
 * A span holds slots of one class and starts with its header: which slots are free is a bitmap there, so
 * giving an object back touches no line of the object, and pages between free slots can be dropped. Spans
 * are 64 KiB (more for big objects), aligned to their size, cut from 2 MiB reservations. A class whose
 * objects are too big for that, or all classes with the malloc backend, take each slot from malloc.
 */
#include "mem/mem-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UNIT ((size_t)64 << 10)
#define RESERVATION ((size_t)2 << 20)
#define UNITS (RESERVATION / UNIT)
#define SPAN_MAGIC 0x4b53504eu
#define BITMAP 16 /* words: 1024 slots */
#define SPANNED_MAX ((size_t)512 << 10)

struct mem_reservation {
    char *base;
    uint32_t used, drop; /* bit per 64 KiB: in a span (or being dropped); to be dropped */
    struct mem_reservation *next, *prev;
};

struct mem_span {
    uint32_t magic, id;
    uint32_t nfree;
    bool listed; /* on the class's partial list */
    struct mem_class *class;
    struct mem_reservation *reservation;
    struct mem_span *next, *prev;
    uint64_t unused[2];
    uint64_t free[BITMAP]; /* bit set: slot is free */
};
static_assert(sizeof(struct mem_span) == 64 + BITMAP * 8, "three lines");

static struct mem_lock res_lock;
static struct mem_reservation *reservations; /* all of them */
static struct mem_reservation *res_hint;     /* start looking here */
size_t mem_reserved_bytes, mem_resident_bytes;
uint64_t mem_released_bytes;

/* ---- reservations ----------------------------------------------------------------------------- */

static struct mem_reservation *
reservation_new(void)
{
    struct mem_reservation *r;
    char *p, *aligned;

    if (mem_test_fails())
        return NULL;
    r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    p = mmap(NULL, 2 * RESERVATION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        free(r);
        return NULL;
    }
    aligned = (char *)(((uintptr_t)p + RESERVATION - 1) & ~(RESERVATION - 1));
    if (aligned > p)
        munmap(p, (size_t)(aligned - p));
    munmap(aligned + RESERVATION, (size_t)(p + RESERVATION - aligned));
    r->base = aligned;
    MEM_LSAN_ROOT(r->base, RESERVATION);
    return r;
}

/* Units of one aligned run, or 0. */
static uint32_t
reservation_fit(const struct mem_reservation *r, unsigned units)
{
    uint32_t run = units == UNITS ? ~0u : (1u << units) - 1;

    for (unsigned at = 0; at < UNITS; at += units)
        if (!(r->used & (run << at)))
            return run << at;
    return 0;
}

static void
reservation_link(struct mem_reservation *r)
{
    r->next = reservations;
    r->prev = NULL;
    if (reservations)
        reservations->prev = r;
    reservations = r;
    MEM_ADD(mem_reserved_bytes, RESERVATION);
}

static struct mem_span *
span_map(size_t bytes)
{
    unsigned units = (unsigned)(bytes / UNIT);
    struct mem_reservation *r, *fresh = NULL;
    uint32_t run = 0;

    for (;;) {
        mem_lock(&res_lock);
        for (r = res_hint; r && !(run = reservation_fit(r, units)); r = r->next)
            ;
        for (r = run ? r : reservations; !run && r != res_hint && !(run = reservation_fit(r, units)); r = r->next)
            ;
        if (!run && fresh) {
            reservation_link(fresh);
            r = fresh;
            fresh = NULL;
            run = reservation_fit(r, units);
        }
        if (run)
            break;
        mem_unlock(&res_lock);
        fresh = reservation_new();
        if (!fresh)
            return NULL;
    }
    r->used |= run;
    res_hint = r;
    MEM_ADD(mem_resident_bytes, bytes);
    mem_unlock(&res_lock);
    if (fresh) { /* somebody released room meanwhile */
        MEM_LSAN_UNROOT(fresh->base, RESERVATION);
        munmap(fresh->base, RESERVATION);
        free(fresh);
    }
    struct mem_span *s = (struct mem_span *)(void *)(r->base + (size_t)__builtin_ctz(run) * UNIT);
    MEM_ASAN_SHOW(s, sizeof(*s));
    s->reservation = r;
    return s;
}

/* Mark a span's units for mem_reservations_release. */
static void
span_unmap_later(struct mem_span *s, size_t bytes)
{
    struct mem_reservation *r = s->reservation;
    uint32_t units = (uint32_t)(bytes / UNIT);
    uint32_t run = (units == UNITS ? ~0u : (1u << units) - 1) << (((char *)s - r->base) / (ptrdiff_t)UNIT);

    s->magic = 0;
    MEM_ASAN_SHOW(s, bytes);
    mem_lock(&res_lock);
    r->drop |= run;
    MEM_ADD(mem_resident_bytes, -bytes);
    mem_unlock(&res_lock);
}

static void
reservation_unlink(struct mem_reservation *r)
{
    if (r->prev)
        r->prev->next = r->next;
    else
        reservations = r->next;
    if (r->next)
        r->next->prev = r->prev;
    if (res_hint == r)
        res_hint = reservations;
    MEM_ADD(mem_reserved_bytes, -RESERVATION);
}

/* Runs of dropped units in as few calls as possible. Their used bits are still set, so nobody takes them;
 * the lock is not held. */
static void
reservation_drop(struct mem_reservation *r, uint32_t drop)
{
    for (unsigned at = 0; at < UNITS;) {
        unsigned n = 0;

        while (at + n < UNITS && (drop & (1u << (at + n))))
            n++;
        if (n && mem_set.release == MEM_RELEASE_LAZY) {
            if (madvise(r->base + at * UNIT, n * UNIT, MADV_FREE) != 0)
                madvise(r->base + at * UNIT, n * UNIT, MADV_DONTNEED);
        } else if (n) {
            madvise(r->base + at * UNIT, n * UNIT, MADV_DONTNEED);
        }
        at += n + 1;
    }
}

/* Sweep mutex held: nobody else unlinks reservations. */
size_t
mem_reservations_release(void)
{
    size_t bytes = 0;

    mem_lock(&res_lock);
    for (struct mem_reservation *r = reservations, *next; r; r = next) {
        uint32_t drop = r->drop;
        bool whole = drop == r->used;

        next = r->next;
        if (!drop && (r->used || mem_set.release == MEM_RELEASE_KEEP))
            continue;
        if (mem_set.release == MEM_RELEASE_KEEP) {
            r->used &= ~drop;
            r->drop = 0;
            continue;
        }
        if (whole)
            reservation_unlink(r);
        mem_unlock(&res_lock);
        if (whole) {
            MEM_LSAN_UNROOT(r->base, RESERVATION);
            munmap(r->base, RESERVATION);
            free(r);
        } else {
            reservation_drop(r, drop);
        }
        bytes += (size_t)__builtin_popcount(drop) * UNIT;
        mem_lock(&res_lock);
        if (!whole) {
            r->used &= ~drop;
            r->drop &= ~drop;
            next = r->next; /* the list may have grown at its head, and lost nothing: we hold the sweep mutex */
        }
    }
    MEM_ADD(mem_released_bytes, bytes);
    mem_unlock(&res_lock);
    return bytes;
}

/* ---- classes ---------------------------------------------------------------------------------- */

static size_t
round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

void
mem_class_init(struct mem_class *c, uint32_t id, size_t size, size_t align, size_t header, size_t trailer, bool spread)
{
    size_t line = align > 64 ? align : 64;
    size_t offset = round_up(header, align);
    size_t stride = round_up(offset + size + trailer, line);
    size_t bytes = UNIT;

    /* Strides that are multiples of 256 bytes put the heads of objects into a quarter of the L1 sets. */
    if (spread && line == 64 && stride % 256 == 0)
        stride += 64;
    while (bytes < RESERVATION && bytes < stride * 8)
        bytes *= 2;
    if (mem_set.malloc_backend || stride > SPANNED_MAX)
        bytes = 0;
    *c = (struct mem_class){ .id = id, .stride = (uint32_t)stride, .offset = (uint32_t)offset,
                             .align = (uint32_t)(align > 16 ? line : 64), .span_bytes = (uint32_t)bytes };
    if (!bytes)
        return;
    c->first = (uint32_t)round_up(sizeof(struct mem_span), line);
    c->per_span = (uint32_t)((bytes - c->first) / stride);
    assert(c->per_span >= 1 && c->per_span <= BITMAP * 64);
    c->reciprocal = (((uint64_t)1 << 32) + stride - 1) / stride;
}

static inline struct mem_span *
span_of(const struct mem_class *c, const void *object)
{
    return (struct mem_span *)((uintptr_t)object & ~((uintptr_t)c->span_bytes - 1));
}

static inline uint32_t
slot_of(const struct mem_class *c, const struct mem_span *s, const void *object)
{
    uint64_t at = (uint64_t)((const char *)object - (const char *)s) - c->first - c->offset;

    return (uint32_t)((at * c->reciprocal) >> 32);
}

static inline char *
object_at(const struct mem_class *c, struct mem_span *s, uint32_t slot)
{
    return (char *)s + c->first + (size_t)slot * c->stride + c->offset;
}

static void
partial_unlink(struct mem_class *c, struct mem_span *s)
{
    *(s->prev ? &s->prev->next : &c->partial_head) = s->next;
    *(s->next ? &s->next->prev : &c->partial_tail) = s->prev;
    s->listed = false;
}

static void
partial_link(struct mem_class *c, struct mem_span *s, bool tail)
{
    s->prev = tail ? c->partial_tail : NULL;
    s->next = tail ? NULL : c->partial_head;
    *(s->prev ? &s->prev->next : &c->partial_head) = s;
    *(s->next ? &s->next->prev : &c->partial_tail) = s;
    s->listed = true;
}

/* A span with free slots at the head of the partial list; lock held, and dropped while mapping. */
static struct mem_span *
class_span(struct mem_class *c)
{
    struct mem_span *s = c->partial_head;

    if (s)
        return s;
    s = c->empty;
    if (s) {
        c->empty = s->next;
        MEM_BUMP(c->empties, -1);
    } else {
        mem_unlock(&c->lock);
        s = span_map(c->span_bytes);
        mem_lock(&c->lock);
        if (!s)
            return c->partial_head;
        s->magic = SPAN_MAGIC;
        s->id = c->id;
        s->class = c;
        s->nfree = c->per_span;
        memset(s->free, 0, sizeof(s->free));
        for (uint32_t i = 0; i < c->per_span; i++)
            s->free[i / 64] |= (uint64_t)1 << (i % 64);
        MEM_ASAN_HIDE((char *)s + sizeof(*s), c->span_bytes - sizeof(*s));
        c->spans++;
    }
    partial_link(c, s, false);
    return s;
}

static size_t
class_malloc(struct mem_class *c, void **objects, size_t n)
{
    size_t got = 0;

    while (got < n && !mem_test_fails()) {
        char *slot = aligned_alloc(c->align, round_up(c->stride, c->align));

        if (!slot)
            break;
        objects[got++] = slot + c->offset;
        MEM_ASAN_HIDE(slot, c->stride);
    }
    MEM_ADD(c->carved, got);
    return got;
}

size_t
mem_class_alloc(struct mem_class *c, void **objects, size_t n)
{
    size_t got = 0;
    struct mem_span *s;

    if (!c->span_bytes)
        return class_malloc(c, objects, n);
    mem_lock(&c->lock);
    while (got < n && (s = class_span(c))) {
        for (uint32_t w = 0; w < BITMAP && got < n; w++) {
            while (s->free[w] && got < n) {
                unsigned bit = (unsigned)__builtin_ctzll(s->free[w]);

                s->free[w] &= s->free[w] - 1;
                s->nfree--;
                objects[got++] = object_at(c, s, w * 64 + bit);
            }
        }
        if (!s->nfree)
            partial_unlink(c, s);
    }
    MEM_BUMP(c->carved, got);
    mem_unlock(&c->lock);
    return got;
}

static void
class_free_one(struct mem_class *c, void *object)
{
    struct mem_span *s = span_of(c, object);
    uint32_t slot = slot_of(c, s, object);
    uint64_t bit = (uint64_t)1 << (slot % 64);

    assert(s->magic == SPAN_MAGIC && s->class == c);
    assert(!(s->free[slot / 64] & bit));
    s->free[slot / 64] |= bit;
    s->nfree++;
    if (s->nfree == c->per_span) {
        if (s->listed)
            partial_unlink(c, s);
        s->next = c->empty;
        c->empty = s;
        MEM_BUMP(c->empties, 1);
    } else if (!s->listed) {
        partial_link(c, s, false);
    } else if (s->nfree == c->per_span / 2 && s->next) {
        partial_unlink(c, s); /* take from fuller spans first, so that this one can drain */
        partial_link(c, s, true);
    }
}

void
mem_class_free(struct mem_class *c, void *const *objects, size_t n)
{
    if (!c->span_bytes) {
        for (size_t i = 0; i < n; i++) {
            char *slot = (char *)objects[i] - c->offset;

            MEM_ASAN_SHOW(slot, c->stride);
            free(slot);
        }
        MEM_ADD(c->returned, n);
        return;
    }
    for (size_t i = 0; i < n;) {
        mem_lock(&c->lock);
        for (size_t end = i + 64; i < n && i < end; i++) {
            class_free_one(c, objects[i]);
            MEM_BUMP(c->returned, 1);
        }
        mem_unlock(&c->lock);
    }
}

/* Keep one empty span for the next burst unless all shall go. */
size_t
mem_class_release(struct mem_class *c, bool all)
{
    struct mem_span *list, *next;
    size_t bytes = 0;

    mem_lock(&c->lock);
    list = c->empty;
    c->empty = NULL;
    MEM_WRITE(c->empties, 0);
    if (list && !all) {
        c->empty = list;
        MEM_WRITE(c->empties, 1);
        list = list->next;
        c->empty->next = NULL;
    }
    for (struct mem_span *s = list; s; s = s->next)
        c->spans--;
    mem_unlock(&c->lock);
    for (; list; list = next) {
        next = list->next;
        span_unmap_later(list, c->span_bytes);
        bytes += c->span_bytes;
    }
    return bytes;
}

bool
mem_class_idle(struct mem_class *c)
{
    mem_lock(&c->lock);
    uint64_t carved = MEM_READ(c->carved); /* the malloc backend counts without the lock */
    bool idle = carved == c->carved_swept;

    c->carved_swept = carved;
    mem_unlock(&c->lock);
    return idle;
}

/* Pages of a span that hold only free slots. Lock held. */
static size_t
span_trim(struct mem_class *c, struct mem_span *s)
{
    const size_t page = 4096;
    size_t bytes = 0;
    uint32_t run = 0;

    for (uint32_t i = 0; i <= c->per_span; i++) {
        if (i < c->per_span && (s->free[i / 64] & ((uint64_t)1 << (i % 64)))) {
            run++;
            continue;
        }
        char *from = object_at(c, s, i - run) - c->offset, *to = object_at(c, s, i) - c->offset;
        from = (char *)round_up((uintptr_t)from, page);
        to = (char *)((uintptr_t)to / page * page);
        if (run && to > from && madvise(from, (size_t)(to - from), MADV_DONTNEED) == 0)
            bytes += (size_t)(to - from);
        run = 0;
    }
    return bytes;
}

size_t
mem_class_trim_pages(struct mem_class *c)
{
    size_t bytes = 0;

    if (!c->span_bytes)
        return 0;
    mem_lock(&c->lock);
    for (struct mem_span *s = c->partial_head; s; s = s->next)
        bytes += span_trim(c, s);
    MEM_ADD(mem_released_bytes, bytes);
    mem_unlock(&c->lock);
    return bytes;
}

void
mem_class_check(struct mem_class *c)
{
    uint32_t n = 0;

    mem_lock(&c->lock);
    for (struct mem_span *s = c->partial_head, *prev = NULL; s; prev = s, s = s->next) {
        uint32_t bits = 0;

        for (unsigned w = 0; w < BITMAP; w++)
            bits += (uint32_t)__builtin_popcountll(s->free[w]);
        assert(s->magic == SPAN_MAGIC && s->class == c);
        assert(s->listed && s->prev == prev);
        assert(bits == s->nfree && bits > 0 && bits < c->per_span);
        n++;
    }
    for (struct mem_span *s = c->empty; s; s = s->next) {
        assert(s->magic == SPAN_MAGIC && s->nfree == c->per_span);
        n++;
    }
    assert(n <= c->spans && MEM_READ(c->returned) <= MEM_READ(c->carved));
    mem_unlock(&c->lock);
}

MEM_RAW bool
mem_span_find(const void *p, uint32_t *id, void **object)
{
    bool found = false;

    mem_lock(&res_lock);
    for (struct mem_reservation *r = reservations; r && !found; r = r->next) {
        if ((const char *)p < r->base || (const char *)p >= r->base + RESERVATION)
            continue;
        for (size_t bytes = UNIT; bytes <= RESERVATION; bytes *= 2) {
            struct mem_span *s = (struct mem_span *)((uintptr_t)p & ~((uintptr_t)bytes - 1));

            if (!(r->used & (1u << (((char *)s - r->base) / (ptrdiff_t)UNIT))) || s->magic != SPAN_MAGIC ||
                s->reservation != r || s->class->span_bytes != bytes)
                continue;
            size_t at = (size_t)((const char *)p - (char *)s);
            uint32_t slot = at < s->class->first ? 0 : (uint32_t)((at - s->class->first) / s->class->stride);
            *id = s->id;
            *object = object_at(s->class, s, slot);
            found = true;
            break;
        }
    }
    mem_unlock(&res_lock);
    return found;
}

/* ---- magazines: classes of their own, without headers ------------------------------------------ */

static struct mem_class mag_class[9]; /* capacity 1 << index */

/* Once, when the settings are settled: before the first pool. */
void
mem_magazines_init(void)
{
    for (unsigned i = 0; i < 9; i++)
        mem_class_init(&mag_class[i], 0, sizeof(struct mem_magazine) + sizeof(void *) * ((size_t)1 << i), 16, 0, 0, true);
}

/* cap is a power of two. NULL when memory is exhausted. */
struct mem_magazine *
mem_magazine_new(uint32_t cap)
{
    struct mem_class *c = &mag_class[__builtin_ctz(cap)];
    void *p;

    if (mem_class_alloc(c, &p, 1) != 1)
        return NULL;
    MEM_ASAN_SHOW(p, c->stride);
    struct mem_magazine *m = p;
    m->next = NULL;
    m->count = 0;
    m->cap = cap;
    return m;
}

void
mem_magazine_free(struct mem_magazine *m)
{
    struct mem_class *c = &mag_class[__builtin_ctz(m->cap)];
    void *p = m;

    MEM_ASAN_HIDE(m, c->stride);
    mem_class_free(c, &p, 1);
}

size_t
mem_magazines_release(bool all)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < 9; i++)
        bytes += mem_class_release(&mag_class[i], mem_class_idle(&mag_class[i]) || all);
    return bytes;
}

bool
mem_magazines_quiet(void)
{
    for (unsigned i = 0; i < 9; i++)
        if (MEM_READ(mag_class[i].empties))
            return false;
    return true;
}

void
mem_span_fork(int step)
{
    if (step == 0) {
        for (unsigned i = 0; i < 9; i++)
            mem_lock(&mag_class[i].lock);
        mem_lock(&res_lock);
        return;
    }
    mem_unlock(&res_lock);
    for (unsigned i = 0; i < 9; i++)
        mem_unlock(&mag_class[i].lock);
}
