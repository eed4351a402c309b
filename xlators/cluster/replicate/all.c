/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Operations for every child, without a transaction.
 *
 *   flush, fsyncdir, ipc    to all in parallel; succeeds if a quorum succeeds. fsyncdir first opens the
 *                           folder where it is not open
 *   statfs                  to all but the arbiter; the child with the least free space answers for the set
 *   lk                      a lock of an application: to the first child, and then to the rest, in the
 *                           order of lock-calls.h. If a child refuses, the others are unlocked again. An
 *                           unlock goes to all in parallel
 *   lockinfo                get: joins the replies of all children; set: to all. It moves locks from one fd
 *                           to another and does not change the file, so it needs no transaction
 *   inodelk, entrylk        a lock of a layer above: to all in parallel, without waiting. If a child's lock
 *                           is taken, the granted locks are released, and the children are locked in turn
 *
 * While such a lock is being taken other clients see it on some children only; to get it a client needs it
 * on all children. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "stack/lock-cmd.h"
#include "xlators/cluster/lock-calls.h"
#include "xlators/cluster/replicate/replicate-internal.h"

/* ---- to all in parallel ---------------------------------------------------------------------- */

static void
reply_all(struct op *op, int err)
{
    if (err < 0)
        op_fail(op, err);
    else
        op_reply(op);
}

/* Returns 0 if a quorum succeeded, else -errno. */
static int
quorum_result(const struct op *op, const struct fan *f)
{
    if (op_has_quorum(op, f->good))
        return 0;
    return fan_errno(f) ? -fan_errno(f) : -ENOTCONN;
}

static child_set
reachable_children(const struct op *op)
{
    child_set up = atomic_load(&op->r->up);

    return op->file ? up & repl_fd_open(op->file) : up;
}

static void
wind_all(struct op *op, struct fan *f, child_set on)
{
    fan_begin(f);
    for_each_child(i, on) fan_wind(f, op, i, op_fork(op, i));
    fan_wait(f);
}

/* Returns whether the call must not fail for lack of memory, because a lock would remain without an owner. */
static bool
must_be_done(const struct op *op)
{
    bool is_lock = fop_info[op->fop].traits & FOP_WAITS;

    return op->fop == FOP_flush || (is_lock && lock_call_is_unlock(&op->stk->call));
}

void
all_go(struct op *op)
{
    struct fan f;
    int err = 0;

    fan_begin(&f);
    if (op->fop == FOP_fsyncdir && op->file)
        err = repl_fd_complete(op);
    if (must_be_done(op))
        fan_insist(&f, op, reachable_children(op), fan_fork, NULL);
    else if (!err)
        err = fan_ask(&f, op, reachable_children(op), fan_fork, NULL);
    if (!err)
        err = quorum_result(op, &f);
    if (!err && f.stk[child_first(f.good)])
        err = fan_take(&f, op, child_first(f.good));
    fan_end(&f);
    reply_all(op, err);
}

/* Answers without quorum, too, because it changes nothing and reads no file data. */
void
statfs_go(struct op *op)
{
    child_set on = atomic_load(&op->r->up);
    struct fan f;

    if (op->r->arbiter >= 0)
        on &= ~CHILD(op->r->arbiter);
    wind_all(op, &f, on);
    int err = f.good ? 0 : fan_errno(&f) ? -fan_errno(&f) : -ENOTCONN;
    if (!err) {
        unsigned least = child_first(f.good);

        for_each_child(i, f.good)
        {
            if (f.stk[i]->reply.statvfs.f_bavail < f.stk[least]->reply.statvfs.f_bavail)
                least = i;
        }
        err = fan_take(&f, op, least);
    }
    fan_end(&f);
    reply_all(op, err);
}

/* ---- locks of applications ------------------------------------------------------------------- */

static struct call_stack *
unlock_children_make(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_fork(op, i);

    (void)unused;
    if (stk)
        lock_call_to_unlock(&stk->call);
    return stk;
}

static void
unlock_children(struct op *op, child_set on)
{
    struct fan f;

    fan_insist(&f, op, on, unlock_children_make, NULL);
    fan_end(&f);
}

/* Locks the children in the order of lock-calls.h; skips children that are down. */
static int
lock_children_in_turn(struct op *op, child_set on)
{
    child_set has;
    int err = op_lock_in_turn(op, on, &has);

    if (!err && (has == on || op_has_quorum(op, has)))
        return 0;
    unlock_children(op, has);
    return err ? err : -ENOTCONN;
}

