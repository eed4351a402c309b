/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* obj: how system calls reach one object of the brick, and the proof that what was reached is what was
 * meant.
 *
 * Every object is addressed by an fd, or by (dirfd, rel), for the xattr calls too (xattr-sys.h):
 *
 *   a file by gfid          handles_fd  "xx/yy/GFID"    a hard link; never followed, should it be a symlink
 *   a directory by gfid     its own descriptor  "."
 *   an entry                its directory's descriptor  "name"; never followed
 *   the root, its entries   brick_fd    "."  "name"
 *
 * The handle of a directory is a symlink, which the kernel follows; names on its way may have become
 * anything since it was made, and so may the handle: gfids and the texts of symlinks are the clients'
 * choice. So no path through such a handle is used for anything but to open the directory, which is done in
 * one place (posix_reach_dir, reach.c) and ends in a check:
 *
 *   - the kernel resolves the path beneath BRICK's descriptor and follows no magic link (openat2): EXDEV
 *     otherwise;
 *   - the descriptor is a directory, and its inode number is that of an earlier look which was checked
 *     itself (posix_inode.backend_ino, no system call but the fstat whose result is needed anyway), or its
 *     trusted.gfid is the gfid that was meant. Else the answer is ESTALE.
 *
 * All calls below do that by themselves before they touch an obj that is_through_dir. Everything after it
 * happens relative to the descriptor, which renames of names cannot move. The handle of a file needs no
 * such care, because .glusterfs is the brick's own: what it leads to is checked once, when the inode is met
 * first, and again when its gfid is given away anew (posix_obj_check). Files are opened without blocking
 * and refused unless they are regular (posix_obj_open_file).
 *
 * One stat alone may go by the path (posix_obj_stat of a directory whose number is known, posix_obj_peek):
 * its result is used only if the number is that of a checked look. This keeps the warm LOOKUP and STAT at
 * one system call an object.
 *
 * Numbers are used again by file systems once an inode is gone. So a number is forgotten before the
 * object's last name goes (posix_inode_gone, also by the janitor), and it is learnt only if the inode was
 * neither removed nor made anew since the obj was built (births).
 *
 * Two things can go wrong on the way that have nothing to do with the object:
 *   - the kernel follows at most 40 symlinks, so a directory 40 levels down gives ELOOP; and a rename
 *     anywhere on the machine may give EAGAIN, because of the `..` in handles. Then the handles' texts are
 *     read one by one up to the root, and the directory is opened by walking down from BRICK, without
 *     symlinks.
 *   - a rename of a directory moves it first and then replaces its handle: in between it is not found. Each
 *     obj remembers how many such renames there had been; if one is under way or was meanwhile, it waits
 *     for the end and tries again.
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
    /* of the object, or of the directory that an entry is in; NULL: not known. The caller's reference */
    struct inode *inode;
    unsigned births;     /* of the inode, when the obj was built */
    unsigned renames_seen;
    int fd;              /* the object itself; -1: address it by path. Never owned */
    int dirfd;           /* of `rel`; -1 as long as is_through_dir */
    bool owns_dirfd;     /* dirfd was opened for it */
    bool is_through_dir; /* `dir` is to be opened first: by posix_obj_reach() */
    bool has_st;         /* st is that of the directory, just opened: for a posix_obj_stat() right after it */
    struct gfid dir;     /* is_through_dir: the directory */
    struct stat st;
    char rel[POSIX_REL_SIZE];
};

/* POSIX_OBJ(obj); declares one that holds nothing yet, and gives back what it holds when it goes out of
 * scope. */
void posix_obj_done(struct posix_obj *obj);
static inline void
posix_obj_empty(struct posix_obj *obj)
{
    /* the rest means nothing before it is built: not worth clearing, it has a path in it */
    obj->owns_dirfd = false;
}
#define POSIX_OBJ(name) \
    __attribute__((cleanup(posix_obj_done))) struct posix_obj name; \
    posix_obj_empty(&name)

