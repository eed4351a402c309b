/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* entry: a name in a directory as the subject of a call: what create, unlink, rename and their like have in
 * common.
 *
 * posix_entry_begin() checks the name and looks at the directory, which is also what finds out whether the
 * path to it is deep or being renamed; posix_entry_end() sets the directory's times and looks again. */
#ifndef KILN_POSIX_ENTRY_H
#define KILN_POSIX_ENTRY_H

#include "xlators/storage/posix/handle.h"

struct posix_entry {
    struct inode *parent;
    const char *name;
    struct posix_obj dir, obj; /* the directory, and the name in it */
    struct stat dir_st;        /* at the beginning */
};

/* POSIX_ENTRY(e); declares one that holds nothing yet, and gives back what it holds when it goes out of
 * scope. */
void posix_entry_done(struct posix_entry *e);
static inline void
posix_entry_empty(struct posix_entry *e)
{
    posix_obj_empty(&e->dir);
    posix_obj_empty(&e->obj);
}
#define POSIX_ENTRY(name) \
    __attribute__((cleanup(posix_entry_done))) struct posix_entry name; \
    posix_entry_empty(&name)

/* `hidden_errno`: the answer when the name is the root's .glusterfs. *pre: the directory before.
 * 0, -EINVAL, -EPERM ("." and ".."), -ENAMETOOLONG, -ESTALE (the directory has gone), -errno. */
int posix_entry_begin(struct xlator *xl, const struct loc *loc, int hidden_errno, struct posix_entry *e,
                      struct iatt *pre);
/* A second name in the directory of `first`, which outlives it. */
int posix_entry_begin_beside(const struct posix_entry *first, const struct loc *loc, int hidden_errno,
                             struct posix_entry *e);
/* Times of the directory by the caller's flags, then *post. 0 or -errno. */
int posix_entry_end(struct xlator *xl, const struct caller *caller, struct posix_entry *e, struct iatt *post);

/* The object that the name leads to: *st and *gfid (null if it has none). 0, -ENOENT, -errno. */
int posix_entry_look(struct posix_entry *e, struct stat *st, struct gfid *gfid);
/* The same for a name whose object the layers above have judged, under the lock of the name: 0 only if it is
 * `known`, and -FOP_NAME_CHANGED if it is another object, or if they knew of none (NULL). No system call but
 * the stat if the number of `known` is known. */
int posix_entry_look_known(struct xlator *xl, struct posix_entry *e, struct inode *known, struct stat *st);

/* Would the name's path be too long for those who use the volume? 0, -ENAMETOOLONG, -ENOMEM. (path-length.c)
 */
int posix_path_check(struct xlator *xl, struct inode *parent, const char *name);

/* As posix_entry_begin() does. */
int posix_name_check(const struct loc *loc, int hidden_errno);

/* May the caller make a directory below `new_parent` with the gfid of `dir`, which is there and has this
 * stat? 0; -EEXIST; -EINVAL: it would be below itself; -errno. (takeover.c) */
int posix_may_take_over(struct xlator *xl, const struct caller *c, const struct gfid *dir,
                        const struct stat *dir_st, const struct gfid *new_parent);

/* ---- last links (entry-remove.c) ------------------------------------------------------------- */

/* What became of the handle of an object whose last name is about to go. */
enum posix_handle_fate { POSIX_HANDLE_KEPT, POSIX_HANDLE_GONE, POSIX_HANDLE_IN_UNLINK };

/* Takes the handle of a non-directory away, or moves it to .glusterfs/unlink if an fd is open on the object.
 * With one link it has none: what is under its gfid is another object's. `inode` may be NULL (nobody has it
 * open). The caller holds the object lock. */
int posix_handle_retire(struct xlator *xl, const struct gfid *gfid, nlink_t links, struct inode *inode,
                        enum posix_handle_fate *fate);
/* The name could not be removed after all. `entry` still leads to the object. */
void posix_handle_unretire(struct xlator *xl, struct posix_obj *entry, const struct gfid *gfid,
                           struct inode *inode, enum posix_handle_fate fate);
/* Freeing the blocks of a large file can take seconds, and the kernel does it when the last name goes: while
 * the locks are held. With a descriptor on it, it does so when that is closed. -1: not worth it. */
int posix_hold_large(struct posix_obj *obj, const struct stat *st);
/* After the name has gone and the fate was POSIX_HANDLE_IN_UNLINK: the last fd may have been closed
 * meanwhile. */
void posix_unlinked_recheck(struct xlator *xl, struct inode *inode);
/* Removes .glusterfs/unlink/GFID if no fd needs it any more. The caller holds the object lock, or is the last
 * to know the inode. */
void posix_drop_unlinked(struct xlator *xl, struct inode *inode, struct posix_inode *ctx);
/* A directory that is about to be removed while somebody has it open: a descriptor of it, or -1. (kept.c) */
int posix_hold_dir(struct inode *inode, struct posix_obj *entry);
/* It was removed: the descriptor, which is taken over (-1: none), stays with the inode until no fd is open on
 * it. */
void posix_keep_dir(struct xlator *xl, struct inode *inode, int fd);
void posix_drop_kept_dir(struct inode *inode, struct posix_inode *ctx);
/* The object of an inode that is gone, if somebody has it open. 0, -ENOENT, -errno. */
int posix_obj_of_gone(struct xlator *xl, struct inode *inode, struct posix_obj *obj);
/* The type's hook: the last fd of an unlinked object is gone. */
void posix_fd_closed(struct xlator *xl, struct fd *fd);

/* The inode of a gfid with a reference: `known` if that is it, else from the table. NULL: nobody has it. */
struct inode *posix_inode_of(struct xlator *xl, struct inode *known, const struct gfid *gfid);

#endif
