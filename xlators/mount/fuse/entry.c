/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Names. Every call that creates an object, and every lookup, sends a gfid that the brick gives to an
 * object without one. */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "xlators/mount/fuse/fuse-internal.h"

/* ---- replies to the kernel ------------------------------------------------------------------- */

void
iatt_to_stat(const struct iatt *a, struct stat *st)
{
    *st = (struct stat){
        .st_ino = gfid_is_root(&a->gfid) ? FUSE_ROOT_ID : a->ino,
        .st_mode = a->mode,
        .st_nlink = a->nlink,
        .st_uid = a->uid,
        .st_gid = a->gid,
        .st_rdev = makedev((unsigned)(a->rdev >> 32), (unsigned)a->rdev),
        .st_size = (off_t)a->size,
        .st_blksize = FUSE_BLOCK_BYTES,
        .st_blocks = (blkcnt_t)a->blocks,
        .st_atim = {a->atime, a->atime_nsec},
        .st_mtim = {a->mtime, a->mtime_nsec},
        .st_ctim = {a->ctime, a->ctime_nsec},
    };
}

struct inode *
entry_inode(struct fuse_mount *m, const struct iatt *a)
{
    return gfid_is_null(&a->gfid) ? NULL : inode_link(m->xl->graph->inodes, NULL, NULL, a);
}

int
entry_fill(struct fuse_mount *m, const struct iatt *a, struct fuse_entry_param *e)
{
    struct inode *inode = entry_inode(m, a);

    *e = (struct fuse_entry_param){.attr_timeout = m->attr_timeout_s, .entry_timeout = m->entry_timeout_s};
    if (!inode)
        return gfid_is_null(&a->gfid) ? -EIO : -ENOMEM;
    e->ino = node_tell(m, inode);
    if (e->ino)
        privs_told(node_at(m, e->ino), a);
    inode_unref(inode);
    iatt_to_stat(a, &e->attr);
    return e->ino ? 0 : -ENOMEM;
}

/* Replies with the entry in the reply's `stat`. If the kernel did not take the reply, the kernel will send no
 * FORGET, so the lookup is taken back. */
static void
reply_entry(struct task *t)
{
    struct fuse_entry_param e;
    int err = entry_fill(t->m, &t->stk->reply.stat, &e);

    if (err) {
        task_fail(t, err);
        return;
    }
    if (fuse_reply_entry(t->req, &e)) {
        struct inode *inode = node_inode(t->m, e.ino);

        node_forget(t->m, inode, 1);
        inode_unref(inode);
    }
}

/* ---- cached attributes of folders ------------------------------------------------------------ */

/* Returns a reference to the folder that RMDIR will remove, if it is known; else NULL. */
static struct inode *
known_to_go(const struct task *t)
{
    const struct loc *loc = &t->stk->call.loc;

    return t->stk->call.fop == FOP_rmdir ? inode_find_child(t->m->xl->graph->inodes, loc->parent, loc->name)
                                         : NULL;
}

/* Makes the task's call, which changes names in one or two folders. The removed or moved object may be a
 * folder, too. */
static int
change_names(struct task *t)
{
    const struct fop_call *call = &t->stk->call;
    const struct fop_reply *reply = &t->stk->reply;
    bool moves = call->fop == FOP_rename;
    struct inode *dir = inode_ref(call->fop == FOP_link ? call->loc2.parent : call->loc.parent);
    struct inode *dir2 = moves && call->loc2.parent != dir ? inode_ref(call->loc2.parent) : NULL;
    struct fuse_folder *f = fuse_folder_change(t->m, node_of(t->m, dir));
    struct fuse_folder *f2 = dir2 ? fuse_folder_change(t->m, node_of(t->m, dir2)) : NULL;
    struct inode *gone = known_to_go(t);
    struct fuse_folder *of_gone = gone ? fuse_folder_change(t->m, node_of(t->m, gone)) : NULL;
    int ret = task_call(t);

    fuse_folder_changed(f, &reply->pre, ret < 0 ? NULL : &reply->post);
    fuse_folder_changed(f2, &reply->pre2, ret < 0 ? NULL : &reply->post2);
    fuse_folder_changed(of_gone, NULL, NULL);
    bool is_file = ret >= 0 && !S_ISDIR(reply->stat.mode) && reply->stat.mode; /* the moved object */

    if ((moves && !is_file) || (call->fop == FOP_rmdir && !gone))
        atomic_fetch_add(&t->m->folder_epoch, 1);
    inode_unref(gone);
    inode_unref(dir);
    inode_unref(dir2);
    return ret;
}

static void
fuse_entry_go(struct task *t)
{
    int ret = change_names(t);

    if (ret < 0)
        task_fail(t, ret);
    else
        reply_entry(t);
}

static void
fuse_result_go(struct task *t)
{
    task_result(t, change_names(t));
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* Caches attributes of a folder that is known by this name, as GETATTR does: the kernel asks again right
 * after the listing of the folder, because the kernel assumes that the access time has changed. */
static int
look_and_keep(struct task *t)
{
    const struct loc *loc = &t->stk->call.loc;
    struct inode_table *inodes = t->m->xl->graph->inodes;
    struct inode *known = loc->name ? inode_find_child(inodes, loc->parent, loc->name) : NULL;
    struct fuse_folder_look look = fuse_folder_look(t->m, known ? node_of(t->m, known) : NULL);
    int ret = task_call(t);

    if (ret >= 0 && known && gfid_equal(&known->gfid, &t->stk->reply.stat.gfid))
        fuse_folder_keep(t->m, &look, &t->stk->reply.stat);
    inode_unref(known);
    return ret;
}

static void
fuse_lookup_go(struct task *t)
{
    int ret = look_and_keep(t);

    if (ret == -ENOENT && t->m->negative_timeout_s > 0)
        fuse_reply_entry(t->req, &(struct fuse_entry_param){.entry_timeout = t->m->negative_timeout_s});
    else if (ret < 0)
        task_fail(t, ret);
    else
        reply_entry(t);
}

void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct task *t = task_new(req, FOP_lookup, 0, fuse_lookup_go);

    if (!t)
        return;
    task_set_entry(t, parent, name);
    task_ask_gfid(t);
    task_start(t);
}

