/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-span: the source of objects.
 *
 * A span holds slots of one class and starts with its header, which has a bitmap of free slots. So giving
 * an object back touches no line of the object, and pages between free slots can be dropped. Spans are 64
 * KiB (more for big objects), aligned to their size, cut from 2 MiB reservations. A class whose objects
 * are too big for spans takes each slot from malloc. */
#include "mem/mem-span.h"

#include <stdlib.h>
#include <string.h>

/* ---- classes --------------------------------------------------------------------------------- */

static size_t
round_to_multiple(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

void
mem_class_init(struct mem_class *c, uint32_t id, size_t size, size_t align, size_t header, size_t trailer,
               bool spread)
{
    size_t line = align > 64 ? align : 64;
    size_t offset = round_to_multiple(header, align);
    size_t stride = round_to_multiple(offset + size + trailer, line);
    size_t bytes = UNIT;

    /* Strides that are multiples of 256 bytes would put the heads of objects into a quarter of the L1
     * sets. */
    if (spread && line == 64 && stride % 256 == 0)
        stride += 64;
    while (bytes < RESERVATION && bytes < stride * 8)
        bytes *= 2;
    if (stride > SPANNED_MAX)
        bytes = 0;
    *c = (struct mem_class){ .id = id, .stride = (uint32_t)stride, .offset = (uint32_t)offset,
                             .align = (uint32_t)(align > 16 ? line : 64), .span_bytes = (uint32_t)bytes };
    if (!bytes)
        return;
    c->first = (uint32_t)round_to_multiple(sizeof(struct mem_span), line);
    c->per_span = (uint32_t)((bytes - c->first) / stride);
    c->fill_factor = (MEM_FILLS << 16) / (c->per_span + 1);
    assert(c->per_span >= 1 && c->per_span <= BITMAP * 64);
    c->reciprocal = (((uint64_t)1 << 32) + stride - 1) / stride;
}

static inline struct mem_span *
span_of(const struct mem_class *c, const void *object)
{
    return (struct mem_span *)((uintptr_t)object & ~((uintptr_t)c->span_bytes - 1));
}

static inline uint32_t
slot_number(const struct mem_class *c, const struct mem_span *s, const void *object)
{
    uint64_t at = (uint64_t)((const char *)object - (const char *)s) - c->first - c->offset;

    return (uint32_t)((at * c->reciprocal) >> 32);
}

void
mem_partial_unlink(struct mem_class *c, struct mem_span *s)
{
    if (c->cursor == s)
        c->cursor = s->next;
    *(s->prev ? &s->prev->next : &c->partial[s->fill]) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    s->fill = -1;
}

static void
partial_link(struct mem_class *c, struct mem_span *s, int fill)
{
    s->prev = NULL;
    s->next = c->partial[fill];
    if (s->next)
        s->next->prev = s;
    c->partial[fill] = s;
    s->fill = (int8_t)fill;
}

static int
fill_of(const struct mem_class *c, const struct mem_span *s)
{
    return (int)((s->nfree * c->fill_factor) >> 16);
}

void
mem_span_file(struct mem_class *c, struct mem_span *s)
{
    if (s->nfree < c->per_span) {
        partial_link(c, s, fill_of(c, s));
        return;
    }
    s->next = c->empty;
    c->empty = s;
    MEM_BUMP(c->empties, 1);
}

static struct mem_span *
fullest_span(const struct mem_class *c)
{
    struct mem_span *s = NULL;

    for (int i = 0; i < MEM_FILLS && !s; i++)
        s = c->partial[i];
    return s;
}

/* Returns a span with free slots, the fullest one, on its partial list; the lock is held, but dropped
 * while mapping. */
static struct mem_span *
class_span(struct mem_class *c)
{
    struct mem_span *s = fullest_span(c);

    if (s)
        return s;
    s = c->empty;
    if (s) {
        c->empty = s->next;
        MEM_BUMP(c->empties, -1);
    } else {
        mem_unlock(&c->lock);
        s = mem_span_map(c->span_bytes);
        mem_lock(&c->lock);
        if (!s)
            return fullest_span(c);
        s->id = c->id;
        s->class = c;
        s->nfree = c->per_span;
        s->fill = -1;
        s->is_given = s->is_held = false;
        s->regrets = s->wait = 0;
        memset(s->free, 0, sizeof(s->free));
        for (uint32_t i = 0; i < c->per_span; i++)
            s->free[i / 64] |= (uint64_t)1 << (i % 64);
        MEM_ASAN_HIDE((char *)s + sizeof(*s), c->span_bytes - sizeof(*s));
        c->spans++;
        /* from now on mem_span_find() can find it */
        __atomic_store_n(&s->magic, SPAN_MAGIC, __ATOMIC_RELEASE);
    }
    partial_link(c, s, MEM_FILLS - 1);
    return s;
}

/* Updates the span after objects were taken from it; lock held. */
static void
span_taken(struct mem_class *c, struct mem_span *s)
{
    s->taken_in = c->walks;
    if (s->is_given) { /* mem-pages.c */
        s->is_given = false;
        s->regrets += s->regrets < REGRETS_MAX;
        s->wait = s->regrets < 2 ? 0 : (uint8_t)(1u << s->regrets >> 1);
    }
    if (!s->nfree || fill_of(c, s) != s->fill)
        mem_partial_unlink(c, s);
    if (s->nfree && s->fill < 0)
        partial_link(c, s, fill_of(c, s));
}

static size_t
class_malloc(struct mem_class *c, void **objects, size_t n)
{
    size_t got = 0;

    while (got < n && !mem_test_fails()) {
        char *slot = aligned_alloc(c->align, round_to_multiple(c->stride, c->align));

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
                objects[got++] = mem_object_at(c, s, w * 64 + bit);
            }
        }
        span_taken(c, s);
    }
    MEM_BUMP(c->carved, got);
    mem_unlock(&c->lock);
    return got;
}

