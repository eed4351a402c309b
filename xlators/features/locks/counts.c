/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Adds the number of an object's locks to replies whose request asks for it (spec: brick 6.1).
 *
 * The object depends on the fop: for lookup and readdirp the objects of the reply; for an fd fop the fd's
 * inode; for other fops by name the parent directory, and with two parents the larger number. Fops by gfid
 * alone get no counts. The locks are counted when the reply passes, granted and waiting together, because
 * replicate reads a write's reply to learn whether another client waits now.
 */
#include <errno.h>
#include <string.h>

#include "graph/graph.h"
#include "xlators/features/locks/locks-internal.h"

enum {
    ASK_INODELK = 1,
    ASK_ENTRYLK = 2,
    ASK_POSIXLK = 4,
    ASK_PARENT_ENTRYLK = 8,
    ASK_DOMAIN = 16,
    ASK_MULTI_DOMAIN = 32,
};

#define DOMAIN_PREFIX "glusterfs.inodelk-dom-prefix:"

static unsigned
asked(const struct dict *xdata)
{
    unsigned ask = 0;

    dict_for_each (p, xdata) {
        switch (p->key_id) {
        case DICT_KEY_INODELK_COUNT:
            ask |= ASK_INODELK;
            break;
        case DICT_KEY_ENTRYLK_COUNT:
            ask |= ASK_ENTRYLK;
            break;
        case DICT_KEY_POSIXLK_COUNT:
            ask |= ASK_POSIXLK;
            break;
        case DICT_KEY_PARENT_ENTRYLK:
            ask |= ASK_PARENT_ENTRYLK;
            break;
        case DICT_KEY_INODELK_DOM_COUNT:
            ask |= ASK_DOMAIN;
            break;
        case DICT_KEY_MULTI_DOM_LK_CNT:
            ask |= ASK_MULTI_DOMAIN;
            break;
        default:
            break;
        }
    }
    return ask;
}

static int64_t
domain_count(struct lock_inode *li, const char *name)
{
    const struct lock_domain *d = li && name ? lock_domain_find(li, name) : NULL;

    return d ? d->inodelks.count : 0;
}

static int
put_max(struct dict *out, enum dict_key key, int64_t n)
{
    int64_t before;

    return dict_get_int(out, key, &before) == 0 && before >= n ? 0 : dict_set_int(out, key, n);
}

static int
put_domains(struct lock_inode *li, const struct dict *xdata, struct dict *out)
{
    int rc = 0;

    dict_for_each (p, xdata) {
        int64_t before, n;

        if (strncmp(p->key, DOMAIN_PREFIX, sizeof DOMAIN_PREFIX - 1) != 0)
            continue;
        n = domain_count(li, p->key + sizeof DOMAIN_PREFIX - 1);
        const struct dict_pair *old = dict_find_text(out, p->key);
        if (old && dict_pair_int(old, &before) == 0 && before >= n)
            continue;
        if ((rc = dict_set_text_int(out, p->key, n)))
            break;
    }
    return rc;
}

/* Adds the counts of `inode` to `out`; larger values that `out` already has stay. NULL: the inode is not in
 * memory, so it has no locks. */
static int
put_counts(struct xlator *xl, struct inode *inode, unsigned ask, const struct dict *xdata, struct dict *out)
{
    struct lock_inode *li = inode ? inode_ctx(inode, xl) : NULL;
    unsigned inodelks = 0, entrylks = 0, posixlks = 0;
    int64_t in_domain = 0;
    int rc = 0;

    if (li) {
        pthread_mutex_lock(&li->mutex);
        inodelks = li->counts[LOCK_INODE];
        entrylks = li->counts[LOCK_ENTRY];
        posixlks = li->counts[LOCK_POSIX];
        if (ask & ASK_DOMAIN)
            in_domain = domain_count(li, dict_get_str(xdata, DICT_KEY_INODELK_DOM_COUNT));
        if (ask & ASK_MULTI_DOMAIN)
            rc = put_domains(li, xdata, out);
        pthread_mutex_unlock(&li->mutex);
    } else if (ask & ASK_MULTI_DOMAIN) {
        rc = put_domains(NULL, xdata, out);
    }
    if (!rc && ask & ASK_ENTRYLK)
        rc = put_max(out, DICT_KEY_ENTRYLK_COUNT, entrylks);
    if (!rc && ask & ASK_POSIXLK)
        rc = put_max(out, DICT_KEY_POSIXLK_COUNT, posixlks);
    if (!rc && ask & (ASK_INODELK | ASK_DOMAIN)) /* both share one reply key: the total wins */
        rc = put_max(out, DICT_KEY_INODELK_COUNT, ask & ASK_INODELK ? inodelks : in_domain);
    return rc;
}

