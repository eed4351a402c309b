/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Open files and directories. An fd of the layer above has an fd on each child. protocol/client reopens its
 * fd after a lost connection. A child that was down at the open is opened later: when it is up and a change
 * is to be made through the fd. Until then the child counts as one that misses the change.
 *
 * OPEN goes to all children that are up, without O_TRUNC; the truncation follows as a change of data
 * (data.c). A truncating OPEN of a file in split-brain fails with EIO. The lock and the mark of the data go
 * along if a write is expected (new-files.c); else no lock is taken, and no counter changes.
 *
 * OPENDIR goes to the child that the listing will use (read.c), because most directories are listed and
 * then closed; if the child cannot open it, to the next child. FSYNCDIR, and a new listing while that child
 * is down, open the directory on further children. */
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
replicate_fd_of_child(const struct xlator *xl, struct fd *fd, unsigned i)
{
    const struct repl_fd *f = fd_ctx(fd, xl);

    return f ? repl_fd_child(f, i) : NULL;
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

/* ---- making fds ------------------------------------------------------------------------------ */

static void
take_fd(struct repl_fd *file, unsigned i, struct call_stack *stk)
{
    struct fd *none = NULL;

    if (stk && stk->reply.fd && atomic_compare_exchange_strong(&file->child[i], &none, stk->reply.fd))
        stk->reply.fd = NULL;
}

static struct repl_fd *
repl_file_new(const struct op *op)
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

/* The layer above may pass an fd that it has opened elsewhere, or opened here before. */
int
repl_fd_make(struct op *op, struct fan *f, struct inode *inode)
{
    struct call_stack *stk = op->stk;
    struct fd *fd =
        op->fd ? fd_ref(op->fd) : fd_new(inode, stk->client, stk->call.flags, op->fop == FOP_opendir);
    struct repl_fd *file = op->file;

    if (fd && !file && (file = repl_file_new(op))) {
        struct repl_fd *fresh = file;

        file = fd_ctx_install(fd, op->r->xl, fresh);
        if (file != fresh) /* a concurrent call has opened it */
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

bool
repl_fd_is_unused(const struct repl_fd *f)
{
    bool is_unused = atomic_load(&f->refs.n) == 1;

    for (unsigned i = 0; i < REPLICAS_MAX && is_unused; i++) {
        const struct fd *fd = atomic_load(&f->child[i]);

        is_unused = !fd || atomic_load(&fd->refs.n) == 1;
    }
    return is_unused;
}

/* The last reference to the fd is gone: end the holds now, so that all changes are recorded as done. The
 * data's hold then has the last reference to `f`, and the bricks close the file in the message that ends the
 * hold. */
void
repl_fd_released(struct replicate *r, struct fd *fd, struct repl_fd *f)
{
    struct repl_inode *ri = fd->is_dir ? NULL : inode_ctx(fd->inode, r->xl);
    struct hold *attributes = ri ? atomic_load(&ri->attributes) : NULL;

    repl_fd_unref(f);
    if (ri) {
        new_file_closed(ri);
        hold_hurry(&ri->hold);
    }
    if (attributes)
        hold_hurry(attributes);
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct call_stack *
open_make(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_fork(op, i);

    (void)unused;
    if (stk)
        stk->call.flags &= ~(uint32_t)O_TRUNC;
    return stk;
}

/* Opens the file on all children that are up. Returns 0 with the fd in the caller's reply, or -errno. */
static int
open_on_all(struct op *op, const struct view *v)
{
    struct fan f;
    int err = open_early(op, v, &f, open_make) ? fan_ask_rest(&f, op, open_make, NULL)
                                               : fan_ask(&f, op, atomic_load(&op->r->up), open_make, NULL);

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
reply_open(struct op *op, int err)
{
    if (err)
        op_fail(op, err);
    else
        op_reply(op);
}

/* Opens the directory on child i. Returns 0 with the fd in the caller's reply, or -errno. */
static int
open_on_child(struct op *op, unsigned i)
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

        ret = open_on_child(op, i);
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
    reply_open(op, open_to_list(op));
}

/* A file whose contents are in split-brain can be opened: FSTAT returns attributes; READ and WRITE fail
 * (EIO), or READ returns the copy that the user has chosen. Truncation is a write, so it fails. */
void
open_go(struct op *op)
{
    struct view v;
    bool cuts = op->stk->call.flags & O_TRUNC;
    int err = view_of(op, op->inode, &v);

    if (!err && cuts)
        err = op_admit(op, op->inode, CHANGE_DATA);
    if (!err)
        err = open_on_all(op, &v);
    if (!err)
        opened_file(op);
    if (!err && op->stk->call.flags & O_TRUNC) {
        op->fd = op->fd ? op->fd : fd_ref(op->stk->reply.fd);
        op->file = op->file ? op->file : repl_fd_ref(fd_ctx(op->fd, op->r->xl));
        err = data_truncate_opened(op);
    }
    reply_open(op, err);
}

/* ---- opening later --------------------------------------------------------------------------- */

/* Opens the fd on the missing children with internal credentials, because the permission check was at the
 * caller's open: by groups that are not kept, and by a mode that may have changed since.
 *
 * Each event of a child allows one attempt, because a refusal is final. But a heal may create a file on the
 * child only after the child has come up, so ENOENT and ESTALE allow another attempt, and so does a lack of
 * memory. The generation is read first, so that the next call notices a child that comes up meanwhile. */
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
