/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Open files and directories. What the layer above knows as one fd is one fd on each child, which
 * protocol/client opens anew by itself after a loss; those that were down when it was opened are opened when
 * they are up and something is to be changed through it. Until that is done a child is one that misses the
 * change.
 *
 * OPEN goes to all children that are up, without O_TRUNC, which follows as a change of data (data.c). A
 * file in split-brain is not opened: EIO. No lock is taken, and no counter changes.
 *
 * OPENDIR goes to the child that the list will be read from (read.c), for what is opened is mostly listed and
 * closed again; to the next one if that cannot open it. FSYNCDIR, and a list begun anew when that child is
 * away, open it on the others then. */
#include <errno.h>
#include <fcntl.h>

#include "mem/mem-pool.h"
#include "xlators/cluster/replicate/heal.h"

static struct mem_pool *pool;

int
repl_fd_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct repl_fd, 0);
    return pool ? 0 : -ENOMEM;
}

struct repl_fd *
repl_fd_ref(struct repl_fd *f)
{
    refcount_get(&f->refs);
    return f;
}

void
repl_fd_unref(struct repl_fd *f)
{
    if (!refcount_put(&f->refs))
        return;
    for (unsigned i = 0; i < REPLICAS_MAX; i++)
        fd_unref(atomic_load(&f->child[i]));
    mem_put(f);
}

struct fd *
repl_fd_child(const struct repl_fd *f, unsigned i)
{
    return atomic_load(&f->child[i]);
}

