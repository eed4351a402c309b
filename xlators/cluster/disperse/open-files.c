/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Open files and directories. An fd of the layer above has an fd on each child. protocol/client reopens its
 * fd after a lost connection; a child that was down at the open is opened when it is up and the next change
 * is made. Until then calls to that child use the gfid.
 *
 * OPEN goes to all children that are up, without O_TRUNC, which follows as a change of data; without
 * O_APPEND, because write.c chooses the offset; and without O_DIRECT, because a fragment's chunks of 512
 * bytes are less than many disks' blocks. OPENDIR goes to the child that the listing will use. */
#include <errno.h>
#include <fcntl.h>

#include "mem/mem-pool.h"
#include "xlators/cluster/disperse/disperse-internal.h"

static struct mem_pool *pool;

int
ec_fd_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct ec_fd, 0);
    return pool ? 0 : -ENOMEM;
}

struct ec_fd *
ec_fd_ref(struct ec_fd *f)
{
    refcount_get(&f->refs);
    return f;
}

void
ec_fd_unref(struct ec_fd *f)
{
    if (!refcount_put(&f->refs))
        return;
    for (unsigned i = 0; i < FAN_CHILDREN_MAX; i++)
        fd_unref(atomic_load(&f->child[i]));
    mem_put(f);
}

struct fd *
disperse_fd_of_child(const struct xlator *xl, struct fd *fd, unsigned i)
{
    const struct ec_fd *f = fd_ctx(fd, xl);

    return f ? ec_fd_child(f, i) : NULL;
}

struct fd *
ec_fd_child(const struct ec_fd *f, unsigned i)
{
    return atomic_load(&f->child[i]);
}

child_set
ec_fd_open(const struct ec_fd *f)
{
    child_set open = 0;

    for (unsigned i = 0; i < FAN_CHILDREN_MAX; i++)
        open |= atomic_load(&f->child[i]) ? CHILD(i) : 0;
    return open;
}

/* ---- making fds ------------------------------------------------------------------------------ */

static void
ec_take_fd(struct ec_fd *file, unsigned i, struct call_stack *stk)
{
    struct fd *none = NULL;

    if (stk && stk->reply.fd && atomic_compare_exchange_strong(&file->child[i], &none, stk->reply.fd))
        stk->reply.fd = NULL;
}

static struct ec_fd *
ec_file_new(const struct ec_op *op)
{
    struct ec_fd *file = mem_get0_owner(pool, op->d->xl->graph->owner);

    if (!file)
        return NULL;
    refcount_init(&file->refs, 1);
    file->d = op->d;
    file->flags = op->stk->call.flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC | O_DIRECT);
    atomic_init(&file->list_child, -1);
    atomic_init(&file->tried, 0);
    return file;
}

/* The layer above may pass an fd that it has opened elsewhere, or opened here before. */
int
ec_fd_make(struct ec_op *op, struct fan *f, child_set set, struct inode *inode)
{
    struct call_stack *stk = op->stk;
    struct fd *fd =
        op->fd ? fd_ref(op->fd) : fd_new(inode, stk->client, stk->call.flags, op->fop == FOP_opendir);
    struct ec_fd *file = op->file;

    if (fd && !file && (file = ec_file_new(op))) {
        struct ec_fd *fresh = file;

        file = fd_ctx_install(fd, op->d->xl, fresh);
        if (file != fresh) /* a concurrent call has opened it */
            ec_fd_unref(fresh);
    }
    if (!file) {
        fd_unref(fd);
        return -ENOMEM;
    }
    for_each_child(i, set) ec_take_fd(file, i, f->stk[i]);
    stk->reply.fd = fd;
    return 0;
}

void
ec_fd_released(struct disperse *d, struct fd *fd, struct ec_fd *f)
{
    if (!fd->is_dir && (ec_is_unwritten(d, fd->inode) || ec_is_unused(d, fd->inode)))
        ec_hurry(ec_hold_of(d, fd->inode));
    ec_fd_unref(f);
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct call_stack *
ec_open_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_fork(op, i, is_spare, unused);

    if (stk)
        stk->call.flags &= ~(uint32_t)(O_TRUNC | O_APPEND | O_DIRECT);
    return stk;
}

