/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* (F)XATTROP: entries follow the counters (spec: brick 7.2, 7.4).
 *
 *   before storage   a watched counter is about to become non-zero: its entry is added
 *   after            all watched counters of that kind are zero: removed; else added
 *
 * so that an entry exists whenever a counter may be non-zero. Calls on one inode run one after another, from
 * the first to the second step: else an older answer could take away what a newer request has put there.
 */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/features/index/index-internal.h"

enum { XATTROP_ADD_ARRAY = 0, XATTROP_ADD_ARRAY64 = 1 };

struct watched {
    bool is_seen[INDEX_GFID_TYPES], is_set[INDEX_GFID_TYPES];
};

/* One of the prefixes in `list` begins `key`. */
static bool
is_listed(const char *list, const char *key)
{
    static const char apart[] = ", \t";

    while (list && *(list += strspn(list, apart))) {
        size_t len = strcspn(list, apart);

        if (strncmp(list, key, len) == 0)
            return true;
        list += len;
    }
    return false;
}

/* An index_type, or -1. Disperse has no dirty directory: what its list names is pending. */
static int
type_of(const struct index_conf *conf, uint32_t op, const char *key)
{
    if (op == XATTROP_ADD_ARRAY)
        return is_listed(conf->dirty_list, key)     ? INDEX_DIRTY
               : is_listed(conf->pending_list, key) ? INDEX_XATTROP
                                                    : -1;
    return op == XATTROP_ADD_ARRAY64 && is_listed(conf->list64, key) ? INDEX_XATTROP : -1;
}

static bool
is_non_zero(const struct dict_pair *p)
{
    const uint8_t *bytes = p->v.bytes;

    if (p->type != DICT_PTR && p->type != DICT_STR && p->type != DICT_UNTYPED)
        return false;
    for (uint32_t i = 0; i < p->len; i++) {
        if (bytes[i])
            return true;
    }
    return false;
}

static struct watched
look(const struct xlator *xl, const struct dict *d, uint32_t op)
{
    const struct index_conf *conf = xlator_conf(xl);
    struct watched w = {0};

    if (op != XATTROP_ADD_ARRAY && op != XATTROP_ADD_ARRAY64)
        return w;
    dict_for_each (p, d) {
        int type = type_of(conf, op, p->key);

        if (type < 0)
            continue;
        w.is_seen[type] = true;
        w.is_set[type] |= is_non_zero(p);
    }
    return w;
}

static struct inode *
inode_of(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

static int
set_state(struct xlator *xl, struct index_ctx *ctx, enum index_type type, const struct gfid *gfid, bool is_in)
{
    int rc = 0;

    if (ctx->state[type] == (is_in ? INDEX_IN : INDEX_OUT))
        return 0;
    if (is_in)
        rc = index_entry_add(xl, type, gfid);
    else if ((rc = index_entry_remove(xl, type, gfid)) == -ENOENT)
        rc = 0;
    ctx->state[type] = rc ? INDEX_UNKNOWN : is_in ? INDEX_IN : INDEX_OUT;
    return rc;
}

/* ---- after ----------------------------------------------------------------------------------- */

/* The counters are written: a failure here can't undo that, but an entry too few would hide an object from
 * healing. */
static void
complain(struct xlator *xl, const struct gfid *gfid, const char *what, int rc)
{
    if (rc && rc != -ENOENT)
        log_event(LOG_ERROR, xl, "index-update-failed", "%s: %s: %s", GFID(gfid), what, strerror(-rc));
}

static xl_verdict
after_cb(struct frame *f, struct call_stack *stk)
{
    struct inode *inode = f->local.ptr;
    struct index_ctx *ctx = inode_ctx(inode, f->xl);
    const struct gfid *gfid = &inode->gfid;
    struct dict *xdata = stk->call.xdata;
    const char *name = dict_get_str(xdata, DICT_KEY_XATTROP_ENTRY_DELETE);

    if (stk->reply.op_ret >= 0) {
        struct watched asked = look(f->xl, stk->call.dict, stk->call.flags);
        struct watched now = look(f->xl, stk->reply.dict, stk->call.flags);

        for (int t = 0; t < INDEX_GFID_TYPES; t++) {
            if (asked.is_seen[t])
                complain(f->xl, gfid, index_dir_names[t],
                         set_state(f->xl, ctx, (enum index_type)t, gfid, now.is_set[t]));
        }
        if (name)
            complain(f->xl, gfid, "entry-delete", index_change_remove(f->xl, gfid, name));
        /* Who counts back what it has healed asks for this each time. A name that came in since then is still
         * waiting. */
        if (!now.is_set[INDEX_XATTROP] && dict_get_flag(xdata, DICT_KEY_XATTROP_PURGE_INDEX))
            complain(f->xl, gfid, "purge-index", index_changes_purge(f->xl, GFID(gfid)));
    }
    index_leave(ctx);
    inode_unref(inode);
    return XL_PASS;
}

/* ---- before ---------------------------------------------------------------------------------- */

static int
before(struct xlator *xl, struct call_stack *stk, struct inode *inode, struct index_ctx *ctx)
{
    struct watched w = look(xl, stk->call.dict, stk->call.flags);
    const char *name = dict_get_str(stk->call.xdata, DICT_KEY_XATTROP_ENTRY_CREATE);
    int rc = 0;

    for (int t = 0; t < INDEX_GFID_TYPES && !rc; t++) {
        if (w.is_set[t])
            rc = set_state(xl, ctx, (enum index_type)t, &inode->gfid, true);
    }
    return !rc && name ? index_change_add(xl, &inode->gfid, name) : rc;
}

/* The inode is ours now. */
static xl_verdict
go(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = inode_of(stk);
    struct index_ctx *ctx = inode_ctx(inode, xl);
    int rc = before(xl, stk, inode, ctx);
    struct frame *f = rc ? NULL : frame_push(stk, xl, after_cb);

    if (!f) {
        index_leave(ctx);
        return rc ? rc : -ENOMEM;
    }
    f->local.ptr = inode_ref(inode);
    return XL_PASS;
}

xl_verdict
index_xattrop(struct xlator *xl, struct call_stack *stk)
{
    struct watched w = look(xl, stk->call.dict, stk->call.flags);
    struct dict *xdata = stk->call.xdata;
    struct inode *inode = inode_of(stk);

    if (index_virtual_of(xl, inode) != VIRTUAL_NO)
        return -ENOENT;
    if (!inode ||
        !(w.is_seen[INDEX_XATTROP] || w.is_seen[INDEX_DIRTY] ||
          dict_has(xdata, DICT_KEY_XATTROP_ENTRY_CREATE) || dict_has(xdata, DICT_KEY_XATTROP_ENTRY_DELETE) ||
          dict_has(xdata, DICT_KEY_XATTROP_PURGE_INDEX)))
        return XL_PASS;
    struct index_ctx *ctx = index_ctx_get(xl, inode);
    if (!ctx)
        return -ENOMEM;
    xl_verdict verdict = index_enter(xl, ctx, stk, go);
    return verdict == XL_PASS ? go(xl, stk) : verdict;
}
