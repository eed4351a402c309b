/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* open, opendir, flush, release: the life of a client's fd. The descriptor itself is closed with the fd's
 * last reference (fd.c). */
#include <errno.h>
#include <fcntl.h>

#include "xlators/storage/posix/data/data.h"

/* The flags that a client may pass to the kernel. O_CREAT would create a file without gfid if the handle is
 * missing, so it is not among them. Others (O_NOCTTY, O_ASYNC, "open for execution") have no meaning on a
 * brick. */
#define OPEN_FLAGS                                                                                           \
    (O_ACCMODE | O_APPEND | O_TRUNC | O_NONBLOCK | O_SYNC | O_DSYNC | O_DIRECT | O_DIRECTORY | O_NOATIME)

/* Opens the object and puts an fd into the reply. The object's lock makes a concurrent unlink see the file
 * either as open or as not open. */
static int
open_object(struct xlator *xl, struct call_stack *stk, int flags, bool is_dir)
{
    struct posix *p = posix_of(xl);
    struct inode *inode = stk->call.loc.inode;
    struct stat st;
    POSIX_OBJ(obj);

    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(p, &inode->gfid);
    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);
    if (err)
        return err;
    int sysfd = S_ISDIR(inode->type) ? posix_obj_open(&obj, flags | O_DIRECTORY, 0)
                                     : posix_obj_open_file(xl, &obj, inode, flags, &st);
    if (sysfd < 0)
        return sysfd;
    struct posix_fd *pfd = posix_fd_new(p, sysfd, (uint32_t)flags, is_dir);
    if (pfd == NULL)
        return -ENOMEM;
    struct fd *fd = fd_new(inode, stk->client, (uint32_t)flags, is_dir);
    if (fd == NULL) {
        posix_fd_free(pfd);
        return -ENOMEM;
    }
    fd_ctx_set(fd, xl, pfd);
    stk->reply.fd = fd;
    return 0;
}

/* Runs after the lock is released, because mdata has its own lock. */
static int
touch_atime(struct xlator *xl, struct call_stack *stk)
{
    struct posix_fd *pfd = fd_ctx(stk->reply.fd, xl);

    if (stk->caller.time_flags == 0)
        return 0;
    POSIX_OBJ(obj);
    posix_obj_fd(posix_of(xl), pfd->sysfd, &obj);
    return posix_mdata_update(xl, &stk->caller, &obj, stk->reply.fd->inode, NULL);
}

static int
open_and_touch(struct xlator *xl, struct call_stack *stk, int flags, bool is_dir)
{
    int err = open_object(xl, stk, flags, is_dir);

    if (err)
        return err;
    err = touch_atime(xl, stk);
    return err ? err : XL_DONE; /* on an error, the caller drops reply.fd */
}

xl_verdict
posix_fop_open(struct xlator *xl, struct call_stack *stk)
{
    const struct posix_conf *conf = posix_conf(xl);
    int asked = (int)stk->call.flags, flags = asked & OPEN_FLAGS;

    switch (stk->call.loc.inode->type) {
    case S_IFREG:
        break;
    case S_IFDIR: /* read-only is permitted; the kernel refuses other modes with EISDIR */
        break;
    case S_IFLNK:
        return -ELOOP;
    default: /* a client's device, fifo or socket has nothing to do with the brick's machine */
        return -EINVAL;
    }
    if ((asked & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (asked & O_CREAT) {
        int err = posix_reserve_check(xl, stk);
        if (err)
            return err;
    }
    if (conf->o_direct)
        flags |= O_DIRECT;
    return open_and_touch(xl, stk, flags, false);
}

xl_verdict
posix_fop_opendir(struct xlator *xl, struct call_stack *stk)
{
    if (stk->call.loc.inode->type != S_IFDIR)
        return -ENOTDIR;
    return open_and_touch(xl, stk, O_RDONLY | O_DIRECTORY, true);
}

/* No data are buffered here. The lock layer above drops the owner's locks. */
xl_verdict
posix_fop_flush(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return XL_DONE;
}

/* protocol/server removes the fd from the client's table; the last reference closes it. */
xl_verdict
posix_fop_release(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return XL_DONE;
}

xl_verdict
posix_fop_releasedir(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return XL_DONE;
}
