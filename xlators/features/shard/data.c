/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Contents: read, write, fallocate, discard, zerofill, seek, fsync.
 *
 * A call is cut into pieces, one for each block, which go to the bricks side by side. Block 0 is reached by
 * the caller's fd and with the caller's rights; shards belong to root and are reached by their gfids.
 *
 *   READ      a missing or short shard reads as zeros. Only if a piece came short, or the read reaches beyond
 *             the last seen size, the size is read, and the reply cut there
 *   WRITE     inside the last seen size: the pieces, and if a shard has grown or got new blocks, XATTROP of
 *             the number of blocks, whose reply has the size. If that is now smaller (another client has cut
 *             the file), or if the write reaches beyond the size: all of it under the lock on the size
 *             (hold.c). An append gets its offset under that lock, so appends of several clients do not
 *             overwrite each other
 *   FALLOCATE as WRITE. With KEEP_SIZE only inside the file, else EOPNOTSUPP as stock: blocks behind the end
 *             would not be found when the file is removed
 *   DISCARD   inside the file, on shards that exist; a missing shard is a hole already
 *   ZEROFILL  as DISCARD, but makes the file longer
 *   SEEK      block after block; after SHARD_SEEK_HOLES blocks without data a listing shows the next shard,
 *             because an empty file of 8 EiB has 2^37 blocks of 64 MiB
 *   FSYNC     the base file and each shard that this mount has written since it was synced last
 *   FLUSH     the base file; over cluster/disperse, which then records their sizes, also the shards
 *
 * Deaths: a client that dies in the middle of a write leaves some of the pieces written, as a client of one
 * large file leaves a part of a write. hold.c tells about the size. A write that fails may leave shards
 * behind the end of the file; the removal of the file then looks for them (sweep.c). */
#include <errno.h>
#include <string.h>

#include "mem/iobuf.h"
#include "xlators/features/shard/shard-internal.h"

enum { SHARD_WIDTH = 16, SHARD_TRIES = 4, SHARD_SEEK_HOLES = 32 };

/* A call that is cut into pieces. */
struct shard_io {
    const struct shard_op *o;
    uint64_t offset, len;
    bool makes_blocks;
    char *into;           /* READ: zeroed room for `len` bytes */
    pthread_mutex_t lock; /* guards the fields below */
    int64_t blocks;       /* added */
    bool has_grown;       /* a block was shorter than its piece's end */
    bool is_short;        /* READ: a piece came short */
    bool has_base;
    struct iatt base;     /* attributes of the base file after the call, if has_base */
    int err;
};

struct shard_piece {
    uint64_t block, at, len; /* of the block; the place in it */
    uint64_t from;           /* offset in the caller's data */
};

static uint64_t
shard_first_block(const struct shard_io *io)
{
    return io->offset / io->o->f->block_size;
}

static uint64_t
shard_piece_count(const struct shard_io *io)
{
    return io->len ? (io->offset + io->len - 1) / io->o->f->block_size - shard_first_block(io) + 1 : 0;
}

static struct shard_piece
shard_piece_nth(const struct shard_io *io, uint64_t i)
{
    uint64_t size = io->o->f->block_size, n = shard_first_block(io) + i, begin = n * size;
    uint64_t from = begin > io->offset ? begin : io->offset, end = io->offset + io->len;

    if (end > begin + size)
        end = begin + size;
    return (struct shard_piece){.block = n, .at = from - begin, .len = end - from, .from = from - io->offset};
}

/* ---- one piece ------------------------------------------------------------------------------- */

/* Sets the part of the caller's payload. */
static void
shard_cut_payload(const struct fop_call *from, struct fop_call *to, const struct shard_piece *p)
{
    uint64_t skip = p->from, left = p->len;

    for (int i = 0; i < from->payload_count && left; i++) {
        const struct iovec *v = &from->payload[i];

        if (skip >= v->iov_len) {
            skip -= v->iov_len;
            continue;
        }
        size_t n = v->iov_len - skip < left ? v->iov_len - skip : left;

        to->payload[to->payload_count++] = (struct iovec){(char *)v->iov_base + skip, n};
        left -= n;
        skip = 0;
    }
    to->payload_bytes = p->len;
    to->payload_iobuf = from->payload_iobuf ? iobuf_ref(from->payload_iobuf) : NULL;
}

