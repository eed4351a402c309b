/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* iatt: the attributes of an object as clients see them (spec: wire 5.1, brick 3.3).
 *
 * Not a struct stat: the inode number is made from the gfid, the link count does not include the handle,
 * device numbers are (major << 32 | minor). An all-zero iatt means "not supplied". */
#ifndef KILN_DATA_IATT_H
#define KILN_DATA_IATT_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/gfid.h"

#define IATT_FLAGS_ALL 0x17ff    /* every field but btime */
#define IATT_FLAGS_NO_INO 0x16ff /* gfid unknown */
#define IATT_FLAGS_VIRTUAL 0x6ff /* virtual index directories, unlinked files */

struct iatt {
    struct gfid gfid;
    uint64_t flags; /* validity mask, IATT_FLAGS_* */
    uint64_t ino;
    uint64_t dev;
    uint64_t rdev; /* major << 32 | minor */
    uint64_t size;
    uint64_t blocks; /* of 512 bytes */
    int64_t atime, mtime, ctime, btime;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec, btime_nsec;
    uint32_t nlink, uid, gid, blksize;
    uint32_t mode; /* type and permissions, Linux values */
};

/* The three times of the ctime feature as they travel and are stored (spec: brick 2.6, 3.4). */
struct mdata {
    int64_t atime, mtime, ctime;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec;
};

/* SETATTR's `valid` bits (spec: wire 6.2). */
enum {
    SETATTR_MODE = 0x1,
    SETATTR_UID = 0x2,
    SETATTR_GID = 0x4,
    SETATTR_SIZE = 0x8,
    SETATTR_ATIME = 0x10,
    SETATTR_MTIME = 0x20,
    SETATTR_CTIME = 0x40,
    SETATTR_ATIME_NOW = 0x80,
    SETATTR_MTIME_NOW = 0x100,
};

/* The mode bits that a change of the contents clears, as in the kernel: set-user-id, and set-group-id if
 * the group may execute (without that bit set-group-id has another meaning). */
static inline uint32_t
iatt_privs(const struct iatt *a)
{
    uint32_t group = S_ISGID | S_IXGRP;

    if (S_ISDIR(a->mode))
        return 0;
    return (a->mode & S_ISUID) | ((a->mode & group) == group ? S_ISGID : 0);
}

/* Fills *out from a stat of the backend object; any thread. `gfid` may be NULL (unknown). The link of the
 * handle is subtracted, except for a directory. */
void iatt_from_stat(struct iatt *out, const struct stat *st, const struct gfid *gfid);

#endif