child_set
repl_fd_open(const struct repl_fd *f)
{
    child_set open = 0;

    for (unsigned i = 0; i < REPLICAS_MAX; i++)
        open |= atomic_load(&f->child[i]) ? CHILD(i) : 0;
    return open;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void
take_fd(struct repl_fd *file, unsigned i, struct call_stack *stk)
{
    struct fd *none = NULL;

    if (stk && stk->reply.fd && atomic_compare_exchange_strong(&file->child[i], &none, stk->reply.fd))
        stk->reply.fd = NULL;
}

static struct repl_fd *
file_new(const struct op *op)
{
    struct repl_fd *file = mem_get0_owner(pool, op->r->xl->graph->owner);

    if (!file)
        return NULL;
    refcount_init(&file->refs, 1);
    file->r = op->r;
    file->flags = op->stk->call.flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
    atomic_init(&file->list_child, -1);
    atomic_init(&file->tried, 0);
    return file;
}

/* The layer above may give one along, which it has opened elsewhere, or here before. */
int
repl_fd_make(struct op *op, struct fan *f, struct inode *inode)
{
    struct call_stack *stk = op->stk;
    struct fd *fd =
        op->fd ? fd_ref(op->fd) : fd_new(inode, stk->client, stk->call.flags, op->fop == FOP_opendir);
    struct repl_fd *file = op->file;

    if (fd && !file && (file = file_new(op))) {
        struct repl_fd *fresh = file;

        file = fd_ctx_install(fd, op->r->xl, fresh);
        if (file != fresh) /* another call has opened it here, at the same time */
            repl_fd_unref(fresh);
    }
    if (!file) {
        fd_unref(fd);
        return -ENOMEM;
    }
    for_each_child(i, f->good) take_fd(file, i, f->stk[i]);
    stk->reply.fd = fd;
    return 0;
}

/* The last reference to the fd is gone: what it has written is made known as done now. */
void
repl_fd_released(struct replicate *r, struct fd *fd, struct repl_fd *f)
{
    struct repl_inode *ri = fd->is_dir ? NULL : inode_ctx(fd->inode, r->xl);
    struct hold *attributes = ri ? atomic_load(&ri->attributes) : NULL;

    if (ri) {
        new_file_closed(ri);
        hold_hurry(&ri->hold);
    }
    if (attributes)
        hold_hurry(attributes);
    repl_fd_unref(f);
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct call_stack *
open_call(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_fork(op, i);

    (void)unused;
    if (stk)
        stk->call.flags &= ~(uint32_t)O_TRUNC;
    return stk;
}

/* On all that are up. 0 or -errno; then the caller's reply has the fd. */
static int
open_all(struct op *op)
{
    struct fan f;
    int err = fan_ask(&f, op, atomic_load(&op->r->up), open_call, NULL);

    if (err)
        return err;
    if (f.unread)
        err = -ENOMEM;
    else if (!op_has_quorum(op, f.good))
        err = fan_errno(&f) ? -fan_errno(&f) : -ENOTCONN;
    if (!err)
        err = fan_take(&f, op, child_first(f.good));
    if (!err)
        err = repl_fd_make(op, &f, op->inode);
    fan_end(&f);
    return err;
}

static void
reply_or_fail(struct op *op, int err)
{
    if (err)
        op_fail(op, err);
    else
        op_reply(op);
}

/* 0 or -errno; then the caller's reply has the fd. */
static int
open_at(struct op *op, unsigned i)
{
    struct fan f;

    fan_begin(&f);
    fan_wind(&f, op, i, op_fork(op, i));
    fan_wait(&f);
    int err = f.good ? fan_take(&f, op, i) : f.ret[i];
    if (!err)
        err = repl_fd_make(op, &f, op->inode);
    fan_end(&f);
    return err;
}

static int
open_to_list(struct op *op)
{
    struct view v;
    int ret = view_of(op, op->inode, &v), err = ENOTCONN;

    if (ret)
        return ret;
    child_set left = atomic_load(&op->r->up), good = read_good_for(op, &v);

    while (left) {
        unsigned i = view_choose(op->r, good & left ? good & left : left, op->inode);

        ret = open_at(op, i);
        if (read_is_answer(ret))
            return ret;
        err = replica_worse_errno(err, -ret);
        left &= ~CHILD(i);
    }
    return -err;
}

void
opendir_go(struct op *op)
{
    reply_or_fail(op, open_to_list(op));
}

/* A file whose contents are in split-brain is opened: FSTAT tells its attributes, READ and WRITE fail (EIO),
 * or READ has the copy that the user has chosen. To cut it would be to write it. */
void
open_go(struct op *op)
{
    struct view v;
    bool cuts = op->stk->call.flags & O_TRUNC;
    int err = cuts ? op_admit(op, op->inode, CHANGE_DATA) : view_of(op, op->inode, &v);

    if (!err)
        err = open_all(op);
    if (!err && op->stk->call.flags & O_TRUNC) {
        op->fd = op->fd ? op->fd : fd_ref(op->stk->reply.fd);
        op->file = op->file ? op->file : repl_fd_ref(fd_ctx(op->fd, op->r->xl));
        err = data_truncate_opened(op);
    }
    reply_or_fail(op, err);
}

/* ---- opening later --------------------------------------------------------------------------- */

/* As the volume's own work: the caller has been let in when he opened it, by groups that are not kept, and by
 * rights that the file may have lost since.
 * Once for each coming of a child: what it refuses, it refuses. But what was made while it was away comes
 * there by a heal, later than the child: then it is asked again. So is one that there was no memory to ask.
 * The generation is read first: of a child that comes after that it is known next time. */
int
repl_fd_complete(struct op *op)
{
    struct repl_fd *file = op->file;
    unsigned now = atomic_load(&op->r->generation) + 1;
    child_set missing = atomic_load(&op->r->up) & ~repl_fd_open(file);
    bool is_to_come = false;
    struct fan f;

    if (!missing || atomic_exchange(&file->tried, now) == now)
        return 0;
    fan_begin(&f);
    for_each_child(i, missing)
    {
        struct call_stack *stk = op_call(op, op->fd && op->fd->is_dir ? FOP_opendir : FOP_open, i);

        if (stk) {
            stk->caller = (struct caller){.pid = PID_INTERNAL};
            stk->call.flags = file->flags;
        }
        fan_wind(&f, op, i, stk);
    }
    fan_wait(&f);
    for_each_child(i, f.good) take_fd(file, i, f.stk[i]);
    for_each_child(i, missing) is_to_come |= f.ret[i] == -ENOENT || f.ret[i] == -ESTALE;
    int err = fan_is_short(&f) ? -ENOMEM : 0;
    fan_end(&f);
    if (is_to_come || err)
        atomic_compare_exchange_strong(&file->tried, &now, 0);
    return err;
}
