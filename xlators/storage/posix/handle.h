/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* handle: every object of a brick is found by its gfid through a link below .glusterfs (spec: brick 2.2).
 *
 *   file, symlink, device   .glusterfs/xx/yy/GFID   a hard link to the object
 *   directory               .glusterfs/xx/yy/GFID   a symlink: ../../pp/qq/PARENT-GFID/NAME
 *   root                    .glusterfs/00/00/ROOT   a symlink: ../../..
 *
 * A struct posix_obj says how system calls reach one object: by an fd, or by (dirfd, rel), for the xattr calls too
 * (xattr-sys.h). It is built without a system call:
 *
 *   a file by gfid          handles_fd  "xx/yy/GFID"            the last component is never followed
 *   a directory by gfid     handles_fd  "xx/yy/GFID/."          the handle is
 *   an entry                handles_fd  "xx/yy/PARENT/name"
 *   the root, its entries   brick_fd    "."  "name"
 *
 * Two things can go wrong with a path through a directory's handle that have nothing to do with the object:
 *   - the kernel follows at most 40 symlinks, so a directory 40 levels down gives ELOOP. Then the handles' texts are read
 *     one by one up to the root, the directory is opened by walking down from BRICK in steps, and the object is addressed
 *     from that descriptor. Depth and length of the path have no limit.
 *   - a rename of a directory moves it first and then replaces its handle: in between there is ENOENT. Each obj remembers how
 *     many such renames there had been; if one is under way or was meanwhile, it waits for the end and tries again.
 * The posix_obj_* calls below do both. Raw *at calls with dirfd and rel do not: only where neither can matter.
 *
 * thread: an obj belongs to one call. */
#ifndef KILN_POSIX_HANDLE_H
#define KILN_POSIX_HANDLE_H

#include <limits.h>

#include "xlators/storage/posix/posix-internal.h"

struct posix_obj {
    struct posix *p;
    int fd;           /* the object itself; -1: address it by path. Never owned */
    int dirfd;        /* of `rel` */
    const char *rel;  /* points into full */
    bool owns_dirfd;  /* dirfd was opened for a deep path, or by posix_obj_pin_dir() */
    bool is_pinned;   /* dirfd is the directory itself, rel one name in it or "." */
    bool is_through_dir; /* the path goes through dir's handle */
    bool is_renamer;  /* the caller holds dir_rename_lock: never wait for it */
    unsigned renames_seen;
    struct gfid dir;  /* is_through_dir: the directory */
    uint16_t last;    /* offset in `full` of the last component (".", the name) */
    char full[PATH_MAX];
};

/* Objects go out of scope with POSIX_OBJ: POSIX_OBJ obj; */
void posix_obj_done(struct posix_obj *obj);
#define POSIX_OBJ __attribute__((cleanup(posix_obj_done))) struct posix_obj

/* Building: no system calls. Each may be used on an obj that was not initialised before. */
void posix_obj_gfid(struct posix *p, const struct gfid *gfid, bool is_dir, struct posix_obj *obj);
/* By what the table knows of it; an inode whose handle is in .glusterfs/unlink is addressed there. */
void posix_obj_inode(struct posix *p, struct inode *inode, struct posix_obj *obj);
void posix_obj_entry(struct posix *p, const struct gfid *parent, const char *name, struct posix_obj *obj);
void posix_obj_fd(struct posix *p, int fd, struct posix_obj *obj);
void posix_obj_unlinked(struct posix *p, const struct gfid *gfid, struct posix_obj *obj); /* .glusterfs/unlink/GFID */
/* BRICK/.glusterfs/DIR/NAME; `name` at most NAME_MAX bytes. */
void posix_obj_hidden(struct posix *p, const char *dir, const char *name, struct posix_obj *obj);
/* The directory of an entry, and an entry of a directory, reached the same way (no second expansion of a deep path). The new one
 * borrows the descriptor of the first and may not outlive it. */
void posix_obj_parent(const struct posix_obj *entry, struct posix_obj *dir);
void posix_obj_child(const struct posix_obj *dir, const char *name, struct posix_obj *entry);
/* A directory whose entries several calls will be made on: opened (O_PATH), so that each does not walk through its handle again,
 * which takes half of its time. For the root, or without a descriptor to spare, nothing changes. 0, or -errno: it has gone. */
int posix_obj_pin_dir(struct posix_obj *dir);

/* System calls: 0 or a positive result, or -errno. Symlinks at the end are not followed. */
int posix_obj_stat(struct posix_obj *obj, struct stat *st);
/* O_CLOEXEC and O_NOFOLLOW are added. Not for an obj that is an fd. */
int posix_obj_open(struct posix_obj *obj, int flags, mode_t mode);
ssize_t posix_obj_getxattr(struct posix_obj *obj, const char *name, void *value, size_t size);
ssize_t posix_obj_listxattr(struct posix_obj *obj, char *list, size_t size);
int posix_obj_setxattr(struct posix_obj *obj, const char *name, const void *value, size_t size, int flags);
int posix_obj_removexattr(struct posix_obj *obj, const char *name);
ssize_t posix_obj_readlink(struct posix_obj *obj, char *text, size_t size);
int posix_obj_chown(struct posix_obj *obj, uid_t uid, gid_t gid);
int posix_obj_chmod(struct posix_obj *obj, mode_t mode); /* not of a symlink */
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

/* Finds out what a gfid is when the table does not know: fills *obj (addressing it rightly) and *st.
 * 0; -ENOENT: no handle, or a directory's handle that leads nowhere (*is_dangling true). */
int posix_obj_find(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st, bool *is_dangling);

/* -- handles themselves ------------------------------------------------------------------------------------------ */

/* "xx/yy/GFID", relative to handles_fd. */
#define POSIX_HANDLE_SIZE (6 + GFID_TEXT_SIZE)
char *posix_handle_path(const struct gfid *gfid, char path[POSIX_HANDLE_SIZE]);
#define HANDLE(g) posix_handle_path((g), (char[POSIX_HANDLE_SIZE]){0})
/* The text of a directory's handle. */
#define POSIX_HANDLE_TEXT_MAX 512
size_t posix_handle_text(const struct gfid *parent, const char *name, char text[POSIX_HANDLE_TEXT_MAX]);
/* Reads a text: false if it is not one. `name` points into `text`. */
bool posix_handle_text_parse(const char *text, size_t len, struct gfid *parent, const char **name);

/* Makes the hard link of a non-directory. 0 (also if it is there already and is this object), -EEXIST (the gfid belongs to
 * another object), -errno. */
int posix_handle_link(struct posix_obj *entry, const struct gfid *gfid);
/* Makes or replaces, in one step, the symlink of a directory. 0 or -errno. */
int posix_handle_set_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name);
/* Removes a directory's handle if it names exactly (parent, name). 0 (also if it names another or is not there), -errno. */
int posix_handle_drop_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name);
/* Makes sure that the entry, which has this gfid and `st`, is what its handle leads to. Caller holds the locks of name and object.
 * 0 or -errno. */
int posix_handle_heal(struct posix_obj *entry, const struct gfid *gfid, const struct stat *st,
                      const struct gfid *parent, const char *name);

/* The real path on the brick of a directory, by the texts of the handles: "/a/b" ("/" for root) into `path`.
 * Its length, -ENOENT, -ENAMETOOLONG, -errno. */
ssize_t posix_handle_real_path(struct posix *p, const struct gfid *dir, char *path, size_t size);

#endif
