/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/lock-calls.h"

#include <errno.h>

#include "stack/lock-cmd.h"

bool
lock_call_is_of_name(const struct fop_call *call)
{
    return call->fop == FOP_entrylk || call->fop == FOP_fentrylk;
}

bool
lock_call_is_unlock(const struct fop_call *call)
{
    return lock_call_is_of_name(call) ? call->cmd == ENTRYLK_UNLOCK : call->type == FLOCK_UNLOCK;
}

bool
lock_call_waits(const struct fop_call *call)
{
    return call->cmd == (lock_call_is_of_name(call) ? ENTRYLK_WAIT : LK_SET_WAIT);
}

void
lock_call_to_wait(struct fop_call *call)
{
    call->cmd = lock_call_is_of_name(call) ? ENTRYLK_WAIT : LK_SET_WAIT;
}

void
lock_call_to_try(struct fop_call *call)
{
    call->cmd = lock_call_is_of_name(call) ? ENTRYLK_TRY : LK_SET;
}

void
lock_call_to_unlock(struct fop_call *call)
{
    if (lock_call_is_of_name(call)) {
        call->cmd = ENTRYLK_UNLOCK;
        return;
    }
    call->cmd = LK_SET;
    call->type = call->flock.type = FLOCK_UNLOCK;
}

int
lock_calls_in_turn(const struct fan_maker *m, struct call_stack *caller, child_set on, child_set *has)
{
    int worst = 0;

    *has = 0;
    while (on && !worst) {
        bool may_all = *has && !lock_call_waits(&caller->call);
        child_set to = may_all ? on : CHILD(child_first(on));
        struct fan f;
        int err = fan_send(&f, m, to);

        if (err)
            return err;
        if (!*has && fan_done(&f))
            /* a lock's reply has no dict, so memory cannot run out here */
            (void)fan_copy_reply(&f, child_first(to), caller);
        *has |= fan_done(&f);
        for_each_child (i, to)
            worst = !worst && f.ret[i] < 0 && f.ret[i] != -ENOTCONN ? f.ret[i] : worst;
        fan_end(&f);
        on &= ~to;
    }
    return worst;
}

int
lock_calls_find_holder(const struct fan_maker *m, struct call_stack *caller, child_set on)
{
    int err = -ENOTCONN;

    for_each_child (i, on) {
        struct fan f;

        if (fan_send(&f, m, CHILD(i)))
            return -ENOMEM;
        err = f.good ? fan_copy_reply(&f, i, caller) : err;
        fan_end(&f);
        if (!err && caller->reply.flock.type != FLOCK_UNLOCK)
            break;
    }
    return err;
}