static bool
count_one(struct lock *l, void *arg)
{
    (void)l;
    ++*(int64_t *)arg;
    return true;
}

/* Counts the entrylks of `parent` on this name or on all names. */
static int
put_parent_entrylk(struct xlator *xl, struct inode *parent, const char *name, struct dict *out)
{
    struct lock_inode *li = parent ? inode_ctx(parent, xl) : NULL;
    const struct lock_domain *d;
    int64_t n = 0, start, end;

    if (li) {
        entrylk_range(name, &start, &end);
        pthread_mutex_lock(&li->mutex);
        cds_list_for_each_entry(d, &li->domains, link) {
            lock_tree_each(d->entrylks.granted_tree, start, end, count_one, &n);
            lock_tree_each(d->entrylks.waiting_tree, start, end, count_one, &n);
        }
        pthread_mutex_unlock(&li->mutex);
    }
    return dict_set_int(out, DICT_KEY_PARENT_ENTRYLK, n);
}

static int
counts_lookup(struct xlator *xl, struct call_stack *stk, unsigned ask, struct dict *out)
{
    const struct loc *loc = &stk->call.loc;
    struct inode *inode = inode_find(xl->graph->inodes, &stk->reply.stat.gfid);
    int rc = put_counts(xl, inode, ask, stk->call.xdata, out);

    inode_unref(inode);
    if (!rc && ask & ASK_PARENT_ENTRYLK && loc->parent && loc->name)
        rc = put_parent_entrylk(xl, loc->parent, loc->name, out);
    return rc;
}

static int
counts_readdirp(struct xlator *xl, struct call_stack *stk, unsigned ask)
{
    struct inode *dir = stk->call.fd ? stk->call.fd->inode : NULL;
    int rc = 0;

    for (struct dirent_entry *e = stk->reply.entries; e && !rc; e = e->next) {
        if (gfid_is_null(&e->iatt.gfid))
            continue;
        if (!e->dict && !(e->dict = dict_new(&stk->arena)))
            return -ENOMEM;
        struct inode *inode = inode_find(xl->graph->inodes, &e->iatt.gfid);
        rc = put_counts(xl, inode, ask, stk->call.xdata, e->dict);
        inode_unref(inode);
        if (!rc && ask & ASK_PARENT_ENTRYLK)
            rc = put_parent_entrylk(xl, dir, e->name, e->dict);
    }
    return rc;
}

static int
counts_other(struct xlator *xl, struct call_stack *stk, unsigned ask, struct dict *out)
{
    const struct fop_call *c = &stk->call;
    bool is_by_fd = fop_info[c->fop].traits & FOP_BY_FD;
    struct inode *first = !is_by_fd ? c->loc.parent : c->fd ? c->fd->inode : c->loc.inode;
    struct inode *second = is_by_fd ? NULL : c->loc2.parent;
    int rc = 0;

    if (first)
        rc = put_counts(xl, first, ask, c->xdata, out);
    if (second && !rc)
        rc = put_counts(xl, second, ask, c->xdata, out);
    return rc;
}

static xl_verdict
counts_cb(struct frame *f, struct call_stack *stk)
{
    unsigned ask = (unsigned)f->local.u64[0];
    enum fop fop = stk->call.fop;
    struct dict *out;
    int rc;

    if (fop == FOP_lookup ? stk->reply.op_ret < 0 : fop == FOP_readdirp && stk->reply.op_ret <= 0)
        return XL_PASS;
    if (fop == FOP_readdirp)
        rc = counts_readdirp(f->xl, stk, ask);
    else if (!(out = reply_xdata(stk)))
        rc = -ENOMEM;
    else
        rc = fop == FOP_lookup ? counts_lookup(f->xl, stk, ask, out) : counts_other(f->xl, stk, ask, out);
    /* a change stays done even if its count is missing */
    if (rc && (fop_info[fop].traits & FOP_READS)) {
        stk->reply.op_ret = -1;
        stk->reply.op_errno = -rc;
    }
    return XL_PASS;
}

int
locks_counts_prepare(struct xlator *xl, struct call_stack *stk)
{
    unsigned ask = asked(stk->call.xdata);

    if (!ask)
        return 0;
    struct frame *f = frame_push(stk, xl, counts_cb);
    if (!f)
        return -ENOMEM;
    f->local.u64[0] = ask;
    return 0;
}

xl_verdict
locks_counts(struct xlator *xl, struct call_stack *stk)
{
    int rc = locks_counts_prepare(xl, stk);

    return rc ? rc : XL_PASS;
}
