/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mdata: the times of an object as clients set them, in the xattr trusted.glusterfs.mdata (spec: brick 2.6,
 * 3.4).
 *
 * The copy in the inode's context takes precedence over the disk. A change is made under the context's
 * mdata_lock, held across the setxattr, because otherwise an older time could be stored over a newer one.
 * Without an inode the disk is read and written. All functions do nothing while the option ctime is off. Any
 * thread. */
#ifndef KILN_POSIX_MDATA_H
#define KILN_POSIX_MDATA_H

#include "xlators/storage/posix/object/handle.h"

#define POSIX_MDATA_BYTES 57

void posix_mdata_encode(const struct mdata *m, uint8_t bytes[POSIX_MDATA_BYTES]);
/* Returns 0, or -EINVAL: wrong size or version. */
int posix_mdata_decode(const void *bytes, size_t len, struct mdata *out);

/* Returns 1: *out is filled; 0: no mdata; -errno. `inode` may be NULL. */
int posix_mdata_get(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct mdata *out);

/* Copies the times into an iatt. */
void posix_mdata_apply(const struct mdata *m, struct iatt *iatt);

/* True if the caller's flags change no time, and the object is known to have no mdata, or the option is off:
 * then the disk's times count, and posix_mdata_update_around() need not be called. No lock. */
static inline bool
posix_mdata_stays_absent(const struct xlator *xl, const struct caller *caller, struct inode *inode)
{
    const struct posix_inode *ctx = inode_ctx(inode, xl);

    if (!posix_conf(xl)->ctime)
        return true;
    return !(caller->time_flags & (TIME_CTIME | TIME_MTIME | TIME_ATIME)) && ctx &&
           atomic_load_explicit(&ctx->is_without_mdata, memory_order_relaxed);
}

/* Sets the times of the object itself that the caller's time_flags name (TIME_CTIME...) to the caller's
 * ctime. `post` (may be NULL) is an iatt of the object that receives the new times. No system call if no time
 * changes. Returns 0 or -errno. */
int posix_mdata_update(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                       struct inode *inode, struct iatt *post);
/* The same, and `pre` receives the times before. The stored times are read once for both iatts. */
int posix_mdata_update_around(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                              struct inode *inode, struct iatt *pre, struct iatt *post);
/* The same for a parent directory, by the TIME_PARENT_* flags. */
int posix_mdata_update_parent(struct xlator *xl, const struct caller *caller, struct posix_obj *dir,
                              struct inode *inode, struct iatt *post);
/* Sets all three times of a new object, which no other call can find yet, to the caller's. Returns 1:
 * written, *out is filled; 0: the caller's flags or the option disable it; -errno. */
int posix_mdata_create(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                       struct mdata *out);
/* Stores the result of posix_mdata_create() (NULL: no mdata was written) in the inode's context, unless the
 * context has newer times. */
void posix_mdata_seed(struct xlator *xl, struct inode *inode, const struct mdata *m);

/* Sets each time to the later of the stored and the given one. Creates missing mdata (set-ctime-mdata, and
 * SETXATTR of the xattr itself). Returns 0 or -errno. */
int posix_mdata_merge(struct xlator *xl, struct posix_obj *obj, struct inode *inode,
                      const struct mdata *given);

/* setattr: sets exact times by SETATTR_* bits of `valid`, and the ctime by time_flags or SETATTR_CTIME. */
int posix_mdata_setattr(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                        struct inode *inode, int valid, const struct iatt *given, struct iatt *post);

#endif
