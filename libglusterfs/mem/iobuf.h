/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* iobuf: a reference-counted buffer for bytes that come from or go to a socket or a disk.
 *
 * Size classes (see iobuf.c) come from pools; above the largest one a buffer is a malloc of its own. The
 * buffer starts on a 64-byte boundary (O_DIRECT needs more: iobuf_get_aligned).
 *
 * thread: references may be taken and dropped by any thread; the bytes belong to whoever the caller hands
 * them to.
 */
#ifndef KILN_MEM_IOBUF_H
#define KILN_MEM_IOBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/refcount.h"

struct iobuf {
    struct refcount refs;
    unsigned flags; /* how the bytes were got: iobuf.c */
    size_t size;    /* bytes usable at `bytes`; at least what was asked for */
    char *bytes;
};

/* A buffer with room for at least `size` bytes, one reference, the caller's, contents undefined. NULL: no
 * memory. The caller has checked `size` against its own bound. */
struct iobuf *iobuf_get(size_t size);

/* The same with `bytes` on a multiple of 4096, for O_DIRECT. */
struct iobuf *iobuf_get_aligned(size_t size);

/* One of the few buffers of 16 KiB that the process keeps for who must go on when there is no memory, and who
 * gives it back soon. NULL: all are in use. Costs nothing until then. */
struct iobuf *iobuf_get_spare(void);
#define IOBUF_SPARE_BYTES 16384
bool iobuf_is_spare(const struct iobuf *b);

/* One more for somebody who has one; returns `b`. */
static inline struct iobuf *
iobuf_ref(struct iobuf *b)
{
    refcount_get(&b->refs);
    return b;
}

/* Drops one reference; NULL is allowed. */
void iobuf_unref(struct iobuf *b);

/* Once, after mem_pools_init(). 0 or -ENOMEM. */
int iobuf_pools_init(void);

#endif
