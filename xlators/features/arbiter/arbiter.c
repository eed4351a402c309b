/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/arbiter: the replica that has all names, attributes and xattrs, and no contents (brick 10.9).
 *
 * It breaks ties: its counters say which of the two others is right, and its files are empty. So it sits just
 * above the storage, below locks and index, which serve it as any replica. A change of contents is answered
 * with success and not done; the iatts of the reply are zero, which says "no attributes", for the size of an
 * empty file would be a lie. What the storage of the other replicas would refuse without a look at the disk
 * is refused here too: a success would blame them for changes that never were. Contents cannot be read:
 * ENOSYS sends the reader to another replica. Keeps nothing and takes no lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "fs/fd.h"
#include "fs/inode.h"
#include "stack/xlator.h"

/* 0, or -errno: what can be said without the disk of a change of bytes [offset, offset + size). */
static int
check_change(const struct inode *inode, uint64_t offset, uint64_t size)
{
    if (inode->type == S_IFDIR)
        return -EISDIR;
    return inode->type != S_IFREG || size > INT64_MAX || offset > INT64_MAX - size ? -EINVAL : 0;
}

static int
check_fd(const struct call_stack *stk, uint64_t size)
{
    const struct fd *fd = stk->call.fd;

    if ((fd->flags & O_ACCMODE) == O_RDONLY)
        return -EBADF;
    return check_change(fd->inode, stk->call.offset, size);
}

static xl_verdict
say_it_is_done(int err)
{
    return err ? err : XL_DONE; /* the reply is zero: success */
}

/* Replicas are asked whether others have the file open, and whether all writes so far were appends; an
 * arbiter cannot know the latter and must not say no for the others (as stock). */
static int
answer_counts(struct call_stack *stk)
{
    const struct dict *asked = stk->call.xdata;
    unsigned open_fds = atomic_load(&stk->call.fd->inode->open_fds);
    bool wants_count = dict_has(asked, DICT_KEY_OPEN_FD_COUNT),
         wants_append = dict_has(asked, DICT_KEY_WRITE_IS_APPEND);
    int err = 0;

    if (!wants_count && !wants_append)
        return 0;
    struct dict *x = reply_xdata(stk);

    if (!x)
        return -ENOMEM;
    if (wants_count)
        err = dict_set_uint(x, DICT_KEY_OPEN_FD_COUNT, open_fds);
    if (!err && wants_append)
        err = dict_set_uint(x, DICT_KEY_WRITE_IS_APPEND, 1);
    return err;
}

static xl_verdict
arbiter_writev(struct xlator *xl, struct call_stack *stk)
{
    int err = check_fd(stk, stk->call.payload_bytes);

    (void)xl;
    if (!err)
        err = answer_counts(stk);
    if (err)
        return err;
    stk->reply.op_ret = (int32_t)stk->call.payload_bytes;
    return XL_DONE;
}

static xl_verdict
arbiter_truncate(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return say_it_is_done(check_change(stk->call.loc.inode, stk->call.offset, 0));
}

static xl_verdict
arbiter_ftruncate(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return say_it_is_done(check_fd(stk, 0));
}

/* fallocate, discard, zerofill */
static xl_verdict
arbiter_range(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return say_it_is_done(stk->call.size ? check_fd(stk, stk->call.size) : -EINVAL);
}

static xl_verdict
arbiter_has_none(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return -ENOSYS;
}

static const struct option arbiter_options[] = {
    OPT_END,
};

const struct xlator_type features_arbiter_xlator = {
    .name = "features/arbiter",
    .options = arbiter_options,
    .ops = &(const struct xlator_ops){
        .writev = arbiter_writev,
        .truncate = arbiter_truncate,
        .ftruncate = arbiter_ftruncate,
        .fallocate = arbiter_range,
        .discard = arbiter_range,
        .zerofill = arbiter_range,
        .readv = arbiter_has_none,
        .seek = arbiter_has_none,
    },
};
