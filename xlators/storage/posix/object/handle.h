/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* handle: the link below .glusterfs by which an object of a brick is found by its gfid (spec: brick 2.2).
 *
 *   file, symlink, device   .glusterfs/xx/yy/GFID   a hard link to the object
 *   directory               .glusterfs/xx/yy/GFID   a symlink: ../../pp/qq/PARENT-GFID/NAME
 *   root                    .glusterfs/00/00/ROOT   a symlink: ../../..
 *
 * How the object of a handle is reached, and checked to be the right one: obj.h. */
#ifndef KILN_POSIX_HANDLE_H
#define KILN_POSIX_HANDLE_H

#include "xlators/storage/posix/object/obj.h"

/* Finds the object of a gfid without the table: fills *obj (with the right address) and *st. Returns 0: its
 * trusted.gfid is this one; -ENOENT: no handle, or a directory's handle without a target (*is_dangling true);
 * -ESTALE: the handle leads to another object (*is_dangling true if it is a directory's); -errno. */
int posix_obj_find(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st,
                   bool *is_dangling);

/* ---- handles themselves ---------------------------------------------------------------------- */

/* "xx/yy/GFID", relative to handles_fd. */
#define POSIX_HANDLE_SIZE (6 + GFID_TEXT_SIZE)
char *posix_handle_path(const struct gfid *gfid, char path[POSIX_HANDLE_SIZE]);
#define HANDLE(g) posix_handle_path((g), (char[POSIX_HANDLE_SIZE]){0})
/* The target text of a directory's handle. */
#define POSIX_HANDLE_TEXT_MAX 512
size_t posix_handle_text(const struct gfid *parent, const char *name, char text[POSIX_HANDLE_TEXT_MAX]);
/* Parses a target text. Returns false if it is not valid; "." and ".." are not valid names. `name` points
 * into `text`. */
bool posix_handle_text_parse(const char *text, size_t len, struct gfid *parent, const char **name);

/* Reads the target text of a directory's handle, NUL-terminated. Returns its length; -ENOENT, -EINVAL (not a
 * symlink), -errno. */
ssize_t posix_handle_read_text(struct posix *p, const struct gfid *gfid, char text[POSIX_HANDLE_TEXT_MAX]);

/* Creates the folders xx and xx/yy of a handle with this path, relative to handles_fd. The first object in a
 * folder creates it, because creating 256 folders ahead would be most of the cost of a brick's first start.
 * Returns 0 or -errno. */
int posix_handle_make_parents(struct posix *p, const char *path);
/* Creates the hard link of a non-directory. Returns 0 (also if it exists and is this object), -EEXIST (the
 * gfid belongs to another object), -errno. */
int posix_handle_link(struct posix_obj *entry, const struct gfid *gfid);
/* Creates or replaces, in one step, the symlink of a directory. Returns 0, -EEXIST (the gfid belongs to a
 * file or a symlink, whose handle stays), -errno. */
int posix_handle_set_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent,
                         const char *name);
/* Removes a directory's handle if it names exactly (parent, name). Returns 0 (also if it names another
 * directory or does not exist), -errno. */
int posix_handle_drop_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent,
                          const char *name);
/* Returns whether the handle leads to another directory of this gfid than `st`: a heal has made a folder anew
 * at its new place, before it removes the folder at its old place. */
bool posix_handle_leads_elsewhere(struct posix *p, const struct gfid *gfid, const struct stat *st);
/* Makes the handle of this gfid lead to the entry, which has this gfid and `st`, unless the handle leads to
 * another directory of this gfid, which was made later. The caller holds the locks of name and object.
 * Returns 0 or -errno. */
int posix_handle_heal(struct posix_obj *entry, const struct gfid *gfid, const struct stat *st,
                      const struct gfid *parent, const char *name);

/* The rename of a directory is followed by that of its handle. A process that dies in between leaves a handle
 * without a target, and the directory cannot be found by its gfid: a heal would make a second one. So the
 * directory and its new place are noted first, in an xattr of .glusterfs, and the next start of the brick
 * gives the directory at that place its handle. The note stays after the rename; the next one replaces it.
 *
 * posix_handle_note_move(): under dir_rename_lock. Returns 0 or -errno.
 * posix_handle_finish_move(): at the start of the brick. Returns 0, 1: a handle was mended, or -errno. */
int posix_handle_note_move(struct posix *p, const struct gfid *gfid, const struct gfid *parent,
                           const char *name);
int posix_handle_finish_move(struct posix *p);

/* Computes the real path of a directory on the brick from the texts of the handles: "/a/b" ("/" for root)
 * into `path`. Returns its length, -ENOENT, -ENAMETOOLONG or -errno. */
ssize_t posix_handle_real_path(struct posix *p, const struct gfid *dir, char *path, size_t size);

#endif
