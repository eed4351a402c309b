/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* statfs: the brick's share of its file system: less the reserve, divided by the number of bricks that share
 * it (spec: brick 4.7). */
#include <errno.h>
#include <sys/statvfs.h>

#include "xlators/storage/posix/posix-internal.h"

static uint64_t
reserved_blocks(uint64_t reserve, const struct statvfs *v)
{
    if (reserve < 100)
        return ((uint64_t)v->f_blocks * reserve + 50) / 100;
    return reserve / (v->f_frsize ? v->f_frsize : 1);
}

static fsblkcnt_t
blocks_less(fsblkcnt_t blocks, uint64_t taken)
{
    return blocks > taken ? blocks - taken : 0;
}

xl_verdict
posix_fop_statfs(struct xlator *xl, struct call_stack *stk)
{
    const struct posix_conf *conf = posix_conf(xl);
    struct statvfs *v = &stk->reply.statvfs;
    unsigned shared = (unsigned)conf->shared_brick_count;

    if (fstatvfs(posix_of(xl)->brick_fd, v) < 0)
        return -errno;
    uint64_t reserved = reserved_blocks(conf->reserve, v);
    v->f_bfree = blocks_less(v->f_bfree, reserved);
    v->f_bavail = blocks_less(v->f_bavail, reserved);
    if (!conf->export_statfs_size)
        v->f_blocks = v->f_bfree = v->f_bavail = 0;
    if (shared > 1) {
        v->f_blocks /= shared;
        v->f_bfree /= shared;
        v->f_bavail /= shared;
        v->f_files /= shared;
        v->f_ffree /= shared;
        v->f_favail /= shared;
    }
    return XL_DONE;
}