void
lk_go(struct op *op)
{
    child_set on = reachable_children(op);

    if (!op_has_quorum(op, on)) {
        op_fail(op, -ENOTCONN);
        return;
    }
    if (op->stk->call.cmd == LK_GET)
        reply_all(op, op_find_lock_holder(op, on));
    else if (op->stk->call.type == FLOCK_UNLOCK)
        all_go(op);
    else
        reply_all(op, lock_children_in_turn(op, on));
}

/* ---- moving locks to another fd -------------------------------------------------------------- */

/* Returns the pairs of a dictionary in the old form (wire 4.1), a count and pairs, with their number and
 * size. NULL: no pairs. */
static const uint8_t *
lockinfo_of(const struct call_stack *stk, uint32_t *count, uint32_t *bytes)
{
    const struct dict_pair *p = dict_find(stk->reply.dict, DICT_KEY_LOCKINFO);
    bool is_bytes = p && (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED);

    if (!is_bytes || p->len < sizeof *count)
        return NULL;
    memcpy(count, p->v.bytes, sizeof *count);
    *count = be32toh(*count);
    *bytes = p->len - (uint32_t)sizeof *count;
    return (const uint8_t *)p->v.bytes + sizeof *count;
}

/* Joins the pairs of all replies on the caller's arena. Returns 0 or -ENOMEM. */
static int
join_lockinfo(struct op *op, const struct fan *f)
{
    uint32_t count = 0, size = sizeof count, n, bytes;
    struct dict *d = reply_dict(op->stk);

    for_each_child(i, f->good) size += lockinfo_of(f->stk[i], &n, &bytes) ? bytes : 0;
    uint8_t *all = arena_alloc(&op->stk->arena, size), *at = all + sizeof count;

    if (!all || !d)
        return -ENOMEM;
    for_each_child(i, f->good)
    {
        const uint8_t *pairs = lockinfo_of(f->stk[i], &n, &bytes);

        if (!pairs)
            continue;
        memcpy(at, pairs, bytes);
        at += bytes;
        count += n;
    }
    op->stk->reply.op_ret = 0;
    if (!count)
        return 0;
    count = htobe32(count);
    memcpy(all, &count, sizeof count);
    return dict_set_bytes(d, DICT_KEY_LOCKINFO, all, size) ? -ENOMEM : 0;
}

void
lockinfo_go(struct op *op)
{
    struct fan f;

    wind_all(op, &f, reachable_children(op));
    int err = quorum_result(op, &f);
    if (!err)
        err = join_lockinfo(op, &f);
    fan_end(&f);
    reply_all(op, err);
}

/* ---- locks of layers above ------------------------------------------------------------------- */

/* Ends this mount's hold on the folder's names for a lock on the folder as a whole, which a removal of the
 * folder takes, or else when such a lock must wait. The name locks that distribute takes before a change
 * come just before a change that shares the hold, so they do not end it. */
static void
names_hurry(struct op *op)
{
    struct repl_inode *ri = op->inode && S_ISDIR(op->inode->type) ? repl_inode(op->r, op->inode) : NULL;

    if (ri)
        hold_hurry(&ri->hold);
}

void
locks_go(struct op *op)
{
    child_set on = reachable_children(op);
    struct fan f;

    if (!op_has_quorum(op, on)) {
        op_fail(op, -ENOTCONN);
        return;
    }
    if (lock_call_is_unlock(&op->stk->call)) {
        all_go(op);
        return;
    }
    if (!lock_call_is_of_name(&op->stk->call) && op->stk->call.type == FLOCK_WRITE)
        names_hurry(op);
    bool waits = lock_call_waits(&op->stk->call), is_taken = false;
    lock_call_to_try(&op->stk->call);
    wind_all(op, &f, on);
    for_each_child(i, f.sent & ~f.good) is_taken |= f.ret[i] == -EAGAIN;
    int err = f.unsent ? -ENOMEM : is_taken ? -EAGAIN : quorum_result(op, &f);
    child_set has = fan_done(&f);
    if (!err)
        err = fan_take(&f, op, child_first(f.good));
    fan_end(&f);
    if (err)
        unlock_children(op, has);
    if (err == -EAGAIN && waits) {
        names_hurry(op);
        lock_call_to_wait(&op->stk->call);
        err = lock_children_in_turn(op, on);
    }
    reply_all(op, err);
}