/* Reads the replies to OPEN or OPENDIR, and frees them. */
static int
take_open_replies(struct ec_op *op, struct fan *f, unsigned at_least)
{
    int ret, err;
    child_set good = answers_winner(f, false, &ret);

    if (f->unread)
        err = -ENOMEM;
    else if (ret < 0 || children_count(good) < at_least)
        err = ret < 0 ? ret : -EIO;
    else
        err = answers_take(op, f, good);
    if (!err)
        err = ec_fd_make(op, f, f->good, op->inode);
    fan_end(f);
    return err;
}

static int
open_on_children(struct ec_op *op, child_set to, unsigned at_least)
{
    struct fan f;
    int err = ec_ask(&f, op, to, ec_open_make, NULL);

    return err ? err : take_open_replies(op, &f, at_least);
}

/* Opens a file; with its hold, if the file is likely to be used. */
static int
open_with_hold(struct ec_op *op)
{
    struct ec_early e;
    struct ec_hold *h = S_ISREG(inode_type(op->inode)) ? ec_early_hold(op, op->inode, &e) : NULL;
    struct fan f;

    if (!h)
        return open_on_children(op, atomic_load(&op->d->up), op->d->data);
    int err = ec_ask_with_hold(&f, op, ec_open_make, NULL, h, &e);
    return err ? err : take_open_replies(op, &f, op->d->data);
}

/* Cuts a file that was opened with O_TRUNC. */
static int
truncate_opened(struct ec_op *op)
{
    op->fd = op->fd ? op->fd : fd_ref(op->stk->reply.fd);
    op->file = op->file ? op->file : ec_fd_ref(fd_ctx(op->fd, op->d->xl));
    return write_truncate_opened(op);
}

void
ec_open_go(struct ec_op *op)
{
    int err = open_with_hold(op);

    if (!err && op->stk->call.flags & O_TRUNC)
        err = truncate_opened(op);
    ec_finish(op, err);
}

void
ec_opendir_go(struct ec_op *op)
{
    struct disperse *d = op->d;
    unsigned first = read_first_child(d, op->inode);
    struct ec_user u = {.end = UINT64_MAX, .is_shared = true};
    int err = ec_join(op, op->inode, &u, NEEDS_INFO);

    if (err) {
        ec_fail(op, err);
        return;
    }
    child_set good = ec_good(ec_hold_of(d, op->inode));
    err = -ENOTCONN;
    for (unsigned n = 0; n < d->count && err && err != -EACCES; n++) {
        unsigned i = (first + n) % d->count;

        if (!(good & CHILD(i)))
            continue;
        err = open_on_children(op, CHILD(i), 1);
        if (!err)
            atomic_store(&((struct ec_fd *)fd_ctx(op->stk->reply.fd, d->xl))->list_child, (int)i);
    }
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

/* ---- opening later --------------------------------------------------------------------------- */

static struct call_stack *
reopen_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    bool is_dir = op->fd && op->fd->is_dir;
    struct call_stack *stk = ec_call(op, is_dir ? FOP_opendir : FOP_open, i, is_spare, op->inode, NULL);

    (void)unused;
    if (!stk)
        return NULL;
    /* with internal credentials, because the permission check was at the caller's open */
    stk->caller = (struct caller){.pid = PID_INTERNAL};
    stk->call.flags = op->file->flags & ~(uint32_t)O_APPEND;
    return stk;
}

/* Each event of a child allows one attempt, because a refusal is final; but a heal may create a file on the
 * child only after the child has come up, so ENOENT and ESTALE allow another attempt. */
void
ec_fd_complete(struct ec_op *op)
{
    struct ec_fd *file = op->file;
    unsigned now = atomic_load(&op->d->generation) + 1;
    child_set missing = file ? atomic_load(&op->d->up) & ~ec_fd_open(file) : 0;
    bool tries_again = false;
    struct fan f;

    if (!missing || (!op->fd->is_dir && atomic_exchange(&file->tried, now) == now))
        return;
    if (ec_ask(&f, op, missing, reopen_make, NULL)) {
        tries_again = true;
    } else {
        for_each_child(i, f.good) ec_take_fd(file, i, f.stk[i]);
        for_each_child(i, missing) tries_again |= f.ret[i] == -ENOENT || f.ret[i] == -ESTALE;
        fan_end(&f);
    }
    if (tries_again)
        atomic_compare_exchange_strong(&file->tried, &now, 0);
}
