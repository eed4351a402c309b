/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of a new file, taken before the first operation needs them. Programs that unpack archives or copy
 * files make a file, write the file, may set its attributes, and close the file:
 *
 *      CREATE is answered       the application sends its first write; meanwhile
 *      the hold on data         is taken: lock and mark (hold.c)
 *      the hold on attributes   is taken while the write is under way
 *
 * Bricks of kilnd get the lock and the mark with the CREATE, in one message, so that the first write waits
 * for neither (hold.c says which states deaths leave). Then the hold is in the state TAKING before the file
 * is there. A second program on this mount that finds the new name early and writes waits for the hold's end.
 *
 * Each hold is taken only if the last new file of this set of replicas that was closed or changed needed
 * it, and only while no child is missing. A close releases unused holds; else they end as any hold does.
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

/* ---- CREATE with lock and mark --------------------------------------------------------------- */

/* A CREATE, with the hold that is taken in its messages. */
struct creation {
    struct inode *inode;
    struct hold *hold;
};

/* Returns whether the file, if it is new, is expected to be written. */
static bool
expects_write(const struct transaction *t)
{
    const struct op *op = t->op;
    const struct replicate_conf *conf = xlator_conf(op->r->xl);
    child_set all = op->r->all;

    return conf->locks_new_files && conf->eager_lock && conf->post_op_delay_s && op->is_pinned &&
           (op->stk->call.flags & O_ACCMODE) != O_RDONLY && atomic_load(&op->r->habits) & NEW_IS_WRITTEN &&
           t->locked == all && !t->failed && atomic_load(&op->r->up) == all &&
           fan_takes_joined(op->r->xl, all);
}

/* Takes the hold of the file to be made. Returns false if there is nothing to take. */
static bool
creation_begin(struct creation *c, const struct transaction *t)
{
    const struct op *op = t->op;
    struct iatt asked = {.mode = S_IFREG};

    if (!expects_write(t) || dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &asked.gfid))
        return false;
    c->inode = inode_link(op->r->xl->graph->inodes, NULL, NULL, &asked);
    struct repl_inode *ri = c->inode ? repl_inode(op->r, c->inode) : NULL;

    c->hold = ri && S_ISREG(c->inode->type) && hold_created_begin(op, c->inode, &ri->hold) ? &ri->hold : NULL;
    if (!c->hold)
        inode_unref(c->inode);
    return c->hold;
}

/* Winds the messages. Returns 0, or -ENOMEM: none was wound. */
static int
creation_wind(const struct creation *c, const struct op *op, struct fan *const fans[3])
{
    struct fan_step steps[REPLICAS_MAX][3];
    bool is_short = false;

    for_each_child (i, op->r->all) {
        hold_created_step(op, c->hold, i, &steps[i][1]);
        steps[i][0].stk = op_fork(op, i);
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
        }
        if (!is_short)
            fan_wind_joined(steps[i], 3, op->r->xl, i);
    }
    for (unsigned k = 0; k < 3; k++)
        fan_wait(fans[k]);
    return is_short ? -ENOMEM : 0;
}

int
transaction_create(struct transaction *t, struct fan *f)
{
    struct op *op = t->op;
    struct creation c;
    struct fan lock, mark;

    if (!creation_begin(&c, t))
        return transaction_ask(t, f, fan_fork, NULL);
    int err = creation_wind(&c, op, (struct fan *const[]){f, &lock, &mark});

    hold_created_end(op, c.hold, &lock, &mark);
    if (!err)
        err = fan_ask_rest(f, op, fan_fork, NULL);
    if (!fan_done(f))
        inode_forget(c.inode); /* it was linked before the object was there */
    inode_unref(c.inode);
    t->is_for_nothing = err != 0;
    return err;
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
new_file_changed(struct repl_inode *ri, enum new_file what)
{
    if (atomic_load(&ri->awaits) & what && atomic_fetch_and(&ri->awaits, ~(unsigned)what) & what)
        atomic_fetch_or(&ri->r->habits, what);
}

void
new_file_closed(struct repl_inode *ri)
{
    unsigned left = atomic_load(&ri->awaits) ? atomic_exchange(&ri->awaits, 0) : 0;

    if (left)
        atomic_fetch_and(&ri->r->habits, ~left);
}
