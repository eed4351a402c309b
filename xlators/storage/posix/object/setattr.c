/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* setattr, fsetattr: owner, then mode, then times (spec: brick 4.9).
 *
 * System calls, inode cached: 4 (stat, the change, set mdata, stat) and those of the xattr fill. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"

/* For chown(2) the highest number means "unchanged", so it is not a valid owner. */
static int
setattr_owner(struct posix_obj *obj, int valid, const struct iatt *to)
{
    if ((valid & SETATTR_UID && to->uid == UINT32_MAX) || (valid & SETATTR_GID && to->gid == UINT32_MAX))
        return -EINVAL;
    uid_t uid = valid & SETATTR_UID ? to->uid : (uid_t)-1;
    gid_t gid = valid & SETATTR_GID ? to->gid : (gid_t)-1;

    return posix_obj_chown(obj, uid, gid);
}

enum { MIGRATION_BITS = S_ISVTX | S_ISGID };

/* Returns the mode to set. While distribute moves a file to another brick, the mode of the file and that of
 * its unfinished copy show the state (client 2.20): a change by a user must not end that state. */
static uint32_t
mode_to_set(const struct call_stack *stk, struct posix_obj *obj, const struct inode *inode)
{
    uint32_t was = stk->reply.pre.mode & 07777, mode = stk->call.stbuf.mode & 07777;
    bool is_marked = (was & MIGRATION_BITS) == MIGRATION_BITS, is_linkto = was == S_ISVTX;

    if (!S_ISREG(inode->type) || stk->caller.pid < 0 || (!is_marked && !is_linkto) ||
        posix_obj_getxattr(obj, POSIX_XATTR_LINKTO, NULL, 0) < 0)
        return mode;
    return is_linkto ? was : mode | MIGRATION_BITS;
}

static int
setattr_mode(const struct call_stack *stk, struct posix_obj *obj, const struct inode *inode)
{
    /* A symlink has no mode to change; that is not an error. */
    if (inode->type == S_IFLNK)
        return 0;
    return posix_obj_chmod(obj, mode_to_set(stk, obj, inode));
}

static struct timespec
time_to_set(int valid, int bit, int now_bit, int64_t sec, uint32_t nsec)
{
    if (valid & bit)
        return (struct timespec){.tv_sec = sec, .tv_nsec = nsec < 1000000000 ? (long)nsec : 0};
    return (struct timespec){.tv_nsec = valid & now_bit ? UTIME_NOW : UTIME_OMIT};
}

static int
setattr_times(struct posix_obj *obj, int valid, const struct iatt *to)
{
    const struct timespec times[2] = {
        time_to_set(valid, SETATTR_ATIME, SETATTR_ATIME_NOW, to->atime, to->atime_nsec),
        time_to_set(valid, SETATTR_MTIME, SETATTR_MTIME_NOW, to->mtime, to->mtime_nsec),
    };

    return posix_obj_set_times(obj, times);
}

#define SETATTR_OWNER (SETATTR_UID | SETATTR_GID)
#define SETATTR_TIMES (SETATTR_ATIME | SETATTR_MTIME | SETATTR_ATIME_NOW | SETATTR_MTIME_NOW)

static int
set_all(const struct call_stack *stk, struct posix_obj *obj, const struct inode *inode)
{
    const struct iatt *to = &stk->call.stbuf;
    int valid = stk->call.valid, r = 0;

    /* valid 0: only the ctime changes. */
    if (valid & SETATTR_OWNER || valid == 0)
        r = setattr_owner(obj, valid, to);
    if (r == 0 && valid & SETATTR_MODE)
        r = setattr_mode(stk, obj, inode);
    if (r == 0 && valid & SETATTR_TIMES)
        r = setattr_times(obj, valid, to);
    return r;
}

/* In mdata, "now" is the caller's time. */
static int
mdata_valid(const struct caller *caller, int valid, struct iatt *to)
{
    if (valid & SETATTR_ATIME_NOW && !(valid & SETATTR_ATIME) && caller->ctime_sec) {
        to->atime = caller->ctime_sec;
        to->atime_nsec = caller->ctime_nsec;
        valid |= SETATTR_ATIME;
    }
    if (valid & SETATTR_MTIME_NOW && !(valid & SETATTR_MTIME) && caller->ctime_sec) {
        to->mtime = caller->ctime_sec;
        to->mtime_nsec = caller->ctime_nsec;
        valid |= SETATTR_MTIME;
    }
    return valid;
}

static int
setattr_change(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode,
       enum posix_fill_where where)
{
    struct iatt to = stk->call.stbuf;
    int valid = stk->call.valid;
    int r = posix_iatt(xl, obj, inode, &stk->reply.pre, NULL);

    if (r == 0)
        r = set_all(stk, obj, inode);
    if (r == 0) {
        valid = mdata_valid(&stk->caller, valid, &to);
        r = posix_mdata_setattr(xl, &stk->caller, obj, inode, valid, &to, NULL);
    }
    if (r == 0)
        r = posix_iatt(xl, obj, inode, &stk->reply.post, NULL);
    if (r == 0)
        r = posix_xattr_fill_reply(xl, stk, obj, inode, &stk->reply.post, where);
    return r < 0 ? r : XL_DONE;
}

xl_verdict
posix_fop_setattr(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;
    POSIX_OBJ(obj);
    int r = posix_obj_of_loc(xl, &stk->call.loc, &obj);

    return r < 0 ? r : setattr_change(xl, stk, &obj, inode, POSIX_FILL_STAT);
}

xl_verdict
posix_fop_fsetattr(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int r = posix_obj_of_fd(xl, stk->call.fd, &obj);

    return r < 0 ? r : setattr_change(xl, stk, &obj, stk->call.fd->inode, POSIX_FILL_OTHER);
}
