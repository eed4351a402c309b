/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The children that an object may be read from. The set is computed from the counters (pending xattrs) in
 * LOOKUP replies, kept with the inode, and valid until a child comes up or goes down. Another client may
 * make a child's copy stale meanwhile. That child is up and takes part in the change, unless its brick
 * fails; this mount then notices with the next LOOKUP of the name.
 *
 * A view is packed into one 64-bit number: the generation, and 16 bits each for data and metadata. */
#include <errno.h>
#include <string.h>

#include "mem/mem-pool.h"
#include "xlators/cluster/replicate/heal.h"

/* ---- the kept view --------------------------------------------------------------------------- */

static uint64_t
view_pack(const struct view *v)
{
    static_assert(REPLICAS_MAX <= 16, "a bit each");
    return (uint64_t)v->generation << 32 | (uint64_t)v->data << 16 | v->metadata;
}

static struct view
view_unpack(uint64_t n)
{
    return (struct view){.generation = (uint32_t)(n >> 32),
                         .data = (child_set)(n >> 16 & 0xffff),
                         .metadata = (child_set)(n & 0xffff)};
}

bool
view_get(struct replicate *r, struct inode *inode, struct view *out)
{
    struct repl_inode *ri = inode_ctx(inode, r->xl);

    if (!ri)
        return false;
    *out = view_unpack(atomic_load(&ri->view));
    return out->generation && out->generation == atomic_load(&r->generation);
}

void
view_set(struct replicate *r, struct inode *inode, const struct view *v)
{
    struct repl_inode *ri = repl_inode(r, inode);

    if (ri) /* NULL, out of memory: the next operation refreshes the view */
        atomic_store(&ri->view, view_pack(v));
}

void
view_forget(struct replicate *r, struct inode *inode)
{
    view_set(r, inode, &(struct view){0});
}

void
view_drop(struct replicate *r, struct inode *inode, enum change what, child_set missed)
{
    struct repl_inode *ri = inode ? inode_ctx(inode, r->xl) : NULL;
    uint64_t bits = what == CHANGE_METADATA ? missed : (uint64_t)missed << 16;

    if (ri && missed)
        atomic_fetch_and(&ri->view, ~bits);
}

/* ---- refreshing ------------------------------------------------------------------------------ */

static const unsigned char no_counters[CHANGELOG_BYTES];

int
view_ask(const struct replicate *r, struct dict *xdata, bool is_refresh)
{
    static const struct {
        enum dict_key key;
        const char *text; /* NULL: the number 0 */
    } more[] = {
        {DICT_KEY_INODELK_COUNT, NULL},
        {DICT_KEY_ENTRYLK_COUNT, NULL},
        {DICT_KEY_PARENT_ENTRYLK, NULL},
        {DICT_KEY_LINK_COUNT, "glusterfs.xattrop_index_count"},
    };
    int err = 0;

    for (unsigned i = 0; i < r->count && !err; i++)
        err = dict_set_text(xdata, r->keys[i], DICT_PTR, no_counters, CHANGELOG_BYTES);
    if (!err)
        err = dict_set_text(xdata, "trusted.afr.dirty", DICT_PTR, no_counters, CHANGELOG_BYTES);
    if (!err)
        err = dict_set_int(xdata, DICT_KEY_LIST_XATTR, 1);
    for (size_t i = 0; i < sizeof more / sizeof more[0] && !err; i++)
        err = more[i].text ? dict_set_str(xdata, more[i].key, more[i].text)
                           : dict_set_uint(xdata, more[i].key, 0);
    if (!err && is_refresh)
        err = dict_set_str(xdata, DICT_KEY_INODELK_DOM_COUNT, r->xl->name);
    return err;
}

static void
read_counter(const struct dict *d, const char *key, struct changelog *out)
{
    const struct dict_pair *p = dict_find_text(d, key);
    bool has_bytes = p && (p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR);

    changelog_get(out, has_bytes ? p->v.bytes : NULL, has_bytes ? p->len : 0);
}

void
replica_read(const struct replicate *r, const struct call_stack *stk, struct replica *out)
{
    const struct fop_reply *reply = &stk->reply;
    int64_t locks = 0;

    for (unsigned k = 0; k < r->count; k++)
        read_counter(reply->xdata, r->keys[k], &out->about[k]);
    read_counter(reply->xdata, "trusted.afr.dirty", &out->dirty);
    (void)dict_get_int(reply->xdata, DICT_KEY_INODELK_COUNT, &locks); /* missing key: 0 */
    out->is_there = true;
    out->is_bad = dict_find_text(reply->xdata, "glusterfs.bad-inode");
    out->is_file = S_ISREG(reply->stat.mode);
    out->is_locked = locks > 0;
    out->size = reply->stat.size;
}

void
view_from_replies(const struct replicate *r, const struct fan *f, uint32_t generation, struct view *out)
{
    struct replica replicas[REPLICAS_MAX] = {0};
    bool is_dir = false;

    for_each_child(i, f->good)
    {
        replica_read(r, f->stk[i], &replicas[i]);
        is_dir |= S_ISDIR(f->stk[i]->reply.stat.mode);
    }
    out->generation = generation;
    out->data = changelog_readable(replicas, r->count, is_dir ? CHANGE_ENTRY : CHANGE_DATA, r->arbiter);
    out->metadata = changelog_readable(replicas, r->count, CHANGE_METADATA, r->arbiter);
}

