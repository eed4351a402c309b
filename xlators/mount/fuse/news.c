/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What bricks say that other clients have changed (features/upcall; wire 7).
 *
 * The kernel believes attributes for --attribute-timeout. When a brick says that another client has changed
 * an object, the kernel is told that it knows them no more: it asks when it needs them next, and lets go what
 * it holds of the file's contents if they show that it has changed. Requests that are under way then do not
 * count: the kernel sees that they are older. So a volume with cache-invalidation on can have attributes
 * believed for minutes, as its md-cache-timeout says (mount/volume.c). Names are not among it: the kernel
 * asks for them again after --entry-timeout.
 *
 * A brick remembers whom to tell for features.cache-invalidation-timeout after the last call, and as long as
 * the connection lasts: when one is gone, nothing that the kernel knows counts.
 *
 * Runs in the thread that has read the brick's word, which holds the graph; the kernel takes no lock that
 * waits for a request. When another graph takes the mount over (switch.c) it waits for who is in here. */
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse-internal.h"

/* Of the wire's flags: somebody has read it. */
#define UPCALL_ATIME 0x20u

/* Its attributes only. */
static void
forget_attributes(struct fuse_mount *m, struct inode *inode, struct fuse_node *node)
{
    fuse_folder_drop(node);
    if (atomic_load(&node->lookups) && atomic_load(&m->is_mounted))
        (void)fuse_lowlevel_notify_inval_inode(
            m->se, inode == m->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node, -1, 0);
}

void
fuse_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags)
{
    struct fuse_mount *m = mount_of(xl);
    struct inode *inode = m && flags != UPCALL_ATIME ? inode_find(xl->graph->inodes, gfid) : NULL;
    struct fuse_node *node = inode ? inode_ctx(inode, xl) : NULL;

    if (node)
        forget_attributes(m, inode, node);
    inode_unref(inode);
}

static void
forget_one(struct inode *inode, void *ctx, void *arg)
{
    forget_attributes(arg, inode, ctx);
}

void
fuse_news_missed(struct xlator *xl)
{
    struct fuse_mount *m = mount_of(xl);
    const struct fuse_conf *conf = xlator_conf(xl);

    if (m && conf->is_told)
        inode_table_each(xl->graph->inodes, xl, forget_one, m);
}
