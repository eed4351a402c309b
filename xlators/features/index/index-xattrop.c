/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* (F)XATTROP: keeps the entries consistent with the counters (spec: brick 7.2, 7.4).
 *
 *   before storage   a watched counter may become non-zero: adds its entry
 *   after            all watched counters of that kind are zero: removes the entry; otherwise adds it.
 *                    Another client has removed the object meanwhile: removes the entries
 *
 * So an entry exists whenever a counter may be non-zero. Calls on one inode run one after another from the
 * first to the second step. Otherwise a late reply could remove the entry that a newer request has added.
 */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/features/index/index-internal.h"

enum { XATTROP_ADD_ARRAY = 0, XATTROP_ADD_ARRAY64 = 1 };

struct watched {
    bool is_seen[INDEX_GFID_TYPES], is_set[INDEX_GFID_TYPES];
};

/* True if `key` begins with one of the prefixes in `list`. */
static bool
has_listed_prefix(const char *list, const char *key)
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

/* Returns an index_type, or -1. Disperse has no dirty directory: the keys in its list count as pending. */
static int
counter_type(const struct index_conf *conf, uint32_t op, const char *key)
{
    if (op == XATTROP_ADD_ARRAY)
        return has_listed_prefix(conf->dirty_list, key)     ? INDEX_DIRTY
               : has_listed_prefix(conf->pending_list, key) ? INDEX_XATTROP
                                                    : -1;
    return op == XATTROP_ADD_ARRAY64 && has_listed_prefix(conf->list64, key) ? INDEX_XATTROP : -1;
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
counters_read(const struct xlator *xl, const struct dict *d, uint32_t op)
{
    const struct index_conf *conf = xlator_conf(xl);
    struct watched w = {0};

    if (op != XATTROP_ADD_ARRAY && op != XATTROP_ADD_ARRAY64)
        return w;
    dict_for_each (p, d) {
        int type = counter_type(conf, op, p->key);

        if (type < 0)
            continue;
        w.is_seen[type] = true;
        w.is_set[type] |= is_non_zero(p);
    }
    return w;
}

/* Returns whether a counter of pending changes of names is set: of entries, or of data, which means all names
 * of a folder. A heal of attributes, which may come later, does not ask for the removal of names. */
static bool
names_are_pending(const struct xlator *xl, const struct dict *d)
{
    static const unsigned word_bytes = 4, words = 3, metadata = 1;
    const struct index_conf *conf = xlator_conf(xl);
    bool are = false;

    dict_for_each (p, d) {
        struct dict_pair word = *p;

        if (counter_type(conf, XATTROP_ADD_ARRAY, p->key) != INDEX_XATTROP)
            continue;
        if (p->len != words * word_bytes)
            are |= is_non_zero(p);
        for (unsigned w = 0; w < words && p->len == words * word_bytes; w++) {
            word.len = word_bytes;
            word.v.bytes = (const unsigned char *)p->v.bytes + w * word_bytes;
            are |= w != metadata && is_non_zero(&word);
        }
    }
    return are;
}

static struct inode *
xattrop_inode(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

static int
entry_set_state(struct xlator *xl, struct index_ctx *ctx, enum index_type type, const struct gfid *gfid,
                bool is_in)
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

/* Logs a failed update. The counters are written, so failing the call would not help, but a missing entry
 * hides an object from healing. */
static void
log_update_failure(struct xlator *xl, const struct gfid *gfid, const char *what, int rc)
{
    if (rc && rc != -ENOENT)
        log_event(LOG_ERROR, xl, "index-update-failed", "%s: %s: %s", GFID(gfid), what, strerror(-rc));
}

/* Removes the entries that the call has added for an object that another client has removed meanwhile: its
 * removal has looked for entries before, and no healer could ever remove these. */
static void
entries_remove_gone(struct xlator *xl, struct index_ctx *ctx, const struct gfid *gfid,
                    const struct call_stack *stk)
{
    struct watched asked = counters_read(xl, stk->call.dict, stk->call.flags);

    for (int t = 0; t < INDEX_GFID_TYPES; t++) {
        if (asked.is_set[t])
            log_update_failure(xl, gfid, index_dir_names[t],
                               entry_set_state(xl, ctx, (enum index_type)t, gfid, false));
    }
    if (dict_has(stk->call.xdata, DICT_KEY_XATTROP_ENTRY_CREATE))
        log_update_failure(xl, gfid, "entry-changes", index_changes_forget(xl, gfid));
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
        struct watched asked = counters_read(f->xl, stk->call.dict, stk->call.flags);
        struct watched now = counters_read(f->xl, stk->reply.dict, stk->call.flags);

        for (int t = 0; t < INDEX_GFID_TYPES; t++) {
            if (asked.is_seen[t])
                log_update_failure(f->xl, gfid, index_dir_names[t],
                         entry_set_state(f->xl, ctx, (enum index_type)t, gfid, now.is_set[t]));
        }
        if (name)
            log_update_failure(f->xl, gfid, "entry-delete", index_change_remove(f->xl, gfid, name));
        /* A healer sends this flag each time it subtracts the changes it has healed. A name recorded since
         * then still waits for healing. */
        if (dict_get_flag(xdata, DICT_KEY_XATTROP_PURGE_INDEX) && !names_are_pending(f->xl, stk->reply.dict))
            log_update_failure(f->xl, gfid, "purge-index", index_changes_purge(f->xl, GFID(gfid)));
    } else if (stk->reply.op_errno == ENOENT || stk->reply.op_errno == ESTALE) {
        entries_remove_gone(f->xl, ctx, gfid, stk);
    }
    index_leave(ctx);
    inode_unref(inode);
    return XL_PASS;
}

/* ---- before ---------------------------------------------------------------------------------- */

static int
xattrop_before(struct xlator *xl, struct call_stack *stk, struct inode *inode, struct index_ctx *ctx)
{
    struct watched w = counters_read(xl, stk->call.dict, stk->call.flags);
    const char *name = dict_get_str(stk->call.xdata, DICT_KEY_XATTROP_ENTRY_CREATE);
    int rc = 0;

    for (int t = 0; t < INDEX_GFID_TYPES && !rc; t++) {
        if (w.is_set[t])
            rc = entry_set_state(xl, ctx, (enum index_type)t, &inode->gfid, true);
    }
    return !rc && name ? index_change_add(xl, &inode->gfid, name) : rc;
}

/* Runs while this call owns the inode's context. */
static xl_verdict
xattrop_go(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = xattrop_inode(stk);
    struct index_ctx *ctx = inode_ctx(inode, xl);
    int rc = xattrop_before(xl, stk, inode, ctx);
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
    struct watched w = counters_read(xl, stk->call.dict, stk->call.flags);
    struct dict *xdata = stk->call.xdata;
    struct inode *inode = xattrop_inode(stk);

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
    xl_verdict verdict = index_enter(xl, ctx, stk, xattrop_go);
    return verdict == XL_PASS ? xattrop_go(xl, stk) : verdict;
}
