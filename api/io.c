/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Data. A call of more than API_IO_MAX bytes is split into calls to the bricks, one after the other; if a
 * later one fails, the result is the number of bytes before it, as for a short write(2). Data is copied
 * between the program's memory and Kiln's buffers on the worker, because a layer may send written data after
 * the answer.
 *
 * The asynchronous forms without an offset take the position at the call, and move it by the size of the
 * call, so several of them may run at the same time. */
#include <errno.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"
#include "mem/iobuf.h"

enum { API_COPY_MAX = 1 << 30 }; /* bytes of one copy, whose size has 32 bits on the wire */

struct io_request {
    struct request r;
    struct glfs_fd *fd;
    enum fop fop;
    const struct iovec *iov;
    int iov_count;
    uint64_t offset, size; /* size: of the iov, or of the range */
    uint32_t flags;        /* fsync, fallocate */
    struct iatt before, after;
    /* asynchronous: a reference to `fd`, and one of the two callbacks */
    glfs_io_cbk *fn;
    glfs_io_cbk_34 *fn_34;
    void *data;
    struct iovec iovs[]; /* asynchronous: `iov` */
};

static struct io_request *
io_of(struct request *r)
{
    return caa_container_of(r, struct io_request, r);
}

/* ---- one call to the bricks ------------------------------------------------------------------ */

/* A place in an array of buffers. */
struct io_cursor {
    const struct iovec *iov;
    size_t done; /* bytes of iov[0] */
};

static void
scatter(struct io_cursor *c, const char *from, size_t bytes)
{
    while (bytes) {
        size_t n = c->iov->iov_len - c->done;

        n = n < bytes ? n : bytes;
        if (n)
            memcpy((char *)c->iov->iov_base + c->done, from, n);
        from += n;
        bytes -= n;
        c->done += n;
        if (c->done == c->iov->iov_len) {
            c->iov++;
            c->done = 0;
        }
    }
}

static void
gather(struct io_cursor *c, char *to, size_t bytes)
{
    while (bytes) {
        size_t n = c->iov->iov_len - c->done;

        n = n < bytes ? n : bytes;
        if (n)
            memcpy(to, (const char *)c->iov->iov_base + c->done, n);
        to += n;
        bytes -= n;
        c->done += n;
        if (c->done == c->iov->iov_len) {
            c->iov++;
            c->done = 0;
        }
    }
}

static void
note_attributes(struct io_request *q, const struct call_stack *stk)
{
    if (q->fop == FOP_readv) {
        q->after = stk->reply.stat;
        return;
    }
    if (!q->before.mode)
        q->before = stk->reply.pre;
    q->after = stk->reply.post;
}

static int
read_part(struct io_request *q, uint64_t offset, size_t bytes, struct io_cursor *to)
{
    struct call_stack *stk = request_call_on(&q->r, FOP_readv, q->fd);

    if (!stk)
        return -ENOMEM;
    stk->call.offset = offset;
    stk->call.size = bytes;
    stk->call.flags = q->fd->fd->flags;
    int ret = request_wind(&q->r, stk);

    if (ret > 0 && (size_t)ret > bytes)
        ret = -EIO;
    if (ret > 0)
        scatter(to, stk->reply.payload.iov_base, (size_t)ret);
    if (ret >= 0)
        note_attributes(q, stk);
    call_stack_free(stk);
    return ret;
}

static int
write_part(struct io_request *q, uint64_t offset, size_t bytes, struct io_cursor *from)
{
    struct iobuf *buf = iobuf_get(bytes ? bytes : 1);
    struct call_stack *stk = buf ? request_call_on(&q->r, FOP_writev, q->fd) : NULL;

    if (!stk) {
        iobuf_unref(buf);
        return -ENOMEM;
    }
    gather(from, buf->bytes, bytes);
    stk->call.payload[0] = (struct iovec){buf->bytes, bytes};
    stk->call.payload_count = 1;
    stk->call.payload_iobuf = buf;
    stk->call.payload_bytes = stk->call.size = bytes;
    stk->call.offset = offset;
    stk->call.flags = q->fd->fd->flags | (q->fd->appends ? O_APPEND : 0);
    int ret = request_wind(&q->r, stk);

    if (ret >= 0)
        note_attributes(q, stk);
    call_stack_free(stk);
    return ret;
}

