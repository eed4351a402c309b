/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* moment: a point in time that one module sets and another reads, while neither waits for the other or
 * keeps the other's objects alive: for example, the time at which a reply left, for the layer that
 * recorded the call.
 *
 * thread: any, as long as the caller has a reference. `next` and `after` belong to the module that has the
 * moment in a list, under that module's lock. */
#ifndef KILN_BASE_MOMENT_H
#define KILN_BASE_MOMENT_H

#include <stdint.h>
#include <stdlib.h>

#include "base/refcount.h"
#include "base/ticks.h"

struct moment {
    struct refcount refs;
    _Atomic uint64_t ticks; /* 0: not yet */
    struct moment *next;
    const void *after;
};

/* Makes a moment; the reference belongs to the caller. NULL: no memory. */
static inline struct moment *
moment_new(void)
{
    struct moment *m = calloc(1, sizeof *m);

    if (m)
        refcount_init(&m->refs, 1);
    return m;
}

/* Takes another reference. The caller must already hold one. */
static inline struct moment *
moment_ref(struct moment *m)
{
    refcount_get(&m->refs);
    return m;
}

/* Drops a reference; NULL allowed. */
static inline void
moment_unref(struct moment *m)
{
    if (m && refcount_put(&m->refs))
        free(m);
}

/* Sets the moment to the present time and drops the reference. */
static inline void
moment_comes(struct moment *m)
{
    atomic_store_explicit(&m->ticks, ticks_now(), memory_order_relaxed);
    moment_unref(m);
}

#endif
