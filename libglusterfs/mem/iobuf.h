/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* iobuf: a reference-counted buffer for bytes that come from or go to a socket or a disk.
 *
 * Size classes (see iobuf.c) come from pools; above the largest one a buffer is a separate malloc. The
 * buffer starts on a 64-byte boundary (O_DIRECT needs more: iobuf_get_aligned).
 *
 * thread: any thread may take and drop references; the thread that the buffer was handed to uses the
 * bytes. */
#ifndef KILN_MEM_IOBUF_H
#define KILN_MEM_IOBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/refcount.h"

struct iobuf {
    struct refcount refs;
    unsigned flags; /* origin of the bytes: iobuf.c */
    size_t size;    /* bytes usable at `bytes`; at least the requested size */
    char *bytes;
};

/* Returns a buffer with room for at least `size` bytes, with one reference, which belongs to the caller;
 * contents undefined. NULL: no memory. The caller has checked `size` against its own bound. */
struct iobuf *iobuf_get(size_t size);

/* Like iobuf_get(), with `bytes` on a multiple of 4096, for O_DIRECT. */
struct iobuf *iobuf_get_aligned(size_t size);

/* Returns one of the few buffers of 16 KiB that the process reserves for callers that must continue
 * without memory and give the buffer back soon. NULL: all are in use. The reserve occupies no memory
 * before its first use. */
struct iobuf *iobuf_get_spare(void);
#define IOBUF_SPARE_BYTES 16384
bool iobuf_is_spare(const struct iobuf *b);

/* Takes another reference and returns `b`. The caller must already hold one. */
static inline struct iobuf *
iobuf_ref(struct iobuf *b)
{
    refcount_get(&b->refs);
    return b;
}

/* Gives back a buffer whose last reference has been dropped: for iobuf_unref(). */
void iobuf_free(struct iobuf *b);

/* Drops a reference; NULL is allowed. */
static inline void
iobuf_unref(struct iobuf *b)
{
    if (b && refcount_put(&b->refs))
        iobuf_free(b);
}

/* Called once, after mem_pools_init(). 0 or -ENOMEM. */
int iobuf_pools_init(void);

#endif
