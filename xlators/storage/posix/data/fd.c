/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fd: the descriptor that belongs to a client's fd, and the descriptor behind an anonymous fd. */
#include <errno.h>
#include <fcntl.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/entry/entry.h"

static struct mem_pool *fd_pool;
static pthread_once_t fd_pool_once = PTHREAD_ONCE_INIT;

static void
fd_pool_make(void)
{
    const struct mem_pool_opts opts = {
        .name = "posix_fd", .xlator = "storage/posix", .size = sizeof(struct posix_fd)};

    fd_pool = mem_pool_new_opts(&opts);
}

struct posix_fd *
posix_fd_new(struct posix *p, int sysfd, uint32_t flags, bool is_dir)
{
    struct posix_fd *pfd = NULL;

    pthread_once(&fd_pool_once, fd_pool_make);
    if (fd_pool != NULL)
        pfd = mem_get0_owner(fd_pool, p->owner);
    if (pfd == NULL) {
        close(sysfd);
        return NULL;
    }
    pfd->sysfd = sysfd;
    pfd->flags = flags;
    pfd->is_dir = is_dir;
    pthread_mutex_init(&pfd->dir_lock, NULL);
    return pfd;
}

void
posix_fd_free(struct posix_fd *pfd)
{
    if (pfd == NULL)
        return;
    close(pfd->sysfd);
    pthread_mutex_destroy(&pfd->dir_lock);
    mem_put(pfd);
}

void
posix_fd_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    (void)xl;
    (void)fd;
    posix_fd_free(ctx);
}

/* Opens with O_RDWR as stock does. On a read-only file system, reading must still work. */
static int
open_anonymous(struct xlator *xl, struct posix_obj *obj, struct inode *inode, int extra_flags)
{
    struct stat st;

    if (S_ISDIR(inode->type))
        return posix_obj_open(obj, O_RDONLY | O_DIRECTORY, 0);
    int fd = posix_obj_open_file(xl, obj, inode, O_RDWR | extra_flags, &st);
    return fd == -EROFS ? posix_obj_open_file(xl, obj, inode, O_RDONLY | extra_flags, &st) : fd;
}

int
posix_io_get(struct xlator *xl, struct fd *fd, int extra_flags, struct posix_io *io)
{
    struct posix *p = posix_of(xl);
    uint32_t type = fd->inode->type;

    *io = (struct posix_io){.fd = -1, .inode = fd->inode};
    if (!fd->is_anonymous) {
        io->pfd = fd_ctx(fd, xl);
        if (io->pfd == NULL)
            return -EBADF;
        io->fd = io->pfd->sysfd;
        io->is_direct = (io->pfd->flags & O_DIRECT) != 0;
        return 0;
    }
    /* Opening other types could block, or affect a device. */
    if (type != S_IFREG && type != S_IFDIR)
        return -EINVAL;

    POSIX_OBJ(obj);
    posix_obj_inode(p, fd->inode, &obj);
    io->fd = open_anonymous(xl, &obj, fd->inode, extra_flags);
    if (io->fd == -ENOENT && type == S_IFREG) {
        /* The file was unlinked while open, in an earlier process or at this very moment. */
        POSIX_OBJ(unlinked);
        posix_obj_unlinked(p, &fd->inode->gfid, &unlinked);
        io->fd = open_anonymous(xl, &unlinked, fd->inode, extra_flags);
    }
    if (io->fd < 0)
        return io->fd;
    io->is_owned = true;
    io->is_direct = (extra_flags & O_DIRECT) != 0;
    return 0;
}

int
posix_obj_of_loc(struct xlator *xl, const struct loc *loc, struct posix_obj *obj)
{
    if (posix_inode_is_gone(xl, loc->inode))
        return posix_obj_of_gone(xl, loc->inode, obj);
    posix_obj_inode(posix_of(xl), loc->inode, obj);
    return posix_obj_check(xl, obj, loc->inode);
}

int
posix_obj_of_fd(struct xlator *xl, struct fd *fd, struct posix_obj *obj)
{
    const struct posix_fd *pfd = fd->is_anonymous ? NULL : fd_ctx(fd, xl);

    if (pfd != NULL)
        posix_obj_fd(posix_of(xl), pfd->sysfd, obj);
    else
        posix_obj_inode(posix_of(xl), fd->inode, obj);
    if (pfd == NULL && !fd->is_anonymous)
        return -EBADF;
    return posix_obj_check(xl, obj, fd->inode);
}

int
posix_iatts_around(struct xlator *xl, struct call_stack *stk, int fd, struct inode *inode,
                   const struct stat *pre, const struct stat *post)
{
    int err = posix_iatt_of_disk(xl, inode, &inode->gfid, pre, &stk->reply.pre);

    if (err == 0)
        err = posix_iatt_of_disk(xl, inode, &inode->gfid, post, &stk->reply.post);
    if (err || posix_mdata_stays_absent(xl, &stk->caller, inode))
        return err;
    POSIX_OBJ(obj);
    posix_obj_fd(posix_of(xl), fd, &obj);
    return posix_mdata_update_around(xl, &stk->caller, &obj, inode, &stk->reply.pre, &stk->reply.post);
}