static struct call_stack *
shard_piece_call(const struct shard_io *io, const struct shard_piece *p, struct fd *fd)
{
    const struct fop_call *from = &io->o->stk->call;
    struct call_stack *stk =
        p->block ? shard_call_root(io->o, from->fop) : shard_call_new(io->o, from->fop);

    stk = shard_call_fd(stk, fd);
    if (from->fop == FOP_writev)
        stk = shard_call_put_uint(stk, DICT_KEY_WRITE_UPDATE_ATOMIC, 4);
    if (!stk)
        return NULL;
    stk->call.offset = p->at;
    stk->call.size = p->len;
    if (from->fop == FOP_writev) {
        stk->call.flags = O_RDWR | (from->flags & (O_DIRECT | O_SYNC | O_DSYNC));
        shard_cut_payload(from, &stk->call, p);
    } else if (from->fop == FOP_readv) {
        stk->call.flags = from->flags & O_DIRECT;
    }
    return stk;
}

static void
shard_piece_note(struct shard_io *io, const struct shard_piece *p, const struct fop_reply *r)
{
    bool is_short = r->op_ret >= 0 && (uint64_t)r->op_ret < p->len;

    pthread_mutex_lock(&io->lock);
    if (io->into) {
        io->is_short |= is_short;
    } else {
        io->blocks += (int64_t)(shard_counted(io->o->f, r->post.blocks) -
                                shard_counted(io->o->f, r->pre.blocks));
        io->has_grown |= r->pre.size < p->at + p->len;
    }
    if (!p->block && r->post.mode) {
        io->has_base = true;
        io->base = r->post;
    }
    pthread_mutex_unlock(&io->lock);
}