/* Building: no system calls. Each may be used on an obj that was not initialised before. */
void posix_obj_gfid(struct posix *p, const struct gfid *gfid, bool is_dir, struct posix_obj *obj);
/* By what the table knows of it; an inode whose handle is in .glusterfs/unlink is addressed there. */
void posix_obj_inode(struct posix *p, struct inode *inode, struct posix_obj *obj);
void posix_obj_entry(struct posix *p, struct inode *parent, const char *name, struct posix_obj *obj);
void posix_obj_fd(struct posix *p, int fd, struct posix_obj *obj);
/* A name in a directory that is open for somebody else. */
void posix_obj_at(struct posix *p, int dirfd, const char *name, struct posix_obj *obj);
/* Says whose object it is, before it is looked at: posix_obj_verify() then learns its number. */
void posix_obj_set_inode(struct posix_obj *obj, struct inode *inode);
/* .glusterfs/unlink/GFID */
void posix_obj_unlinked(struct posix *p, const struct gfid *gfid, struct posix_obj *obj);
/* .glusterfs/DIR/NAME; `dir` at most "landfill/" and a name, `name` at most NAME_MAX bytes. */
void posix_obj_hidden(struct posix *p, const char *dir, const char *name, struct posix_obj *obj);
/* The directory of an entry, and an entry of a directory, which have been reached. The new one borrows the
 * descriptor of the first and may not outlive it. */
void posix_obj_parent(const struct posix_obj *entry, struct posix_obj *dir);
void posix_obj_child(const struct posix_obj *dir, const char *name, struct posix_obj *entry);

/* Opens and checks the directory that the path goes through, unless that was done. 0, -ENOENT, -ESTALE
 * (another one lies there), -errno. */
int posix_obj_reach(struct posix_obj *obj);
/* The same as a descriptor of the caller's, opened with `flags` and O_CLOEXEC. *st: its stat. (reach.c) */
int posix_reach_dir(struct posix_obj *obj, int flags, struct stat *st);
/* 0, or why this kernel cannot open paths beneath a directory. */
int posix_reach_probe(struct posix *p);

/* Is what `st` was taken of, by this obj, the object of `inode`? 0, -ESTALE, -errno. At most one system
 * call, and none if the number is known. */
int posix_obj_verify(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct stat *st);
/* The same for an obj that is to be used without a stat. No system call once the inode has been met. */
int posix_obj_check(struct xlator *xl, struct posix_obj *obj, struct inode *inode);

/* System calls: 0 or a positive result, or -errno. Symlinks at the end are not followed. */
int posix_obj_stat(struct posix_obj *obj, struct stat *st);
/* By the path, unchecked: to be compared, never to be believed; but that there is no such name, if the
 * directory is checked afterwards. -ESTALE: nobody knows, a directory is being renamed. */
int posix_obj_peek(struct posix_obj *obj, struct stat *st);
/* Directories, O_PATH, and what O_CREAT | O_EXCL makes. O_CLOEXEC and O_NOFOLLOW are added. Not for an obj
 * that is an fd. */
int posix_obj_open(struct posix_obj *obj, int flags, mode_t mode);
/* A regular file: anything else is refused, without having waited for it. inode, if not NULL: it must be
 * that one. *st: its stat, from before O_TRUNC. */
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
/* Of objects that are paths: */
int posix_obj_mknod(struct posix_obj *obj, mode_t mode, dev_t dev);
int posix_obj_mkdir(struct posix_obj *obj, mode_t mode);
int posix_obj_symlink(struct posix_obj *obj, const char *text);
int posix_obj_unlink(struct posix_obj *obj, int flags); /* AT_REMOVEDIR */
int posix_obj_link(struct posix_obj *from, struct posix_obj *to);
int posix_obj_rename(struct posix_obj *from, struct posix_obj *to);

/* The xattr trusted.gfid. 0, -ENODATA (none), -EINVAL (not 16 bytes), -errno. */
int posix_obj_get_gfid(struct posix_obj *obj, struct gfid *out);

#endif
