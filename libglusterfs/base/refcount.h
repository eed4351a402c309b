/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* refcount: the one reference counter. Its value is never read to decide anything but "was this the last".
 * thread: any, for as long as the caller has a reference. */
#ifndef KILN_BASE_REFCOUNT_H
#define KILN_BASE_REFCOUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

struct refcount {
    atomic_int n;
};

/* `n` references, the caller's. Before anybody else sees it. */
static inline void
refcount_init(struct refcount *r, int n)
{
    atomic_init(&r->n, n);
}

/* One more, for somebody who has one. */
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

#endif
