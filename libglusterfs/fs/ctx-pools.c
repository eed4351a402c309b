/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* ctx-pools: inodes, fds and clients carry the contexts of their graph's layers at their end. In a brick
 * few layers keep contexts, and all bricks share one pool of objects with that much room. A graph with
 * more layers gets objects with more room, in a few sizes; the pool of each size is made once and stays. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "fs/fs-internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct mem_pool *
make_wide(const struct ctx_pools *p, unsigned slots)
{
    char name[64];

    snprintf(name, sizeof name, "%s (%u contexts)", p->name, slots);
    return mem_pool_new_opts(&(struct mem_pool_opts){.name = name, .size = p->head + slots * sizeof(void *)});
}

struct mem_pool *
ctx_pool_for(struct ctx_pools *p, unsigned slots)
{
    unsigned i = slots ? (slots - 1) / CTX_STEP : 0;

    if (slots <= p->room)
        return p->usual;
    assert(slots <= CTX_SLOTS_MAX);
    pthread_mutex_lock(&lock);
    if (!p->wide[i])
        p->wide[i] = make_wide(p, (i + 1) * CTX_STEP);
    struct mem_pool *pool = p->wide[i];
    pthread_mutex_unlock(&lock);
    return pool;
}
