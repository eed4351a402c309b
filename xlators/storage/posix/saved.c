/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Files that were removed while clients have them open stay in .glusterfs/unlink when a newer program takes
 * over. The new program learns their gfids before it opens the clients' files again. A removed folder that is
 * still open has no name anywhere: its clients lose the fd. */
#include "xlators/storage/posix/saved.h"

#include <errno.h>
#include <string.h>

#include "data/iatt.h"
#include "graph/graph.h"
#include "graph/saved-brick.h"
#include "xlators/storage/posix/entry/entry.h"

static atomic_bool keeps_unlinked;

void
posix_keep_unlinked(bool keeps)
{
    atomic_store(&keeps_unlinked, keeps);
}

bool
posix_keeps_unlinked(void)
{
    return atomic_load(&keeps_unlinked);
}

static void
save_kept(struct inode *inode, void *ctx, void *arg)
{
    const struct posix_inode *own = ctx;

    if (!atomic_load(&own->is_kept))
        return;
    parcel_put_u32(arg, 1);
    parcel_put_bytes(arg, &inode->gfid, sizeof inode->gfid);
}

int
posix_save(struct xlator *xl, struct brick_saver *saver)
{
    inode_table_each(xl->graph->inodes, xl, save_kept, saver->to);
    parcel_put_u32(saver->to, 0);
    return 0;
}

static int
restore_kept(struct xlator *xl, const struct gfid *gfid)
{
    struct posix_obj obj;
    struct iatt iatt;
    struct stat st;

    posix_obj_unlinked(posix_of(xl), gfid, &obj);
    int r = posix_obj_stat(&obj, &st);

    posix_obj_done(&obj);
    if (r < 0)
        return r;
    iatt_from_stat(&iatt, &st, gfid);
    struct inode *inode = inode_link(xl->graph->inodes, NULL, NULL, &iatt);
    struct posix_inode *ctx = inode ? posix_inode_get(xl, inode) : NULL;
    if (ctx) {
        POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(posix_of(xl), gfid);

        atomic_store(&ctx->is_kept, true);
        posix_inode_gone(xl, inode, true);
    }
    inode_unref(inode);
    return ctx ? 0 : -ENOMEM;
}

int
posix_restore(struct xlator *xl, struct brick_restorer *restorer)
{
    struct parcel *from = restorer->from;

    while (parcel_get_u32(from)) {
        struct gfid gfid;

        parcel_get_exactly(from, &gfid, sizeof gfid);
        int err = from->is_broken ? -EBADMSG : restore_kept(xl, &gfid);

        if (err && err != -EBADMSG) /* the client that had the file open is told when it is opened again */
            log_event(LOG_ERROR, xl, "restore-unlinked", "the removed file %s is lost: %s", GFID(&gfid),
                      strerror(-err));
    }
    return from->is_broken ? -EBADMSG : 0;
}
