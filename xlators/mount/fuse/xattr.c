/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Extended attributes. Xattrs of the volume cannot be changed; an xattr that needs a missing layer or
 * option is not supported. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "coro/pool-control.h"
#include "data/dict.h"
#include "xlators/mount/fuse/fuse-internal.h"

static const struct {
    const char *name;  /* the name, or with is_prefix the beginning of names */
    bool is_prefix;
    int get, set;      /* errno; 0: the brick decides. `set` is for removing, too */
} rules[] = {
    {"trusted.gfid", false, 0, EPERM},
    {"trusted.glusterfs.volume-id", false, 0, EPERM},
    {"trusted.glusterfs.dht", true, EOPNOTSUPP, EPERM},
    {"trusted.glusterfs.mdata", false, 0, EPERM},
    {"trusted.afr.", true, ENODATA, EPERM},
    {"security.capability", false, ENODATA, EOPNOTSUPP}, /* requested at each write */
    {"security.selinux", false, EOPNOTSUPP, EOPNOTSUPP}, /* with ENODATA `ls -l` would ask for each file */
    {"security.ima", false, ENODATA, EOPNOTSUPP},
};

/* Returns whether a getxattr of this name removes locks of other clients. A stock brick obeys any user. */
static bool
clears_locks(const char *name)
{
    return strncmp(name, "glusterfs.clrlk", 15) == 0 || strncmp(name, "glusterfs.intrlk", 16) == 0;
}

/* Returns the errno to answer without asking the brick; 0: ask the brick. */
static int
xattr_rule_errno(fuse_req_t req, const char *name, bool sets)
{
    const struct fuse_mount *m = fuse_req_userdata(req);

    if (clears_locks(name) && fuse_req_ctx(req)->uid)
        return EPERM;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].is_prefix ? strncmp(name, rules[i].name, strlen(rules[i].name)) == 0
                               : strcmp(name, rules[i].name) == 0)
            return sets ? rules[i].set : rules[i].get;
    }
    if (strncmp(name, "system.posix_acl_", 17) == 0 && !fuse_conf(m)->acl)
        return EOPNOTSUPP;
    return 0;
}

/* ---- xattrs of this process: kiln pools ------------------------------------------------------ */

#define POOLS_NAME "trusted.kiln.pools"

/* Runs root's command to the memory pools of this process; the kernel allows trusted names to root only. */
static bool
set_pools(fuse_req_t req, const char *name, const char *value, size_t size)
{
    char order[64];

    if (strcmp(name, POOLS_NAME) != 0)
        return false;
    int err = size < sizeof order ? 0 : EINVAL;

    if (fuse_req_ctx(req)->uid != 0)
        err = EPERM;
    if (!err) {
        memcpy(order, value, size);
        order[size] = '\0';
        worker_block_begin(); /* a trim takes milliseconds */
        err = -pool_control_run(order);
        worker_block_end();
    }
    fuse_reply_err(req, err);
    return true;
}

static bool
reply_pools(fuse_req_t req, const char *name, size_t size)
{
    if (strcmp(name, POOLS_NAME) != 0)
        return false;
    worker_block_begin();
    char *text = fuse_req_ctx(req)->uid == 0 ? pool_control_json() : NULL;
    worker_block_end();
    size_t len = text ? strlen(text) : 0;

    if (!text)
        fuse_reply_err(req, fuse_req_ctx(req)->uid == 0 ? ENOMEM : EPERM);
    else if (!size)
        fuse_reply_xattr(req, len);
    else if (size < len)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, text, len);
    free(text);
    return true;
}

/* NULL: the request has been answered. */
static struct task *
task_new_named(fuse_req_t req, enum fop fop, fuse_ino_t number, const char *name, void (*go)(struct task *t))
{
    int err = xattr_rule_errno(req, name, fop != FOP_getxattr);

    if (err) {
        fuse_reply_err(req, err);
        return NULL;
    }
    return task_new(req, fop, number, go);
}

/* An ACL changes the mode, too. */
static void
fuse_xattr_go(struct task *t)
{
    struct fuse_folder *folder = fuse_folder_change(t->m, node_at(t->m, t->number));
    int ret = task_call_by_number(t);

    fuse_folder_changed(folder, NULL, NULL);
    node_has_changed(t);
    task_result(t, ret);
}

