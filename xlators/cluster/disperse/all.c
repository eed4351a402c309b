/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Operations for every child.
 *
 *   flush             first version and size, if this mount changed the file; then to all children, if the
 *                     file has had locks. The hold then ends, so that a mount that dies later leaves no dirty
 *                     file
 *   fsync, fsyncdir   the same, then FSYNC on all good children; the hold goes on
 *   statfs            to all; the smallest free space counts for each fragment
 *   lk                a lock of an application: to the first child, and then to the rest, in the order of
 *                     lock-calls.h. If a child refuses, the others are unlocked again. An unlock goes to all
 *                     in parallel
 *   inodelk, entrylk  a lock of a layer above: to all in parallel, without waiting. If a child's lock is
 *                     taken, the granted locks are released, and the children are locked in turn
 *
 * K children are enough. While such a lock is being taken other clients see it on some children only; to
 * get it a client needs it on K children. */
#include <errno.h>

#include "stack/lock-cmd.h"
#include "xlators/cluster/disperse/disperse-internal.h"
#include "xlators/cluster/lock-calls.h"

/* ---- flush, fsync ---------------------------------------------------------------------------- */

/* Without locks of the application the bricks have nothing to do. */
static bool
is_flush_of_mount(const struct ec_op *op)
{
    return op->stk->call.hint.kind == HINT_FLUSH_OF_MOUNT;
}

static void
ec_send_flush(struct ec_op *op, int before)
{
    struct fan f;
    int ret;

    if (is_flush_of_mount(op)) {
        ec_finish(op, before);
        return;
    }
    ec_insist(&f, op, atomic_load(&op->d->up), ec_fork, NULL);
    (void)answers_winner(&f, false, &ret);
    int err = before ? before : children_count(fan_done(&f)) >= op->d->data ? 0 : ret < 0 ? ret : -EIO;
    fan_end(&f);
    ec_finish(op, err);
}

void
ec_flush_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX};

    if (!op->inode || !ec_is_unwritten(op->d, op->inode)) {
        ec_send_flush(op, 0);
        return;
    }
    int err = ec_join(op, op->inode, &u, S_ISREG(inode_type(op->inode)) ? NEEDS_INFO : NEEDS_LOCK);
    if (err) {
        ec_send_flush(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    int lost = ec_take_lost_err(op->d, op->inode);
    if (is_flush_of_mount(op) && !lost) {
        ec_leave_flushed(op, op->inode, &u);
        return;
    }
    err = ec_hold_write_back(op, h);
    ec_send_flush(op, lost ? lost : err);
    ec_hurry(h);
    ec_leave(op, op->inode, &u);
}

void
ec_fsync_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX};
    struct ec_behind sync = {.make = ec_fork};
    struct fan *f = &sync.fan;
    int ret;

    ec_fd_complete(op);
    int err = ec_join(op, op->inode, &u, op->fop == FOP_fsync ? NEEDS_INFO : NEEDS_LOCK);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    err = ec_take_lost_err(op->d, op->inode);
    if (!err)
        err = ec_hold_write_back_with(op, h, &sync);
    if (sync.is_sent && (err || f->unsent)) {
        fan_end(f);
        sync.is_sent = false;
    }
    if (!err && !sync.is_sent)
        err = ec_ask(f, op, ec_good(h), ec_fork, NULL);
    if (!err) {
        child_set good = answers_judge(op, f, false, &ret);

        err = ret < 0 ? ret : answers_take(op, f, good);
        /* the others have newer data than a child that could not store */
        ec_record(op, op->inode, COUNTS_DATA, f->sent & ~f->unread, good, false);
        fan_end(f);
    }
    iatt_set_size(&op->stk->reply.pre, ec_size(h));
    iatt_set_size(&op->stk->reply.post, ec_size(h));
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

/* ---- statfs, ipc ----------------------------------------------------------------------------- */

#define TAKE_LEAST(field, value) (to->field = (value) < to->field ? (value) : to->field)
#define TAKE_MOST(field) (to->field = from->field > to->field ? from->field : to->field)

static void
join_statvfs(struct statvfs *to, const struct statvfs *from)
{
    unsigned long unit = to->f_frsize > from->f_frsize ? to->f_frsize : from->f_frsize;

    if (!unit || !to->f_frsize || !from->f_frsize)
        return;
    to->f_blocks = to->f_blocks * to->f_frsize / unit;
    to->f_bfree = to->f_bfree * to->f_frsize / unit;
    to->f_bavail = to->f_bavail * to->f_frsize / unit;
    TAKE_LEAST(f_blocks, from->f_blocks * from->f_frsize / unit);
    TAKE_LEAST(f_bfree, from->f_bfree * from->f_frsize / unit);
    TAKE_LEAST(f_bavail, from->f_bavail * from->f_frsize / unit);
    to->f_frsize = unit;
    TAKE_MOST(f_bsize);
    TAKE_MOST(f_files);
    TAKE_MOST(f_ffree);
    TAKE_MOST(f_favail);
    TAKE_MOST(f_namemax);
}

