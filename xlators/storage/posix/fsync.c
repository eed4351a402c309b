/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fsync, fsyncdir.
 *
 * The key `batch-fsync` (AFR) allows to gather calls and to sync them together. Stock has a thread a brick
 * for that; here each is synced at once by the worker that has it: the file system's own journal joins those
 * that run at the same moment. The options batch-fsync-mode and -delay-usec therefore change nothing but
 * this: a batched reply has no iatts, as stock's. */
#include <errno.h>

#include "xlators/storage/posix/data.h"

static int
sync_fd(int fd, bool is_data_only)
{
    worker_block_begin();
    int err = (is_data_only ? fdatasync(fd) : fsync(fd)) < 0 ? -errno : 0;
    worker_block_end();
    return err;
}

xl_verdict
posix_fop_fsync(struct xlator *xl, struct call_stack *stk)
{
    struct stat pre, post;
    POSIX_IO(io);

    int err = posix_io_get(xl, stk->call.fd, 0, &io);
    if (err)
        return err;
    if (dict_has(stk->call.xdata, DICT_KEY_BATCH_FSYNC)) {
        err = sync_fd(io.fd, stk->call.flags != 0);
        return err ? err : XL_DONE;
    }
    if (fstat(io.fd, &pre) < 0)
        return -errno;
    err = sync_fd(io.fd, stk->call.flags != 0);
    if (err)
        return err;
    if (fstat(io.fd, &post) < 0)
        return -errno;
    err = posix_iatts_around(xl, stk, io.fd, io.inode, &pre, &post);
    return err ? err : XL_DONE;
}

xl_verdict
posix_fop_fsyncdir(struct xlator *xl, struct call_stack *stk)
{
    POSIX_IO(io);
    int err = posix_io_get(xl, stk->call.fd, 0, &io);

    if (err == 0)
        err = sync_fd(io.fd, stk->call.flags != 0);
    return err ? err : XL_DONE;
}
