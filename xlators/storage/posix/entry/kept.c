/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kept: objects without a name on which an fd is open. Clients address them by gfid in calls without an fd
 * (fchmod, fsetxattr, opening /proc/self/fd/N), and these calls work as long as the last fd is open.
 *
 * A file keeps its handle, in .glusterfs/unlink (entry-remove.c). A directory cannot have a second name, so
 * the brick keeps a descriptor of it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "xlators/storage/posix/entry/entry.h"

int
posix_hold_dir(struct inode *inode, struct posix_obj *entry)
{
    int fd =
        inode && atomic_load(&inode->open_fds) > 0 ? posix_obj_open(entry, O_RDONLY | O_DIRECTORY, 0) : -1;

    return fd < 0 ? -1 : fd; /* without a descriptor, only the search by gfid fails */
}

void
posix_drop_kept_dir(struct inode *inode, struct posix_inode *ctx)
{
    pthread_mutex_lock(&ctx->lock);
    /* A read-modify-write, as in posix_drop_unlinked(). */
    bool is_unused = atomic_load(&ctx->kept_dir) > 0 && atomic_fetch_add(&inode->open_fds, 0) == 0;
    int fd = is_unused ? atomic_exchange(&ctx->kept_dir, 0) - 1 : -1;
    pthread_mutex_unlock(&ctx->lock);
    if (fd >= 0)
        close(fd);
}

void
posix_keep_dir(struct xlator *xl, struct inode *inode, int fd)
{
    struct posix_inode *ctx = fd >= 0 ? posix_inode_get(xl, inode) : NULL;

    if (ctx) {
        pthread_mutex_lock(&ctx->lock);
        fd = atomic_exchange(&ctx->kept_dir, fd + 1) - 1; /* of an earlier directory with this gfid */
        pthread_mutex_unlock(&ctx->lock);
        posix_drop_kept_dir(inode, ctx); /* the last fd may have been closed meanwhile */
    }
    if (fd >= 0)
        close(fd);
}

int
posix_obj_of_gone(struct xlator *xl, struct inode *inode, struct posix_obj *obj)
{
    struct posix_inode *ctx = inode_ctx(inode, xl);

    posix_obj_unlinked(posix_of(xl), &inode->gfid, obj);
    if (!S_ISDIR(inode->type))
        return atomic_load(&ctx->is_kept) ? posix_obj_check(xl, obj, inode) : -ENOENT;
    /* Duplicates the descriptor for this call, because the kept one is closed with the last fd. */
    pthread_mutex_lock(&ctx->lock);
    int kept = atomic_load(&ctx->kept_dir) - 1;
    int fd = kept >= 0 ? fcntl(kept, F_DUPFD_CLOEXEC, 0) : -1;
    int err = kept >= 0 && fd < 0 ? -errno : -ENOENT;
    pthread_mutex_unlock(&ctx->lock);
    if (fd < 0)
        return err;
    posix_obj_at(posix_of(xl), fd, ".", obj);
    obj->owns_dirfd = true;
    return 0;
}
