/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of an object's attributes: owner, mode, times, extended attributes; and XATTROP of layers above.
 *
 *      lock      the range that begins at 2^63 - 2, which bricks keep apart from data locks. The lock is
 *                shared with changes of the same object in the next milliseconds (hold.c), unless a child
 *                is missing or `metadata-lock-kept-ms` is 0
 *      mark      metadata +1 about each missing child, only if a child is missing
 *      change, reply, marks after, unlock: transaction.c
 *
 * So attributes may change while another client writes, because each kind of change has a separate counter.
 * If two other clients read from different children, one of them may see the change before the other. */
#include <errno.h>

#include "xlators/cluster/replicate/heal.h"

static int
change_attributes(struct op *op, struct transaction *t)
{
    struct view v;
    struct fan f;
    int err = transaction_ask(t, &f, fan_fork, NULL);

    if (err)
        return err;
    err = transaction_judge(t, &f, NULL);
    if (!err) {
        child_set good = f.good & ~t->copies.failed, best = good;

        if (view_get(op->r, op->inode, &v) && v.data & v.metadata & good)
            best = v.data & v.metadata & good; /* the reply has the file's size, too */
        err = fan_take(&f, op, view_choose(op->r, best, op->inode));
    }
    fan_end(&f);
    return err;
}

/* Returns the hold to share, or NULL: the change takes a separate lock. */
static struct hold *
shared_hold(const struct op *op)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);
    struct repl_inode *ri = conf->metadata_kept_ms && op->is_pinned ? repl_inode(op->r, op->inode) : NULL;
    struct hold *h = ri ? repl_inode_attributes(ri) : NULL;

    return h && (atomic_load(&op->r->up) == op->r->all || hold_is_taken(h)) ? h : NULL;
}

static void
change_attributes_sharing(struct op *op, struct hold *h)
{
    struct writer w = {.end = 1}; /* one after the other, on all children in the same order */
    struct transaction t;

    new_file_changed(h->ri, NEW_IS_SET);
    int err = hold_join(op, op->inode, h, &w);
    if (err) {
        op_fail(op, err);
        return;
    }
    transaction_init(&t, op, CHANGE_METADATA);
    transaction_mark(&t, op->inode, NULL);
    err = transaction_begin_held(&t, w.children);
    transaction_end(&t, err ? err : change_attributes(op, &t));
    (void)hold_leave(op, h, &w, &(struct hold_outcome){.failed = t.copies.failed, .may_wait = true}, false);
}

static void
change_attributes_alone(struct op *op)
{
    struct transaction t;

    transaction_init(&t, op, CHANGE_METADATA);
    transaction_add(&t, (struct lock_entity){.inode = op->inode, .start = METADATA_START});
    transaction_mark(&t, op->inode, NULL);
    int err = transaction_begin(&t);
    if (err)
        op_fail(op, err);
    else
        transaction_end(&t, change_attributes(op, &t));
}

void
metadata_go(struct op *op)
{
    if (op->fop == FOP_fsetxattr && dict_find(op->stk->call.dict, DICT_KEY_LOCKINFO)) {
        all_go(op);
        return;
    }
    if (split_set(op))
        return;
    int err = op_admit(op, op->inode, CHANGE_METADATA);

    if (!err && op->file)
        err = repl_fd_complete(op);
    if (err) {
        op_fail(op, err);
        return;
    }
    struct hold *h = shared_hold(op);
    if (h)
        change_attributes_sharing(op, h);
    else
        change_attributes_alone(op);
}
