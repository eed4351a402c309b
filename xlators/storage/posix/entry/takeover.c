/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* takeover: decides whether a MKDIR may take the gfid of an existing directory. Afterwards the gfid means the
 * new directory, and clients that know the old directory by gfid work in the new directory. DHT sends such a
 * MKDIR to heal a rename. Other clients need the same permissions as for moving the old directory away. */
#include <errno.h>
#include <limits.h>

#include "xlators/storage/posix/entry/entry.h"

/* Finds the directory that contains `dir`, which has been reached. */
static int
stat_parent(struct posix *p, const struct gfid *dir, struct posix_obj *parent, struct stat *st)
{
    char text[POSIX_HANDLE_TEXT_MAX];
    struct gfid gfid;
    const char *name;
    ssize_t len = posix_handle_read_text(p, dir, text);

    if (len < 0)
        return (int)len;
    if (!posix_handle_text_parse(text, (size_t)len, &gfid, &name))
        return -ESTALE;
    posix_obj_gfid(p, &gfid, true, parent);
    return posix_obj_stat(parent, st);
}

/* True with write and search permission. With an ACL the group's bits are its mask, so then only the owner's
 * bits count.
 */
static bool
may_write(const struct caller *c, struct posix_obj *dir, const struct stat *st)
{
    if (st->st_uid == c->uid)
        return (st->st_mode & 0300) == 0300;
    if (posix_obj_getxattr(dir, POSIX_ACL_ACCESS, NULL, 0) >= 0)
        return false;
    if (st->st_gid == c->gid || caller_in_group(c, st->st_gid))
        return (st->st_mode & 030) == 030;
    return (st->st_mode & 03) == 03;
}

/* Returns 0, or -EINVAL: the handles lead from `at` up to the root through `dir`. The directory would be
 * below itself, and the handles from there on would have no target. */
static int
check_not_below(struct posix *p, struct gfid at, const struct gfid *dir)
{
    char text[POSIX_HANDLE_TEXT_MAX];

    for (unsigned level = 0; level < PATH_MAX / 2 && !gfid_is_root(&at); level++) {
        struct gfid parent;
        const char *name;

        if (gfid_equal(&at, dir))
            return -EINVAL;
        ssize_t len = posix_handle_read_text(p, &at, text);
        if (len < 0)
            return (int)len;
        if (!posix_handle_text_parse(text, (size_t)len, &parent, &name))
            return -ESTALE;
        at = parent;
    }
    return gfid_is_root(&at) ? 0 : -ELOOP;
}

int
posix_may_take_over(struct xlator *xl, const struct caller *c, const struct gfid *dir,
                    const struct stat *dir_st, const struct gfid *new_parent)
{
    struct stat st;
    POSIX_OBJ(parent);

    int r = check_not_below(posix_of(xl), *new_parent, dir);
    if (r < 0 || c->uid == 0 || caller_is_internal(c))
        return r;
    r = stat_parent(posix_of(xl), dir, &parent, &st);
    if (r < 0)
        return r;
    bool is_sticky = st.st_mode & S_ISVTX && st.st_uid != c->uid && dir_st->st_uid != c->uid;
    return !is_sticky && may_write(c, &parent, &st) ? 0 : -EEXIST;
}
