/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What goes to every child, without a transaction.
 *
 *   flush, fsyncdir, ipc    to all at once; good if a quorum says so. A folder is opened where it is not yet
 *   statfs                  to all but the arbiter; the one with the least room answers for the set
 *   lk                      an application's lock: child after child, in their order, so that of two who
 *                           want it one has it on the first child and the other waits there. Refused by
 *                           one, it is given
 *                           back to those before. An unlock goes to all at once
 *   lockinfo                read: the answers of all joined; set: to all. No change of the file's, so no
 *                           transaction: locks go from one fd to another
 *   inodelk, entrylk        of a layer above: all at once, without waiting; if one is taken, what was
 *                           granted is given back and they are taken in turn
 *
 * In between another client sees such a lock on some children only; who wants it needs it on all. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/replicate-internal.h"

enum { LK_GET = 0, LK_SET = 1, LK_SET_WAIT = 2 }; /* wire 6.2 */
enum { ENTRY_LOCK_WAIT = 0, ENTRY_UNLOCK = 1, ENTRY_LOCK_NOW = 2 };

static bool
is_entry_lock(const struct op *op)
{
    return op->fop == FOP_entrylk || op->fop == FOP_fentrylk;
}

/* Of a lock of whatever kind. */
static bool
is_unlock(const struct op *op)
{
    const struct fop_call *call = &op->stk->call;

    return is_entry_lock(op) ? call->cmd == ENTRY_UNLOCK : call->type == FLOCK_UNLOCK;
}

/* ---- to all at once -------------------------------------------------------------------------- */

static void
reply_or_fail(struct op *op, int err)
{
    if (err < 0)
        op_fail(op, err);
    else
        op_reply(op);
}

/* 0 or -errno. */
static int
verdict(const struct op *op, const struct fan *f)
{
    if (op_has_quorum(op, f->good))
        return 0;
    return fan_errno(f) ? -fan_errno(f) : -ENOTCONN;
}

static child_set
reachable(const struct op *op)
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

/* A lock of nobody's would be left. */
static bool
must_be_done(const struct op *op)
{
    bool is_lock = fop_info[op->fop].traits & FOP_WAITS;

    return op->fop == FOP_flush || (is_lock && is_unlock(op));
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
        fan_insist(&f, op, reachable(op), fan_fork, NULL);
    else if (!err)
        err = fan_ask(&f, op, reachable(op), fan_fork, NULL);
    if (!err)
        err = verdict(op, &f);
    if (!err && f.stk[child_first(f.good)])
        err = fan_take(&f, op, child_first(f.good));
    fan_end(&f);
    reply_or_fail(op, err);
}

/* Answers without quorum, too: it changes nothing and reads nobody's data. */
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
    reply_or_fail(op, err);
}

/* ---- locks of applications ------------------------------------------------------------------- */

static struct call_stack *
unlock_call(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_fork(op, i);

    (void)unused;
    if (!stk)
        return NULL;
    if (op->fop == FOP_lk) {
        stk->call.cmd = LK_SET;
        stk->call.type = stk->call.flock.type = FLOCK_UNLOCK;
    } else if (op->fop == FOP_inodelk || op->fop == FOP_finodelk) {
        stk->call.cmd = LK_SET;
        stk->call.type = stk->call.flock.type = FLOCK_UNLOCK;
    } else {
        stk->call.cmd = ENTRY_UNLOCK;
    }
    return stk;
}

static void
give_back(struct op *op, child_set on)
{
    struct fan f;

    fan_insist(&f, op, on, unlock_call, NULL);
    fan_end(&f);
}

/* One after the other; a child that is away is left out. */
static int
lock_in_turn(struct op *op, child_set on)
{
    child_set has = 0;
    int err = -ENOTCONN;

    for_each_child(i, on)
    {
        struct fan f;

        wind_all(op, &f, CHILD(i));
        int ret = f.ret[i];
        if (ret >= 0 && !has)
            (void)fan_take(&f, op, i); /* a lock's reply has no dict that could be short of memory */
        fan_end(&f);
        if (ret >= 0)
            has |= CHILD(i);
        else
            err = ret;
        if (ret < 0 && ret != -ENOTCONN)
            break;
        if (ret >= 0)
            err = err == -ENOTCONN ? err : ret;
    }
    if (has == on || (op_has_quorum(op, has) && err == -ENOTCONN))
        return 0;
    give_back(op, has);
    return err;
}

/* Who has the lock is asked child after child, too: the first that knows of one answers. */
static void
get_lock(struct op *op)
{
    int err = -ENOTCONN;

    for_each_child(i, reachable(op))
    {
        struct fan f;

        wind_all(op, &f, CHILD(i));
        if (f.good)
            err = fan_take(&f, op, i);
        fan_end(&f);
        if (!err && op->stk->reply.flock.type != FLOCK_UNLOCK)
            break;
    }
    reply_or_fail(op, err);
}

void
lk_go(struct op *op)
{
    child_set on = reachable(op);

    if (!op_has_quorum(op, on)) {
        op_fail(op, -ENOTCONN);
        return;
    }
    if (op->stk->call.cmd == LK_GET)
        get_lock(op);
    else if (op->stk->call.type == FLOCK_UNLOCK)
        all_go(op);
    else
        reply_or_fail(op, lock_in_turn(op, on));
}

/* ---- locks that move to another fd ----------------------------------------------------------- */

/* A dictionary in the old form (wire 4.1): a count and pairs. Its pairs, and how many; NULL: none. */
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

/* Of all that have answered, on the caller's arena. 0 or -ENOMEM. */
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

    wind_all(op, &f, reachable(op));
    int err = verdict(op, &f);
    if (!err)
        err = join_lockinfo(op, &f);
    fan_end(&f);
    reply_or_fail(op, err);
}

/* ---- locks of layers above ------------------------------------------------------------------- */

/* What is to be done if it is taken. True: wait. */
static bool
ask_at_once(struct op *op)
{
    struct fop_call *call = &op->stk->call;
    uint32_t wait = is_entry_lock(op) ? ENTRY_LOCK_WAIT : LK_SET_WAIT;
    bool waits = call->cmd == wait;

    call->cmd = is_entry_lock(op) ? ENTRY_LOCK_NOW : LK_SET;
    return waits;
}

/* What this mount keeps of the folder is given back to who locks it as a whole, which a removal of it does;
 * and at the latest when such a lock has to be waited for. The locks that distribute takes on names before
 * it changes them come just before a change that shares what is kept. */
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
    child_set on = reachable(op);
    struct fan f;

    if (!op_has_quorum(op, on)) {
        op_fail(op, -ENOTCONN);
        return;
    }
    if (is_unlock(op)) {
        all_go(op);
        return;
    }
    if (!is_entry_lock(op) && op->stk->call.type == FLOCK_WRITE)
        names_hurry(op);
    bool waits = ask_at_once(op), is_taken = false;
    wind_all(op, &f, on);
    for_each_child(i, f.sent & ~f.good) is_taken |= f.ret[i] == -EAGAIN;
    int err = f.unsent ? -ENOMEM : is_taken ? -EAGAIN : verdict(op, &f);
    child_set has = fan_done(&f);
    if (!err)
        err = fan_take(&f, op, child_first(f.good));
    fan_end(&f);
    if (err)
        give_back(op, has);
    if (err == -EAGAIN && waits) {
        names_hurry(op);
        op->stk->call.cmd = is_entry_lock(op) ? ENTRY_LOCK_WAIT : LK_SET_WAIT;
        err = lock_in_turn(op, on);
    }
    reply_or_fail(op, err);
}
