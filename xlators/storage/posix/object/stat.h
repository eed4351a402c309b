/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* stat: iatts of objects: the attributes on the disk, as clients see them (spec: brick 3.3). Any thread. */
#ifndef KILN_POSIX_STAT_H
#define KILN_POSIX_STAT_H

#include "xlators/storage/posix/object/handle.h"

/* Returns the iatt of `obj`, with the times of its mdata if there are any. `inode` has the known facts (gfid,
 * cached mdata). If it is NULL, the xattrs are read; an object without gfid gets a zero one and flags
 * IATT_FLAGS_NO_INO. `st` (may be NULL) receives the raw stat. One system call when the inode's context is
 * filled, otherwise up to three.
 * Returns 0 or -errno; the object .glusterfs itself is -ENOENT. */
int posix_iatt(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct iatt *out,
               struct stat *st);

/* The same without a stat call, when the stat is there already and the gfid is known (NULL: unknown). */
int posix_iatt_of_stat(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct gfid *gfid,
                       const struct stat *st, struct iatt *out);

/* The same with the disk's own times, for a caller that handles mdata itself. `inode` may be NULL. */
int posix_iatt_of_disk(struct xlator *xl, struct inode *inode, const struct gfid *gfid, const struct stat *st,
                       struct iatt *out);

/* The same by an open descriptor. */
int posix_iatt_fd(struct xlator *xl, int fd, struct inode *inode, struct iatt *out);

/* The disk space of an object. An iatt does not have it, because it hides blocks beyond a file's end (wire
 * 5.1). For features/simple-quota, which charges the same bytes as du. */
struct posix_allotted {
    int64_t bytes; /* st_blocks * 512 */
    int64_t size;
    bool is_file, has_name;
};
/* Stats the object by its handle, whether it still has a name or is only open. Returns 0 or -errno (-ENOENT,
 * -ESTALE: it was removed). Any thread, in a read section; one or two system calls. */
int posix_allotted(struct xlator *xl, struct inode *inode, struct posix_allotted *out);

#endif
