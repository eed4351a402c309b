/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* spare: which places of a small array are in use: objects kept for when there is no memory. The array is
 * static, so it takes none before it is used.
 * thread: any. */
#ifndef KILN_BASE_SPARE_H
#define KILN_BASE_SPARE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t spare_set; /* a bit for each place that is in use; zero: none is */

/* A place of the first `count` (at most 32), now the caller's; -1: all are in use. */
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

/* It is free again. */
static inline void
spare_give(spare_set *s, unsigned place)
{
    uint32_t was = atomic_fetch_and_explicit(s, ~(UINT32_C(1) << place), memory_order_release);

    assert(was & UINT32_C(1) << place);
    (void)was;
}

#endif