static int64_t
transfer_go(struct request *r)
{
    struct io_request *q = io_of(r);
    struct io_cursor cursor = {.iov = q->iov};
    uint64_t done = 0;
    int ret = 0;

    if (!q->size && q->fop == FOP_readv) /* bricks refuse a read of 0 bytes (wire 6.2) */
        return 0;
    do {
        size_t n = q->size - done < API_IO_MAX ? (size_t)(q->size - done) : API_IO_MAX;

        ret = q->fop == FOP_readv ? read_part(q, q->offset + done, n, &cursor)
                                  : write_part(q, q->offset + done, n, &cursor);
        if (ret < 0)
            break;
        done += (uint64_t)ret;
        if ((size_t)ret < n)
            break;
    } while (done < q->size);
    return ret < 0 && !done ? ret : (int64_t)done;
}

/* FSYNC, and changes of a range. */
static int64_t
range_go(struct request *r)
{
    struct io_request *q = io_of(r);
    struct call_stack *stk = request_call_on(r, q->fop, q->fd);

    if (!stk)
        return -ENOMEM;
    stk->call.offset = q->offset;
    stk->call.size = q->size;
    stk->call.flags = q->flags;
    int ret = request_wind(r, stk);

    if (ret >= 0)
        note_attributes(q, stk);
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int64_t
io_invalid(int err)
{
    errno = err;
    return -1;
}

/* Fills in the size of the buffers. Returns 0, or -1 with errno. */
static int64_t
set_request_iov(struct io_request *q, const struct iovec *iov, int count)
{
    q->iov = iov;
    q->iov_count = count;
    q->size = 0;
    if (count < 0 || count > IOV_MAX || (count && !iov))
        return io_invalid(EINVAL);
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > SSIZE_MAX - q->size)
            return io_invalid(EINVAL);
        q->size += iov[i].iov_len;
    }
    return 0;
}

static bool
is_range(off_t offset, off_t size)
{
    off_t end;

    return offset >= 0 && size >= 0 && !__builtin_add_overflow(offset, size, &end);
}

/* Returns whether the file is open for the call; else sets errno. A write that write-behind answers would
 * fail much later. */
static bool
is_open_for(const struct glfs_fd *fd, enum fop fop)
{
    bool is_open = fd && fd->fd;
    uint32_t how = is_open ? fd->fd->flags & O_ACCMODE : 0;

    if (is_open && (fop == FOP_readv ? how != O_WRONLY : how != O_RDONLY))
        return true;
    errno = EBADF;
    return false;
}

/* ---- synchronous ----------------------------------------------------------------------------- */

static void
copy_attributes_out(const struct io_request *q, struct glfs_stat *before, struct glfs_stat *after)
{
    api_statx_of(q->fd->fs, &q->before, before);
    api_statx_of(q->fd->fs, &q->after, after);
}

static ssize_t
transfer_at(struct glfs_fd *fd, enum fop fop, const struct iovec *iov, int count, off_t offset,
            struct glfs_stat *before, struct glfs_stat *after)
{
    struct io_request q = {.fd = fd, .fop = fop, .offset = (uint64_t)offset};

    if (offset < 0)
        return io_invalid(EINVAL);
    if (!is_open_for(fd, fop) || set_request_iov(&q, iov, count) < 0)
        return -1;
    ssize_t n = request_run_on(&q.r, fd, transfer_go);

    if (n >= 0)
        copy_attributes_out(&q, before, after);
    return n;
}

