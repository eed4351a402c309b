/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* moment: a point in time that one side will know and another asks for, neither of which waits for the other
 * or for what the other belongs to: when a reply has left, for who wrote down the call.
 *
 * thread: any, for as long as the caller has a reference. `next` and `after` are those of who has it in a
 * list, under that one's lock. */
#ifndef KILN_BASE_MOMENT_H
#define KILN_BASE_MOMENT_H

#include <stdint.h>
#include <stdlib.h>

#include "base/refcount.h"
#include "base/ticks.h"

struct moment {
    struct refcount refs;
    _Atomic uint64_t ticks; /* 0: it has not come */
    struct moment *next;
    const void *after;
};

/* The caller's reference. NULL: no memory. */
static inline struct moment *
moment_new(void)
{
    struct moment *m = calloc(1, sizeof *m);

    if (m)
        refcount_init(&m->refs, 1);
    return m;
}

/* One more, for somebody who has one. */
static inline struct moment *
moment_ref(struct moment *m)
{
    refcount_get(&m->refs);
    return m;
}

/* NULL allowed. */
static inline void
moment_unref(struct moment *m)
{
    if (m && refcount_put(&m->refs))
        free(m);
}

/* It is now. Uses the reference up. */
static inline void
moment_comes(struct moment *m)
{
    atomic_store_explicit(&m->ticks, ticks_now(), memory_order_relaxed);
    moment_unref(m);
}

#endif
