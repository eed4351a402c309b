/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fs-internal: what the files of fs/ share. */
#ifndef KILN_FS_INTERNAL_H
#define KILN_FS_INTERNAL_H

#include "fs/inode.h"
#include "mem/mem-pool.h"

/* Pools of one type of object that ends in contexts: one for objects with room for up to `room` of them,
 * which has the size that bricks need, and wider ones made when a graph first wants them. */
#define CTX_STEP 8
struct ctx_pools {
    const char *name;
    size_t head; /* bytes before the contexts */
    unsigned room;
    struct mem_pool *usual;
    /* by slots, rounded up; under the mutex of ctx-pools.c */
    struct mem_pool *wide[CTX_SLOTS_MAX / CTX_STEP];
};
/* The pool for objects with so many contexts; mem_get0_owner() of it gives an object without any. NULL: no
 * memory. */
struct mem_pool *ctx_pool_for(struct ctx_pools *p, unsigned slots);

/* inode.c: where fds of this table come from. */
struct mem_pool *inode_table_fd_pool(const struct inode_table *t);
/* fd.c */
extern struct ctx_pools fd_pools;

/* Parts of fs_pools_init(). 0 or -ENOMEM. */
int fd_pool_init(void);
int brick_client_pool_init(void);

#endif
