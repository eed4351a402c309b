/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of an object's attributes: owner, mode, times, extended attributes; and XATTROP of layers above.
 *
 *      lock      the range that begins at 2^63 - 2, which bricks keep apart from data locks
 *      mark      metadata dirty +1, only if a child is missing
 *      change, reply, marks after, unlock: transaction.c
 *
 * So attributes may be changed while another client writes: each kind has a counter of its own. Other clients
 * see the change on one child before they see it on the other, if they happen to read of different ones. */
#include <errno.h>

#include "xlators/cluster/replicate/heal.h"

#define METADATA_START ((uint64_t)INT64_MAX - 1)

static int
change(struct op *op, struct transaction *t)
{
    struct view v;
    struct fan f;

    fan_begin(&f);
    for_each_child(i, t->locked & ~t->failed) fan_wind(&f, op, i, op_fork(op, i));
    fan_wait(&f);
    int err = transaction_judge(t, &f, NULL);

    if (!err) {
        child_set good = f.good & ~t->failed, best = good;

        if (view_get(op->r, op->inode, &v) && v.data & v.metadata & good)
            best = v.data & v.metadata & good; /* the reply says how long the file is, too */
        err = fan_take(&f, op, view_choose(op->r, best, op->inode));
    }
    fan_end(&f);
    return err;
}

void
metadata_go(struct op *op)
{
    struct transaction t;

    if (op->fop == FOP_fsetxattr && dict_find(op->stk->call.dict, DICT_KEY_LOCKINFO)) {
        all_go(op);
        return;
    }
    if (split_set(op))
        return;
    int err = op_admit(op, op->inode, CHANGE_METADATA);

    if (!err && op->file)
        repl_fd_complete(op);
    transaction_init(&t, op, CHANGE_METADATA);
    transaction_add(&t, (struct lock_entity){.inode = op->inode, .start = METADATA_START});
    transaction_mark(&t, op->inode, NULL);
    if (!err)
        err = transaction_begin(&t);
    if (err) {
        op_fail(op, err);
        return;
    }
    err = change(op, &t);
    transaction_end(&t, err);
}