/* After an append the position is the end of the file. */
static ssize_t
transfer_at_position(struct glfs_fd *fd, enum fop fop, const struct iovec *iov, int count)
{
    struct glfs_stat after = {0};

    if (!fd)
        return io_invalid(EBADF);
    pthread_mutex_lock(&fd->position);
    ssize_t n = transfer_at(fd, fop, iov, count, fd->offset, NULL, &after);

    if (n > 0)
        fd->offset = fop == FOP_writev && fd->appends && after.mode ? (off_t)after.size : fd->offset + n;
    pthread_mutex_unlock(&fd->position);
    return n;
}

static struct iovec
buffer_of(const void *bytes, size_t size)
{
    return (struct iovec){(void *)(uintptr_t)bytes, size};
}

GFAPI ssize_t
glfs_read(struct glfs_fd *fd, void *bytes, size_t size, int flags)
{
    (void)flags;
    return transfer_at_position(fd, FOP_readv, &(struct iovec){bytes, size}, 1);
}

GFAPI ssize_t
glfs_write(struct glfs_fd *fd, const void *bytes, size_t size, int flags)
{
    const struct iovec iov = buffer_of(bytes, size);

    (void)flags;
    return transfer_at_position(fd, FOP_writev, &iov, 1);
}

GFAPI ssize_t
glfs_readv(struct glfs_fd *fd, const struct iovec *iov, int count, int flags)
{
    (void)flags;
    return transfer_at_position(fd, FOP_readv, iov, count);
}

GFAPI ssize_t
glfs_writev(struct glfs_fd *fd, const struct iovec *iov, int count, int flags)
{
    (void)flags;
    return transfer_at_position(fd, FOP_writev, iov, count);
}

GFAPI ssize_t
glfs_preadv(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    (void)flags;
    return transfer_at(fd, FOP_readv, iov, count, offset, NULL, NULL);
}

GFAPI ssize_t
glfs_pwritev(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset, int flags)
{
    (void)flags;
    return transfer_at(fd, FOP_writev, iov, count, offset, NULL, NULL);
}

GFAPI ssize_t
glfs_pread(struct glfs_fd *fd, void *bytes, size_t size, off_t offset, int flags, struct glfs_stat *after)
{
    (void)flags;
    return transfer_at(fd, FOP_readv, &(struct iovec){bytes, size}, 1, offset, NULL, after);
}

GFAPI ssize_t
glfs_pread_34(struct glfs_fd *fd, void *bytes, size_t size, off_t offset, int flags)
{
    return glfs_pread(fd, bytes, size, offset, flags, NULL);
}

GFAPI ssize_t
glfs_pwrite(struct glfs_fd *fd, const void *bytes, size_t size, off_t offset, int flags,
            struct glfs_stat *before, struct glfs_stat *after)
{
    const struct iovec iov = buffer_of(bytes, size);

    (void)flags;
    return transfer_at(fd, FOP_writev, &iov, 1, offset, before, after);
}

GFAPI ssize_t
glfs_pwrite_34(struct glfs_fd *fd, const void *bytes, size_t size, off_t offset, int flags)
{
    return glfs_pwrite(fd, bytes, size, offset, flags, NULL, NULL);
}

static int
change_range(struct glfs_fd *fd, enum fop fop, off_t offset, off_t size, uint32_t flags,
             struct glfs_stat *before, struct glfs_stat *after)
{
    struct io_request q = {
        .fd = fd, .fop = fop, .offset = (uint64_t)offset, .size = (uint64_t)size, .flags = flags};

    if (!is_range(offset, size))
        return (int)io_invalid(EINVAL);
    int ret = (int)request_run_on(&q.r, fd, range_go);

    if (ret >= 0)
        copy_attributes_out(&q, before, after);
    return ret;
}

