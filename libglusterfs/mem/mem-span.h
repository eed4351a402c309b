/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-span: the layout of a span, for mem-span.c, which fills it, and mem-reserve.c, which maps it. */
#ifndef KILN_MEM_SPAN_H
#define KILN_MEM_SPAN_H

#include "mem/mem-internal.h"

#define UNIT ((size_t)64 << 10)
#define RESERVATION ((size_t)2 << 20)
#define UNITS (RESERVATION / UNIT)
#define SPAN_MAGIC 0x4b53504eu
#define BITMAP 16 /* words: 1024 slots */
#define REGRETS_MAX 7 /* a span whose dropped pages are used again is left alone for at most 64 sweeps */
#define SPANNED_MAX ((size_t)512 << 10)

struct mem_reservation;

struct mem_span {
    uint32_t magic, id;
    uint32_t nfree;
    int8_t fill;    /* number of its partial list in the class; -1: on none */
    bool is_given;  /* is_given, is_held, regrets, wait and taken_in: mem-pages.c */
    bool is_held;
    struct mem_class *class;
    struct mem_reservation *reservation;
    struct mem_span *next, *prev;
    uint8_t regrets, wait; /* wait: number of sweeps */
    uint32_t taken_in; /* number of the walk during which an object was last taken */
    uint32_t unused;
    uint64_t free[BITMAP]; /* bit set: slot is free */
};
static_assert(sizeof(struct mem_span) == 64 + BITMAP * 8, "three lines");

static inline char *
mem_object_at(const struct mem_class *c, struct mem_span *s, uint32_t slot)
{
    return (char *)s + c->first + (size_t)slot * c->stride + c->offset;
}

/* mem-span.c: removes a span from its partial list; puts it into the list that fits its free slots, or the
 * empty list if all are free. The class's lock is held. */
void mem_partial_unlink(struct mem_class *c, struct mem_span *s);
void mem_span_file(struct mem_class *c, struct mem_span *s);

/* Returns a span aligned to its size, zeroed if new; NULL when memory is exhausted. */
struct mem_span *mem_span_map(size_t bytes);
/* takes effect at the next mem_reservations_release */
void mem_span_unmap_later(struct mem_span *s, size_t bytes);
void mem_spans_each(void (*fn)(struct mem_span *s, void *arg), void *arg); /* sweep mutex held */
void mem_reservations_lock(bool lock);                       /* around fork */

#endif
