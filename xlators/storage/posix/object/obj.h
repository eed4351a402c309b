/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* obj: how system calls address one object of the brick, and how the reached object is proven to be the right
 * one.
 *
 * Every object is addressed by an fd, or by (dirfd, rel), for the xattr calls too (xattr-sys.h):
 *
 *   a file by gfid          handles_fd  "xx/yy/GFID"    a hard link; never followed, should it be a symlink
 *   a directory by gfid     its own descriptor  "."
 *   an entry                its directory's descriptor  "name"; never followed
 *   the root, its entries   brick_fd    "."  "name"
 *
 * The handle of a directory is a symlink, which the kernel follows. Names on its path may have become other
 * objects since it was created, and so may the handle, because clients choose gfids and the texts of
 * symlinks. So a path through such a handle is used only to open the directory. That is done in one place
 * (posix_reach_dir, reach.c) and ends in a check:
 *
 *   - The kernel resolves the path beneath BRICK's descriptor and follows no magic link (openat2); otherwise
 *     the error is EXDEV.
 *   - The descriptor must be a directory. Its inode number must be that of an earlier, checked stat
 *     (posix_inode.backend_ino, no system call except the fstat whose result is needed anyway), or its
 *     trusted.gfid must be the intended gfid. Otherwise the error is ESTALE.
 *
 * All functions below do that by themselves before they use an obj with is_through_dir. All later system
 * calls are relative to the descriptor, which renames of names cannot move. The handle of a file needs no
 * such care, because .glusterfs belongs to the brick: its target is checked once, when the inode is first
 * met, and again when its gfid is given to a new object (posix_obj_check). Files are opened without blocking,
 * and refused unless they are regular (posix_obj_open_file).
 *
 * Only one stat may use the path directly (posix_obj_stat of a directory whose number is known,
 * posix_obj_peek). Its result is used only if the number is that of a checked stat. This keeps the LOOKUP and
 * STAT of a known object at one system call.
 *
 * File systems reuse inode numbers. So a number is forgotten before the object's last name is removed
 * (posix_inode_gone, also by the janitor), and it is learnt only if the inode was neither removed nor created
 * anew since the obj was built (births).
 *
 * Two errors on the path are not the object's fault:
 *   - The kernel follows at most 40 symlinks, so a directory 40 levels down gives ELOOP; and a rename
 *     anywhere on the machine may give EAGAIN, because of the `..` in handles. Then the texts of the handles
 *     are read one by one up to the root, and the directory is opened by walking down from BRICK, without
 *     symlinks.
 *   - A rename of a directory moves it first and then replaces its handle; in between the directory is not
 *     found. Each obj remembers the number of such renames before it. If a rename is under way or was
 *     meanwhile, the obj waits for its end and tries again.
 *
 * System calls of the everyday operations: a LOOKUP by name makes two if the inode is known or the name is
 * missing, as many as with plain paths; a STAT of a directory makes one. Operations that make or remove
 * names make as many as with plain paths, because they open the directory in any case. Operations on one
 * directory (GETXATTR, XATTROP) make an open, a stat and a close more; OPEN makes a stat more.
 *
 * thread: an obj belongs to one call. */
#ifndef KILN_POSIX_OBJ_H
#define KILN_POSIX_OBJ_H

#include <limits.h>

#include "xlators/storage/posix/posix-internal.h"

/* "landfill/NAME/NAME" is the longest. */
#define POSIX_REL_SIZE (16 + 2 * (NAME_MAX + 1))

struct posix_obj {
    struct posix *p;
    /* inode of the object, or of the directory that contains an entry; NULL: not known. The caller's
     * reference */
    struct inode *inode;
    unsigned births;     /* of the inode, when the obj was built */
    unsigned renames_seen;
    int fd;              /* the object itself; -1: address it by path. Never owned */
    int dirfd;           /* of `rel`; -1 while is_through_dir */
    bool owns_dirfd;     /* dirfd was opened for it */
    bool is_through_dir; /* `dir` must be opened first: by posix_obj_reach() */
    bool has_st; /* st is the stat of the just opened directory, for a posix_obj_stat() right after that */
    struct gfid dir;     /* is_through_dir: the directory */
    struct stat st;
    char rel[POSIX_REL_SIZE];
};

/* POSIX_OBJ(obj); declares an empty object that releases its resources at the end of the scope. */
void posix_obj_done(struct posix_obj *obj);
static inline void
posix_obj_empty(struct posix_obj *obj)
{
    /* the other fields are set when the obj is built; clearing them costs too much, because one is a path */
    obj->owns_dirfd = false;
}
#define POSIX_OBJ(name) \
    __attribute__((cleanup(posix_obj_done))) struct posix_obj name; \
    posix_obj_empty(&name)

/* Building an obj makes no system calls. Each function accepts an uninitialised obj. */
void posix_obj_gfid(struct posix *p, const struct gfid *gfid, bool is_dir, struct posix_obj *obj);
/* Addresses the object by the table's knowledge. An inode whose handle is in .glusterfs/unlink is addressed
 * there. */
