/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Data kept with inodes. A kept layout never changes: a new layout replaces the old one, whose reference
 * holders continue to use the old layout. */
#include <errno.h>

#include "mem/mem-pool.h"
#include "xlators/cluster/distribute/distribute-internal.h"

static struct mem_pool *pool;

int
place_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct place, 0);
    return pool ? layout_pools_init() : -ENOMEM;
}

void
place_free(struct place *p)
{
    layout_unref(p->layout);
    mem_put(p);
}

/* Returns the inode's place, made on first use. NULL: out of memory. */
static struct place *
place_get(const struct dist *d, struct inode *inode)
{
    struct place *p = inode_ctx(inode, d->xl), *fresh;

    if (p)
        return p;
    fresh = mem_get0_owner(pool, d->xl->graph->owner);
    if (!fresh)
        return NULL;
    atomic_init(&fresh->cached, -1);
    p = inode_ctx_install(inode, d->xl, fresh);
    if (p != fresh)
        mem_put(fresh);
    return p;
}

int
place_cached(const struct dist *d, struct inode *inode)
{
    struct place *p = inode_ctx(inode, d->xl);

    return p ? atomic_load_explicit(&p->cached, memory_order_relaxed) : -1;
}

int
place_set(struct dist *d, struct inode *inode, int child)
{
    struct place *p = place_get(d, inode);

    if (!p)
        return -ENOMEM;
    atomic_store_explicit(&p->cached, child, memory_order_relaxed);
    return 0;
}

struct layout *
place_layout_any(struct dist *d, struct inode *inode)
{
    struct place *p = inode_ctx(inode, d->xl);

    if (!p)
        return NULL;
    pthread_mutex_lock(&d->lock);
    struct layout *l = p->layout ? layout_ref(p->layout) : NULL;

    pthread_mutex_unlock(&d->lock);
    return l;
}

struct layout *
place_layout(struct dist *d, struct inode *inode)
{
    struct layout *l = place_layout_any(d, inode);

    if (l && l->generation == atomic_load(&d->generation))
        return l;
    layout_unref(l);
    return NULL;
}

int
place_set_layout(struct dist *d, struct inode *inode, struct layout *l)
{
    struct place *p = place_get(d, inode);

    if (!p) {
        layout_unref(l);
        return -ENOMEM;
    }
    pthread_mutex_lock(&d->lock);
    struct layout *old = p->layout;

    p->layout = l;
    pthread_mutex_unlock(&d->lock);
    layout_unref(old);
    return 0;
}
