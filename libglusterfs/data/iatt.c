/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "data/iatt.h"

#include <sys/sysmacros.h>

void
iatt_from_stat(struct iatt *out, const struct stat *st, const struct gfid *gfid)
{
    uint64_t blocks_of_size = ((uint64_t)st->st_size + 511) / 512;
    bool has_handle = !S_ISDIR(st->st_mode) && st->st_nlink > 0;

    *out = (struct iatt){
        .gfid = gfid ? *gfid : gfid_null,
        .flags = gfid ? IATT_FLAGS_ALL : IATT_FLAGS_NO_INO,
        .ino = gfid ? gfid_ino(gfid) : UINT64_MAX,
        .dev = st->st_dev,
        .rdev = (uint64_t)major(st->st_rdev) << 32 | minor(st->st_rdev),
        .size = (uint64_t)st->st_size,
        /* Preallocation beyond the end of file is hidden (wire 5.1). */
        .blocks = (uint64_t)st->st_blocks < blocks_of_size ? (uint64_t)st->st_blocks : blocks_of_size,
        .atime = st->st_atim.tv_sec,
        .mtime = st->st_mtim.tv_sec,
        .ctime = st->st_ctim.tv_sec,
        /* as every field is named, the compiler does not clear the struct first by a slow string store */
        .btime = 0,
        .atime_nsec = (uint32_t)st->st_atim.tv_nsec,
        .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
        .ctime_nsec = (uint32_t)st->st_ctim.tv_nsec,
        .btime_nsec = 0,
        .nlink = (uint32_t)st->st_nlink - (has_handle ? 1 : 0),
        .uid = st->st_uid,
        .gid = st->st_gid,
        .blksize = (uint32_t)st->st_blksize,
        .mode = st->st_mode,
    };
}
