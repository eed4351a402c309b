/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Attributes. For open objects without a name see task_wind_by_number(). */
#include <errno.h>
#include <time.h>

#include "xlators/mount/fuse/fuse-internal.h"

/* ---- getattr --------------------------------------------------------------------------------- */

static void
reply_attr(struct task *t, const struct iatt *a)
{
    struct stat st;

    iatt_to_stat(a, &st);
    privs_told(node_at(t->m, t->number), a);
    fuse_reply_attr(t->req, &st, t->m->attr_timeout_s);
}

static void
fuse_getattr_go(struct task *t)
{
    struct fuse_folder_look look = fuse_folder_look(t->m, node_at(t->m, t->number));
    int ret = task_call_by_number(t);

    if (ret < 0) {
        task_fail(t, ret);
        return;
    }
    fuse_folder_keep(t->m, &look, &t->stk->reply.stat);
    reply_attr(t, &t->stk->reply.stat);
}

/* Replies with cached attributes, without a call to the bricks. */
static bool
reply_kept(fuse_req_t req, fuse_ino_t number)
{
    struct fuse_mount *m = fuse_req_userdata(req);
    struct iatt a;
    double left_s;
    bool is_kept = fuse_folder_get(m, node_at(m, number), &a, &left_s);

    if (is_kept) {
        struct stat st;

        iatt_to_stat(&a, &st);
        fuse_reply_attr(req, &st, left_s);
    }
    return is_kept;
}

void
op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    if (reply_kept(req, number))
        return;
    struct task *t = task_new(req, fi ? FOP_fstat : FOP_stat, number, fuse_getattr_go);

    if (!t)
        return;
    if (fi)
        task_set_file(t, fi);
    task_start(t);
}

/* ---- setattr: a call for all attributes but the size, then a call for the size --------------- */

static const struct {
    int fuse, wire;
} valid_bits[] = {
    {FUSE_SET_ATTR_MODE, SETATTR_MODE},
    {FUSE_SET_ATTR_UID, SETATTR_UID},
    {FUSE_SET_ATTR_GID, SETATTR_GID},
    {FUSE_SET_ATTR_ATIME, SETATTR_ATIME},
    {FUSE_SET_ATTR_MTIME, SETATTR_MTIME},
    {FUSE_SET_ATTR_ATIME_NOW, SETATTR_ATIME | SETATTR_ATIME_NOW},
    {FUSE_SET_ATTR_MTIME_NOW, SETATTR_MTIME | SETATTR_MTIME_NOW},
};

static int
valid_of(int to_set)
{
    int valid = 0;

    for (size_t i = 0; i < sizeof valid_bits / sizeof valid_bits[0]; i++)
        valid |= to_set & valid_bits[i].fuse ? valid_bits[i].wire : 0;
    return valid;
}

/* "Now" is the mount's time (wire 6.2). */
static void
set_times(struct iatt *a, const struct stat *st, int to_set)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec *atime = to_set & FUSE_SET_ATTR_ATIME_NOW ? &now : &st->st_atim;
    const struct timespec *mtime = to_set & FUSE_SET_ATTR_MTIME_NOW ? &now : &st->st_mtim;

    a->atime = atime->tv_sec;
    a->atime_nsec = (uint32_t)atime->tv_nsec;
    a->mtime = mtime->tv_sec;
    a->mtime_nsec = (uint32_t)mtime->tv_nsec;
}

static int
set_others(struct task *t, struct iatt *out)
{
    bool has_fd = t->stk->call.fd;
    struct call_stack *stk = task_call_new(t, has_fd ? FOP_fsetattr : FOP_setattr);

    if (!stk)
        return -ENOMEM;
    stk->call.stbuf = t->stk->call.stbuf;
    stk->call.valid = valid_of(t->to_set);
    int ret = task_wind_by_number(t, &stk);

    *out = stk->reply.post;
    call_stack_free(stk);
    return ret;
}

/* Sets owner and mode first. The task's own call sets the size. */
static void
fuse_setattr_go(struct task *t)
{
    struct iatt a = {0};
    int ret = 0;

    struct fuse_folder *folder = fuse_folder_change(t->m, node_at(t->m, t->number));

    if (valid_of(t->to_set))
        ret = set_others(t, &a);
    if (ret >= 0 && t->to_set & FUSE_SET_ATTR_SIZE) {
        ret = task_call_by_number(t);
        a = t->stk->reply.post;
    }
    if (ret >= 0 && !t->to_set) { /* no attribute to set: returns the current attributes */
        t->stk->call.fop = FOP_stat;
        ret = task_call_by_number(t);
        a = t->stk->reply.stat;
    }
    if (ret >= 0 && t->kills_privs)
        ret = privs_kill(t, t->stk->call.fd, &a);
    else if (ret >= 0 && !t->to_set && atomic_load(&t->m->kills_privs))
        ret = privs_kill_if_allowed(t, &a);
    fuse_folder_changed(folder, NULL, NULL);
    node_has_changed(t);
    if (ret < 0)
        task_fail(t, ret);
    else
        reply_attr(t, &a);
}

void
op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
    struct task *t = task_new(req, fi ? FOP_ftruncate : FOP_truncate, number, fuse_setattr_go);

    if (!t)
        return;
    if (fi)
        task_set_file(t, fi);
    t->to_set = to_set & (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID |
                          FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
                          FUSE_SET_ATTR_MTIME_NOW);
    t->kills_privs = privs_are_to_be_killed();
    t->stk->call.offset = (uint64_t)attr->st_size;
    t->stk->call.stbuf.mode = attr->st_mode & 07777;
    t->stk->call.stbuf.uid = attr->st_uid;
    t->stk->call.stbuf.gid = attr->st_gid;
    set_times(&t->stk->call.stbuf, attr, to_set);
    task_start(t);
}

/* ---- other operations ------------------------------------------------------------------------ */

/* Repeats STATFS on the root for an object without a name, which is on the same volume. */
static int
statfs_of_root(struct task *t)
{
    struct call_stack *stk = task_call_new(t, FOP_statfs);
    struct inode *root = node_inode(t->m, FUSE_ROOT_ID);
    int ret = -ESTALE;

    if (stk && inode_table_graph(root->table) == t->xl->graph) {
        inode_unref(stk->call.loc.inode);
        stk->call.loc.inode = inode_ref(root);
        ret = task_wind(t, stk);
        t->stk->reply.statvfs = stk->reply.statvfs;
    }
    if (stk)
        call_stack_free(stk);
    inode_unref(root);
    return ret;
}

static void
fuse_statfs_go(struct task *t)
{
    int ret = task_call_by_number(t);

    if (ret == -ESTALE && t->number != FUSE_ROOT_ID)
        ret = statfs_of_root(t);
    if (ret < 0)
        task_fail(t, ret);
    else
        fuse_reply_statfs(t->req, &t->stk->reply.statvfs);
}

void
op_statfs(fuse_req_t req, fuse_ino_t number)
{
    struct task *t = task_new(req, FOP_statfs, number ? number : FUSE_ROOT_ID, fuse_statfs_go);

    if (t)
        task_start(t);
}

static void
fuse_access_go(struct task *t)
{
    task_result(t, task_call_by_number(t));
}

void
op_access(fuse_req_t req, fuse_ino_t number, int mask)
{
    struct task *t = task_new(req, FOP_access, number, fuse_access_go);

    if (!t)
        return;
    t->stk->call.flags = (uint32_t)mask;
    task_start(t);
}
