/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* writev: writes the payload to the disk from the received record, without a copy (except with O_DIRECT,
 * which needs aligned memory). */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include "mem/iobuf.h"
#include "xlators/storage/posix/data/data.h"

enum { WRITEBACK_MIN = 32 * 1024 }; /* bytes of a write of a heal or rebalance */

/* The steps of one write, as xdata and flags request them. */
struct write_plan {
    bool is_append_asked; /* report whether the write began at the end of the file */
    bool is_atomic;       /* stat, write and stat in one step */
    bool is_append_fd;
    int sync_flags; /* O_SYNC, O_DSYNC */
};

/* Writes the whole payload with pwritev. Returns the bytes written, or -errno if there were none: a disk that
 * fills up in the middle gives a short write. */
static ssize_t
write_fully(int fd, const struct iovec *payload, int count, off_t offset)
{
    struct iovec rest[FOP_PAYLOAD_IOVS];
    struct iovec *iov = rest;
    ssize_t done = 0;

    memcpy(rest, payload, sizeof rest[0] * (size_t)count);
    while (count > 0) {
        ssize_t n = pwritev(fd, iov, count, offset + done);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return done > 0 ? done : -errno;
        }
        done += n;
        while (count > 0 && (size_t)n >= iov->iov_len) {
            n -= (ssize_t)iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return done;
}

static ssize_t
write_direct(int fd, const struct iovec *payload, int count, size_t bytes, off_t offset)
{
    struct iobuf *buf = iobuf_get_aligned(bytes);
    size_t at = 0;

    if (buf == NULL)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        memcpy(buf->bytes + at, payload[i].iov_base, payload[i].iov_len);
        at += payload[i].iov_len;
    }
    ssize_t n = write_fully(fd, &(struct iovec){buf->bytes, bytes}, 1, offset);
    iobuf_unref(buf);
    return n;
}

