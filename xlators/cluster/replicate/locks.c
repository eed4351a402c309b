/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The locks of changes and heals. All clients take the locks on several children in the same order, so no two
 * clients wait for each other: transaction.c. */
#include <errno.h>
#include <string.h>

#include "stack/lock-cmd.h"
#include "xlators/cluster/replicate/replicate-internal.h"

enum lock_how { LOCK_NOW, LOCK_WAIT, LOCK_DROP };

static void
fill_entry_lock(struct fop_call *call, const struct lock_entity *e, enum lock_how how)
{
    static const uint32_t cmds[] = {
        [LOCK_NOW] = ENTRYLK_TRY, [LOCK_WAIT] = ENTRYLK_WAIT, [LOCK_DROP] = ENTRYLK_UNLOCK};

    call->cmd = cmds[how];
    call->type = FLOCK_WRITE;
    call->name = e->name ? e->name : "";
    call->has_name = e->name != NULL;
}

static void
fill_inode_lock(struct fop_call *call, const struct lock_entity *e, enum lock_how how)
{
    call->cmd = how == LOCK_WAIT ? LK_SET_WAIT : LK_SET;
    call->type = how == LOCK_DROP ? FLOCK_UNLOCK : FLOCK_WRITE;
    call->flock = (struct fop_flock){
        .type = call->type, .start = (int64_t)e->start, .len = (int64_t)e->len};
}

static struct call_stack *
lock_make(const struct op *op, const struct lock_entity *e, unsigned i, enum lock_how how)
{
    struct fd *fd = op->file && e->inode == op->inode && !e->is_entry ? repl_fd_child(op->file, i) : NULL;
    struct call_stack *stk = op_call(op, e->is_entry ? FOP_entrylk : fd ? FOP_finodelk : FOP_inodelk, i);

    if (!stk)
        return NULL;
    inode_unref(stk->call.loc.inode);
    stk->call.loc.inode = inode_ref(e->inode);
    stk->call.volume = e->domain ? e->domain : op->r->xl->name;
    if (e->is_entry)
        fill_entry_lock(&stk->call, e, how);
    else
        fill_inode_lock(&stk->call, e, how);
    return stk;
}

struct call_stack *
lock_now_make(const struct op *op, unsigned i, const struct lock_entity *e)
{
    return lock_make(op, e, i, LOCK_NOW);
}

struct call_stack *
lock_drop_make(const struct op *op, unsigned i, const struct lock_entity *e)
{
    return lock_make(op, e, i, LOCK_DROP);
}

static void
wind_lock(const struct op *op, struct fan *f, const struct lock_entity *e, child_set on, enum lock_how how)
{
    fan_begin(f);
    for_each_child(i, on) fan_wind(f, op, i, lock_make(op, e, i, how));
}

static struct call_stack *
unlock_make(const struct op *op, unsigned i, const void *e)
{
    return lock_make(op, e, i, LOCK_DROP);
}

/* Ignores the replies: a child that has lost the connection has dropped its locks. */
void
locks_drop_one(const struct op *op, const struct lock_entity *e, child_set on)
{
    struct fan f;

    fan_insist(&f, op, on, unlock_make, e);
    fan_end(&f);
}

void
locks_drop(const struct op *op, const struct lock_entity *e, unsigned count, child_set on, struct fan *fans)
{
    for (unsigned k = 0; k < count; k++)
        wind_lock(op, &fans[k], &e[k], on, LOCK_DROP);
}

void
locks_dropped(const struct op *op, const struct lock_entity *e, unsigned count, struct fan *fans)
{
    for (unsigned k = 0; k < count; k++) {
        fan_wait(&fans[k]);
        child_set left = fans[k].unsent;

        fan_end(&fans[k]);
        if (left)
            locks_drop_one(op, &e[k], left);
    }
}

/* Locks one child after the other, waiting. */
static child_set
locks_take_in_turn(const struct op *op, const struct lock_entity *e, unsigned count, child_set on, int *err)
{
    child_set has[LOCK_ENTITIES_MAX] = {0}, locked = on;
    struct fan f;

    for (unsigned k = 0; k < count; k++) {
        for_each_child(i, on)
        {
            if (!(locked & CHILD(i)))
                continue;
            wind_lock(op, &f, &e[k], CHILD(i), LOCK_WAIT);
            fan_wait(&f);
            if (fan_done(&f))
                has[k] |= CHILD(i);
            else
                *err = replica_worse_errno(*err, fan_errno(&f));
            locked &= fan_done(&f) ? locked : ~CHILD(i);
            if (f.unsent) { /* out of memory: ask no further child */
                *err = ENOMEM;
                locked = 0;
            }
            fan_end(&f);
        }
    }
    for (unsigned k = 0; k < count; k++)
        locks_drop_one(op, &e[k], has[k] & ~locked);
    return locked;
}

child_set
locks_take(const struct op *op, const struct lock_entity *e, unsigned count, child_set on, int *err)
{
    struct fan f[LOCK_ENTITIES_MAX];
    child_set locked = on, has[LOCK_ENTITIES_MAX];
    bool is_taken = false, is_short = false;

    for (unsigned k = 0; k < count; k++)
        wind_lock(op, &f[k], &e[k], on, LOCK_NOW);
    for (unsigned k = 0; k < count; k++) {
        fan_wait(&f[k]);
        has[k] = fan_done(&f[k]);
        locked &= has[k];
        is_short |= f[k].unsent;
        for_each_child(i, f[k].sent & ~f[k].good) is_taken |= f[k].ret[i] == -EAGAIN;
        *err = replica_worse_errno(*err, fan_errno(&f[k]));
        fan_end(&f[k]);
    }
    if (is_taken || is_short)
        locked = 0;
    for (unsigned k = 0; k < count; k++)
        locks_drop_one(op, &e[k], has[k] & ~locked);
    if (is_short)
        *err = ENOMEM;
    if (!is_taken || is_short)
        return locked;
    *err = 0;
    return locks_take_in_turn(op, e, count, on, err);
}

child_set
locks_try(const struct op *op, const struct lock_entity *e, child_set on)
{
    struct fan f;

    wind_lock(op, &f, e, on, LOCK_NOW);
    fan_wait(&f);
    child_set has = fan_done(&f);
    fan_end(&f);
    return has;
}
