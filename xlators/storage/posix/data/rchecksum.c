/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rchecksum: checksums of a range, with which self-heal compares two bricks' copies without transferring
 * them. */
#include <errno.h>
#include <openssl/evp.h>
#include <zlib.h>

#include "mem/iobuf.h"
#include "xlators/storage/posix/data/data.h"

static ssize_t
read_range(int fd, char *buf, size_t size, off_t offset)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, buf + done, size - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static bool
is_all_zero(const char *buf, size_t len)
{
    return len == 0 || (buf[0] == 0 && memcmp(buf, buf + 1, len - 1) == 0);
}

static int
checksum_into_reply(struct xlator *xl, struct call_stack *stk, const char *buf, size_t len)
{
    struct fop_reply *reply = &stk->reply;
    const struct dict *asked = stk->call.xdata;
    bool is_fips = posix_conf(xl)->fips_rchecksum;

    /* Adler-32, but both sums start at 0. */
    reply->weak = (uint32_t)adler32_z(0, (const unsigned char *)buf, len);
    if (EVP_Digest(buf, len, reply->strong, NULL, is_fips ? EVP_sha256() : EVP_md5(), NULL) != 1)
        return -EIO; /* MD5 on a machine in FIPS mode: the option exists for such machines */
    reply->checksum_flags = 1;
    if (is_fips) {
        struct dict *x = reply_xdata(stk);
        if (x == NULL || dict_set_int(x, DICT_KEY_FIPS_RCHECKSUM, 1) != 0)
            return -ENOMEM;
    }
    if (dict_get_flag(asked, DICT_KEY_CHECK_ZERO_FILLED)) {
        struct dict *x = reply_xdata(stk);
        if (x == NULL || dict_set_uint(x, DICT_KEY_BUF_HAS_ZEROES, is_all_zero(buf, len)) != 0)
            return -ENOMEM;
    }
    return 0;
}

xl_verdict
posix_fop_rchecksum(struct xlator *xl, struct call_stack *stk)
{
    uint64_t offset = stk->call.offset, size = stk->call.size;

    if (size == 0 || size > POSIX_READ_MAX || offset > INT64_MAX - size)
        return -EINVAL;
    POSIX_IO(io);
    int err = posix_io_get(xl, stk->call.fd, 0, &io);
    if (err)
        return err;
    struct iobuf *buf = iobuf_get_aligned(size);
    if (buf == NULL)
        return -ENOMEM;
    worker_block_begin();
    ssize_t n = read_range(io.fd, buf->bytes, size, (off_t)offset);
    worker_block_end();
    err = n < 0 ? (int)n : checksum_into_reply(xl, stk, buf->bytes, (size_t)n);
    iobuf_unref(buf);
    return err ? err : XL_DONE;
}
