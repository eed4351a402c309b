/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fs-internal: declarations that the files of fs/ share. */
#ifndef KILN_FS_INTERNAL_H
#define KILN_FS_INTERNAL_H

#include "fs/inode.h"
#include "mem/mem-pool.h"

/* Pools for one type of object that ends in contexts: `usual` for objects with up to `room` contexts,
 * which is the number that bricks need, and wider pools that are made when a graph first needs them. */
#define CTX_STEP 8
struct ctx_pools {
    const char *name;
    size_t head; /* bytes before the contexts */
    unsigned room;
    struct mem_pool *usual;
    /* by number of slots, rounded up; under the mutex of ctx-pools.c */
    struct mem_pool *wide[CTX_SLOTS_MAX / CTX_STEP];
};
/* The pool for objects with `slots` contexts; mem_get0_owner() gives an object whose contexts are NULL.
 * NULL: no memory. */
struct mem_pool *ctx_pool_for(struct ctx_pools *p, unsigned slots);

/* inode.c: the pool for fds of this table's graph. */
struct mem_pool *inode_table_fd_pool(const struct inode_table *t);
/* fd.c */
extern struct ctx_pools fd_pools;

/* Parts of fs_pools_init(). 0 or -ENOMEM. */
int fd_pool_init(void);
int brick_client_pool_init(void);

#endif
