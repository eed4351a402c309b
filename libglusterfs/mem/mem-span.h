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
#define SPANNED_MAX ((size_t)512 << 10)

struct mem_reservation;

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

static inline char *
mem_object_at(const struct mem_class *c, struct mem_span *s, uint32_t slot)
{
    return (char *)s + c->first + (size_t)slot * c->stride + c->offset;
}

/* Aligned to its size, and zeroed if new; NULL when memory is exhausted. */
struct mem_span *mem_span_map(size_t bytes);
void mem_span_unmap_later(struct mem_span *s, size_t bytes); /* at the next mem_reservations_release */
void mem_spans_each(void (*fn)(struct mem_span *s, void *arg), void *arg); /* sweep mutex held */
void mem_reservations_lock(bool lock);                       /* around fork */

#endif