/* Makes the call on the block's file. Returns 0 or -errno. */
static int
shard_piece_send(struct shard_io *io, const struct shard_piece *p, struct fd *fd)
{
    struct call_stack *stk = shard_piece_call(io, p, fd);
    int ret = shard_call(io->o, stk);

    if (ret >= 0 && io->o->stk->call.fop == FOP_writev && (uint64_t)ret != p->len)
        ret = ret ? -EIO : -ENOSPC;
    if (ret > 0 && io->into) {
        if ((uint64_t)ret > p->len)
            ret = -EIO;
        else
            memcpy(io->into + p->from, stk->reply.payload.iov_base, (size_t)ret);
    }
    if (ret >= 0)
        shard_piece_note(io, p, &stk->reply);
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

static int
shard_piece_of_shard(struct shard_io *io, const struct shard_piece *p)
{
    struct inode *inode = NULL;
    int err = io->makes_blocks ? shard_block_make(io->o, p->block, &inode)
                               : shard_block_find(io->o, p->block, &inode);

    if (err)
        return err;
    struct fd *fd = fd_new_anonymous(inode, NULL);

    err = fd ? shard_piece_send(io, p, fd) : -ENOMEM;
    if (!err && !io->into)
        err = shard_block_dirty(io->o, inode);
    if (shard_is_missing(err)) {
        shard_block_lost(io->o, p->block, inode);
        err = -EAGAIN; /* another client has removed the shard, and perhaps made a new one */
    }
    fd_unref(fd);
    inode_unref(inode);
    return err;
}

static void
shard_piece_go(void *arg, size_t i)
{
    struct shard_io *io = arg;
    struct shard_piece p = shard_piece_nth(io, i);
    int err = -EAGAIN;

    if (!p.block)
        err = shard_piece_send(io, &p, io->o->fd);
    for (int k = 0; p.block && k < SHARD_TRIES && err == -EAGAIN; k++)
        err = shard_piece_of_shard(io, &p);
    if (p.block && err == -ENOENT && !io->makes_blocks) {
        err = 0; /* a hole */
        if (io->into)
            shard_piece_note(io, &p, &(struct fop_reply){0});
    }
    if (!err)
        return;
    pthread_mutex_lock(&io->lock);
    io->err = io->err ? io->err : err == -EAGAIN ? -EIO : err;
    pthread_mutex_unlock(&io->lock);
}

/* Makes all pieces. Returns 0 or the first -errno. */
static int
shard_io_run(struct shard_io *io)
{
    pthread_mutex_init(&io->lock, NULL);
    io->blocks = 0;
    io->has_grown = io->is_short = io->has_base = false;
    io->err = 0;
    coro_each(SHARD_WIDTH, shard_piece_count(io), shard_piece_go, io);
    pthread_mutex_destroy(&io->lock);
    if (io->has_base && !io->into)
        shard_file_base_written(io->o->f, &io->base);
    return io->err;
}

static int
shard_range_check(const struct shard_io *io)
{
    return io->offset > INT64_MAX || io->len > INT64_MAX - io->offset ? -EFBIG : 0;
}

/* ---- READ ------------------------------------------------------------------------------------ */

/* Cuts the range at the end of the file. */
static void
shard_cut_at(struct shard_io *io, uint64_t size)
{
    if (io->offset >= size)
        io->len = 0;
    else if (io->len > size - io->offset)
        io->len = size - io->offset;
}

static xl_verdict
shard_answer_read(struct call_stack *stk, struct iobuf *buf, uint64_t len)
{
    stk->reply.op_ret = (int32_t)len;
    stk->reply.op_errno = len ? 0 : ENOENT; /* the end */
    stk->reply.iobuf = buf;
    stk->reply.payload = (struct iovec){buf ? buf->bytes : NULL, (size_t)len};
    return XL_DONE;
}

static int
shard_read_into(struct shard_io *io, struct iobuf *buf)
{
    io->into = buf->bytes;
    memset(buf->bytes, 0, (size_t)io->len);
    int err = shard_io_run(io);

    if (!err && io->is_short)
        err = shard_file_look(io->o, NULL);
    if (!err && io->is_short)
        shard_cut_at(io, shard_file_size(io->o->f));
    return err;
}

enum { SHARD_READ_MAX = 16 << 20 };

xl_verdict
shard_readv_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    struct shard_io io = {.o = &o, .offset = stk->call.offset, .len = stk->call.size};
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    if (io.len > SHARD_READ_MAX)
        io.len = SHARD_READ_MAX;
    err = shard_range_check(&io);
    if (!err && io.offset + io.len > shard_file_size(o.f))
        err = shard_file_look(&o, NULL);
    if (err)
        return err;
    shard_cut_at(&io, shard_file_size(o.f));
    if (!io.len)
        return shard_answer_read(stk, NULL, 0);
    struct iobuf *buf = iobuf_get((size_t)io.len);

    err = buf ? shard_read_into(&io, buf) : -ENOMEM;
    if (!err)
        return shard_answer_read(stk, buf, io.len);
    iobuf_unref(buf);
    return err;
}

/* ---- WRITE, FALLOCATE ------------------------------------------------------------------------ */

/* Returns 0; -EAGAIN: the file has become too short; or another -errno. */
static int
shard_change_inside(struct shard_io *io)
{
    uint64_t size = io->offset + io->len;
    int err = shard_io_run(io);

    if (!err && (io->has_grown || io->blocks))
        err = shard_blocks_add(io->o, io->blocks, &size);
    return !err && size < io->offset + io->len ? -EAGAIN : err;
}