static void
forget_number(struct fuse_mount *m, fuse_ino_t number, uint64_t count)
{
    if (number == FUSE_ROOT_ID || meta_has(number))
        return; /* permanent numbers */
    struct inode *inode = node_inode(m, number);

    node_forget(m, inode, count);
    inode_unref(inode);
}

void
op_forget(fuse_req_t req, fuse_ino_t number, uint64_t count)
{
    forget_number(fuse_req_userdata(req), number, count);
    fuse_reply_none(req);
}

void
op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        forget_number(fuse_req_userdata(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

/* ---- creating -------------------------------------------------------------------------------- */

static struct task *
task_new_create(fuse_req_t req, enum fop fop, fuse_ino_t parent, const char *name, mode_t mode,
     void (*go)(struct task *t))
{
    struct task *t = task_new(req, fop, 0, go);

    if (!t)
        return NULL;
    task_set_entry(t, parent, name);
    task_ask_gfid(t);
    t->stk->call.mode = mode;
    t->stk->call.umask = fuse_req_ctx(req)->umask;
    return t;
}

void
op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct task *t = task_new_create(req, FOP_mknod, parent, name, mode, fuse_entry_go);

    if (!t)
        return;
    t->stk->call.rdev = rdev;
    task_start(t);
}

void
op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct task *t = task_new_create(req, FOP_mkdir, parent, name, mode & 07777, fuse_entry_go);

    if (t)
        task_start(t);
}

void
op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct task *t = task_new_create(req, FOP_symlink, parent, name, 0, fuse_entry_go);

    if (!t)
        return;
    t->stk->call.name2 = task_text(t, target);
    task_start(t);
}

void
op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
    struct task *t = task_new(req, FOP_link, number, fuse_entry_go);

    if (!t)
        return;
    task_set_new_entry(t, parent, name);
    task_start(t);
}

/* Returns whether the file was created: a created file has the gfid of the request. */
static bool
is_created(const struct task *t)
{
    struct gfid asked;

    return !dict_get_gfid(t->stk->call.xdata, DICT_KEY_GFID_REQ, &asked) &&
           gfid_equal(&asked, &t->stk->reply.stat.gfid);
}

static void
fuse_create_go(struct task *t)
{
    struct fuse_entry_param e;
    int ret = change_names(t);
    bool was_there = ret >= 0 && !is_created(t);

    if (was_there && t->kills_privs) /* the kernel did not know the file at the request with O_TRUNC */
        ret = privs_kill(t, t->stk->reply.fd, &t->stk->reply.stat);
    if (ret >= 0)
        ret = entry_fill(t->m, &t->stk->reply.stat, &e);
    if (ret < 0) {
        task_fail(t, ret);
        return;
    }
    struct inode *inode = node_inode(t->m, e.ino);
    struct fuse_node *node = node_at(t->m, e.ino);
    struct fuse_file *f = file_new(t->m, node, t->stk->reply.fd);

    if (!was_there)
        node_is_synced(node, 0); /* the first write that is on disk puts the file on disk, too */
    if (f) {
        t->stk->reply.fd = NULL; /* now owned by the file */
        t->fi.fh = f->number;
        fuse_file_flags(t->m, &t->fi);
        ret = fuse_reply_create(t->req, &e, &t->fi);
    } else {
        task_fail(t, -ENOMEM);
    }
    if (!f || ret) { /* the kernel knows neither inode nor file */
        node_forget(t->m, inode, 1);
        if (f)
            file_free(t->m, f);
    }
    inode_unref(inode);
}

void
op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    struct task *t = task_new_create(req, FOP_create, parent, name, S_IFREG | (mode & 07777), fuse_create_go);

    if (!t)
        return;
    t->fi = *fi;
    t->stk->call.flags = fuse_flags_for_bricks(t->m, fi->flags);
    t->kills_privs = privs_are_to_be_killed();
    task_start(t);
}

/* ---- removing, renaming ---------------------------------------------------------------------- */

static void
remove_name(fuse_req_t req, enum fop fop, fuse_ino_t parent, const char *name)
{
    struct task *t = task_new(req, fop, 0, fuse_result_go);

    if (!t)
        return;
    task_set_entry(t, parent, name);
    task_start(t);
}

void
op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, FOP_unlink, parent, name);
}

void
op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, FOP_rmdir, parent, name);
}

void
op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t parent2, const char *name2,
          unsigned flags)
{
    if (flags) { /* bricks cannot exchange names, or refuse to replace, in one step */
        fuse_reply_err(req, EINVAL);
        return;
    }
    struct task *t = task_new(req, FOP_rename, 0, fuse_result_go);

    if (!t)
        return;
    task_set_entry(t, parent, name);
    task_set_new_entry(t, parent2, name2);
    task_start(t);
}

static void
fuse_readlink_go(struct task *t)
{
    int ret = task_call_by_number(t);

    if (ret < 0)
        task_fail(t, ret);
    else
        fuse_reply_readlink(t->req, t->stk->reply.path);
}

void
op_readlink(fuse_req_t req, fuse_ino_t number)
{
    struct task *t = task_new(req, FOP_readlink, number, fuse_readlink_go);

    if (!t)
        return;
    t->stk->call.size = FOP_LINKNAME_MAX + 1;
    task_start(t);
}