/* A full brick still accepts writes that need no new blocks. */
static int
check_reserve(struct xlator *xl, const struct call_stack *stk, int fd)
{
    int err = posix_disk_is_full(posix_of(xl)) ? posix_reserve_check(xl, stk) : 0;
    struct stat st;

    if (err != -ENOSPC)
        return err;
    if (fstat(fd, &st) < 0)
        return -errno;
    bool is_inside = stk->call.offset + stk->call.payload_bytes <= (uint64_t)st.st_size;
    bool is_sparse = (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size;
    return is_inside && !is_sparse ? 0 : err;
}

/* Guards a file under migration: rebalance must not overwrite data that a client has written to the new file.
 */
static int
guard_migration(const struct dict *xdata, int fd)
{
    const struct dict_pair *protect = dict_find(xdata, DICT_KEY_PROTECT_WRITES);

    if (protect != NULL) {
        const char *key = dict_key_text(DICT_KEY_PROTECT_WRITES);
        bool has_bytes =
            protect->type == DICT_PTR || protect->type == DICT_STR || protect->type == DICT_UNTYPED;
        const void *value = has_bytes ? protect->v.bytes : "1";

        if (fsetxattr(fd, key, value, has_bytes ? protect->len : 1, 0) < 0)
            return -errno;
    }
    if (dict_has(xdata, DICT_KEY_AVOID_OVERWRITE)) {
        if (fgetxattr(fd, dict_key_text(DICT_KEY_PROTECT_WRITES), NULL, 0) >= 0)
            return -EBUSY;
        if (errno != ENODATA)
            return -errno;
    }
    return 0;
}

static ssize_t
write_once(const struct posix_io *io, const struct fop_call *c)
{
    if (io->is_direct)
        return write_direct(io->fd, c->payload, c->payload_count, c->payload_bytes, (off_t)c->offset);
    return write_fully(io->fd, c->payload, c->payload_count, (off_t)c->offset);
}

/* Stats, writes and stats. With `lock`, other calls with a lock cannot come in between. */
static ssize_t
write_between_stats(const struct posix_io *io, const struct fop_call *c, pthread_mutex_t *lock,
                    struct stat *pre, struct stat *post)
{
    if (lock != NULL)
        pthread_mutex_lock(lock);

    ssize_t n = fstat(io->fd, pre) < 0 ? -errno : write_once(io, c);

    if (n >= 0 && fstat(io->fd, post) < 0)
        n = -errno;
    if (lock != NULL)
        pthread_mutex_unlock(lock);
    return n;
}

static int
sync_written(int fd, int flags)
{
    if (flags == 0)
        return 0;
    worker_block_begin();
    /* O_SYNC contains the bit of O_DSYNC. */
    int err = ((flags & O_SYNC) == O_SYNC ? fsync(fd) : fdatasync(fd)) < 0 ? -errno : 0;
    worker_block_end();
    return err;
}

/* Has the kernel write the bytes of a heal or rebalance to the disk soon, without waiting. Otherwise the
 * fsync at its end, or the next commit of the file system's journal, would find all of them at once, and
 * calls of clients would wait for that. An error of the disk is met by the fsync. */
static void
begin_writeback(const struct call_stack *stk, const struct posix_io *io, ssize_t bytes)
{
    int32_t pid = stk->caller.pid;

    if (!caller_is_internal(&stk->caller) || (pid != PID_SELF_HEAL && pid != PID_REBALANCE) ||
        io->is_direct || bytes < WRITEBACK_MIN)
        return;
    worker_block_begin();
    (void)sync_file_range(io->fd, (off_t)stk->call.offset, bytes, SYNC_FILE_RANGE_WRITE);
    worker_block_end();
}

static int
answer_xdata(struct call_stack *stk, const struct inode *inode, const struct write_plan *plan,
             const struct stat *pre)
{
    const struct dict *asked = stk->call.xdata;
    unsigned open_fds = atomic_load(&inode->open_fds);
    int err = 0;

    if (plan->is_append_asked) {
        struct dict *x = reply_xdata(stk);
        bool is_append = plan->is_append_fd || (uint64_t)pre->st_size == stk->call.offset;
        err = x ? dict_set_uint(x, DICT_KEY_WRITE_IS_APPEND, is_append) : -ENOMEM;
    }
    static const enum dict_key counts[] = {DICT_KEY_OPEN_FD_COUNT, DICT_KEY_OPEN_ACTIVE_FD_COUNT};
    for (size_t i = 0; err == 0 && i < sizeof counts / sizeof counts[0]; i++) {
        if (!dict_has(asked, counts[i]))
            continue;
        struct dict *x = reply_xdata(stk);
        err = x ? dict_set_uint(x, counts[i], open_fds) : -ENOMEM;
    }
    return err;
}

xl_verdict
posix_fop_writev(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct stat pre, post;

    if (c->offset > INT64_MAX - c->payload_bytes)
        return -EINVAL;
    POSIX_IO(io);
    int err = posix_io_get(xl, c->fd, (int)c->flags & O_DIRECT, &io);
    if (err == 0)
        err = check_reserve(xl, stk, io.fd);
    if (err == 0)
        err = guard_migration(c->xdata, io.fd);
    if (err)
        return err;

    const struct write_plan plan = {
        .is_append_asked = dict_has(c->xdata, DICT_KEY_WRITE_IS_APPEND),
        .is_atomic = dict_has(c->xdata, DICT_KEY_WRITE_UPDATE_ATOMIC),
        .is_append_fd = io.pfd != NULL && (io.pfd->flags & O_APPEND) != 0,
        .sync_flags = (int)c->flags & (O_SYNC | O_DSYNC),
    };
    struct posix_inode *pi = NULL;
    if (plan.is_append_asked || plan.is_atomic) {
        pi = posix_inode_get(xl, io.inode);
        if (pi == NULL)
            return -ENOMEM;
    }
    ssize_t n = write_between_stats(&io, c, pi ? &pi->change_lock : NULL, &pre, &post);
    if (n < 0)
        return (int)n;
    begin_writeback(stk, &io, n);
    err = sync_written(io.fd, plan.sync_flags);
    if (err == 0)
        err = posix_iatts_around(xl, stk, io.fd, io.inode, &pre, &post);
    if (err == 0)
        err = answer_xdata(stk, io.inode, &plan, &pre);
    if (err)
        return err;
    stk->reply.op_ret = (int32_t)n;
    return XL_DONE;
}