static int
shard_change_under_lock(struct shard_io *io, bool appends)
{
    struct shard_file *f = io->o->f;
    int err = shard_hold_join(io->o, false);

    if (err)
        return err;
    if (appends)
        io->offset = shard_hold_append(f, io->len);
    err = shard_range_check(io);
    if (!err) {
        err = shard_io_run(io);
        int also = shard_size_extend(io->o, err ? 0 : io->offset + io->len, io->blocks);

        err = err ? err : also;
    }
    if (err) {
        pthread_mutex_lock(&f->lock);
        f->has_strays = true;
        pthread_mutex_unlock(&f->lock);
    }
    shard_hold_leave(io->o);
    return err;
}

/* A write that must be on disk needs the size there, too. */
static int
shard_sync_size(const struct shard_io *io)
{
    const struct call_stack *stk = io->o->stk;
    bool must = stk->call.fop == FOP_writev && (stk->call.flags | io->o->fd->flags) & O_DSYNC;

    return must && (io->has_grown || io->blocks)
               ? shard_call_once(io->o, shard_call_fd(shard_call_internal(io->o, FOP_fsync), io->o->fd))
               : 0;
}

static xl_verdict
shard_answer_change(const struct shard_io *io, const struct iatt *before)
{
    struct fop_reply *r = &io->o->stk->reply;

    if (!io->has_base)
        shard_file_written(io->o);
    r->op_ret = io->o->stk->call.fop == FOP_writev ? (int32_t)io->len : 0;
    r->pre = *before;
    r->post = shard_file_iatt(io->o->f);
    return XL_DONE;
}

/* WRITE, FALLOCATE and ZEROFILL. */
static xl_verdict
shard_change(struct shard_io *io, bool appends)
{
    struct iatt before = shard_file_iatt(io->o->f);
    bool is_inside = !appends && io->offset + io->len <= before.size;
    int err = is_inside ? shard_change_inside(io) : -EAGAIN;

    if (err == -EAGAIN)
        err = shard_change_under_lock(io, appends);
    if (!err)
        err = shard_sync_size(io);
    return err < 0 ? err : shard_answer_change(io, &before);
}

xl_verdict
shard_writev_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    struct shard_io io = {
        .o = &o, .offset = stk->call.offset, .len = stk->call.payload_bytes, .makes_blocks = true};
    bool appends = stk->call.flags & O_APPEND;
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    err = io.len > INT32_MAX ? -EINVAL : appends ? 0 : shard_range_check(&io);
    if (err || !io.len)
        return err ? err : XL_DONE;
    return shard_change(&io, appends);
}

/* ---- DISCARD, ZEROFILL ----------------------------------------------------------------------- */

static int
shard_size_now(const struct shard_io *io)
{
    return io->offset + io->len > shard_file_size(io->o->f) ? shard_file_look(io->o, NULL) : 0;
}

static xl_verdict
shard_discard(struct shard_io *io)
{
    struct iatt before = shard_file_iatt(io->o->f);
    uint64_t size;
    int err = shard_size_now(io);

    if (err)
        return err;
    shard_cut_at(io, shard_file_size(io->o->f));
    err = shard_io_run(io);
    if (!err && io->blocks)
        err = shard_blocks_add(io->o, io->blocks, &size);
    return err ? err : shard_answer_change(io, &before);
}

static xl_verdict
shard_allocate(struct shard_io *io, bool keeps_size)
{
    if (!keeps_size)
        return shard_change(io, false);
    int err = shard_size_now(io);

    if (!err && io->offset + io->len > shard_file_size(io->o->f))
        err = -EOPNOTSUPP;
    return err ? err : shard_change(io, false);
}

xl_verdict
shard_space_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    struct shard_io io = {.o = &o, .offset = stk->call.offset, .len = stk->call.size};
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    err = io.len ? shard_range_check(&io) : -EINVAL;
    if (err)
        return err;
    io.makes_blocks = stk->call.fop == FOP_fallocate;
    if (stk->call.fop == FOP_discard) {
        if (io.offset + io.len > shard_file_size(o.f))
            err = shard_file_look(&o, NULL);
        shard_cut_at(&io, shard_file_size(o.f));
    }
    if (!err && shard_piece_count(&io) > SHARD_BLOCKS_BY_NUMBER)
        err = -EFBIG; /* one call would keep the bricks busy for hours */
    if (err)
        return err;
    if (stk->call.fop == FOP_discard)
        return shard_discard(&io);
    return shard_allocate(&io, stk->call.fop == FOP_fallocate && stk->call.flags);
}

