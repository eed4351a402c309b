/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LOOKUP: goes to all children that are up, with the keys by which they tell their counters.
 *
 *      all have it         the best child's reply; who may be read is kept with the inode (view.c)
 *      none has it         ENOENT
 *      some have it        those count that the directory may be read from. If none of them has it, it is
 *                          gone, or not there yet
 *      gfids differ        EIO: nobody can tell which is meant; unless only children differ that the
 *                          directory may not be read from
 *
 * Before that is decided, a name that some have and others not, or whose object has no gfid or different
 * ones, is healed under its lock (heal-name.c) and asked for again, if all children are there; with quorum,
 * only if those that have it are too few, or one that the directory may be read from has not. No lock is
 * taken otherwise. In between, a name that another client makes or removes may be on some children only; if
 * it is on a good one, it is there. What else is to be healed of the object is, in the background (heal.c).
 */
#include <errno.h>

#include "xlators/cluster/replicate/heal.h"

/* ---- asking ---------------------------------------------------------------------------------- */

/* A gfid for an object that has none is given under the name's lock (heal-name.c), so that all children have
 * the same. */
static struct call_stack *
lookup_call(const struct op *op, unsigned i)
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

/* The answers are for fan_end() in any case. 0; -ENOMEM: not all were asked, or heard. */
static int
ask(const struct op *op, struct fan *f, child_set up)
{
    fan_begin(f);
    for_each_child(i, up) fan_wind(f, op, i, lookup_call(op, i));
    fan_wait(f);
    return fan_is_short(f) ? -ENOMEM : 0;
}

/* ---- putting replies together ---------------------------------------------------------------- */

/* Children that the directory is read from; all, where nothing is known. */
static child_set
good_for_names(const struct op *op)
{
    struct view v;

    if (op->dir && view_get(op->r, op->dir, &v) && v.data)
        return v.data;
    return op->r->all;
}

/* Those of `set` whose gfid is that of the first one. */
static child_set
of_one_gfid(const struct fan *f, child_set set)
{
    const struct gfid *first = &f->stk[child_first(set)]->reply.stat.gfid;
    child_set same = 0;

    for_each_child(i, set) same |= gfid_equal(&f->stk[i]->reply.stat.gfid, first) ? CHILD(i) : 0;
    return same;
}

/* Do children contradict each other about the name, all of them there and sure of what they say? */
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

/* Of one that is not, nothing is healed; else it is for who reads the directory to see. */
static bool
is_to_heal(struct op *op, const struct fan *f)
{
    struct view v;

    if (!is_contradictory(op, f))
        return false;
    (void)view_of(op, op->dir, &v); /* what cannot be known is taken for good */
    for_each_child (i, f->sent & ~f->good) {
        if (f->ret[i] == -ENODATA)
            return true;
    }
    if (f->good == f->sent || !op_wants_quorum(op) || !op_has_quorum(op, f->good))
        return true;
    return (good_for_names(op) & ~f->good) != 0;
}

/* Those that have said something, if only that it is not there. */
static child_set
answered(const struct fan *f)
{
    child_set some = 0;

    for_each_child (i, f->sent)
        some |= f->ret[i] != -ENOTCONN ? CHILD(i) : 0;
    return some;
}

/* The children whose reply counts. A name that a quorum has not, but a good child has, waits for heal: it is
 * there. 0 or -errno. */
static int
judge(const struct op *op, const struct fan *f, child_set *out)
{
    child_set names = good_for_names(op), found = f->good & names;
    int err = fan_errno(f);

    if (!f->good)
        return err ? -err : -ENOTCONN;
    if (!found) { /* those that know say no, or say nothing */
        if (f->sent & names)
            return -ENOENT;
        found = f->good;
    }
    if (!op_has_quorum(op, answered(f)))
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
take_reply(struct op *op, struct fan *f, child_set found, uint32_t generation)
{
    struct replicate *r = op->r;
    struct fan counted = *f; /* of the children whose reply counts */
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
    int err = ask(op, &f, up);
    if (!err && is_to_heal(op, &f)) {
        fan_end(&f);
        (void)heal_name(op); /* what is not mended is judged by what it is then */
        err = ask(op, &f, up);
    }
    if (!err)
        err = judge(op, &f, &found);
    if (!err)
        err = take_reply(op, &f, found, generation);
    fan_end(&f);
    if (err)
        op_fail(op, err);
    else
        op_reply(op);
}