GFAPI int
glfs_fsync(struct glfs_fd *fd, struct glfs_stat *before, struct glfs_stat *after)
{
    return change_range(fd, FOP_fsync, 0, 0, 0, before, after);
}

GFAPI int
glfs_fsync_34(struct glfs_fd *fd)
{
    return glfs_fsync(fd, NULL, NULL);
}

GFAPI int
glfs_fdatasync(struct glfs_fd *fd, struct glfs_stat *before, struct glfs_stat *after)
{
    return change_range(fd, FOP_fsync, 0, 0, 1, before, after);
}

GFAPI int
glfs_fdatasync_34(struct glfs_fd *fd)
{
    return glfs_fdatasync(fd, NULL, NULL);
}

GFAPI int
glfs_ftruncate(struct glfs_fd *fd, off_t size, struct glfs_stat *before, struct glfs_stat *after)
{
    return change_range(fd, FOP_ftruncate, size, 0, 0, before, after);
}

GFAPI int
glfs_ftruncate_34(struct glfs_fd *fd, off_t size)
{
    return glfs_ftruncate(fd, size, NULL, NULL);
}

GFAPI int
glfs_fallocate(struct glfs_fd *fd, int keeps_size, off_t offset, size_t size)
{
    return change_range(fd, FOP_fallocate, offset, (off_t)size, keeps_size ? FALLOC_FL_KEEP_SIZE : 0, NULL,
                        NULL);
}

GFAPI int
glfs_discard(struct glfs_fd *fd, off_t offset, size_t size)
{
    return change_range(fd, FOP_discard, offset, (off_t)size, 0, NULL, NULL);
}

GFAPI int
glfs_zerofill(struct glfs_fd *fd, off_t offset, off_t size)
{
    return change_range(fd, FOP_zerofill, offset, size, 0, NULL, NULL);
}

/* ---- copying --------------------------------------------------------------------------------- */

struct copy_request {
    struct request r;
    struct glfs_fd *in, *out;
    off64_t in_offset, out_offset;
    size_t size;
    unsigned flags;
    struct iatt in_iatt, before, after;
};

static int64_t
copy_range_go(struct request *r)
{
    struct copy_request *q = caa_container_of(r, struct copy_request, r);
    struct call_stack *stk = request_call_on(r, FOP_copy_file_range, q->in);

    if (!stk)
        return -ENOMEM;
    stk->call.fd2 = fd_ref(q->out->fd);
    stk->call.loc2.inode = inode_ref(q->out->fd->inode);
    stk->call.offset = (uint64_t)q->in_offset;
    stk->call.offset2 = (uint64_t)q->out_offset;
    stk->call.size = q->size;
    stk->call.flags = q->flags;
    int ret = request_wind(r, stk);

    q->in_iatt = stk->reply.stat;
    q->before = stk->reply.pre;
    q->after = stk->reply.post;
    call_stack_free(stk);
    return ret;
}

/* Moves an offset that a copy has used: the program's, or the position. */
static void
move_offset(struct glfs_fd *fd, off64_t *own, off64_t to)
{
    if (own) {
        *own = to;
        return;
    }
    pthread_mutex_lock(&fd->position);
    fd->offset = to;
    pthread_mutex_unlock(&fd->position);
}

GFAPI ssize_t
glfs_copy_file_range(struct glfs_fd *in, off64_t *in_offset, struct glfs_fd *out, off64_t *out_offset,
                     size_t size, unsigned flags, struct glfs_stat *in_stat, struct glfs_stat *before,
                     struct glfs_stat *after)
{
    struct copy_request q = {
        .in = in, .out = out, .size = size < API_COPY_MAX ? size : API_COPY_MAX, .flags = flags};

    if (!in || !out)
        return io_invalid(EBADF);
    q.in_offset = in_offset ? *in_offset : in->offset;
    q.out_offset = out_offset ? *out_offset : out->offset;
    if (q.in_offset < 0 || q.out_offset < 0 || in->fs != out->fs)
        return io_invalid(in->fs == out->fs ? EINVAL : EXDEV);
    ssize_t n = request_run_on(&q.r, in, copy_range_go);

