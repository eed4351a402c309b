/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Requests that clients make with xattrs and STATFS: the mark, limits, the virtual names, usage (gluster11
 * 2.3, 2.6). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "xlators/features/simple-quota/squota-internal.h"

/* ---- marks, limits, commands ----------------------------------------------------------------- */

/* Returns the namespace whose folder this inode is, or NULL if there is none. */
static struct squota_ns *
ns_at(struct xlator *xl, struct inode *inode, int *err)
{
    struct squota_inode *ctx = squota_inode_get(xl, inode, NULL, err);

    return *err == 0 && squota_is_root_of(ctx, &inode->gfid) ? ctx->ns : NULL;
}

static int64_t
squota_number_of(const struct dict_pair *p)
{
    int64_t n;

    return dict_pair_int(p, &n) == 0 ? n : squota_limit_parse(p);
}

static xl_verdict
run_command(struct xlator *xl, struct call_stack *stk, const struct dict_pair *p)
{
    struct squota *q = squota_of(xl);
    int err = 0;

    if (strcmp(p->key, SQUOTA_DISABLE_CHECK) == 0) {
        pthread_mutex_lock(&q->lock);
        q->is_check_off = squota_number_of(p) != 0;
        pthread_mutex_unlock(&q->lock);
        return XL_DONE;
    }
    struct squota_ns *ns = ns_at(xl, stk->call.loc.inode, &err);
    if (!ns)
        return err ? err : -EPERM;
    if (strcmp(p->key, SQUOTA_RESET) == 0) {
        pthread_mutex_lock(&q->lock);
        squota_ns_untold(q, ns);
        pthread_mutex_unlock(&q->lock);
        squota_walk_start(xl, ns, false);
        return XL_DONE;
    }
    squota_look(xl, ns, false);
    pthread_mutex_lock(&q->lock);
    squota_ns_told(q, ns, squota_number_of(p), 0);
    ns->listed = -1;
    pthread_mutex_unlock(&q->lock);
    return XL_DONE;
}

static bool
is_command(const char *key)
{
    return strcmp(key, SQUOTA_TOTAL) == 0 || strcmp(key, SQUOTA_RESET) == 0 ||
           strcmp(key, SQUOTA_DISABLE_CHECK) == 0;
}

/* The mark or the limit was stored. The frame below this one has charged the change. */
static xl_verdict
xattrs_set(struct frame *f, struct call_stack *stk)
{
    const struct dict_pair *limit = dict_find_text(stk->call.dict, SQUOTA_XATTR_LIMIT);
    const struct dict_pair *size = dict_find_text(stk->call.dict, SQUOTA_XATTR_SIZE);
    struct inode *inode = stk->call.loc.inode;
    int err = 0;

    if (stk->reply.op_ret < 0)
        return XL_PASS;
    if (dict_find_text(stk->call.dict, SQUOTA_XATTR_NAMESPACE))
        err = squota_ns_mark(f->xl, inode);
    struct squota_ns *ns = err == 0 && (limit || size) ? ns_at(f->xl, inode, &err) : NULL;
    if (ns && limit)
        squota_ns_set_limit(f->xl, ns, squota_limit_parse(limit));
    if (ns && size)
        squota_ns_is_stale(f->xl, ns);
    if (err) {
        stk->reply.op_ret = -1;
        stk->reply.op_errno = -err;
    }
    return XL_PASS;
}

xl_verdict
squota_setxattr(struct xlator *xl, struct call_stack *stk)
{
    const struct dict *d = stk->call.dict;
    const struct dict_pair *mark = dict_find_text(d, SQUOTA_XATTR_NAMESPACE), *limit;
    struct inode *inode = stk->call.loc.inode;
    int err = 0;

    if (mark && !caller_is_internal(&stk->caller))
        return -EPERM;
    if (mark && !S_ISDIR(inode->type))
        return -ENOTDIR;
    /* features/access-control is below, and never sees a command. */
    dict_for_each (p, d) {
        if (is_command(p->key) && stk->caller.uid != 0 && !caller_is_internal(&stk->caller))
            return -EPERM;
        if (is_command(p->key))
            return xlator_is_on(xl) ? run_command(xl, stk, p) : -EOPNOTSUPP;
    }
    if (!xlator_is_on(xl))
        return XL_PASS;
    limit = dict_find_text(d, SQUOTA_XATTR_LIMIT);
    /* Healers may set the limit before the mark. */
    if (limit && !mark && !caller_is_internal(&stk->caller) && !ns_at(xl, inode, &err))
        return err ? err : -EPERM;
    /* A healer of 10.3 copies the size xattr too, so this brick's own size is written again. */
    bool is_told = mark || limit || dict_find_text(d, SQUOTA_XATTR_SIZE);
    if (is_told && !frame_push(stk, xl, xattrs_set))
        return -ENOMEM;
    return squota_change_of(xl, stk, inode, NULL, squota_object_changed);
}