/* ---- SEEK ------------------------------------------------------------------------------------ */

enum { SHARD_SEEK_DATA = 0, SHARD_SEEK_HOLE = 1 }; /* wire 6.2 */

/* Seeks in one block from `at` on. Returns 0 with the place in *out; -ENXIO: none. */
static int
shard_seek_in(const struct shard_op *o, uint64_t n, uint64_t at, uint64_t *out)
{
    struct inode *inode = NULL;
    int err = n ? shard_block_find(o, n, &inode) : 0;
    struct fd *fd = err ? NULL : n ? fd_new_anonymous(inode, NULL) : fd_ref(o->fd);
    struct call_stack *stk =
        fd ? shard_call_fd(n ? shard_call_root(o, FOP_seek) : shard_call_new(o, FOP_seek), fd) : NULL;

    if (stk) {
        stk->call.offset = at;
        stk->call.cmd = o->stk->call.cmd;
    }
    if (!err)
        err = shard_call(o, stk);
    if (err >= 0)
        *out = stk->reply.offset;
    if (n && inode && shard_is_missing(err))
        shard_block_lost(o, n, inode);
    if (stk)
        call_stack_free(stk);
    fd_unref(fd);
    inode_unref(inode);
    return shard_is_missing(err) ? -ENXIO : err < 0 ? err : 0;
}

/* Sets *at to the next block that a listing shows, or to `size`. */
static int
shard_seek_skip(const struct shard_op *o, uint64_t *at, uint64_t size)
{
    uint64_t block = o->f->block_size, next;
    int err = shard_block_next(o, *at / block, &next);

    if (!err)
        *at = next <= (size - 1) / block ? next * block : size;
    return err;
}

xl_verdict
shard_seek_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    bool for_hole = stk->call.cmd == SHARD_SEEK_HOLE;
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    if (stk->call.cmd > SHARD_SEEK_HOLE)
        return -ENOTSUP;
    err = shard_file_look(&o, NULL);
    uint64_t size = shard_file_size(o.f), block = o.f->block_size, at = stk->call.offset;

    if (err || at >= size)
        return err ? err : -ENXIO;
    unsigned holes = 0; /* blocks without data, in a row */
    while (at < size) {
        uint64_t begin = at / block * block, found = 0;

        err = shard_seek_in(&o, at / block, at - begin, &found);
        if (err && err != -ENXIO)
            return err;
        if (err && for_hole) /* behind the end of the shard's file */
            break;
        if (!err && found < block && begin + found < size) {
            at = begin + found;
            break;
        }
        at = begin + block;
        holes = err ? holes + 1 : 0;
        if (holes == SHARD_SEEK_HOLES && at < size) {
            if ((err = shard_seek_skip(&o, &at, size)))
                return err;
            holes = 0;
        }
    }
    if (at >= size && !for_hole)
        return -ENXIO;
    stk->reply.offset = at < size ? at : size;
    return XL_DONE;
}

/* ---- FSYNC, FLUSH ---------------------------------------------------------------------------- */

struct shard_sync {
    const struct shard_op *o;
    bool flushes; /* a FLUSH instead of an FSYNC */
    struct shard_sync_item {
        struct shard_block *block;
        struct inode *inode; /* a reference */
        uint64_t writes;
    } *item;
    size_t count;
    pthread_mutex_t lock; /* guards err */
    int err;
};

