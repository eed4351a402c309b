/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/arbiter: the replica that stores all names, attributes and xattrs, but no file contents (brick
 * 10.9).
 *
 * The arbiter breaks ties: its pending counters say which of the two other replicas is right, while its own
 * files are empty. So the layer sits just above storage, below locks and index, which serve an arbiter like
 * any replica. The layer answers a change of contents with success without executing it. The iatts of the
 * reply are zero, which means "no attributes", because the size of an empty file would be wrong. Changes that
 * the storage of the other replicas would refuse without looking at the disk are refused here too: a success
 * would blame those replicas for changes that never happened. Reading contents fails with ENOSYS, which sends
 * the reader to another replica. The layer keeps nothing and takes no lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "fs/fd.h"
#include "fs/inode.h"
#include "stack/xlator.h"

/* Checks a change of bytes [offset, offset + size) as far as possible without the disk. Returns 0 or -errno.
 */
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
answer_as_done(int err)
{
    return err ? err : XL_DONE; /* the reply is all zero, which means success */
}

/* A write may request the number of open fds and whether all writes so far were appends. An arbiter does not
 * know the latter and, like stock's, must not answer "no" for the other replicas. */
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
    return answer_as_done(check_change(stk->call.loc.inode, stk->call.offset, 0));
}

static xl_verdict
arbiter_ftruncate(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return answer_as_done(check_fd(stk, 0));
}

/* fallocate, discard, zerofill */
static xl_verdict
arbiter_range(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return answer_as_done(stk->call.size ? check_fd(stk, stk->call.size) : -EINVAL);
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
