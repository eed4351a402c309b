/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* truncate, ftruncate. */
#include <errno.h>
#include <fcntl.h>

#include "xlators/storage/posix/data/data.h"

static int
truncate_fd(struct xlator *xl, struct call_stack *stk, int fd, struct inode *inode)
{
    struct stat pre, post;

    if (fstat(fd, &pre) < 0)
        return -errno;
    while (ftruncate(fd, (off_t)stk->call.offset) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    if (fstat(fd, &post) < 0)
        return -errno;
    int err = posix_iatts_around(xl, stk, fd, inode, &pre, &post);
    return err ? err : XL_DONE;
}

xl_verdict
posix_fop_truncate(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;
    struct stat st;

    if (inode->type == S_IFDIR)
        return -EISDIR;
    if (inode->type != S_IFREG || stk->call.offset > INT64_MAX)
        return -EINVAL;
    POSIX_OBJ(obj);
    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);
    if (err)
        return err;
    int fd = posix_obj_open_file(xl, &obj, inode, O_WRONLY, &st);
    if (fd < 0)
        return fd;
    err = truncate_fd(xl, stk, fd, inode);
    close(fd);
    return err;
}

xl_verdict
posix_fop_ftruncate(struct xlator *xl, struct call_stack *stk)
{
    if (stk->call.offset > INT64_MAX)
        return -EINVAL;
    POSIX_IO(io);
    int err = posix_io_get(xl, stk->call.fd, 0, &io);
    if (err)
        return err;
    if (io.inode->type == S_IFDIR)
        return -EISDIR;
    return truncate_fd(xl, stk, io.fd, io.inode);
}