void posix_obj_inode(struct posix *p, struct inode *inode, struct posix_obj *obj);
void posix_obj_entry(struct posix *p, struct inode *parent, const char *name, struct posix_obj *obj);
void posix_obj_fd(struct posix *p, int fd, struct posix_obj *obj);
/* A name in a directory whose descriptor belongs to another owner. */
void posix_obj_at(struct posix *p, int dirfd, const char *name, struct posix_obj *obj);
/* Sets the inode before the object is statted, so that posix_obj_verify() learns its number. */
void posix_obj_set_inode(struct posix_obj *obj, struct inode *inode);
/* .glusterfs/unlink/GFID */
void posix_obj_unlinked(struct posix *p, const struct gfid *gfid, struct posix_obj *obj);
/* .glusterfs/DIR/NAME; `dir` is at most "landfill/" and a name, `name` has at most NAME_MAX bytes. */
void posix_obj_hidden(struct posix *p, const char *dir, const char *name, struct posix_obj *obj);
/* Builds the directory of a reached entry, or an entry of a reached directory. The new obj borrows the
 * descriptor of the first and must not outlive it. */
void posix_obj_parent(const struct posix_obj *entry, struct posix_obj *dir);
void posix_obj_child(const struct posix_obj *dir, const char *name, struct posix_obj *entry);

/* Opens and checks the directory that the path goes through, unless that was done. Returns 0, -ENOENT,
 * -ESTALE (another object has its place) or -errno. */
int posix_obj_reach(struct posix_obj *obj);
/* The same, but returns a descriptor that the caller owns, opened with `flags` and O_CLOEXEC. *st: its stat.
 * (reach.c) */
int posix_reach_dir(struct posix_obj *obj, int flags, struct stat *st);
/* Returns 0, or the error if this kernel cannot open paths beneath a directory. */
int posix_reach_probe(struct posix *p);

/* Checks that the object of `st`, taken by this obj, is the object of `inode`. Returns 0, -ESTALE or -errno.
 * At most one system call, and none if the number is known. */
int posix_obj_verify(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct stat *st);
/* The same for an obj that is used without a stat. No system call once the inode has been met. */
int posix_obj_check(struct xlator *xl, struct posix_obj *obj, struct inode *inode);

/* System calls: return 0 or a positive result, or -errno. Symlinks at the end are not followed. */
int posix_obj_stat(struct posix_obj *obj, struct stat *st);
/* A stat by the path, unchecked. Its result may only be compared, never trusted, except -ENOENT if the
 * directory is checked afterwards. -ESTALE: not known, a directory is being renamed. */
int posix_obj_peek(struct posix_obj *obj, struct stat *st);
/* Opens directories, O_PATH descriptors, and new files with O_CREAT | O_EXCL. Adds O_CLOEXEC and O_NOFOLLOW.
 * Not for an obj that is an fd. */
int posix_obj_open(struct posix_obj *obj, int flags, mode_t mode);
/* Opens a regular file; other types are refused without blocking. If inode is not NULL, the file must be this
 * inode. *st: its stat, from before O_TRUNC. */
int posix_obj_open_file(struct xlator *xl, struct posix_obj *obj, struct inode *inode, int flags,
                        struct stat *st);
ssize_t posix_obj_getxattr(struct posix_obj *obj, const char *name, void *value, size_t size);
ssize_t posix_obj_listxattr(struct posix_obj *obj, char *list, size_t size);
int posix_obj_setxattr(struct posix_obj *obj, const char *name, const void *value, size_t size, int flags);
int posix_obj_removexattr(struct posix_obj *obj, const char *name);
ssize_t posix_obj_readlink(struct posix_obj *obj, char *text, size_t size);
int posix_obj_chown(struct posix_obj *obj, uid_t uid, gid_t gid);
int posix_obj_chmod(struct posix_obj *obj, mode_t mode); /* a symlink: -EOPNOTSUPP */
int posix_obj_set_times(struct posix_obj *obj, const struct timespec times[2]);
/* Only for objects that are paths: */
int posix_obj_mknod(struct posix_obj *obj, mode_t mode, dev_t dev);
int posix_obj_mkdir(struct posix_obj *obj, mode_t mode);
int posix_obj_symlink(struct posix_obj *obj, const char *text);
int posix_obj_unlink(struct posix_obj *obj, int flags); /* AT_REMOVEDIR */
int posix_obj_link(struct posix_obj *from, struct posix_obj *to);
int posix_obj_rename(struct posix_obj *from, struct posix_obj *to);

/* Reads the xattr trusted.gfid. Returns 0, -ENODATA (none), -EINVAL (not 16 bytes) or -errno. */
int posix_obj_get_gfid(struct posix_obj *obj, struct gfid *out);

#endif
