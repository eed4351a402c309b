/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* handle: every object of a brick is found by its gfid through a link below .glusterfs (spec: brick 2.2).
 *
 *   file, symlink, device   .glusterfs/xx/yy/GFID   a hard link to the object
 *   directory               .glusterfs/xx/yy/GFID   a symlink: ../../pp/qq/PARENT-GFID/NAME
 *   root                    .glusterfs/00/00/ROOT   a symlink: ../../..
 *
 * What is behind a handle, and the proof that it is what was meant: obj.h. */
#ifndef KILN_POSIX_HANDLE_H
#define KILN_POSIX_HANDLE_H

#include "xlators/storage/posix/obj.h"

/* Finds out what a gfid is when the table does not know: fills *obj (addressing it rightly) and *st.
 * 0: its trusted.gfid is this one; -ENOENT: no handle, or a directory's handle that leads nowhere
 * (*is_dangling true); -ESTALE: it leads to something else (*is_dangling true, if it is a directory's);
 * -errno. */
int posix_obj_find(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st,
                   bool *is_dangling);

/* ---- handles themselves ---------------------------------------------------------------------- */

/* "xx/yy/GFID", relative to handles_fd. */
#define POSIX_HANDLE_SIZE (6 + GFID_TEXT_SIZE)
char *posix_handle_path(const struct gfid *gfid, char path[POSIX_HANDLE_SIZE]);
#define HANDLE(g) posix_handle_path((g), (char[POSIX_HANDLE_SIZE]){0})
/* The text of a directory's handle. */
#define POSIX_HANDLE_TEXT_MAX 512
size_t posix_handle_text(const struct gfid *parent, const char *name, char text[POSIX_HANDLE_TEXT_MAX]);
/* Reads a text: false if it is not one; "." and ".." are no names. `name` points into `text`. */
bool posix_handle_text_parse(const char *text, size_t len, struct gfid *parent, const char **name);

/* The text of a directory's handle, NUL-terminated. Its length; -ENOENT, -EINVAL (not a symlink), -errno. */
ssize_t posix_handle_read_text(struct posix *p, const struct gfid *gfid, char text[POSIX_HANDLE_TEXT_MAX]);

/* The folders xx and xx/yy of the handle whose path, relative to handles_fd, this is. The first object in one
 * makes it: 256 folders made ahead are most of what the first start of a brick costs. 0 or -errno. */
int posix_handle_make_parents(struct posix *p, const char *path);
/* Makes the hard link of a non-directory. 0 (also if it is there already and is this object), -EEXIST (the
 * gfid belongs to another object), -errno. */
int posix_handle_link(struct posix_obj *entry, const struct gfid *gfid);
/* Makes or replaces, in one step, the symlink of a directory. 0, -EEXIST (the gfid belongs to a file or a
 * symlink, whose handle stays), -errno. */
int posix_handle_set_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent,
                         const char *name);
/* Removes a directory's handle if it names exactly (parent, name). 0 (also if it names another or is not
 * there), -errno. */
int posix_handle_drop_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent,
                          const char *name);
/* Makes sure that the entry, which has this gfid and `st`, is what its handle leads to. Caller holds the
 * locks of name and object. 0 or -errno. */
int posix_handle_heal(struct posix_obj *entry, const struct gfid *gfid, const struct stat *st,
                      const struct gfid *parent, const char *name);

/* The real path on the brick of a directory, by the texts of the handles: "/a/b" ("/" for root) into `path`.
 * Its length, -ENOENT, -ENAMETOOLONG, -errno. */
ssize_t posix_handle_real_path(struct posix *p, const struct gfid *dir, char *path, size_t size);

#endif
