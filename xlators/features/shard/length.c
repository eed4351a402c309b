/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Truncate, and opens that truncate.
 *
 *   longer     XATTROP of the size; the range between is a hole
 *   shorter    1. the shards behind the new end are removed   2. the block with the new end is cut
 *              3. XATTROP of the size
 *   always under the exclusive lock on the size (hold.c), after a check of the caller's rights
 *
 * A new end between two blocks cuts no block. (Stock's client then cuts the last block that stays to 0 bytes,
 * which loses its contents.)
 *
 * The number of blocks drifts, because file systems allocate later (blocks allocated ahead do not count). It
 * becomes right again when only the base file is left.
 *
 * Deaths: between 1 and 3 the file has its old size, and reads as zeros where shards are gone. The truncate
 * was not confirmed; the caller that makes it again ends it. */
#include <errno.h>

#include "xlators/features/shard/shard-internal.h"

enum { SHARD_CUT_TRIES = 4 };

/* By its owner's rights a caller without an open file may change the file or not. */
static int
shard_may_truncate(const struct shard_op *o)
{
    struct call_stack *stk = shard_call_inode(shard_call_new(o, FOP_access), o->base);

    if (stk)
        stk->call.flags = 2; /* W_OK */
    int ret = shard_call_once(o, stk);

    return ret < 0 ? ret : 0;
}

/* Cuts one block, and adds the difference to *blocks. A missing shard is shorter already. */
static int
shard_cut_once(const struct shard_op *o, uint64_t n, uint64_t len, int64_t *blocks)
{
    struct inode *inode = NULL;
    int err = n ? shard_block_find(o, n, &inode) : 0;

    if (err)
        return err == -ENOENT ? 0 : err;
    struct call_stack *stk = n ? shard_call_inode(shard_call_internal(o, FOP_truncate), inode)
                               : shard_call_base(o, FOP_ftruncate, FOP_truncate, true);

    if (stk)
        stk->call.offset = len;
    int ret = shard_call(o, stk);

    if (ret >= 0) {
        *blocks += (int64_t)(shard_counted(o->f, stk->reply.post.blocks) -
                             shard_counted(o->f, stk->reply.pre.blocks));
        ret = n ? shard_block_dirty(o, inode) : 0;
        if (!n)
            shard_file_base_written(o->f, &stk->reply.post);
    }
    if (n && shard_is_missing(ret)) {
        shard_block_lost(o, n, inode);
        ret = -EAGAIN;
    }
    if (stk)
        call_stack_free(stk);
    inode_unref(inode);
    return ret < 0 ? ret : 0;
}

static int
shard_cut(const struct shard_op *o, uint64_t n, uint64_t len, int64_t *blocks)
{
    int err = -EAGAIN;

    for (int i = 0; i < SHARD_CUT_TRIES && err == -EAGAIN; i++)
        err = shard_cut_once(o, n, len, blocks);
    return err == -EAGAIN ? -EIO : err;
}

static int
shard_shorten(const struct shard_op *o, uint64_t size)
{
    uint64_t block = o->f->block_size, was = o->f->hold.size, freed = 0;
    uint64_t kept = size ? (size - 1) / block : 0; /* the last block that stays */
    int64_t blocks = 0;
    int err = shard_blocks_remove(o, &o->base->gfid, kept + 1, (was - 1) / block, &freed);

    if (!err && (!kept || size % block))
        err = shard_cut(o, kept, size - kept * block, &blocks);
    if (err)
        return err;
    blocks -= (int64_t)freed;
    pthread_mutex_lock(&o->f->lock);
    int64_t had = (int64_t)o->f->blocks;

    if (!kept) /* the base file is all */
        blocks = (int64_t)shard_counted(o->f, o->f->last.blocks) - had;
    else if (blocks < -had)
        blocks = -had;
    pthread_mutex_unlock(&o->f->lock);
    return shard_size_set(o, size, blocks);
}

int
shard_truncate_to(struct shard_op *o, uint64_t size)
{
    int err = size > INT64_MAX ? -EFBIG : shard_hold_join(o, true);

    if (err)
        return err;
    err = size < o->f->hold.size ? shard_shorten(o, size) : shard_size_set(o, size, 0);
    shard_hold_leave(o);
    if (!err)
        shard_file_written(o);
    return err;
}

xl_verdict
shard_truncate_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    stk->reply.pre = shard_file_iatt(o.f);
    if (!o.fd)
        err = shard_may_truncate(&o);
    if (!err)
        err = shard_truncate_to(&o, stk->call.offset);
    if (!err)
        err = shard_file_pay_time(&o);
    stk->reply.post = shard_file_iatt(o.f);
    return err ? err : XL_DONE;
}

/* Bricks must not append to the base file on their own, because the end of the file may be elsewhere; nor
 * truncate it, because its shards would stay. */
xl_verdict
shard_open_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    struct call_stack *copy = coro_call_fork(stk);

    if (copy)
        copy->call.flags &= ~(uint32_t)(O_APPEND | O_TRUNC);
    if (stk->call.flags & O_TRUNC)
        err = shard_may_truncate(&o);
    if (!err)
        err = shard_call(&o, copy);
    if (err >= 0 && stk->call.flags & O_TRUNC) {
        o.fd = copy->reply.fd;
        err = shard_truncate_to(&o, 0);
        if (!err)
            err = shard_file_pay_time(&o);
    }
    if (err >= 0) {
        shard_op_take(&o, copy);
        return XL_DONE;
    }
    if (copy)
        call_stack_free(copy);
    return err;
}
