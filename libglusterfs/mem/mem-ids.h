/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mem-ids: the pools of Kiln whose number the compiler knows, so that getting and putting their objects is
 * inlined (mem/mem-inline.h):
 *
 *     struct frame *f = mem_get_t(MEM_ID_FRAME);
 *     mem_put_t(MEM_ID_FRAME, f);
 *
 * Here are the objects that operations use; all other pools take any number. Objects that are counted for a
 * brick come from mem_get_owner(), and mem_put_t() does right by them. The pool's library knows nothing of
 * this table: ids belong to whoever makes the pools of a process.
 *
 * The memory of each type of the daemon ("fixed": a pool with an id of this table; "counted": the object's
 * header names its brick):
 *   dict                    fixed, released with its arena. The first dozen pairs lie in the dict, further
 *                           pairs on the arena; strings, bytes and iatts in the received record or on the
 *                           arena
 *   frame, call-stub        fixed; the call-stub is counted
 *   call stack              part of its request; fixed for calls made inside the daemon
 *   request                 fixed; it contains the call stack with call, reply, iatts and arena
 *   call parked by io-threads   the `local` of its frame
 *   call parked by locks    packed: a pool up to 512 bytes, malloc above; above 64 KiB the request stays
 *   arena chunk             fixed, 4 KiB and 64 KiB; a single piece above 64 KiB is a malloc
 *   lists of entries        the arena
 *   iobuf                   fixed, five classes up to 1 MiB; malloc above
 *   received batch, piece of a send queue     fixed
 *   reserve for ENOMEM      static arrays: 32 receive and send buffers, 16 batches, 32 pieces, 32 calls
 *                           (base/spare.h); their pages are untouched until the first use
 *   durations of calls      a ring of 4 KiB for each thread, then the brick's histograms: a malloc on the
 *                           first call of a fop, and 32 bytes or more for each power-of-two range in use
 *   slowest calls           malloc, 2 KB with the first call of 0.1 ms or more, 6 KB for 16 calls
 *   inode, dentry, fd       fixed, counted. The slots for contexts lie at the end of inode, fd and client
 *   contexts of layers      pools of posix, locks, access-control and index, counted
 *   lock, domain, waiter, removal   pools of features/locks, counted; short names and owners inline. Tree
 *                           nodes are part of the locks (base/tree.h)
 *   timer, job of a worker  part of the owner
 *   log line                the stack of the logging thread; a static table counts repeats
 *   connection, client      pools; sessions, identities and fd tables: a few mallocs for each connection
 *   ACL of an object        malloc at the first look, kept with the object's context
 *   groups of users         malloc, at most 1 MiB a brick; the list of one call lies on its arena
 *   hash arrays, volfiles, options, graphs, layers     malloc at attach, reconfigure or growth
 */
#ifndef KILN_MEM_IDS_H
#define KILN_MEM_IDS_H

#include <errno.h>

#include "mem/mem-inline.h"

enum mem_id {
    MEM_ID_DICT = MEM_ID_TYPED_MIN, /* struct dict, with its first pairs */
    MEM_ID_FRAME,                   /* struct frame */
    MEM_ID_CALL_STUB,               /* struct call_stub */
    MEM_ID_CALL_STACK,              /* struct call_stack, where no request holds it */
    MEM_ID_RPC_REQUEST,             /* struct rpc_request, with its call stack */
    MEM_ID_ARENA_4K,                /* struct arena_chunk and what fits */
    MEM_ID_ARENA_64K,
    MEM_ID_IOBUF_4K, /* struct iobuf and its bytes, by class */
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

/* Makes the pool of a fixed id, once, for the process; in the main thread, at the start: *pool stays as it is
 * if it is there. 0 or -errno; -EEXIST: two pools want this id. */
static inline int
mem_pool_make(struct mem_pool **pool, enum mem_id id, size_t size, const char *name)
{
    if (!*pool)
        *pool = mem_pool_new_opts(&(struct mem_pool_opts){.name = name, .size = size, .id = id});
    return *pool ? 0 : -errno;
}

#endif
