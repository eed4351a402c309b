/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* stat, fstat, readlink, access, ipc, lease: calls that do not change the object. */
#include <errno.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"

xl_verdict
posix_fop_stat(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;
    POSIX_OBJ(obj);

    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);
    if (err == 0)
        err = posix_iatt(xl, &obj, inode, &stk->reply.stat, NULL);
    if (err == 0)
        err = posix_xattr_fill_reply(xl, stk, &obj, inode, &stk->reply.stat, POSIX_FILL_STAT);
    return err ? err : XL_DONE;
}

xl_verdict
posix_fop_fstat(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.fd->inode;
    POSIX_OBJ(obj);

    int err = posix_obj_of_fd(xl, stk->call.fd, &obj);
    if (err == 0)
        err = posix_iatt(xl, &obj, inode, &stk->reply.stat, NULL);
    if (err == 0)
        err = posix_xattr_fill_reply(xl, stk, &obj, inode, &stk->reply.stat, POSIX_FILL_OTHER);
    return err ? err : XL_DONE;
}

/* `size` of the call is the client's buffer. A longer text is truncated, as readlink(2) does. */
xl_verdict
posix_fop_readlink(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;
    char text[PATH_MAX];

    if (inode->type != S_IFLNK)
        return -EINVAL;
    POSIX_OBJ(obj);
    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);
    if (err)
        return err;
    ssize_t n = posix_obj_readlink(&obj, text, sizeof text);
    if (n < 0)
        return (int)n;
    if ((uint64_t)n > stk->call.size)
        n = (ssize_t)stk->call.size;
    stk->reply.path = arena_dup(&stk->arena, text, (size_t)n);
    if (stk->reply.path == NULL)
        return -ENOMEM;
    err = posix_iatt(xl, &obj, inode, &stk->reply.stat, NULL);
    if (err)
        return err;
    stk->reply.op_ret = (int32_t)n;
    return XL_DONE;
}

/* features/access-control answers this call. Without that layer every access to an existing object is
 * permitted, because the brick runs as root. */
xl_verdict
posix_fop_access(struct xlator *xl, struct call_stack *stk)
{
    struct stat st;
    POSIX_OBJ(obj);

    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);
    if (err == 0)
        err = posix_obj_stat(&obj, &st);
    return err ? err : XL_DONE;
}

/* 0 (changelog) and 2 (upcall: names of xattrs to watch) are messages to layers that this graph lacks. Stock
 * answers success without these layers, and clients log an error otherwise. */
xl_verdict
posix_fop_ipc(struct xlator *xl, struct call_stack *stk)
{
    enum { IPC_CHANGELOG = 0, IPC_UPCALL = 2 };

    (void)xl;
    return stk->call.cmd == IPC_CHANGELOG || stk->call.cmd == IPC_UPCALL ? XL_DONE : -EOPNOTSUPP;
}

/* Kiln has no leases layer: clients interpret ENOSYS as "leases are off". */
xl_verdict
posix_fop_lease(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return -ENOSYS;
}
