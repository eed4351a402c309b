/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* entry: a name in a directory as the object of a call: the common parts of create, unlink, rename and
 * similar calls.
 *
 * posix_entry_begin() checks the name and stats the directory, which also detects that the path to it is deep
 * or is being renamed. posix_entry_end() sets the directory's times and stats it again. */
#ifndef KILN_POSIX_ENTRY_H
#define KILN_POSIX_ENTRY_H

#include "xlators/storage/posix/object/handle.h"

struct posix_entry {
    struct inode *parent;
    const char *name;
    struct posix_obj dir, obj; /* the directory, and the name in it */
    struct stat dir_st;        /* at the beginning */
};

/* POSIX_ENTRY(e); declares an empty entry that releases its resources at the end of the scope. */
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

/* `hidden_errno`: the error for the root's .glusterfs. *pre: the directory before. Returns 0, -EINVAL, -EPERM
 * ("." and ".."), -ENAMETOOLONG, -ESTALE (the directory has been removed) or -errno. */
int posix_entry_begin(struct xlator *xl, const struct loc *loc, int hidden_errno, struct posix_entry *e,
                      struct iatt *pre);
/* Begins a second name in the directory of `first`, which must outlive it. */
int posix_entry_begin_beside(const struct posix_entry *first, const struct loc *loc, int hidden_errno,
                             struct posix_entry *e);
/* Sets the directory's times by the caller's flags, and fills *post. Returns 0 or -errno. */
int posix_entry_end(struct xlator *xl, const struct caller *caller, struct posix_entry *e, struct iatt *post);

/* Looks up the name: *st and *gfid (null if the object has none). Returns 0, -ENOENT or -errno. */
int posix_entry_look(struct posix_entry *e, struct stat *st, struct gfid *gfid);
/* The same for a name whose object the layers above have checked. Under the lock of the name. Returns 0 only
 * if the object is `known`; -FOP_NAME_CHANGED if it is another object, or if the layers found none (NULL).
 * Only one system call, the stat, if the inode number of `known` is known. */
int posix_entry_look_known(struct xlator *xl, struct posix_entry *e, struct inode *known, struct stat *st);

/* Checks whether the name's path is too long for users of the volume. Returns 0, -ENAMETOOLONG or -ENOMEM.
 * (path-length.c)
 */
int posix_path_check(struct xlator *xl, struct inode *parent, const char *name);

/* Checks the name as posix_entry_begin() does. */
int posix_name_check(const struct loc *loc, int hidden_errno);

/* Checks whether the caller may create a directory below `new_parent` with the gfid of `dir`, an existing
 * directory with this stat. Returns 0; -EEXIST; -EINVAL: it would be below itself; -errno. (takeover.c) */
int posix_may_take_over(struct xlator *xl, const struct caller *c, const struct gfid *dir,
                        const struct stat *dir_st, const struct gfid *new_parent);

/* ---- last links (entry-remove.c) ------------------------------------------------------------- */

/* State of the handle of an object whose last name is being removed. */
enum posix_handle_fate { POSIX_HANDLE_KEPT, POSIX_HANDLE_GONE, POSIX_HANDLE_IN_UNLINK };

/* Removes the handle of a non-directory, or moves it to .glusterfs/unlink if an fd is open on the object. An
 * object with one link has no handle; a file under its gfid belongs to another object. `inode` may be NULL:
 * no fd is open. The caller holds the object lock. */
int posix_handle_retire(struct xlator *xl, const struct gfid *gfid, nlink_t links, struct inode *inode,
                        enum posix_handle_fate *fate);
/* Restores the handle because the name could not be removed. `entry` still leads to the object. */
void posix_handle_unretire(struct xlator *xl, struct posix_obj *entry, const struct gfid *gfid,
                           struct inode *inode, enum posix_handle_fate fate);
/* Returns a descriptor that keeps the blocks of a large file until it is closed, or -1 for a small file.
 * Otherwise the kernel would free the blocks when the last name is removed, while the locks are held, which
 * can take seconds. */
int posix_hold_large(struct posix_obj *obj, const struct stat *st);
/* Checks again, after the name was removed with POSIX_HANDLE_IN_UNLINK, because the last fd may have been
 * closed meanwhile. */
void posix_unlinked_recheck(struct xlator *xl, struct inode *inode);
/* Removes .glusterfs/unlink/GFID if no fd needs it any more. The caller holds the object lock, or has the
 * last reference to the inode. */
void posix_drop_unlinked(struct xlator *xl, struct inode *inode, struct posix_inode *ctx);
/* Returns a descriptor of a directory that is about to be removed while an fd is open on it, or -1. (kept.c)
 */
int posix_hold_dir(struct inode *inode, struct posix_obj *entry);
/* Keeps the descriptor of a removed directory (-1: none) with the inode until no fd is open on it. Takes over
 * the descriptor. */
void posix_keep_dir(struct xlator *xl, struct inode *inode, int fd);
void posix_drop_kept_dir(struct inode *inode, struct posix_inode *ctx);
/* Fills *obj for the object of a removed inode on which an fd is open. Returns 0, -ENOENT or -errno. */
int posix_obj_of_gone(struct xlator *xl, struct inode *inode, struct posix_obj *obj);
/* The type's hook: runs when the last fd of an unlinked object has been closed. */
void posix_fd_closed(struct xlator *xl, struct fd *fd);

/* Returns the inode of a gfid with a reference: `known` if it has this gfid, else from the table. NULL: the
 * table has none. */
struct inode *posix_inode_of(struct xlator *xl, struct inode *known, const struct gfid *gfid);

#endif
