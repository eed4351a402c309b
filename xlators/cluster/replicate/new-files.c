/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of a new or opened file, taken before the first operation needs them. Programs that unpack archives
 * or copy files make a file, write the file, may set its attributes, and close the file:
 *
 *      CREATE is answered       the application sends its first write; meanwhile
 *      the hold on data         is taken: lock and mark (hold.c)
 *      the hold on attributes   is taken while the write is under way
 *
 * Bricks of kilnd get the lock and the mark with the CREATE, in one message, so that the first write waits
 * for neither (hold.c says which states deaths leave). Then the hold is in the state TAKING before the file
 * is there. A second program on this mount that finds the new name early and writes waits for the hold's end.
 *
 * An OPEN for writing gets the lock and the mark in its message, too, if the bricks are kilnd's and no copy
 * is accused. With O_TRUNC the truncation that follows needs them.
 *
 * Each hold is taken only if the last new file (for an OPEN: the last opened file) of this set of replicas
 * that was closed or changed needed it, and only while no child is missing. A close releases unused holds;
 * else they end as any hold does. After an OPEN of a file that another client has locked, the next OPENs take
 * no lock.
 * `lock-new-files off` takes each lock with the change that needs it.
 *
 * A new folder gets a layout xattr next: the hold on its attributes is taken while distribute makes the
 * folder on other subvolumes. The first name that is made in the folder within milliseconds is expected to
 * have successors: its lock is the lock on all names, which the next changes share (entry.c).
 *
 * Other clients find locks and a dirty mark on an empty file, as if its first write were under way. A file
 * that was never written keeps a dirty xattr of zero, as all written files do; zero means the same as no
 * xattr. */
#include <fcntl.h>

#include "xlators/cluster/replicate/replicate-internal.h"

/* ---- CREATE and OPEN with lock and mark ------------------------------------------------------- */

/* Returns whether the OPEN or CREATE may take the file's lock and mark. */
static bool
may_take_early(const struct op *op)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);
    child_set all = op->r->all;

    return conf->locks_new_files && conf->eager_lock && conf->post_op_delay_s && op->is_pinned &&
           (op->stk->call.flags & O_ACCMODE) != O_RDONLY && atomic_load(&op->r->up) == all &&
           fan_takes_joined(op->r->xl, all);
}

/* Winds the messages: the caller's call, lock and mark. If there is no memory, none is wound. */
static void
early_wind(const struct op *op, struct hold *h, fan_call_fn make, struct fan *const fans[3])
{
    struct fan_step steps[REPLICAS_MAX][3];
    bool is_short = false;

    for_each_child (i, op->r->all) {
        hold_early_step(op, h, i, &steps[i][1]);
        steps[i][0].stk = make(op, i, NULL);
        for (unsigned k = 0; k < 3; k++) {
            steps[i][k].fan = fans[k];
            steps[i][k].always = false;
            is_short |= !steps[i][k].stk;
        }
    }
    for (unsigned k = 0; k < 3; k++)
        fan_begin(fans[k]);
    for_each_child (i, op->r->all) {
        for (unsigned k = 0; k < 3 && is_short; k++) {
            if (steps[i][k].stk)
                call_stack_free(steps[i][k].stk);
            fans[k]->sent |= CHILD(i); /* fan_wait() counts it as unsent */
            fans[k]->stk[i] = NULL;
        }
        if (!is_short)
            fan_wind_joined(steps[i], 3, op->r->xl, i);
    }
    for (unsigned k = 0; k < 3; k++)
        fan_wait(fans[k]);
}

/* Makes the call on all children, with lock and mark of the hold that hold_early_begin() has begun. Returns
 * whether the hold is kept for the first write. */
static bool
early_ask(const struct op *op, struct hold *h, fan_call_fn make, struct fan *f)
{
    struct fan lock, mark;

    early_wind(op, h, make, (struct fan *const[]){f, &lock, &mark});
    return hold_early_end(op, h, &lock, &mark);
}

/* Takes the hold of the file to be made, whose inode gets a reference in *inode. NULL: there is nothing to
 * take. */
static struct hold *
creation_begin(const struct transaction *t, struct inode **inode)
{
    const struct op *op = t->op;
    struct iatt asked = {.mode = S_IFREG};

    *inode = NULL;
    if (!may_take_early(op) || !(atomic_load(&op->r->habits) & NEW_IS_WRITTEN) ||
        copies_left(&t->copies) != op->r->all ||
        dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &asked.gfid))
        return NULL;
    *inode = inode_link(op->r->xl->graph->inodes, NULL, NULL, &asked);
    struct repl_inode *ri = *inode ? repl_inode(op->r, *inode) : NULL;

    return ri && S_ISREG((*inode)->type) && hold_early_begin(op, *inode, &ri->hold) ? &ri->hold : NULL;
}

