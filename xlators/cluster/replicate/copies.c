/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The copies that a change goes to, and the marks that record a missed change. Both forms of a change take
 * these steps: a transaction (transaction.c) for one change of names or attributes, a hold (hold.c) for all
 * changes of a file's data in a second.
 *
 *      copies_suffice()       the locked children are a quorum, and one of them has a good copy
 *      copies_mark_before()   the mark before: on these children
 *      the change             each child that misses it is added to `failed`
 *      copies_accuse_after()  the accusations that the mark after adds or takes back
 *      copies_mark_after()    the mark after: on the children that have not failed */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/replicate-internal.h"

/* ---- the XATTROP ----------------------------------------------------------------------------- */

static int
add_counter(struct call_stack *stk, const char *key, const struct changelog *c)
{
    unsigned char *bytes = arena_alloc(&stk->arena, CHANGELOG_BYTES);

    if (!bytes)
        return -ENOMEM;
    changelog_put(c, bytes);
    const struct dict_pair p = {.key = key,
                                .key_len = (uint16_t)strlen(key),
                                .type = DICT_PTR,
                                .len = CHANGELOG_BYTES,
                                .v.bytes = bytes};

    return dict_append(stk->call.dict, &p) ? 0 : -ENOMEM;
}

static int
fill_marks(const struct replicate *r, struct call_stack *stk, const struct marks *m)
{
    static const struct changelog none;

    stk->call.dict = dict_new(&stk->arena);
    int err = stk->call.dict ? add_counter(stk, "trusted.afr.dirty", &m->dirty) : -ENOMEM;

    for (unsigned k = 0; k < r->count && !err; k++) {
        const struct changelog *about = m->each ? &m->each[k] : &m->about;

        err = add_counter(stk, r->keys[k], m->each || m->accused & CHILD(k) ? about : &none);
    }
    if (!err && (m->name_key || m->purges_names))
        err = call_xdata(stk) ? 0 : -ENOMEM;
    if (!err && m->name_key)
        err = dict_set_str(stk->call.xdata, m->name_key, m->name);
    if (!err && m->purges_names)
        err = dict_set_int(stk->call.xdata, DICT_KEY_XATTROP_PURGE_INDEX, 1);
    return err;
}

struct call_stack *
marks_call(const struct op *op, unsigned i, const struct marks *m)
{
    struct fd *fd = m->file ? repl_fd_child(m->file, i) : NULL;
    struct call_stack *stk = op_call_new(op);

    if (!stk)
        return NULL;
    stk->caller = op->caller;
    stk->call.fop = fd ? FOP_fxattrop : FOP_xattrop;
    stk->call.fd = fd ? fd_ref(fd) : NULL;
    stk->call.loc.inode = inode_ref(m->inode);
    if (!fill_marks(op->r, stk, m))
        return stk;
    call_stack_free(stk);
    return NULL;
}

struct call_stack *
marks_make(const struct op *op, unsigned i, const void *m)
{
    return marks_call(op, i, m);
}

void
marks_read(const struct replicate *r, const struct fan *f, struct replica out[REPLICAS_MAX])
{
    memset(out, 0, REPLICAS_MAX * sizeof *out);
    for_each_child(i, f->good)
    {
        const struct dict *d = f->stk[i]->reply.dict;

        out[i].is_there = true;
        for (unsigned k = 0; k < r->count; k++) {
            const struct dict_pair *p = dict_find_text(d, r->keys[k]);

            if (p && (p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR))
                changelog_get(&out[i].about[k], p->v.bytes, p->len);
        }
    }
}

/* ---- the copies of a change ------------------------------------------------------------------ */

child_set
copies_left(const struct copies *c)
{
    return c->locked & ~c->failed;
}

/* Returns the reason of a child that refused, for example a folder that is being removed; else ENOTCONN. */
int
copies_errno(const struct copies *c)
{
    return c->why ? -c->why : -ENOTCONN;
}

bool
copies_suffice(const struct op *op, const struct copies *c, child_set done)
{
    bool is_good = !c->readable || done & c->readable;

    for (unsigned n = 0; n < COPIES_OBJECTS_MAX; n++)
        is_good &= (done & ~c->stale[n]) != 0;
    return is_good && op_has_quorum(op, done);
}

int
copies_mark_before(const struct op *op, struct copies *c, const struct marks *m, bool insists,
                   struct fan *f)
{
    if (insists)
        fan_insist(f, op, copies_left(c), marks_make, m);
    else if (fan_ask(f, op, copies_left(c), marks_make, m))
        return -ENOMEM;
    c->failed |= f->sent & ~fan_done(f);
    c->why = replica_worse_errno(c->why, fan_errno(f));
    c->accused = m->accused;
    view_drop(op->r, m->inode, c->what, m->accused);
    return 0;
}

void
copies_accuse_after(const struct replicate *r, const struct copies *c, bool has_changed, struct marks *m)
{
    m->accused = has_changed ? r->all & ~copies_left(c) & ~c->accused : c->accused;
    m->about.count[c->what] = has_changed ? 1 : (uint32_t)-1;
}

int
copies_mark_after(const struct op *op, const struct copies *c, const struct marks *m, bool has_changed,
                  struct fan *f)
{
    if (has_changed)
        view_drop(op->r, m->inode, c->what, m->accused);
    fan_insist(f, op, copies_left(c), marks_make, m);
    if (op_has_quorum(op, fan_done(f)))
        return 0;
    return fan_errno(f) ? -fan_errno(f) : -ENOTCONN;
}
