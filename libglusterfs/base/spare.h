/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* spare: the used places of a small array of objects that are reserved for lack of memory. The array is
 * static, so it occupies no memory before its first use. thread: any. */
#ifndef KILN_BASE_SPARE_H
#define KILN_BASE_SPARE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t spare_set; /* a bit for each place in use; zero: all are free */

/* Takes one of the first `count` places (at most 32) for the caller; -1: all are in use. */
static inline int
spare_take(spare_set *s, unsigned count)
{
    uint32_t used = atomic_load_explicit(s, memory_order_relaxed), free;

    assert(count > 0 && count <= 32);
    do {
        free = ~used & (UINT32_MAX >> (32 - count));
        if (!free)
            return -1;
    } while (!atomic_compare_exchange_weak_explicit(s, &used, used | (free & -free), memory_order_acquire,
                                                    memory_order_relaxed));
    return __builtin_ctz(free);
}

/* Gives a place back. */
static inline void
spare_give(spare_set *s, unsigned place)
{
    uint32_t was = atomic_fetch_and_explicit(s, ~(UINT32_C(1) << place), memory_order_release);

    assert(was & UINT32_C(1) << place);
    (void)was;
}

#endif