/* Sends LOOKUP by gfid, or FSTAT of the open file if the file has no name any more. */
static int
view_refresh(struct op *op, struct inode *inode, enum fop fop, struct view *out)
{
    struct replicate *r = op->r;
    uint32_t generation = atomic_load(&r->generation);
    child_set up = atomic_load(&r->up);
    struct fan f;

    if (fop == FOP_fstat)
        up &= repl_fd_open(op->file);
    fan_begin(&f);
    for_each_child(i, up)
    {
        struct call_stack *stk = op_call(op, fop, i);

        if (stk && stk->call.loc.inode != inode) {
            inode_unref(stk->call.loc.inode);
            stk->call.loc.inode = inode_ref(inode);
        }
        if (stk && (!call_xdata(stk) || view_ask(r, stk->call.xdata, true))) {
            call_stack_free(stk);
            stk = NULL;
        }
        fan_wind(&f, op, i, stk);
    }
    fan_wait(&f);
    int err = 0;
    if (fan_is_short(&f))
        err = -ENOMEM;
    else if (!f.good)
        err = f.sent && fan_errno(&f) ? -fan_errno(&f) : -ENOTCONN;
    else if (!op_has_quorum(op, f.good))
        err = -ENOTCONN;
    if (!err) {
        view_from_replies(r, &f, generation, out);
        view_set(r, inode, out);
        heal_consider(r, inode, &f);
    }
    fan_end(&f);
    return err;
}

static int
view_refresh_any(struct op *op, struct inode *inode, struct view *out)
{
    int err = view_refresh(op, inode, FOP_lookup, out);

    if ((err == -ENOENT || err == -ESTALE) && op->file && inode == op->inode)
        err = view_refresh(op, inode, FOP_fstat, out);
    return err;
}

int
view_of(struct op *op, struct inode *inode, struct view *out)
{
    child_set up = atomic_load(&op->r->up);

    if (!op_has_quorum(op, up))
        return -ENOTCONN;
    int err = view_get(op->r, inode, out) ? 0 : view_refresh_any(op, inode, out);

    if (!err && split_ask_policy(op->r, inode, out))
        err = view_refresh_any(op, inode, out);
    return err;
}

int
op_admit(struct op *op, struct inode *inode, enum change what)
{
    struct view v;
    int err = view_of(op, inode, &v);
    /* If the metadata is in split-brain, write permission is unknown. If a file's data is in split-brain,
     * attribute changes fail too, because stock clients answer EIO, and users must see the same with any
     * client. */
    bool is_split = !err && (what == CHANGE_DATA ? !v.metadata : !v.data && S_ISREG(inode->type));

    op->readable = err || is_split ? 0 : what == CHANGE_METADATA ? v.metadata : v.data;
    return err ? err : op->readable ? 0 : -EIO;
}

unsigned
view_choose(const struct replicate *r, child_set set, const struct inode *inode)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    if (r->arbiter >= 0 && set & ~CHILD(r->arbiter)) /* the arbiter does not know file sizes */
        set &= ~CHILD(r->arbiter);
    if (r->read_child >= 0 && set & CHILD(r->read_child))
        return (unsigned)r->read_child;
    return conf->read_hash_mode == 0 ? child_first(set) : replica_choose(set, r->count, &inode->gfid);
}

/* ---- the context of an inode ----------------------------------------------------------------- */

static struct mem_pool *pool, *hold_pool;

int
repl_inode_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct repl_inode, 0);
    if (!hold_pool)
        hold_pool = mem_pool_new(struct hold, 0);
    return pool && hold_pool ? 0 : -ENOMEM;
}

struct repl_inode *
repl_inode(struct replicate *r, struct inode *inode)
{
    struct repl_inode *ri = inode_ctx(inode, r->xl), *fresh;

    if (ri)
        return ri;
    fresh = mem_get0_owner(pool, r->xl->graph->owner);
    if (!fresh)
        return NULL;
    fresh->r = r;
    pthread_mutex_init(&fresh->lock, NULL);
    hold_init(&fresh->hold, fresh, false);
    ri = inode_ctx_install(inode, r->xl, fresh);
    if (ri != fresh)
        repl_inode_free(fresh);
    return ri;
}

struct hold *
repl_inode_attributes(struct repl_inode *ri)
{
    struct hold *h = atomic_load(&ri->attributes), *fresh;

    if (h)
        return h;
    fresh = mem_get0_owner(hold_pool, ri->r->xl->graph->owner);
    if (!fresh)
        return NULL;
    hold_init(fresh, ri, true);
    if (atomic_compare_exchange_strong(&ri->attributes, &h, fresh))
        return fresh;
    mem_put(fresh);
    return h;
}

void
repl_inode_free(struct repl_inode *ri)
{
    struct hold *attributes = atomic_load(&ri->attributes);

    if (attributes) {
        timer_stop(&attributes->timer);
        mem_put(attributes);
    }
    timer_stop(&ri->hold.timer);
    pthread_mutex_destroy(&ri->lock);
    mem_put(ri);
}
