/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mem-ids: the pools whose number the compiler knows, so that getting and putting their objects is inlined
 * (mem/mem-inline.h):
 *
 *     struct frame *f = mem_get_t(MEM_ID_FRAME);
 *     mem_put_t(MEM_ID_FRAME, f);
 *
 * The list contains the objects that operations use; all other pools take any number. Objects that are
 * counted for a brick come from mem_get_owner(), and mem_put_t() counts them down correctly. The pool's
 * library does not use this table: the program that makes the pools chooses the ids. */
#ifndef KILN_MEM_IDS_H
#define KILN_MEM_IDS_H

#include <errno.h>

#include "mem/mem-inline.h"

enum mem_id {
    MEM_ID_DICT = MEM_ID_TYPED_MIN, /* struct dict, with its first pairs */
    MEM_ID_FRAME,                   /* struct frame */
    MEM_ID_CALL_STUB,               /* struct call_stub */
    MEM_ID_CALL_STACK,              /* struct call_stack that is not embedded in a request */
    MEM_ID_RPC_REQUEST,             /* struct rpc_request, with its call stack */
    MEM_ID_ARENA_4K,                /* struct arena_chunk and its contents */
    MEM_ID_ARENA_64K,
    MEM_ID_IOBUF_4K, /* struct iobuf and its bytes, by size class */
    MEM_ID_IOBUF_16K,
    MEM_ID_IOBUF_64K,
    MEM_ID_IOBUF_128K,
    MEM_ID_IOBUF_1M,
    MEM_ID_CHUNK,       /* struct chunk: a piece of a connection's send queue */
    MEM_ID_BATCH,       /* struct batch: records that were received together */
    MEM_ID_INODE,       /* struct inode */
    MEM_ID_DENTRY,      /* struct dentry with a short name */
    MEM_ID_DENTRY_LONG, /* struct dentry with room for any name */
    MEM_ID_FD,          /* struct fd */
    MEM_ID_END
};

_Static_assert(MEM_ID_END <= MEM_ID_TYPED_MAX + 1, "more fixed ids than the pools have");

/* Makes the pool of a fixed id, once for the process, in the main thread, at the start; an existing *pool
 * is left alone. 0 or -errno; -EEXIST: two pools want this id. */
static inline int
mem_pool_make(struct mem_pool **pool, enum mem_id id, size_t size, const char *name)
{
    if (!*pool)
        *pool = mem_pool_new_opts(&(struct mem_pool_opts){.name = name, .size = size, .id = id});
    return *pool ? 0 : -errno;
}

#endif
