/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The kernel's number of an inode is the address of its node; that of the root is 1. An inode that the kernel
 * knows is held by one reference, taken when the count of lookups leaves 0 and dropped when it is 0 again.
 * Two threads that do both at once are no race: each has a reference of its own, or the kernel's, while it
 * counts. */
#include <string.h>

#include "xlators/mount/fuse/fuse-internal.h"

static struct mem_pool *node_pool, *file_pool;

int
node_pools_init(void)
{
    if (!node_pool)
        node_pool = mem_pool_new(struct fuse_node, 0);
    if (!file_pool)
        file_pool = mem_pool_new(struct fuse_file, 0);
    return node_pool && file_pool ? 0 : -1;
}

struct inode *
node_inode(struct fuse_mount *m, fuse_ino_t number)
{
    const struct fuse_node *node = (struct fuse_node *)(uintptr_t)number; /* NOLINT: our own address */

    return inode_ref(number == FUSE_ROOT_ID ? m->root : node->inode);
}

struct fuse_node *
node_of(struct fuse_mount *m, struct inode *inode)
{
    struct fuse_node *node = inode_ctx(inode, m->xl), *fresh;

    if (node)
        return node;
    fresh = mem_get0_owner(node_pool, m->owner);
    if (!fresh)
        return NULL;
    CDS_INIT_LIST_HEAD(&fresh->files);
    fresh->inode = inode;
    node = inode_ctx_install(inode, m->xl, fresh);
    if (node != fresh)
        mem_put(fresh);
    return node;
}

void
node_free(struct fuse_node *node)
{
    mem_put(node);
}

fuse_ino_t
node_tell(struct fuse_mount *m, struct inode *inode)
{
    struct fuse_node *node = node_of(m, inode);

    if (!node)
        return 0;
    if (atomic_fetch_add(&node->lookups, 1) == 0)
        inode_ref(inode);
    return inode == m->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node;
}

void
node_forget(struct fuse_mount *m, struct inode *inode, uint64_t count)
{
    struct fuse_node *node = inode_ctx(inode, m->xl);

    if (node && count && atomic_fetch_sub(&node->lookups, count) == count)
        inode_unref(inode);
}

/* ---- open files ------------------------------------------------------------------------------ */

struct fuse_file *
file_new(struct fuse_mount *m, struct fd *fd)
{
    struct fuse_node *node = node_of(m, fd->inode);
    struct fuse_file *f = node ? mem_get0_owner(file_pool, m->owner) : NULL;

    if (!f)
        return NULL;
    f->fd = fd;
    pthread_mutex_lock(&m->lock);
    cds_list_add(&f->link, &m->files);
    cds_list_add(&f->node_link, &node->files);
    pthread_mutex_unlock(&m->lock);
    return f;
}

void
file_free(struct fuse_mount *m, struct fuse_file *f)
{
    pthread_mutex_lock(&m->lock);
    cds_list_del(&f->link);
    cds_list_del(&f->node_link);
    pthread_mutex_unlock(&m->lock);
    fd_unref(f->fd);
    mem_put(f);
}

struct fd *
file_fd_of(struct fuse_mount *m, struct inode *inode)
{
    struct fuse_node *node = inode_ctx(inode, m->xl);
    struct fd *fd = NULL;

    if (!node)
        return NULL;
    pthread_mutex_lock(&m->lock);
    if (!cds_list_empty(&node->files))
        fd = fd_ref(cds_list_first_entry(&node->files, struct fuse_file, node_link)->fd);
    pthread_mutex_unlock(&m->lock);
    return fd;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
drop_lookups(struct inode *inode, void *ctx, void *arg)
{
    struct fuse_node *node = ctx;

    node_forget(arg, inode, atomic_load(&node->lookups));
}

void
nodes_drop(struct fuse_mount *m)
{
    while (!cds_list_empty(&m->files)) /* nobody else is here any more */
        file_free(m, cds_list_first_entry(&m->files, struct fuse_file, link));
    inode_table_each(m->xl->graph->inodes, m->xl, drop_lookups, m);
}
