/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-span: what a span looks like, for mem-span.c that fills it and mem-reserve.c that maps it. */
#ifndef KILN_MEM_SPAN_H
#define KILN_MEM_SPAN_H

#include "mem/mem-internal.h"

#define UNIT ((size_t)64 << 10)
#define RESERVATION ((size_t)2 << 20)
#define UNITS (RESERVATION / UNIT)
#define SPAN_MAGIC 0x4b53504eu
#define BITMAP 16 /* words: 1024 slots */
#define REGRETS_MAX 7 /* a span whose pages are taken again is left alone for 64 sweeps at most */
#define SPANNED_MAX ((size_t)512 << 10)

struct mem_reservation;

struct mem_span {
    uint32_t magic, id;
    uint32_t nfree;
    int8_t fill;    /* on that partial list of the class; -1: on none */
    bool is_given;  /* these five: mem-pages.c */
    bool is_held;
    struct mem_class *class;
    struct mem_reservation *reservation;
    struct mem_span *next, *prev;
    uint8_t regrets, wait; /* wait: sweeps */
    uint32_t taken_in; /* that walk */
    uint32_t unused;
    uint64_t free[BITMAP]; /* bit set: slot is free */
};
static_assert(sizeof(struct mem_span) == 64 + BITMAP * 8, "three lines");

static inline char *
mem_object_at(const struct mem_class *c, struct mem_span *s, uint32_t slot)
{
    return (char *)s + c->first + (size_t)slot * c->stride + c->offset;
}

/* mem-span.c: out of its partial list; into the list that its free slots ask for, the empties if all are
 * free. The class's lock is held. */
void mem_partial_unlink(struct mem_class *c, struct mem_span *s);
void mem_span_file(struct mem_class *c, struct mem_span *s);

/* Aligned to its size, and zeroed if new; NULL when memory is exhausted. */
struct mem_span *mem_span_map(size_t bytes);
void mem_span_unmap_later(struct mem_span *s, size_t bytes); /* at the next mem_reservations_release */
void mem_spans_each(void (*fn)(struct mem_span *s, void *arg), void *arg); /* sweep mutex held */
void mem_reservations_lock(bool lock);                       /* around fork */

#endif