int
transaction_create(struct transaction *t, struct fan *f)
{
    struct op *op = t->op;
    struct inode *inode;
    struct hold *h = creation_begin(t, &inode);

    if (!h) {
        inode_unref(inode);
        return transaction_ask(t, f, fan_fork, NULL);
    }
    (void)early_ask(op, h, fan_fork, f);
    int err = fan_ask_rest(f, op, fan_fork, NULL);
    if (!fan_done(f))
        inode_forget(inode); /* it was linked before the object was there */
    inode_unref(inode);
    t->is_for_nothing = err != 0;
    return err;
}

/* Returns whether no copy is accused. */
static bool
is_good_everywhere(const struct op *op, const struct view *v)
{
    child_set keepers = op->r->arbiter >= 0 ? op->r->all & ~CHILD(op->r->arbiter) : op->r->all;

    return v->metadata == op->r->all && (v->data & keepers) == keepers;
}

bool
open_early(struct op *op, const struct view *v, struct fan *f, fan_call_fn make)
{
    struct repl_inode *ri = may_take_early(op) && !op->file && S_ISREG(op->inode->type) &&
                                    is_good_everywhere(op, v)
                                ? repl_inode(op->r, op->inode)
                                : NULL;
    bool is_expected = op->stk->call.flags & O_TRUNC || atomic_load(&op->r->habits) & OPEN_IS_WRITTEN;

    if (!ri || !is_expected || !hold_early_begin(op, op->inode, &ri->hold))
        return false;
    if (!early_ask(op, &ri->hold, make, f)) /* another client may have the lock */
        atomic_fetch_and(&op->r->habits, ~(unsigned)OPEN_IS_WRITTEN);
    return true;
}

void
opened_file(struct op *op)
{
    struct fd *fd = op->stk->reply.fd;
    struct repl_inode *ri = (fd->flags & O_ACCMODE) == O_RDONLY ? NULL : repl_inode(op->r, op->inode);

    if (!ri)
        return;
    hold_use_file(&ri->hold, fd_ctx(fd, op->r->xl));
    if (!(op->stk->call.flags & O_TRUNC))
        atomic_fetch_or(&ri->awaits, OPEN_IS_WRITTEN);
}

/* ---- new objects ----------------------------------------------------------------------------- */

/* Afterwards op->inode and op->file are the new file's. */
void
new_file_made(struct op *op, struct inode *inode)
{
    struct fd *fd = op->stk->reply.fd;
    struct repl_inode *ri = repl_inode(op->r, inode);

    if (!ri || (fd->flags & O_ACCMODE) == O_RDONLY)
        return;
    atomic_store(&ri->awaits, NEW_IS_WRITTEN | NEW_IS_SET);
    inode_unref(op->inode);
    op->inode = inode_ref(inode);
    if (!op->file)
        op->file = repl_fd_ref(fd_ctx(fd, op->r->xl));
    hold_use_file(&ri->hold, op->file);
}

/* Joins and leaves the hold as a writer of no bytes. Errors are ignored: the real change meets them again. */
static void
hold_visit(struct op *op, struct hold *h)
{
    struct writer w = {0};

    if (!hold_join(op, op->inode, h, &w))
        (void)hold_leave(op, h, &w, &(struct hold_outcome){.may_wait = true}, false);
}

/* If the file awaits nothing, it was closed or the expected operation has already come. */
void
new_file_expect(struct op *op)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);
    struct repl_inode *ri = repl_inode(op->r, op->inode);

    if (!ri || !conf->locks_new_files || !op->is_pinned || atomic_load(&op->r->up) != op->r->all)
        return;
    unsigned habits = atomic_load(&op->r->habits);
    if (habits & NEW_IS_WRITTEN & atomic_load(&ri->awaits) && conf->eager_lock && conf->post_op_delay_s)
        hold_visit(op, &ri->hold);
    struct hold *attributes = habits & NEW_IS_SET ? repl_inode_attributes(ri) : NULL;
    if (attributes && NEW_IS_SET & atomic_load(&ri->awaits) && conf->metadata_kept_ms)
        hold_visit(op, attributes);
}

void
new_folder_made(struct op *op, struct inode *inode)
{
    struct repl_inode *ri = repl_inode(op->r, inode);

    if (!ri)
        return;
    atomic_store(&ri->named_ns, clock_mono_ns());
    inode_unref(op->inode);
    op->inode = inode_ref(inode);
}

void
new_folder_expect(struct op *op)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);
    struct repl_inode *ri = conf->locks_new_files && op->is_pinned ? repl_inode(op->r, op->inode) : NULL;
    struct hold *attributes = ri && conf->metadata_kept_ms ? repl_inode_attributes(ri) : NULL;

    if (attributes && atomic_load(&op->r->up) == op->r->all)
        hold_visit(op, attributes);
}

void
new_file_changed(struct repl_inode *ri, unsigned what)
{
    unsigned came = atomic_load(&ri->awaits) & what ? atomic_fetch_and(&ri->awaits, ~what) & what : 0;

    if (came & ~atomic_load(&ri->r->habits))
        atomic_fetch_or(&ri->r->habits, came);
}

void
new_file_closed(struct repl_inode *ri)
{
    unsigned left = atomic_load(&ri->awaits) ? atomic_exchange(&ri->awaits, 0) : 0;

    if (left)
        atomic_fetch_and(&ri->r->habits, ~left);
}