static void
class_free_one(struct mem_class *c, void *object)
{
    struct mem_span *s = span_of(c, object);
    uint32_t slot = slot_number(c, s, object);
    uint64_t bit = (uint64_t)1 << (slot % 64);

    assert(s->magic == SPAN_MAGIC && s->class == c);
    assert(!(s->free[slot / 64] & bit));
    s->free[slot / 64] |= bit;
    s->nfree++;
    s->is_given = false;
    if (s->is_held) /* the sweeper will file it */
        return;
    if (s->fill >= 0 && s->nfree < c->per_span && fill_of(c, s) == s->fill)
        return;
    if (s->fill >= 0)
        mem_partial_unlink(c, s);
    mem_span_file(c, s);
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

/* Releases empty spans; keeps one for the next burst unless all is set. */
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
        mem_span_unmap_later(list, c->span_bytes);
        bytes += c->span_bytes;
    }
    return bytes;
}

bool
mem_class_idle(struct mem_class *c)
{
    mem_lock(&c->lock);
    uint64_t carved = MEM_READ(c->carved); /* slots from malloc are counted without the lock */
    bool idle = carved == c->carved_swept;

    c->carved_swept = carved;
    mem_unlock(&c->lock);
    return idle;
}

void
mem_class_check(struct mem_class *c)
{
    uint32_t n = 0;

    mem_lock(&c->lock);
    for (int fill = 0; fill < MEM_FILLS; fill++) {
        for (struct mem_span *s = c->partial[fill], *prev = NULL; s; prev = s, s = s->next) {
            uint32_t bits = 0;

            for (unsigned w = 0; w < BITMAP; w++)
                bits += (uint32_t)__builtin_popcountll(s->free[w]);
            assert(s->magic == SPAN_MAGIC && s->class == c);
            assert(s->fill == fill && fill_of(c, s) == fill && s->prev == prev && !s->is_held);
            assert(bits == s->nfree && bits > 0 && bits < c->per_span);
            n++;
        }
    }
    for (struct mem_span *s = c->empty; s; s = s->next) {
        assert(s->magic == SPAN_MAGIC && s->nfree == c->per_span);
        n++;
    }
    assert(n <= c->spans && MEM_READ(c->returned) <= MEM_READ(c->carved));
    mem_unlock(&c->lock);
}

/* ---- magazines: separate classes, without headers -------------------------------------------- */

static struct mem_class mag_class[9]; /* capacity 1 << index */

/* Called once, when the settings are fixed, before the first pool. */
void
mem_magazines_init(void)
{
    for (unsigned i = 0; i < 9; i++)
        mem_class_init(&mag_class[i], 0, sizeof(struct mem_magazine) + sizeof(void *) * ((size_t)1 << i), 16,
                       0, 0, true);
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

void
mem_magazines_age_pages(uint64_t until_us)
{
    for (unsigned i = 0; i < 9; i++)
        (void)mem_class_age_pages(&mag_class[i], until_us);
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
        mem_reservations_lock(true);
        return;
    }
    mem_reservations_lock(false);
    for (unsigned i = 0; i < 9; i++)
        mem_unlock(&mag_class[i].lock);
}
