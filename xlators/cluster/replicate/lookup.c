/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LOOKUP: goes to all children that are up, with the keys that return their counters (pending xattrs).
 *
 *      all have the name     the best child's reply; the readable children are kept with the inode (view.c)
 *      none has the name     ENOENT
 *      some have the name    only children count from which the directory may be read. If none of them has
 *                            the name, it was removed, or is not created yet
 *      gfids differ          EIO, because the right object is unknown; unless the differing children are
 *                            only children from which the directory may not be read
 *
 * Before that decision a name that only some children have, or whose object has no gfid or different gfids,
 * is healed under its lock (heal-name.c) and looked up again, if all children are up. With quorum this
 * happens only if the children that have the name are too few, or if a child from which the directory may
 * be read lacks the name. No lock is taken otherwise. While another client creates or removes a name, the
 * name may be on some children only; it exists if a good child has it. Other heals of the object run in the
 * background (heal.c). */
#include <errno.h>

#include "xlators/cluster/replicate/heal.h"

/* ---- asking ---------------------------------------------------------------------------------- */

/* Does not ask for a new gfid: heal-name.c sets a missing gfid under the name's lock, so that all children
 * get the same. */
static struct call_stack *
lookup_make(const struct op *op, unsigned i)
{
    struct call_stack *stk = op_fork(op, i);
    struct dict *d = stk ? call_xdata(stk) : NULL;

    if (d)
        dict_remove(d, DICT_KEY_GFID_REQ);
    if (d && !view_ask(op->r, d, false))
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

/* The caller calls fan_end() in any case. Returns 0; -ENOMEM: a child was not asked, or its reply is lost. */
static int
ask_children(const struct op *op, struct fan *f, child_set up)
{
    fan_begin(f);
    for_each_child(i, up) fan_wind(f, op, i, lookup_make(op, i));
    fan_wait(f);
    return fan_is_short(f) ? -ENOMEM : 0;
}

/* ---- joining replies ------------------------------------------------------------------------- */

/* Returns the children that the directory is read from; all, if no view is kept. */
static child_set
good_for_names(const struct op *op)
{
    struct view v;

    if (op->dir && view_get(op->r, op->dir, &v) && v.data)
        return v.data;
    return op->r->all;
}

/* Returns the children of `set` with the gfid of the first child of `set`. */
static child_set
of_one_gfid(const struct fan *f, child_set set)
{
    const struct gfid *first = &f->stk[child_first(set)]->reply.stat.gfid;
    child_set same = 0;

    for_each_child(i, set) same |= gfid_equal(&f->stk[i]->reply.stat.gfid, first) ? CHILD(i) : 0;
    return same;
}

/* Returns whether children contradict each other about the name. All must be up, with a definite answer. */
static bool
is_contradictory(const struct op *op, const struct fan *f)
{
    bool has_odd = f->sent != op->r->all, lacks_gfid = false;

    for_each_child (i, f->sent & ~f->good) {
        has_odd |= f->ret[i] != -ENOENT && f->ret[i] != -ENODATA;
        lacks_gfid |= f->ret[i] == -ENODATA;
    }
    if (has_odd || !op->dir || (!f->good && !lacks_gfid))
        return false;
    return f->good != f->sent || of_one_gfid(f, f->good) != f->good;
}

/* Returns whether the name needs a heal now. Without a contradiction there is none; with one, the children
 * that the directory is read from decide. */
static bool
is_to_heal(struct op *op, const struct fan *f)
{
    struct view v;

    if (!is_contradictory(op, f))
        return false;
    (void)view_of(op, op->dir, &v); /* on failure all children count as good */
    for_each_child (i, f->sent & ~f->good) {
        if (f->ret[i] == -ENODATA)
            return true;
    }
    if (f->good == f->sent || !op_wants_quorum(op) || !op_has_quorum(op, f->good))
        return true;
    return (good_for_names(op) & ~f->good) != 0;
}

/* Returns the children that answered, including "no such name". */
static child_set
answered_children(const struct fan *f)
{
    child_set some = 0;

    for_each_child (i, f->sent)
        some |= f->ret[i] != -ENOTCONN ? CHILD(i) : 0;
    return some;
}

/* Sets *out to the children whose reply counts. A name that a quorum lacks but a good child has exists: a
 * heal is pending. Returns 0 or -errno. */
static int
judge_replies(const struct op *op, const struct fan *f, child_set *out)
{
    child_set names = good_for_names(op), found = f->good & names;
    int err = fan_errno(f);

    if (!f->good)
        return err ? -err : -ENOTCONN;
    if (!found) { /* the good children say no, or are down */
        if (f->sent & names)
            return -ENOENT;
        found = f->good;
    }
    if (!op_has_quorum(op, answered_children(f)))
        return -ENOTCONN;
    *out = of_one_gfid(f, found);
    return *out == found ? 0 : -EIO;
}

static unsigned
best_of(struct replicate *r, const struct view *v, child_set found, struct inode *inode)
{
    child_set best = r->arbiter >= 0 && found & ~CHILD(r->arbiter) ? found & ~CHILD(r->arbiter) : found;
    int choice = v->data && v->metadata ? -1 : split_choice(r, inode);

    if (choice >= 0 && found & CHILD(choice))
        return (unsigned)choice;

    if (best & v->metadata)
        best &= v->metadata;
    if (best & v->data)
        best &= v->data;
    return view_choose(r, best, inode);
}

static int
take_lookup_reply(struct op *op, struct fan *f, child_set found, uint32_t generation)
{
    struct replicate *r = op->r;
    struct fan counted = *f; /* restricted to the children whose reply counts */
    struct view v;

    counted.good = found;
    view_from_replies(r, &counted, generation, &v);
    struct inode *inode =
        inode_link(r->xl->graph->inodes, NULL, NULL, &f->stk[child_first(found)]->reply.stat);
    if (!inode)
        return -ENOMEM;
    view_set(r, inode, &v);
    heal_consider(r, inode, &counted);
    int err = fan_take(f, op, best_of(r, &v, found, inode));

    if (!err && op->dir && view_get(r, op->dir, &v) && v.data & found)
        op->stk->reply.post = f->stk[view_choose(r, v.data & found, op->dir)]->reply.post;
    inode_unref(inode);
    return err;
}

void
lookup_go(struct op *op)
{
    uint32_t generation = atomic_load(&op->r->generation);
    child_set up = atomic_load(&op->r->up), found;
    struct fan f;

    if (!op_has_quorum(op, up)) {
        op_fail(op, -ENOTCONN);
        return;
    }
    int err = ask_children(op, &f, up);
    if (!err && is_to_heal(op, &f)) {
        fan_end(&f);
        (void)heal_name(op); /* after a failed heal the second LOOKUP decides */
        err = ask_children(op, &f, up);
    }
    if (!err)
        err = judge_replies(op, &f, &found);
    if (!err)
        err = take_lookup_reply(op, &f, found, generation);
    fan_end(&f);
    if (err)
        op_fail(op, err);
    else
        op_reply(op);
}