void
ec_statfs_go(struct ec_op *op)
{
    struct statvfs *v = &op->stk->reply.statvfs;
    struct fan f;
    int ret, err = ec_ask(&f, op, atomic_load(&op->d->up), ec_fork, NULL);

    if (err) {
        ec_fail(op, err);
        return;
    }
    (void)answers_winner(&f, false, &ret);
    err = f.good ? fan_copy_reply(&f, child_first(f.good), op->stk) : ret;
    for_each_child (i, f.good)
        join_statvfs(v, &f.stk[i]->reply.statvfs);
    if (!dict_get_flag(op->stk->reply.xdata, DICT_KEY_QUOTA_DEEM_STATFS)) {
        v->f_blocks *= op->d->data;
        v->f_bfree *= op->d->data;
        v->f_bavail *= op->d->data;
    }
    fan_end(&f);
    ec_finish(op, err);
}

void
ec_ipc_go(struct ec_op *op)
{
    struct fan f;
    int ret, err = ec_ask(&f, op, atomic_load(&op->d->up), ec_fork, NULL);

    if (!err) {
        child_set good = answers_judge(op, &f, false, &ret);

        err = ret < 0 ? ret : answers_take(op, &f, good);
        fan_end(&f);
    }
    ec_finish(op, err);
}

/* ---- locks of applications and of layers above ----------------------------------------------- */

static struct call_stack *
unlock_all_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_fork(op, i, is_spare, unused);

    if (stk)
        lock_call_to_unlock(&stk->call);
    return stk;
}

static void
unlock_all(struct ec_op *op, child_set on)
{
    struct fan f;

    ec_insist(&f, op, on, unlock_all_make, NULL);
    fan_end(&f);
}

/* Locks the children in the order of lock-calls.h, in the caller's way; skips children that are down. */
static int
lock_all_in_turn(struct ec_op *op, child_set on)
{
    child_set has;
    int err = ec_lock_in_turn(op, on, &has);

    if (!err && children_count(has) >= op->d->data)
        return 0;
    unlock_all(op, has);
    return err ? err : -ENOTCONN;
}

static void
unlock_for_caller(struct ec_op *op)
{
    struct fan f;
    int ret;

    ec_insist(&f, op, atomic_load(&op->d->up), ec_fork, NULL);
    (void)answers_winner(&f, false, &ret);
    bool is_done = fan_done(&f);
    if (f.good && f.stk[child_first(f.good)])
        (void)fan_copy_reply(&f, child_first(f.good), op->stk);
    fan_end(&f);
    ec_finish(op, is_done ? 0 : ret < 0 ? ret : -EIO);
}

/* Application locks go by the children's fds, because a lock belongs to an fd: a child where the file is not
 * open takes no part. */
void
ec_lk_go(struct ec_op *op)
{
    child_set on = atomic_load(&op->d->up);

    ec_fd_complete(op);
    on &= op->file ? ec_fd_open(op->file) : 0;
    if (children_count(on) < op->d->data)
        ec_fail(op, op->file ? -ENOTCONN : -EBADFD);
    else if (op->stk->call.cmd == LK_GET)
        ec_finish(op, ec_find_lock_holder(op, atomic_load(&op->d->up)));
    else if (lock_call_is_unlock(&op->stk->call))
        unlock_for_caller(op);
    else
        ec_finish(op, lock_all_in_turn(op, on));
}

static struct call_stack *
lock_now_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_fork(op, i, is_spare, unused);

    if (stk)
        lock_call_to_try(&stk->call);
    return stk;
}

void
ec_locks_go(struct ec_op *op)
{
    bool waits = lock_call_waits(&op->stk->call);
    child_set on = atomic_load(&op->d->up);
    bool is_taken = false;
    struct fan f;
    int ret;

    if (lock_call_is_unlock(&op->stk->call)) {
        unlock_for_caller(op);
        return;
    }
    int err = ec_ask(&f, op, on, lock_now_make, NULL);
    if (err) {
        ec_fail(op, err);
        return;
    }
    for_each_child (i, f.sent)
        is_taken |= f.ret[i] == -EAGAIN;
    child_set has = fan_done(&f);
    child_set good = answers_winner(&f, false, &ret);
    if (!is_taken && children_count(has) >= op->d->data) {
        err = good && ret >= 0 ? fan_copy_reply(&f, child_first(good), op->stk) : 0;
        fan_end(&f);
        ec_finish(op, err);
        return;
    }
    fan_end(&f);
    unlock_all(op, has);
    if (is_taken && waits)
        ec_finish(op, lock_all_in_turn(op, on));
    else
        ec_fail(op, is_taken ? -EAGAIN : ret < 0 ? ret : -ENOTCONN);
}
