/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of a file just made, taken before they are needed. Whoever unpacks an archive, or copies files,
 * writes each one that it makes, and may set its attributes, before it closes it:
 *
 *      CREATE is answered       the application comes with its first write; meanwhile
 *      the hold on data         is taken: lock and mark (hold.c)
 *      the hold on attributes   is taken while the write is on its way
 *
 * Each is done if it was needed by the last new file of this set of replicas that was closed or changed, and
 * while no child is missing. What is taken and not used is given back by the close, at the latest as any
 * hold. `lock-new-files off` takes a lock with the change that needs it.
 *
 * A folder just made gets its layout next, an xattr: the hold on its attributes is taken while distribute
 * makes the folder elsewhere. What is made in it within milliseconds is not taken for the only one: the first
 * name's lock is that of all names, which the next ones share (entry.c).
 *
 * Other clients find locks and a dirty mark on an empty file, as if its first write were on its way. One
 * that was never written keeps a mark of zero, as all that were written do: it says as much as none. */
#include <fcntl.h>

#include "xlators/cluster/replicate/replicate-internal.h"

/* From now on op->inode and op->file are the new file's. */
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

/* In as a writer of nothing. What goes wrong is for the change to meet again. */
static void
visit(struct op *op, struct hold *h)
{
    struct writer w = {0};

    if (!hold_join(op, op->inode, h, &w))
        (void)hold_leave(op, h, &w, &(struct hold_outcome){.may_wait = true}, false);
}

/* It was closed, or what was expected has come, if it awaits nothing. */
void
new_file_expect(struct op *op)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);
    struct repl_inode *ri = repl_inode(op->r, op->inode);

    if (!ri || !conf->locks_new_files || !op->is_pinned || atomic_load(&op->r->up) != op->r->all)
        return;
    unsigned habits = atomic_load(&op->r->habits);
    if (habits & NEW_IS_WRITTEN & atomic_load(&ri->awaits) && conf->eager_lock && conf->post_op_delay_s)
        visit(op, &ri->hold);
    struct hold *attributes = habits & NEW_IS_SET ? repl_inode_attributes(ri) : NULL;
    if (attributes && NEW_IS_SET & atomic_load(&ri->awaits) && conf->metadata_kept_ms)
        visit(op, attributes);
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
        visit(op, attributes);
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
