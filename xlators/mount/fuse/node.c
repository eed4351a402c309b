/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The kernel's number of an inode is made of the address of the inode's node; the root's number is 1. An
 * inode that
 * the kernel knows is held by one reference, taken when the lookup count leaves 0 and dropped when the count
 * returns to 0. Two threads that do both at the same time do not race, because each thread holds
 * another reference, or the kernel's, meanwhile. */
#include <string.h>

#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse-internal.h"

static struct mem_pool *node_pool, *file_pool;
uint64_t fuse_generation;

void
fuse_set_generation(unsigned programs)
{
    fuse_generation = (uint64_t)(programs & 0x7fff) << NUMBER_SHIFT;
}

int
node_pools_init(void)
{
    if (!node_pool)
        node_pool = mem_pool_new(struct fuse_node, 0);
    if (!file_pool)
        file_pool = mem_pool_new(struct fuse_file, 0);
    return node_pool && file_pool ? fuse_folder_pool_init() : -1;
}

static struct fuse_node *
node_by_number(const struct fuse_mount *m, fuse_ino_t number)
{
    if ((number ^ fuse_generation) >> NUMBER_SHIFT)
        return restored_node(m, number);
    return (struct fuse_node *)(uintptr_t)(number & ~(UINT64_MAX << NUMBER_SHIFT)); /* NOLINT: our own */
}

struct inode *
node_inode(struct fuse_mount *m, fuse_ino_t number)
{
    return inode_ref(number == FUSE_ROOT_ID ? m->root : node_by_number(m, number)->inode);
}

struct fuse_node *
node_at(struct fuse_mount *m, fuse_ino_t number)
{
    return number == FUSE_ROOT_ID ? node_of(m, m->root) : node_by_number(m, number);
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
    fresh->number = NUMBER_OF(fresh);
    node = inode_ctx_install(inode, m->xl, fresh);
    if (node != fresh)
        mem_put(fresh);
    return node;
}

void
node_free(struct fuse_node *node)
{
    fuse_folder_free(atomic_load(&node->folder));
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
    return inode == m->root ? FUSE_ROOT_ID : node->number;
}

void
node_forget(struct fuse_mount *m, struct inode *inode, uint64_t count)
{
    struct fuse_node *node = inode_ctx(inode, m->xl);

    if (node && count && atomic_fetch_sub(&node->lookups, count) == count)
        inode_unref(inode);
}

/* Counts a change after the change was made, because an FSYNC that began before may not have covered the
 * change. */
void
node_has_changed(struct task *t)
{
    struct fuse_node *node = node_at(t->m, t->number);

    if (node)
        atomic_fetch_add(&node->changes, 1);
}

/* ---- open files ------------------------------------------------------------------------------ */

static bool
is_of_older_graph(const struct fuse_mount *m, const struct fd *fd)
{
    return fd_graph(fd) != m->xl->graph;
}

struct fuse_file *
file_new(struct fuse_mount *m, struct fuse_node *node, struct fd *fd)
{
    struct fuse_file *f = node ? mem_get0_owner(file_pool, m->owner) : NULL;

    if (!f)
        return NULL;
    f->fd = fd;
    f->number = NUMBER_OF(f);
    f->node = node;
    if (is_of_older_graph(m, fd))
        atomic_fetch_add(&node->kept, 1);
    pthread_mutex_lock(&m->lock);
    cds_list_add(&f->link, &m->files);
    cds_list_add(&f->node_link, &node->files);
    pthread_mutex_unlock(&m->lock);
    return f;
}

void
file_free(struct fuse_mount *m, struct fuse_file *f)
{
    bool was_kept = is_of_older_graph(m, f->fd), tells = was_kept || f->listing;

    if (was_kept)
        atomic_fetch_sub(&f->node->kept, 1);
    pthread_mutex_lock(&m->lock);
    cds_list_del(&f->link);
    cds_list_del(&f->node_link);
    pthread_mutex_unlock(&m->lock);
    fd_unref(f->fd);
    fd_unref(f->listing);
    mem_put(f);
    if (tells)
        fuse_tell_left(m);
}

struct fd *
file_fd_of(struct fuse_mount *m, struct fuse_node *node, const struct graph *g)
{
    struct fd *fd = NULL;
    struct fuse_file *f;

    pthread_mutex_lock(&m->lock);
    cds_list_for_each_entry (f, &node->files, node_link) {
        if (!fd && fd_graph(f->fd) == g)
            fd = fd_ref(f->fd);
    }
    pthread_mutex_unlock(&m->lock);
    return fd;
}

struct fd *
file_kept_fd_of(struct fuse_mount *m, struct fuse_node *node)
{
    struct fd *fd = NULL;
    struct fuse_file *f;

    pthread_mutex_lock(&m->lock);
    cds_list_for_each_entry (f, &node->files, node_link) {
        if (!fd && is_of_older_graph(m, f->fd))
            fd = fd_ref(f->fd);
    }
    pthread_mutex_unlock(&m->lock);
    return fd;
}

struct fd *
file_listing_fd(struct fuse_mount *m, struct fuse_file *f, bool from_start)
{
    struct fd *dropped = NULL;

    pthread_mutex_lock(&m->lock);
    if (from_start) {
        dropped = f->listing;
        f->listing = NULL;
    }
    struct fd *fd = fd_ref(f->listing ? f->listing : f->fd);
    pthread_mutex_unlock(&m->lock);
    fd_unref(dropped);
    if (dropped)
        fuse_tell_left(m);
    return fd;
}

/* Checks both files and unfinished listings of `g`. */
bool
fuse_keeps(struct graph *now, const struct graph *g)
{
    struct fuse_mount *m = mount_of(now->top);
    bool keeps = false;
    struct fuse_file *f;

    pthread_mutex_lock(&m->lock);
    cds_list_for_each_entry (f, &m->files, link)
        keeps |= fd_graph(f->fd) == g || (f->listing && fd_graph(f->listing) == g);
    pthread_mutex_unlock(&m->lock);
    return keeps;
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
    while (!cds_list_empty(&m->files)) /* no other thread is left */
        file_free(m, cds_list_first_entry(&m->files, struct fuse_file, link));
    inode_table_each(m->xl->graph->inodes, m->xl, drop_lookups, m);
}
