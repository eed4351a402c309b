/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* readv: reads bytes of a file directly into the buffer from which the reply is sent. */
#include <errno.h>
#include <fcntl.h>

#include "mem/iobuf.h"
#include "xlators/storage/posix/data/data.h"

#define DIRECT_ALIGN 4096ull

/* A larger read first stats the file, so that the buffer is not larger than the data to read. */
#define READ_SMALL (128u << 10)

/* Clients interpret a short reply as the end of the file, so a short read in the middle is continued.
 */
static ssize_t
read_fully(int fd, char *buf, size_t size, off_t offset, bool is_direct)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, buf + done, size - done, offset + (off_t)done);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return done > 0 ? (ssize_t)done : -errno;
        }
        done += (size_t)n;
        /* With O_DIRECT, a read of the file's tail ends at an odd byte, from which it cannot continue. */
        if (n == 0 || (is_direct && (size_t)n % DIRECT_ALIGN != 0))
            break;
    }
    return (ssize_t)done;
}

/* Limits *size to the bytes that the file has. 0 bytes is valid: past the end. */
static int
clamp_to_file(int fd, uint64_t offset, uint64_t *size)
{
    struct stat st;

    if (*size <= READ_SMALL)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    uint64_t end = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    uint64_t rest = offset < end ? end - offset : 0;
    if (rest < *size)
        *size = rest > READ_SMALL ? rest : READ_SMALL;
    return 0;
}

static int
read_into_reply(const struct posix_io *io, struct fop_reply *reply, uint64_t offset, uint64_t size)
{
    uint64_t start = offset, end = offset + size;

    if (io->is_direct) {
        start = start / DIRECT_ALIGN * DIRECT_ALIGN;
        end = (end + DIRECT_ALIGN - 1) / DIRECT_ALIGN * DIRECT_ALIGN;
    }
    reply->iobuf = io->is_direct ? iobuf_get_aligned(end - start) : iobuf_get(end - start);
    if (reply->iobuf == NULL)
        return -ENOMEM;

    uint64_t skip = offset - start;
    ssize_t n = read_fully(io->fd, reply->iobuf->bytes, end - start, (off_t)start, io->is_direct);
    if (n < 0)
        return (int)n;
    uint64_t got = (uint64_t)n > skip ? (uint64_t)n - skip : 0;
    if (got > size) /* never more than requested: a stock client would overrun its buffer */
        got = size;
    reply->payload = (struct iovec){reply->iobuf->bytes + skip, got};
    reply->op_ret = (int32_t)got;
    return 0;
}

xl_verdict
posix_fop_readv(struct xlator *xl, struct call_stack *stk)
{
    struct fop_reply *reply = &stk->reply;
    uint64_t offset = stk->call.offset, size = stk->call.size;

    if (size == 0 || size > POSIX_READ_MAX || offset > (uint64_t)INT64_MAX - size - DIRECT_ALIGN)
        return -EINVAL;
    POSIX_IO(io);
    int err = posix_io_get(xl, stk->call.fd, (int)stk->call.flags & O_DIRECT, &io);
    if (err)
        return err;
    POSIX_OBJ(obj);
    posix_obj_fd(posix_of(xl), io.fd, &obj);
    err = clamp_to_file(io.fd, offset, &size);
    if (err == 0)
        err = read_into_reply(&io, reply, offset, size);
    if (err == 0)
        err = posix_iatt(xl, &obj, io.inode, &reply->stat, NULL);
    if (err == 0)
        err = posix_mdata_update(xl, &stk->caller, &obj, io.inode, &reply->stat);
    if (err)
        return err;
    reply->op_errno = offset + (uint64_t)reply->op_ret >= reply->stat.size || reply->op_ret == 0 ? ENOENT : 0;
    return XL_DONE;
}