    if (n < 0)
        return n;
    move_offset(in, in_offset, q.in_offset + n);
    move_offset(out, out_offset, q.out_offset + n);
    api_statx_of(in->fs, &q.in_iatt, in_stat);
    api_statx_of(in->fs, &q.before, before);
    api_statx_of(in->fs, &q.after, after);
    return n;
}

/* ---- asynchronous ---------------------------------------------------------------------------- */

/* On a worker's own stack. The callback may close the file. */
static void
io_deliver(struct request *r)
{
    struct io_request *q = io_of(r);
    struct glfs_stat before, after;
    bool has_before = r->ret >= 0 && q->before.mode, has_after = r->ret >= 0 && q->after.mode;
    ssize_t ret = r->ret < 0 ? -1 : r->ret;

    copy_attributes_out(q, &before, &after);
    errno = r->ret < 0 ? (int)-r->ret : 0;
    if (q->fn)
        q->fn(q->fd, ret, has_before ? &before : NULL, has_after ? &after : NULL, q->data);
    else if (q->fn_34)
        q->fn_34(q->fd, ret, q->data);
    api_file_unref(q->fd);
    free(q);
}

/* Takes q over. */
static int
io_start(struct io_request *q, int64_t (*go)(struct request *r))
{
    struct glfs_fd *fd = api_file_ref(q->fd);
    int ret = request_start_on(&q->r, fd, go, io_deliver);

    if (ret < 0) {
        atomic_fetch_sub(&fd->refs, 1); /* the program has the last reference */
        free(q);
    }
    return ret;
}

/* Returns NULL with errno. */
static struct io_request *
io_new(struct glfs_fd *fd, enum fop fop, int iov_count, glfs_io_cbk *fn, glfs_io_cbk_34 *fn_34, void *data)
{
    if (!fd || iov_count < 0 || iov_count > IOV_MAX) {
        io_invalid(fd ? EINVAL : EBADF);
        return NULL;
    }
    struct io_request *q = calloc(1, sizeof *q + (size_t)iov_count * sizeof q->iovs[0]);

    if (!q)
        return NULL;
    q->fd = fd;
    q->fop = fop;
    q->fn = fn;
    q->fn_34 = fn_34;
    q->data = data;
    return q;
}

/* offset -1: at the position, which moves by the size of the buffers. */
static int
transfer_async(struct glfs_fd *fd, enum fop fop, const struct iovec *iov, int count, off_t offset,
               bool is_here, glfs_io_cbk *fn, glfs_io_cbk_34 *fn_34, void *data)
{
    struct io_request *q = is_open_for(fd, fop) ? io_new(fd, fop, count, fn, fn_34, data) : NULL;

    if (!q)
        return -1;
    if (set_request_iov(q, iov, count) < 0 || (!is_here && offset < 0)) {
        free(q);
        return (int)io_invalid(EINVAL);
    }
    if (count)
        memcpy(q->iovs, iov, (size_t)count * sizeof *iov);
    q->iov = q->iovs;
    if (is_here) {
        pthread_mutex_lock(&fd->position);
        offset = fd->offset;
        fd->offset += (off_t)q->size;
        pthread_mutex_unlock(&fd->position);
    }
    q->offset = (uint64_t)offset;
    return io_start(q, transfer_go);
}

static int
range_async(struct glfs_fd *fd, enum fop fop, off_t offset, off_t size, uint32_t flags, glfs_io_cbk *fn,
            glfs_io_cbk_34 *fn_34, void *data)
{
    struct io_request *q = is_range(offset, size) ? io_new(fd, fop, 0, fn, fn_34, data) : NULL;

    if (!q)
        return is_range(offset, size) ? -1 : (int)io_invalid(EINVAL);
    q->offset = (uint64_t)offset;
    q->size = (uint64_t)size;
    q->flags = flags;
    return io_start(q, range_go);
}

