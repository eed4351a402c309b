/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of a new file, taken before the first operation needs them. Programs that unpack archives or copy
 * files make a file, write the file, may set its attributes, and close the file:
 *
 *      CREATE is answered       the application sends its first write; meanwhile
 *      the hold on data         is taken: lock and mark (hold.c)
 *      the hold on attributes   is taken while the write is under way
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
