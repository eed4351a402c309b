/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Invalidations from bricks after changes by other clients (features/upcall; wire 7).
 *
 * The kernel caches attributes for --attribute-timeout. When a brick reports that another client has
 * changed an object, the mount invalidates the kernel's attributes of the object. The kernel then asks for
 * the attributes at the next use, and drops cached contents of the file if the new attributes show a change.
 * The kernel ignores attributes from requests that are under way, because such attributes are older. So with
 * cache-invalidation on, a volume's attributes can be cached for minutes, as md-cache-timeout says
 * (mount/volume.c). Names are not covered: the kernel looks a name up again after --entry-timeout.
 *
 * A brick keeps a client registered for features.cache-invalidation-timeout after the client's last call,
 * and while the connection lasts. When a connection is lost, all of the kernel's attributes are
 * invalidated.
 *
 * Runs in the thread that has read the brick's message, and that holds the graph; the kernel takes no lock
 * here that waits for a request. A switch of graphs (switch.c) waits for such threads. */
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse-internal.h"

/* A flag on the wire: another client has read the object. */
#define UPCALL_ATIME 0x20u

/* `from` -1: invalidates attributes only; 0: contents, too. */
static void
forget_cached(struct fuse_mount *m, struct inode *inode, struct fuse_node *node, off_t from)
{
    fuse_folder_drop(node);
    if (atomic_load(&node->lookups) && atomic_load(&m->is_mounted))
        (void)fuse_lowlevel_notify_inval_inode(
            m->se, inode == m->root ? FUSE_ROOT_ID : node->number, from, 0);
}

static void
forget_attributes(struct fuse_mount *m, struct inode *inode, struct fuse_node *node)
{
    forget_cached(m, inode, node, -1);
}

void
fuse_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags)
{
    struct fuse_mount *m = mount_of(xl);
    struct inode *inode = m && flags != UPCALL_ATIME ? inode_find(xl->graph->inodes, gfid) : NULL;
    struct fuse_node *node = inode ? inode_ctx(inode, xl) : NULL;

    if (node)
        forget_cached(m, inode, node, flags & INVALIDATED_CONTENTS ? 0 : -1);
    inode_unref(inode);
}

static void
forget_attributes_of(struct inode *inode, void *ctx, void *arg)
{
    forget_attributes(arg, inode, ctx);
}

void
fuse_news_missed(struct xlator *xl)
{
    struct fuse_mount *m = mount_of(xl);
    const struct fuse_conf *conf = xlator_conf(xl);

    if (m && conf->is_told)
        inode_table_each(xl->graph->inodes, xl, forget_attributes_of, m);
}