/* The two versions of each asynchronous call of one buffer, of buffers, and of a range. */
#define BUFFER_ASYNC(name, fop, bytes_type, size_type)                                                       \
    GFAPI int glfs_p##name##_async(struct glfs_fd *fd, bytes_type *bytes, size_type size, off_t offset,      \
                                   int flags, glfs_io_cbk *fn, void *data)                                   \
    {                                                                                                        \
        const struct iovec iov = buffer_of(bytes, (size_t)size);                                             \
                                                                                                             \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, &iov, 1, offset, false, fn, NULL, data);                              \
    }                                                                                                        \
    GFAPI int glfs_p##name##_async_34(struct glfs_fd *fd, bytes_type *bytes, size_type size, off_t offset,   \
                                      int flags, glfs_io_cbk_34 *fn, void *data)                             \
    {                                                                                                        \
        const struct iovec iov = buffer_of(bytes, (size_t)size);                                             \
                                                                                                             \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, &iov, 1, offset, false, NULL, fn, data);                              \
    }                                                                                                        \
    GFAPI int glfs_##name##_async(struct glfs_fd *fd, bytes_type *bytes, size_t size, int flags,             \
                                  glfs_io_cbk *fn, void *data)                                               \
    {                                                                                                        \
        const struct iovec iov = buffer_of(bytes, size);                                                     \
                                                                                                             \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, &iov, 1, 0, true, fn, NULL, data);                                    \
    }                                                                                                        \
    GFAPI int glfs_##name##_async_34(struct glfs_fd *fd, bytes_type *bytes, size_t size, int flags,          \
                                     glfs_io_cbk_34 *fn, void *data)                                         \
    {                                                                                                        \
        const struct iovec iov = buffer_of(bytes, size);                                                     \
                                                                                                             \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, &iov, 1, 0, true, NULL, fn, data);                                    \
    }

BUFFER_ASYNC(read, FOP_readv, void, size_t)
BUFFER_ASYNC(write, FOP_writev, const void, int)

#define BUFFERS_ASYNC(name, fop)                                                                             \
    GFAPI int glfs_p##name##_async(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset,     \
                                   int flags, glfs_io_cbk *fn, void *data)                                   \
    {                                                                                                        \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, iov, count, offset, false, fn, NULL, data);                           \
    }                                                                                                        \
    GFAPI int glfs_p##name##_async_34(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset,  \
                                      int flags, glfs_io_cbk_34 *fn, void *data)                             \
    {                                                                                                        \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, iov, count, offset, false, NULL, fn, data);                           \
    }                                                                                                        \
    GFAPI int glfs_##name##_async(struct glfs_fd *fd, const struct iovec *iov, int count, int flags,         \
                                  glfs_io_cbk *fn, void *data)                                               \
    {                                                                                                        \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, iov, count, 0, true, fn, NULL, data);                                 \
    }                                                                                                        \
    GFAPI int glfs_##name##_async_34(struct glfs_fd *fd, const struct iovec *iov, int count, int flags,      \
                                     glfs_io_cbk_34 *fn, void *data)                                         \
    {                                                                                                        \
        (void)flags;                                                                                         \
        return transfer_async(fd, fop, iov, count, 0, true, NULL, fn, data);                                 \
    }

BUFFERS_ASYNC(readv, FOP_readv)
BUFFERS_ASYNC(writev, FOP_writev)

GFAPI int
glfs_fsync_async(struct glfs_fd *fd, glfs_io_cbk *fn, void *data)
{
    return range_async(fd, FOP_fsync, 0, 0, 0, fn, NULL, data);
}

GFAPI int
glfs_fsync_async_34(struct glfs_fd *fd, glfs_io_cbk_34 *fn, void *data)
{
    return range_async(fd, FOP_fsync, 0, 0, 0, NULL, fn, data);
}

