/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mdata: the times of an object as clients set them, in the xattr trusted.glusterfs.mdata (spec:
 * brick 2.6, 3.4).
 *
 * The copy in the inode's context wins over the disk. A change is made under the context's mdata_lock, held
 * over the setxattr: else an older time could be stored over a newer one. Without an inode the disk is read
 * and written. All of these do nothing while the option ctime is off. */
#ifndef KILN_POSIX_MDATA_H
#define KILN_POSIX_MDATA_H

#include "xlators/storage/posix/handle.h"

#define POSIX_MDATA_BYTES 57

void posix_mdata_encode(const struct mdata *m, uint8_t bytes[POSIX_MDATA_BYTES]);
/* 0, or -EINVAL: wrong size or version. */
int posix_mdata_decode(const void *bytes, size_t len, struct mdata *out);

/* 1: *out filled; 0: there is none; -errno. `inode` may be NULL. */
int posix_mdata_get(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct mdata *out);

/* Puts the times into an iatt. */
void posix_mdata_apply(const struct mdata *m, struct iatt *iatt);

/* Sets the times that the caller's time_flags say for the object itself (TIME_CTIME...), to the caller's
 * ctime. `post` (may be NULL) is an iatt of the object that receives the new times. No system call if nothing
 * changes. 0 or -errno. */
int posix_mdata_update(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                       struct inode *inode, struct iatt *post);
/* The same, and `pre` receives the times from before: what is stored is looked at once, for both iatts. */
int posix_mdata_update_around(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                              struct inode *inode, struct iatt *pre, struct iatt *post);
/* The same for a parent directory, by the TIME_PARENT_* flags. */
int posix_mdata_update_parent(struct xlator *xl, const struct caller *caller, struct posix_obj *dir,
                              struct inode *inode, struct iatt *post);
/* A new object that nobody can find yet: all three times are the caller's. 1: written, *out filled; 0: the
 * caller's flags or the option say no; -errno. */
int posix_mdata_create(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                       struct mdata *out);
/* What was written by posix_mdata_create, or (NULL) that nothing was, is known to the inode's context unless
 * that knows better. */
void posix_mdata_seed(struct xlator *xl, struct inode *inode, const struct mdata *m);

/* Each time becomes the later of the stored and the given one; created if missing (set-ctime-mdata, and
 * SETXATTR of the xattr itself). 0 or -errno. */
int posix_mdata_merge(struct xlator *xl, struct posix_obj *obj, struct inode *inode,
                      const struct mdata *given);

/* setattr: exact times by SETATTR_* bits of `valid`, and the ctime by time_flags or SETATTR_CTIME. */
int posix_mdata_setattr(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                        struct inode *inode, int valid, const struct iatt *given, struct iatt *post);

#endif
