/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/object/stat.h"

#include <errno.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/object/mdata.h"

int
posix_iatt_of_disk(struct xlator *xl, struct inode *inode, const struct gfid *gfid, const struct stat *st,
                   struct iatt *out)
{
    const struct posix *p = posix_of(xl);

    if (st->st_ino == p->handles_ino && st->st_dev == p->dev)
        return -ENOENT;
    iatt_from_stat(out, st, gfid);
    /* some file systems leave a removed directory its two links */
    if (inode && posix_inode_is_gone(xl, inode))
        out->nlink = 0;
    return 0;
}

int
posix_iatt_of_stat(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct gfid *gfid,
                   const struct stat *st, struct iatt *out)
{
    struct mdata m;
    int r = posix_iatt_of_disk(xl, inode, gfid, st, out);

    if (r == 0)
        r = posix_mdata_get(xl, obj, inode, &m);
    if (r > 0)
        posix_mdata_apply(&m, out);
    return r < 0 ? r : 0;
}

int
posix_iatt(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct iatt *out, struct stat *st)
{
    struct stat own;
    struct gfid gfid;

    if (!st)
        st = &own;
    int r = posix_obj_stat(obj, st);
    if (r < 0)
        return r;
    if (inode) {
        r = posix_obj_verify(xl, obj, inode, st);
        return r < 0 ? r : posix_iatt_of_stat(xl, obj, inode, &inode->gfid, st, out);
    }
    r = posix_obj_get_gfid(obj, &gfid);
    if (r < 0 && r != -ENODATA)
        return r;
    return posix_iatt_of_stat(xl, obj, NULL, r == 0 ? &gfid : NULL, st, out);
}

int
posix_iatt_fd(struct xlator *xl, int fd, struct inode *inode, struct iatt *out)
{
    POSIX_OBJ(obj);

    posix_obj_fd(posix_of(xl), fd, &obj);
    return posix_iatt(xl, &obj, inode, out, NULL);
}

int
posix_allotted(struct xlator *xl, struct inode *inode, struct posix_allotted *out)
{
    const struct loc loc = {.inode = inode};
    struct stat st;

    POSIX_OBJ(obj);
    int err = posix_obj_of_loc(xl, &loc, &obj);
    if (err == 0)
        err = posix_obj_stat(&obj, &st);
    if (err == 0)
        err = posix_obj_verify(xl, &obj, inode, &st);
    if (err)
        return err;
    *out = (struct posix_allotted){
        .bytes = (int64_t)st.st_blocks * 512,
        .size = (int64_t)st.st_size,
        .is_file = S_ISREG(st.st_mode),
        .has_name = !posix_inode_is_gone(xl, inode),
    };
    return 0;
}