/* Lists the shards to sync or to flush, on the arena. */
static int
shard_sync_list(struct shard_sync *y)
{
    struct shard_file *f = y->o->f;
    struct shard_block *b;
    size_t room = 0;

    pthread_mutex_lock(&f->lock);
    cds_list_for_each_entry(b, &f->dirty, link) room++;
    y->item = room ? arena_alloc(&y->o->stk->arena, room * sizeof *y->item) : NULL;
    if (y->item || !room) {
        cds_list_for_each_entry(b, &f->dirty, link) {
            if (!y->flushes || b->flushed != b->writes)
                y->item[y->count++] = (struct shard_sync_item){b, inode_ref(b->inode), b->writes};
            b->flushed = y->flushes ? b->writes : b->flushed;
        }
        f->is_unflushed &= !y->flushes;
    }
    pthread_mutex_unlock(&f->lock);
    return room && !y->item ? -ENOMEM : 0;
}

static void
shard_sync_nth(void *arg, size_t n)
{
    struct shard_sync *y = arg;
    struct shard_sync_item *i = n < y->count ? &y->item[n] : NULL;
    struct fd *fd = i ? fd_new_anonymous(i->inode, NULL) : fd_ref(y->o->fd);
    struct call_stack *stk =
        fd ? i ? shard_call_root(y->o, FOP_fsync) : shard_call_new(y->o, FOP_fsync) : NULL;

    if (fd)
        stk = shard_call_fd(stk, fd);
    if (stk)
        stk->call.flags = y->o->stk->call.flags;
    int ret = shard_call_once(y->o, stk);

    if (i && (ret >= 0 || shard_is_missing(ret))) { /* a removed shard needs no sync */
        ret = 0;
        shard_block_synced(y->o->f, i->block, i->writes);
    }
    if (i)
        inode_unref(i->inode);
    fd_unref(fd);
    pthread_mutex_lock(&y->lock);
    y->err = y->err ? y->err : ret < 0 ? ret : 0;
    pthread_mutex_unlock(&y->lock);
}

xl_verdict
shard_fsync_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    struct shard_sync y = {.o = &o};
    int err = shard_op_file(&o);

    if (err || !o.f || !o.f->block_size)
        return err ? err : XL_PASS;
    err = shard_file_pay_time(&o);
    int list_err = shard_sync_list(&y);

    pthread_mutex_init(&y.lock, NULL);
    coro_each(SHARD_WIDTH, y.count + 1, shard_sync_nth, &y);
    pthread_mutex_destroy(&y.lock);
    if (err || list_err || y.err)
        return y.err ? y.err : err ? err : list_err;
    stk->reply.pre = stk->reply.post = shard_file_iatt(o.f);
    return XL_DONE;
}

static void
shard_flush_nth(void *arg, size_t n)
{
    struct shard_sync *y = arg;
    struct fd *fd = fd_new_anonymous(y->item[n].inode, NULL);
    struct call_stack *stk = fd ? shard_call_fd(shard_call_root(y->o, FOP_flush), fd) : NULL;

    if (stk)
        stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
    int ret = shard_call_once(y->o, stk);

    inode_unref(y->item[n].inode);
    fd_unref(fd);
    pthread_mutex_lock(&y->lock);
    y->err = y->err || ret >= 0 || shard_is_missing(ret) ? y->err : ret;
    pthread_mutex_unlock(&y->lock);
}

/* Flushes the shards that were written since the last time. Returns 0 or -errno. */
static int
shard_flush_shards(const struct shard_op *o)
{
    struct shard_sync y = {.o = o, .flushes = true};
    int err = shard_sync_list(&y);

    pthread_mutex_init(&y.lock, NULL);
    coro_each(SHARD_WIDTH, y.count, shard_flush_nth, &y);
    pthread_mutex_destroy(&y.lock);
    return err ? err : y.err;
}

xl_verdict
shard_flush_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    int err = 0;

    o.f = shard_file_known(o.s, o.base);
    if (o.f)
        (void)shard_file_pay_time(&o); /* on failure the time is owed still */
    if (o.f && o.s->flushes)
        err = shard_flush_shards(&o);
    return err ? err : XL_PASS;
}