void
op_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value, size_t size, int flags)
{
    if (set_pools(req, name, value, size))
        return;
    struct task *t = task_new_named(req, FOP_setxattr, number, name, fuse_xattr_go);

    if (!t)
        return;
    t->stk->call.flags = (uint32_t)flags;
    t->stk->call.dict = dict_new(&t->stk->arena);
    if (!t->stk->call.dict || dict_set_text(t->stk->call.dict, name, DICT_PTR, value, (uint32_t)size))
        task_is_short(t);
    task_start(t);
}

void
op_removexattr(fuse_req_t req, fuse_ino_t number, const char *name)
{
    struct task *t = task_new_named(req, FOP_removexattr, number, name, fuse_xattr_go);

    if (!t)
        return;
    t->stk->call.name = task_text(t, name);
    task_start(t);
}

/* The kernel either asks for the size first, or passes the size of the kernel's buffer. */
static void
reply_xattr_bytes(struct task *t, const void *bytes, size_t size)
{
    if (!t->size)
        fuse_reply_xattr(t->req, size);
    else if (size > t->size)
        task_fail(t, -ERANGE);
    else
        fuse_reply_buf(t->req, bytes, size);
}

static void
fuse_getxattr_go(struct task *t)
{
    int ret = task_call_by_number(t);
    const struct dict_pair *p = ret < 0 ? NULL : dict_find_text(t->stk->reply.dict, t->stk->call.name);

    if (ret >= 0 && !p)
        ret = -ENODATA;
    if (ret < 0)
        task_fail(t, ret);
    else if (p->type == DICT_GFID)
        reply_xattr_bytes(t, &p->v.gfid, sizeof p->v.gfid);
    else if (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED)
        reply_xattr_bytes(t, p->v.bytes, p->len);
    else
        task_fail(t, -EIO);
}

/* Replies with the gfid, which the mount knows even if the object's bricks are down. */
static bool
reply_gfid(fuse_req_t req, fuse_ino_t number, const char *name, size_t size)
{
    bool is_text = strcmp(name, "glusterfs.gfid.string") == 0;
    char text[GFID_TEXT_SIZE];

    if (!is_text && strcmp(name, "glusterfs.gfid") != 0)
        return false;
    struct inode *inode = node_inode(fuse_req_userdata(req), number);
    size_t len = is_text ? strlen(gfid_text(&inode->gfid, text)) : sizeof inode->gfid;

    if (!size)
        fuse_reply_xattr(req, len);
    else if (size < len)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, is_text ? text : (const char *)&inode->gfid, len);
    inode_unref(inode);
    return true;
}

void
op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size)
{
    if (reply_gfid(req, number, name, size) || reply_pools(req, name, size))
        return;
    struct task *t = task_new_named(req, FOP_getxattr, number, name, fuse_getxattr_go);

    if (!t)
        return;
    t->size = size;
    t->stk->call.name = task_text(t, name);
    t->stk->call.has_name = 1;
    task_start(t);
}

/* Hides the volume's xattrs from all users, and trusted xattrs from users other than root. */
static bool
is_xattr_listed(const struct task *t, const struct dict_pair *p)
{
    static const char *const hidden[] = {"trusted.afr.", "trusted.glusterfs.", "trusted.gfid",
                                         "trusted.pgfid.", "glusterfs."};

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (strncmp(p->key, hidden[i], strlen(hidden[i])) == 0)
            return false;
    }
    if (strncmp(p->key, "system.posix_acl_", 17) == 0)
        return fuse_conf(t->m)->acl;
    return t->stk->caller.uid == 0 || strncmp(p->key, "trusted.", 8) != 0;
}

static void
fuse_listxattr_go(struct task *t)
{
    int ret = task_call_by_number(t);
    size_t size = 0;

    if (ret < 0) {
        task_fail(t, ret);
        return;
    }
    dict_for_each (p, t->stk->reply.dict)
        size += is_xattr_listed(t, p) ? p->key_len + 1u : 0;
    char *names = arena_alloc(&t->stk->arena, size + 1), *at = names;

    if (!names) {
        task_fail(t, -ENOMEM);
        return;
    }
    dict_for_each (p, t->stk->reply.dict) {
        if (!is_xattr_listed(t, p))
            continue;
        memcpy(at, p->key, p->key_len + 1u);
        at += p->key_len + 1u;
    }
    reply_xattr_bytes(t, names, size);
}

void
op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size)
{
    struct task *t = task_new(req, FOP_getxattr, number, fuse_listxattr_go);

    if (!t)
        return;
    t->size = size;
    task_start(t);
}