GFAPI int
glfs_fdatasync_async(struct glfs_fd *fd, glfs_io_cbk *fn, void *data)
{
    return range_async(fd, FOP_fsync, 0, 0, 1, fn, NULL, data);
}

GFAPI int
glfs_fdatasync_async_34(struct glfs_fd *fd, glfs_io_cbk_34 *fn, void *data)
{
    return range_async(fd, FOP_fsync, 0, 0, 1, NULL, fn, data);
}

GFAPI int
glfs_ftruncate_async(struct glfs_fd *fd, off_t size, glfs_io_cbk *fn, void *data)
{
    return range_async(fd, FOP_ftruncate, size, 0, 0, fn, NULL, data);
}

GFAPI int
glfs_ftruncate_async_34(struct glfs_fd *fd, off_t size, glfs_io_cbk_34 *fn, void *data)
{
    return range_async(fd, FOP_ftruncate, size, 0, 0, NULL, fn, data);
}

GFAPI int
glfs_discard_async(struct glfs_fd *fd, off_t offset, size_t size, glfs_io_cbk *fn, void *data)
{
    return range_async(fd, FOP_discard, offset, (off_t)size, 0, fn, NULL, data);
}

GFAPI int
glfs_discard_async_35(struct glfs_fd *fd, off_t offset, size_t size, glfs_io_cbk_34 *fn, void *data)
{
    return range_async(fd, FOP_discard, offset, (off_t)size, 0, NULL, fn, data);
}

GFAPI int
glfs_zerofill_async(struct glfs_fd *fd, off_t offset, off_t size, glfs_io_cbk *fn, void *data)
{
    return range_async(fd, FOP_zerofill, offset, size, 0, fn, NULL, data);
}

GFAPI int
glfs_zerofill_async_35(struct glfs_fd *fd, off_t offset, off_t size, glfs_io_cbk_34 *fn, void *data)
{
    return range_async(fd, FOP_zerofill, offset, size, 0, NULL, fn, data);
}

/* ---- versions -------------------------------------------------------------------------------- */

OLD_VERSION(glfs_discard_async_35, glfs_discard_async, "3.5.0");
OLD_VERSION(glfs_fdatasync_34, glfs_fdatasync, "3.4.0");
OLD_VERSION(glfs_fdatasync_async_34, glfs_fdatasync_async, "3.4.0");
OLD_VERSION(glfs_fsync_34, glfs_fsync, "3.4.0");
OLD_VERSION(glfs_fsync_async_34, glfs_fsync_async, "3.4.0");
OLD_VERSION(glfs_ftruncate_34, glfs_ftruncate, "3.4.0");
OLD_VERSION(glfs_ftruncate_async_34, glfs_ftruncate_async, "3.4.0");
OLD_VERSION(glfs_pread_34, glfs_pread, "3.4.0");
OLD_VERSION(glfs_pread_async_34, glfs_pread_async, "3.4.0");
OLD_VERSION(glfs_preadv_async_34, glfs_preadv_async, "3.4.0");
OLD_VERSION(glfs_pwrite_34, glfs_pwrite, "3.4.0");
OLD_VERSION(glfs_pwrite_async_34, glfs_pwrite_async, "3.4.0");
OLD_VERSION(glfs_pwritev_async_34, glfs_pwritev_async, "3.4.0");
OLD_VERSION(glfs_read_async_34, glfs_read_async, "3.4.0");
OLD_VERSION(glfs_readv_async_34, glfs_readv_async, "3.4.0");
OLD_VERSION(glfs_write_async_34, glfs_write_async, "3.4.0");
OLD_VERSION(glfs_writev_async_34, glfs_writev_async, "3.4.0");
OLD_VERSION(glfs_zerofill_async_35, glfs_zerofill_async, "3.5.0");
