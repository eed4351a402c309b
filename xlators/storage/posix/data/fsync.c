/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fsync, fsyncdir.
 *
 * The key `batch-fsync` (AFR) permits a brick to gather calls and to sync them together. Stock has a thread
 * per brick for that. Here the worker of each call syncs at once, and the file system's journal combines
 * concurrent syncs. So the options batch-fsync-mode and -delay-usec have one effect only: a batched reply has
 * no iatts, as with stock. */
#include <errno.h>

#include "xlators/storage/posix/data/data.h"

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
