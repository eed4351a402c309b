/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of a set's own, on an inode of all children: those of holds, of heals, and of healers against each
 * other. First without waiting, everywhere at once; if another client has the lock somewhere, child after
 * child. A child that dies has no locks afterwards, and a mount that dies leaves none. */
#include <errno.h>

#include "stack/lock-cmd.h"
#include "xlators/cluster/disperse/disperse-internal.h"

struct call_stack *
ec_lock_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_lock *l = arg;
    struct call_stack *stk = ec_call(op, FOP_inodelk, i, is_spare, l->inode, NULL);

    if (!stk)
        return NULL;
    stk->caller.lk_owner = (struct lk_owner){.len = 8, .bytes = l->owner};
    stk->call.volume = l->domain;
    stk->call.cmd = l->cmd;
    stk->call.type = l->type;
    stk->call.flock = (struct fop_flock){.type = l->type};
    return stk;
}

void
ec_locks_drop(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
              child_set on)
{
    struct ec_lock l = {
        .inode = inode, .domain = domain, .owner = owner, .cmd = LK_SET, .type = FLOCK_UNLOCK};
    struct fan f;

    ec_insist(&f, op, on, ec_lock_make, &l);
    fan_end(&f);
}

child_set
ec_locks_try(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
             child_set on)
{
    struct ec_lock l = {
        .inode = inode, .domain = domain, .owner = owner, .cmd = LK_SET, .type = FLOCK_WRITE};
    struct fan f;

    if (ec_ask(&f, op, on, ec_lock_make, &l))
        return 0;
    child_set has = fan_done(&f);
    fan_end(&f);
    return has;
}

/* Locks child after child, waiting: of two clients one gets the lock of the first child, and the other
 * waits there. */
static child_set
lock_in_turn(const struct ec_op *op, struct ec_lock *l, child_set on, int *err)
{
    child_set has = 0;
    struct fan f;

    l->cmd = LK_SET_WAIT;
    for_each_child (i, on) {
        if (ec_ask(&f, op, CHILD(i), ec_lock_make, l)) {
            *err = -ENOMEM;
            break;
        }
        has |= fan_done(&f);
        *err = fan_done(&f) ? *err : f.ret[i];
        fan_end(&f);
    }
    if (*err != -ENOMEM && children_count(has) >= op->d->data)
        return has;
    ec_locks_drop(op, l->inode, l->domain, l->owner, has);
    return 0;
}

/* Returns the errno of a lock that too few children granted. */
static int
lock_error(const struct ec_op *op, const struct fan *f)
{
    int ret;
    child_set winner = answers_winner(f, false, &ret);

    if (ret < 0 && children_count(winner) > op->d->redundancy)
        return ret;
    int err = answers_too_few(op, f);
    return err == -EIO && ret == -ENOTCONN ? -ENOTCONN : err;
}

child_set
ec_locks_take(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
              child_set on, int *err)
{
    struct ec_lock l = {
        .inode = inode, .domain = domain, .owner = owner, .cmd = LK_SET, .type = FLOCK_WRITE};
    child_set has, taken = 0;
    struct fan f;

    *err = 0;
    if (ec_ask(&f, op, on, ec_lock_make, &l)) {
        *err = -ENOMEM;
        return 0;
    }
    has = fan_done(&f);
    for_each_child (i, f.sent)
        taken |= f.ret[i] == -EAGAIN ? CHILD(i) : 0;
    bool may_wait = taken && children_count(has | taken) >= op->d->data;
    bool is_enough = !taken && children_count(has) >= op->d->data;
    if (!may_wait && !is_enough)
        *err = taken ? answers_too_few(op, &f) : lock_error(op, &f);
    fan_end(&f);
    if (is_enough)
        return has;
    ec_locks_drop(op, inode, domain, owner, has);
    return may_wait ? lock_in_turn(op, &l, has | taken, err) : 0;
}
