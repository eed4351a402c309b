/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* refcount: the reference counter of all objects. The only decision made by its value is "was this the
 * last reference". thread: any, as long as the caller has a reference. */
#ifndef KILN_BASE_REFCOUNT_H
#define KILN_BASE_REFCOUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

struct refcount {
    atomic_int n;
};

/* Sets `n` references, which belong to the caller. Called before another thread sees the object. */
static inline void
refcount_init(struct refcount *r, int n)
{
    atomic_init(&r->n, n);
}

/* Takes another reference. The caller must already hold one. */
static inline void
refcount_get(struct refcount *r)
{
    int was = atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed);

    assert(was > 0);
    (void)was;
}

/* True when the caller dropped the last reference and must free the object. */
static inline bool
refcount_put(struct refcount *r)
{
    int was = atomic_fetch_sub_explicit(&r->n, 1, memory_order_acq_rel);

    assert(was > 0);
    return was == 1;
}

/* Drops a reference, but not the last reference. True: dropped. */
static inline bool
refcount_put_shared(struct refcount *r)
{
    int n = atomic_load_explicit(&r->n, memory_order_relaxed);

    while (n > 1) {
        if (atomic_compare_exchange_weak_explicit(&r->n, &n, n - 1, memory_order_release,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

#endif