static xl_verdict
limit_removed(struct frame *f, struct call_stack *stk)
{
    int err = 0;
    struct squota_ns *ns = stk->reply.op_ret < 0 ? NULL : ns_at(f->xl, stk->call.loc.inode, &err);

    if (ns)
        squota_ns_set_limit(f->xl, ns, 0);
    return XL_PASS;
}

xl_verdict
squota_removexattr(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.name ? stk->call.name : "";

    if (strcmp(name, SQUOTA_XATTR_NAMESPACE) == 0)
        return -EOPNOTSUPP;
    if (!xlator_is_on(xl))
        return XL_PASS;
    if (strcmp(name, SQUOTA_XATTR_LIMIT) == 0 && !frame_push(stk, xl, limit_removed))
        return -ENOMEM;
    return squota_change_of(xl, stk, stk->call.loc.inode, NULL, squota_object_changed);
}

/* The xattr's value is the usage at the moment of reading. */
xl_verdict
squota_getxattr(struct xlator *xl, struct call_stack *stk)
{
    struct squota_ns *ns;
    int err;

    if (!stk->call.name || strcmp(stk->call.name, SQUOTA_XATTR_SIZE) != 0)
        return XL_PASS;
    ns = ns_at(xl, stk->call.loc.inode, &err);
    if (ns) {
        squota_look(xl, ns, false);
        squota_ns_store(xl, ns);
    }
    return XL_PASS;
}

/* ---- statfs ---------------------------------------------------------------------------------- */

static xl_verdict
statfs_answered(struct frame *f, struct call_stack *stk)
{
    struct squota *q = squota_of(f->xl);
    const struct squota_ns *ns = f->local.ptr;
    struct statvfs *v = &stk->reply.statvfs;
    int64_t size = (int64_t)(v->f_frsize ? v->f_frsize : 1);

    if (stk->reply.op_ret < 0)
        return XL_PASS;
    pthread_mutex_lock(&q->lock);
    int64_t limit = ns->limit, used = squota_used(ns) > 0 ? squota_used(ns) : 0;
    pthread_mutex_unlock(&q->lock);
    if (limit <= 0)
        return XL_PASS;
    int64_t blocks = (limit + size - 1) / size, taken = (used + size - 1) / size;
    v->f_blocks = (fsblkcnt_t)blocks;
    v->f_bfree = v->f_bavail = (fsblkcnt_t)(blocks > taken ? blocks - taken : 0);
    struct dict *x = reply_xdata(stk);
    if (!x || dict_set_text_int(x, "simple-quota", 1) < 0) {
        stk->reply.op_ret = -1;
        stk->reply.op_errno = ENOMEM;
    }
    return XL_PASS;
}

xl_verdict
squota_statfs(struct xlator *xl, struct call_stack *stk)
{
    const struct squota_conf *conf = xlator_conf(xl);
    struct squota *q = squota_of(xl);
    int err;
    if (dict_get_flag(stk->call.xdata, DICT_KEY_IGNORE_DEEM_STATFS))
        return XL_PASS; /* distribute asks how full the brick is */
    struct squota_inode *ctx =
        stk->call.loc.inode ? squota_inode_get(xl, stk->call.loc.inode, NULL, &err) : NULL;

    if (!ctx || err || !ctx->ns)
        return XL_PASS;
    struct squota_ns *ns = ctx->ns;
    squota_look(xl, ns, false);
    if (conf->cmd_from_all || stk->caller.pid == SQUOTA_PID_PROVISIONER) {
        squota_ns_store(xl, ns);
        /* A crawler sums the answers of all bricks, and then sets glusterfs.quota.total-usage. */
        pthread_mutex_lock(&q->lock);
        ns->listed = squota_used(ns);
        pthread_mutex_unlock(&q->lock);
    }
    struct frame *f = frame_push(stk, xl, statfs_answered);
    if (!f)
        return -ENOMEM;
    f->local.ptr = ns;
    return XL_PASS;
}
