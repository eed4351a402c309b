/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-reserve: 2 MiB mappings, from which spans are cut in units of 64 KiB, and the return of their memory
 * to the system: units are marked when a span is empty, and given back once a sweep, in as few calls as
 * possible. */
#include "mem/mem-span.h"

#include <stdlib.h>
#include <sys/mman.h>

struct mem_reservation {
    char *base;
    uint32_t used, drop; /* bit for each 64 KiB: in a span (or being dropped); to be dropped */
    struct mem_reservation *next, *prev;
};

static struct mem_lock res_lock;
static struct mem_reservation *reservations; /* all reservations */
static struct mem_reservation *res_hint;     /* start of the search */
size_t mem_reserved_bytes, mem_resident_bytes;
uint64_t mem_released_bytes;

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
    p = mmap(NULL, 2 * RESERVATION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0);
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

/* Returns the bits of one aligned free run, or 0. */
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

struct mem_span *
mem_span_map(size_t bytes)
{
    unsigned units = (unsigned)(bytes / UNIT);
    struct mem_reservation *r, *fresh = NULL;
    uint32_t run = 0;

    for (;;) {
        mem_lock(&res_lock);
        for (r = res_hint; r && !(run = reservation_fit(r, units)); r = r->next)
            ;
        for (r = run ? r : reservations; !run && r != res_hint && !(run = reservation_fit(r, units));
             r = r->next)
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
    MEM_WRITE(r->used, r->used | run);
    res_hint = r;
    MEM_ADD(mem_resident_bytes, bytes);
    mem_unlock(&res_lock);
    if (fresh) { /* another thread released room meanwhile */
        MEM_LSAN_UNROOT(fresh->base, RESERVATION);
        munmap(fresh->base, RESERVATION);
        free(fresh);
    }
    struct mem_span *s = (struct mem_span *)(void *)(r->base + (size_t)__builtin_ctz(run) * UNIT);
    MEM_ASAN_SHOW(s, sizeof(*s));
    s->reservation = r;
    return s;
}

/* Marks a span's units for mem_reservations_release. */
void
mem_span_unmap_later(struct mem_span *s, size_t bytes)
{
    struct mem_reservation *r = s->reservation;
    uint32_t units = (uint32_t)(bytes / UNIT);
    uint32_t run = (units == UNITS ? ~0u : (1u << units) - 1) << (((char *)s - r->base) / (ptrdiff_t)UNIT);

    MEM_WRITE(s->magic, 0);
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

/* Drops runs of units in as few calls as possible. Their used bits are still set, so no span takes them;
 * the lock is not held. */
static void
reservation_drop(struct mem_reservation *r, uint32_t drop)
{
    for (unsigned at = 0; at < UNITS;) {
        unsigned n = 0;

        while (at + n < UNITS && (drop & (1u << (at + n))))
            n++;
        if (n)
            madvise(r->base + at * UNIT, n * UNIT, MADV_DONTNEED);
        at += n + 1;
    }
}

/* Sweep mutex held, so no other thread unlinks reservations. */
size_t
mem_reservations_release(void)
{
    size_t bytes = 0;

    mem_lock(&res_lock);
    for (struct mem_reservation *r = reservations, *next; r; r = next) {
        uint32_t drop = r->drop;
        bool whole = drop == r->used;

        next = r->next;
        if (!drop && (r->used || mem_set.keeps))
            continue;
        if (mem_set.keeps) {
            MEM_WRITE(r->used, r->used & ~drop);
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
            MEM_WRITE(r->used, r->used & ~drop);
            r->drop &= ~drop;
            /* the list may have grown at its head but lost nothing, because this thread holds the sweep
             * mutex */
            next = r->next;
        }
    }
    MEM_ADD(mem_released_bytes, bytes);
    mem_unlock(&res_lock);
    return bytes;
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
            *object = mem_object_at(s->class, s, slot);
            found = true;
            break;
        }
    }
    mem_unlock(&res_lock);
    return found;
}

/* Returns the span that begins at this unit, or NULL. */
static struct mem_span *
span_at(struct mem_reservation *r, unsigned at)
{
    struct mem_span *s = (struct mem_span *)(void *)(r->base + at * UNIT);

    if (!(MEM_READ(r->used) & 1u << at) || __atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != SPAN_MAGIC)
        return NULL;
    return s->reservation == r ? s : NULL;
}

/* Other threads add reservations only at the head of the list, and remove none. */
void
mem_spans_each(void (*fn)(struct mem_span *s, void *arg), void *arg)
{
    struct mem_reservation *r;

    mem_lock(&res_lock);
    r = reservations;
    mem_unlock(&res_lock);
    for (; r; r = r->next) {
        for (unsigned at = 0; at < UNITS;) {
            struct mem_span *s = span_at(r, at);

            at += s ? (unsigned)(s->class->span_bytes / UNIT) : 1;
            if (s)
                fn(s, arg);
        }
    }
}

void
mem_reservations_lock(bool lock)
{
    if (lock)
        mem_lock(&res_lock);
    else
        mem_unlock(&res_lock);
}
