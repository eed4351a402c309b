/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fallocate, discard, zerofill, seek, copy_file_range: the layout of a file's space. */
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

#include "fs/brick-client.h"
#include "xlators/storage/posix/data/data.h"

#define ZERO_BLOCK 65536u

/* Checks that the disk has room for this many bytes, including the file's present blocks. A client can
 * request exabytes. */
static int
check_room(int fd, uint64_t len)
{
    struct statvfs v;
    struct stat st;

    if (fstat(fd, &st) < 0 || fstatvfs(fd, &v) < 0)
        return -errno;
    /* A file system without a size (tmpfs can be one) is never full. */
    uint64_t room = (uint64_t)v.f_bavail * v.f_frsize + (uint64_t)st.st_blocks * 512;
    return v.f_blocks != 0 && len > room ? -ENOSPC : 0;
}

/* Checks whether a long operation should continue: not when the brick is being detached, its client is gone,
 * or the disk is full. */
static int
check_going_on(struct xlator *xl, const struct call_stack *stk)
{
    if (xl->graph != NULL && atomic_load(&xl->graph->is_draining))
        return -EINTR;
    if (stk->client != NULL && atomic_load(&stk->client->is_gone))
        return -ENOTCONN;
    return posix_reserve_check_now(xl, stk);
}

/* Writes zeroes, a megabyte at a time, on a file system without ZERO_RANGE (tmpfs). */
static int
write_zeroes(struct xlator *xl, const struct call_stack *stk, int fd, uint64_t offset, uint64_t len)
{
    static const char zeroes[ZERO_BLOCK];
    struct iovec iov[16];
    int err = check_room(fd, len);

    while (err == 0 && len > 0) {
        uint64_t batch = 0;
        int n = 0;
        for (; n < 16 && batch < len; n++) {
            iov[n].iov_base = (void *)zeroes;
            iov[n].iov_len = len - batch < ZERO_BLOCK ? (size_t)(len - batch) : ZERO_BLOCK;
            batch += iov[n].iov_len;
        }
        ssize_t done = pwritev(fd, iov, n, (off_t)offset);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            offset += (uint64_t)done;
            len -= (uint64_t)done;
        }
        err = len > 0 ? check_going_on(xl, stk) : 0;
    }
    return err;
}

static int
allocate(int fd, int mode, uint64_t offset, uint64_t len)
{
    while (fallocate(fd, mode, (off_t)offset, (off_t)len) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

/* Checks that a file can have this range of bytes. */
static int
check_range(const struct fop_call *c)
{
    return c->size == 0 || c->offset > INT64_MAX || c->size > INT64_MAX - c->offset ? -EINVAL : 0;
}

/* Runs fallocate(2) in `mode` between two stats. */
static int
change_space(struct xlator *xl, struct call_stack *stk, int mode)
{
    const struct fop_call *c = &stk->call;
    struct stat pre, post;

    POSIX_IO(io);
    int err = posix_io_get(xl, c->fd, 0, &io);
    if (err == 0)
        err = check_range(c);
    if (err)
        return err;
    if (fstat(io.fd, &pre) < 0)
        return -errno;
    worker_block_begin();
    err = allocate(io.fd, mode, c->offset, c->size);
    if (mode == FALLOC_FL_ZERO_RANGE && err == -EOPNOTSUPP)
        err = write_zeroes(xl, stk, io.fd, c->offset, c->size);
    worker_block_end();
    if (err)
        return err;
    if (io.pfd != NULL && (io.pfd->flags & O_DSYNC) != 0 && fsync(io.fd) < 0)
        return -errno; /* the descriptor's O_SYNC does not cover fallocate */
    if (fstat(io.fd, &post) < 0)
        return -errno;
    err = posix_iatts_around(xl, stk, io.fd, io.inode, &pre, &post);
    return err ? err : XL_DONE;
}

xl_verdict
posix_fop_fallocate(struct xlator *xl, struct call_stack *stk)
{
    int err = posix_reserve_check_now(xl, stk);

    if (err)
        return err;
    return change_space(xl, stk, stk->call.flags & FALLOC_FL_KEEP_SIZE);
}

xl_verdict
posix_fop_discard(struct xlator *xl, struct call_stack *stk)
{
    int err = posix_reserve_check(xl, stk);

    if (err)
        return err;
    return change_space(xl, stk, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

xl_verdict
posix_fop_zerofill(struct xlator *xl, struct call_stack *stk)
{
    int err = posix_reserve_check(xl, stk);

    if (err)
        return err;
    return change_space(xl, stk, FALLOC_FL_ZERO_RANGE);
}

xl_verdict
posix_fop_seek(struct xlator *xl, struct call_stack *stk)
{
    static const int whence[] = {SEEK_DATA, SEEK_HOLE}; /* by the wire's number */

    if (stk->call.cmd >= sizeof whence / sizeof whence[0])
        return -ENOTSUP;
    if (stk->call.offset > INT64_MAX)
        return -EINVAL;
    POSIX_IO(io);
    int err = posix_io_get(xl, stk->call.fd, 0, &io);
    if (err)
        return err;
    if (io.inode->type != S_IFREG)
        return -EINVAL; /* a directory's position belongs to readdir */
    off_t at = lseek(io.fd, (off_t)stk->call.offset, whence[stk->call.cmd]);
    if (at < 0)
        return -errno;
    stk->reply.offset = (uint64_t)at;
    return XL_DONE;
}

/* Sets the source's atime, because it is read, and the target's other two times, because it is written. */
static int
copied_iatts(struct xlator *xl, struct call_stack *stk, const struct posix_io *in, const struct posix_io *out,
             const struct stat *pre, const struct stat *post)
{
    const uint32_t asked = stk->caller.time_flags;
    struct caller reader = stk->caller;
    POSIX_OBJ(source);

    posix_obj_fd(posix_of(xl), in->fd, &source);
    reader.time_flags = asked & TIME_ATIME;
    stk->caller.time_flags = asked & (TIME_CTIME | TIME_MTIME);
    int err = posix_iatts_around(xl, stk, out->fd, out->inode, pre, post);
    stk->caller.time_flags = asked;
    if (err == 0)
        err = posix_iatt(xl, &source, in->inode, &stk->reply.stat, NULL);
    if (err == 0)
        err = posix_mdata_update(xl, &reader, &source, in->inode, &stk->reply.stat);
    return err;
}

xl_verdict
posix_fop_copy_file_range(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct stat pre, post;

    if (c->offset > INT64_MAX || c->offset2 > INT64_MAX)
        return -EINVAL;
    int err = posix_reserve_check(xl, stk);
    if (err)
        return err;
    POSIX_IO(in);
    err = posix_io_get(xl, c->fd, 0, &in);
    if (err)
        return err;
    POSIX_IO(out);
    err = posix_io_get(xl, c->fd2, 0, &out);
    if (err)
        return err;
    if (fstat(out.fd, &pre) < 0)
        return -errno;
    off_t from = (off_t)c->offset, to = (off_t)c->offset2;
    /* op_ret has 31 bits. */
    size_t size = c->size > INT32_MAX ? INT32_MAX : (size_t)c->size;
    worker_block_begin();
    ssize_t n = copy_file_range(in.fd, &from, out.fd, &to, size, c->flags);
    int saved = errno;
    worker_block_end();
    if (n < 0)
        return -saved;
    if (fstat(out.fd, &post) < 0)
        return -errno;
    err = copied_iatts(xl, stk, &in, &out, &pre, &post);
    if (err)
        return err;
    stk->reply.op_ret = (int32_t)n;
    return XL_DONE;
}
