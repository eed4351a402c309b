/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/entry/entry.h"

#include <errno.h>
#include <string.h>

#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/object/stat.h"

static bool
posix_name_is_hidden(const struct inode *parent, const char *name)
{
    return name[0] == '.' && gfid_is_root(&parent->gfid) && strcmp(name, POSIX_HIDDEN_DIR) == 0;
}

/* protocol/server has checked most of this already, but storage checks every name that becomes a part of a
 * path on the disk. */
int
posix_name_check(const struct loc *loc, int hidden_errno)
{
    const char *name = loc->name;

    if (!loc->parent || !name || name[0] == '\0')
        return -EINVAL;
    size_t len = strnlen(name, NAME_MAX + 1);
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || memchr(name, '/', len))
        return -EPERM;
    return posix_name_is_hidden(loc->parent, name) ? -hidden_errno : 0;
}

int
posix_entry_begin(struct xlator *xl, const struct loc *loc, int hidden_errno, struct posix_entry *e,
                  struct iatt *pre)
{
    e->parent = loc->parent;
    e->name = loc->name;
    int r = posix_name_check(loc, hidden_errno);
    if (r < 0)
        return r;
    posix_obj_entry(posix_of(xl), loc->parent, ".", &e->dir);
    r = posix_obj_reach(&e->dir);
    if (r == 0)
        r = posix_iatt(xl, &e->dir, loc->parent, pre, &e->dir_st);
    if (r < 0)
        return r == -ENOENT ? -ESTALE : r;
    posix_obj_child(&e->dir, loc->name, &e->obj);
    return 0;
}

int
posix_entry_begin_beside(const struct posix_entry *first, const struct loc *loc, int hidden_errno,
                         struct posix_entry *e)
{
    e->parent = loc->parent;
    e->name = loc->name;
    e->dir_st = first->dir_st;
    int r = posix_name_check(loc, hidden_errno);

    if (r < 0)
        return r;
    posix_obj_parent(&first->obj, &e->dir);
    posix_obj_child(&e->dir, loc->name, &e->obj);
    return 0;
}

int
posix_entry_end(struct xlator *xl, const struct caller *caller, struct posix_entry *e, struct iatt *post)
{
    int r = posix_mdata_update_parent(xl, caller, &e->dir, e->parent, NULL);

    return r < 0 ? r : posix_iatt(xl, &e->dir, e->parent, post, NULL);
}

void
posix_entry_done(struct posix_entry *e)
{
    posix_obj_done(&e->obj);
    posix_obj_done(&e->dir);
}

int
posix_entry_look(struct posix_entry *e, struct stat *st, struct gfid *gfid)
{
    int r = posix_obj_stat(&e->obj, st);

    if (r < 0)
        return r;
    r = posix_obj_get_gfid(&e->obj, gfid);
    if (r == -ENODATA) {
        *gfid = gfid_null;
        return 0;
    }
    return r;
}

int
posix_entry_look_known(struct xlator *xl, struct posix_entry *e, struct inode *known, struct stat *st)
{
    struct gfid found;
    int r = posix_obj_stat(&e->obj, st);

    if (r < 0 || posix_inode_is(xl, known, st))
        return r;
    r = known ? posix_obj_get_gfid(&e->obj, &found) : -ENODATA;
    if (r == -ENODATA || r == -EINVAL)
        return -FOP_NAME_CHANGED;
    return r < 0 ? r : gfid_equal(&found, &known->gfid) ? 0 : -FOP_NAME_CHANGED;
}

struct inode *
posix_inode_of(struct xlator *xl, struct inode *known, const struct gfid *gfid)
{
    if (known && gfid_equal(&known->gfid, gfid))
        return inode_ref(known);
    return gfid_is_null(gfid) ? NULL : inode_find(xl->graph->inodes, gfid);
}
