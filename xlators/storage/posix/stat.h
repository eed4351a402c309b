/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* stat: iatts of objects: what is on the disk, seen as clients see it (spec: brick 3.3). */
#ifndef KILN_POSIX_STAT_H
#define KILN_POSIX_STAT_H

#include "xlators/storage/posix/handle.h"

/* The iatt of `obj`, times from mdata if there is one. `inode` says what is known already (gfid, cached
 * mdata) and may be NULL: then the xattrs are read; an object without gfid gets a zero one and flags
 * IATT_FLAGS_NO_INO. `st` (may be NULL) receives the raw stat. One system call when the inode's context is
 * warm, up to three when not.
 * 0 or -errno; the object .glusterfs itself is -ENOENT. */
int posix_iatt(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct iatt *out,
               struct stat *st);

/* The same when the stat is there already and the gfid is known (NULL: unknown): no stat call. */
int posix_iatt_of_stat(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct gfid *gfid,
                       const struct stat *st, struct iatt *out);

/* The same with the disk's own times, for who looks at mdata himself. `inode` may be NULL. */
int posix_iatt_of_disk(struct xlator *xl, struct inode *inode, const struct gfid *gfid, const struct stat *st,
                       struct iatt *out);

/* By an open descriptor. */
int posix_iatt_fd(struct xlator *xl, int fd, struct inode *inode, struct iatt *out);

/* How much of its disk an object has, which an iatt does not tell: that hides what the file system has
 * allotted beyond a file's end (wire 5.1). For features/simple-quota, which charges what du counts. */
struct posix_allotted {
    int64_t bytes; /* st_blocks * 512 */
    int64_t size;
    bool is_file, has_name;
};
/* By its handle, whether the object still has a name or is only open. 0 or -errno: -ENOENT, -ESTALE: it has
 * gone. Any thread, in a read section; one or two system calls. */
int posix_allotted(struct xlator *xl, struct inode *inode, struct posix_allotted *out);

#endif
