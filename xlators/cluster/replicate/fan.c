/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A call to several children at once. Each child gets a separate call stack. The operation keeps these
 * stacks until all replies are examined, and then frees them together.
 *
 * This process may run out of memory for a call to a child or for a child's reply. Then no child has
 * failed. A change that must be the same everywhere goes to all children or to none (fan_ask()): first all
 * calls are made, then all are wound; a call that cannot go out after others have is wound again until it
 * can. Calls that must not fail, marks and unlocks, wait for memory from the beginning (fan_insist()). */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "mem/iobuf.h"
#include "xlators/cluster/replicate/replicate-internal.h"

/* ---- life of an operation -------------------------------------------------------------------- */

static struct inode *
ref_or_null(struct inode *inode)
{
    return inode ? inode_ref(inode) : NULL;
}

static void
copy_name(char out[FOP_NAME_MAX + 1], const char *name)
{
    size_t len = name ? strnlen(name, FOP_NAME_MAX) : 0;

    if (len)
        memcpy(out, name, len);
    out[len] = '\0';
}

static void
op_begin(struct op *op, struct replicate *r, struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;

    op->r = r;
    op->stk = stk;
    op->fop = call->fop;
    op->inode = ref_or_null(call->fd ? call->fd->inode : call->loc.inode);
    op->dir = ref_or_null(call->loc.parent);
    op->dir2 = ref_or_null(call->loc2.parent);
    op->fd = call->fd ? fd_ref(call->fd) : NULL;
    struct repl_fd *file = op->fd ? fd_ctx(op->fd, r->xl) : NULL;
    op->file = file ? repl_fd_ref(file) : NULL;
    op->caller = (struct caller){.pid = stk->caller.pid, .uid = stk->caller.uid, .gid = stk->caller.gid};
    op->is_pinned = graph_pin(r->xl->graph);
    op->is_pressing = false;
    op->readable = 0;
    copy_name(op->name, call->loc.parent ? call->loc.name : NULL);
    copy_name(op->name2, call->loc2.parent ? call->loc2.name : NULL);
}

static void
op_end(struct op *op)
{
    struct graph *g = op->r->xl->graph;
    bool is_pinned = op->is_pinned;

    inode_unref(op->inode);
    inode_unref(op->dir);
    inode_unref(op->dir2);
    fd_unref(op->fd);
    if (op->file)
        repl_fd_unref(op->file);
    if (is_pinned)
        graph_unpin(g); /* this may free the layer */
}

static const op_fn start_functions[FOP_COUNT] = {
    [FOP_lookup] = lookup_go,
    [FOP_stat] = read_go,
    [FOP_fstat] = read_go,
    [FOP_readlink] = read_go,
    [FOP_access] = read_go,
    [FOP_readv] = read_go,
    [FOP_seek] = read_go,
    [FOP_rchecksum] = read_go,
    [FOP_getxattr] = getxattr_go,
    [FOP_fgetxattr] = getxattr_go,
    [FOP_readdir] = readdir_go,
    [FOP_readdirp] = readdir_go,
    [FOP_open] = open_go,
    [FOP_opendir] = opendir_go,
    [FOP_writev] = writev_go,
    [FOP_truncate] = truncate_go,
    [FOP_ftruncate] = truncate_go,
    [FOP_fallocate] = allocate_go,
    [FOP_discard] = allocate_go,
    [FOP_zerofill] = allocate_go,
    [FOP_fsync] = fsync_go,
    [FOP_setattr] = metadata_go,
    [FOP_fsetattr] = metadata_go,
    [FOP_setxattr] = metadata_go,
    [FOP_fsetxattr] = metadata_go,
    [FOP_removexattr] = metadata_go,
    [FOP_fremovexattr] = metadata_go,
    [FOP_xattrop] = metadata_go,
    [FOP_fxattrop] = metadata_go,
    [FOP_create] = entry_go,
    [FOP_mknod] = entry_go,
    [FOP_mkdir] = entry_go,
    [FOP_symlink] = entry_go,
    [FOP_link] = entry_go,
    [FOP_unlink] = entry_go,
    [FOP_rmdir] = rmdir_go,
    [FOP_rename] = rename_go,
    [FOP_statfs] = statfs_go,
    [FOP_flush] = all_go,
    [FOP_fsyncdir] = all_go,
    [FOP_ipc] = all_go,
    [FOP_lk] = lk_go,
    [FOP_inodelk] = locks_go,
    [FOP_finodelk] = locks_go,
    [FOP_entrylk] = locks_go,
    [FOP_fentrylk] = locks_go,
};

static void
op_run_call(void *arg)
{
    struct call_stack *stk = arg;
    struct op op;

    op_begin(&op, stk->xl->private, stk);
    start_functions[op.fop](&op);
    op_end(&op);
}

int
op_run(coroutine_fn fn, void *arg)
{
    struct coroutine *c;
    int err = coroutine_new(coro_stacks(), fn, arg, &c);

    if (!err)
        coroutine_resume(c);
    return err;
}

xl_verdict
op_start(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (!start_functions[stk->call.fop])
        return -EOPNOTSUPP;
    return op_run(op_run_call, stk) ? call_stack_unsent(stk) : XL_OWNED;
}

void
op_reply(struct op *op)
{
    struct call_stack *stk = op->stk;

    op->stk = NULL;
    call_stack_unwind(stk);
}

void
op_fail(struct op *op, int err)
{
    struct call_stack *stk = op->stk;

    op->stk = NULL;
    call_stack_fail(stk, err < 0 ? -err : EIO);
}

struct quorum
quorum_of(const struct replicate *r)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct quorum q = {.type = (enum quorum_type)conf->quorum_type, .count = (unsigned)conf->quorum_count};

    if (conf->quorum_type > QUORUM_FIXED) /* option not set */
        q.type = r->count > 2 ? QUORUM_AUTO : QUORUM_NONE;
    return q;
}

bool
op_has_quorum(const struct op *op, child_set good)
{
    struct quorum q = quorum_of(op->r);

    return quorum_is_met(&q, op->r->count, good);
}

bool
op_wants_quorum(const struct op *op)
{
    return quorum_of(op->r).type != QUORUM_NONE;
}

/* ---- calls to one child ---------------------------------------------------------------------- */

/* Replaces the caller's fd by the child's. */
static void
put_child_fd(struct call_stack *stk, const struct op *op, unsigned i)
{
    if (!stk->call.fd)
        return;
    /* each child makes its fd */
    if (op->fop == FOP_open || op->fop == FOP_opendir || op->fop == FOP_create) {
        fd_unref(stk->call.fd);
        stk->call.fd = NULL;
    }
    struct fd *fd = op->file && stk->call.fd ? repl_fd_child(op->file, i) : NULL;

    if (fd) {
        fd_unref(stk->call.fd);
        stk->call.fd = fd_ref(fd);
    }
}

struct call_stack *
op_fork(const struct op *op, unsigned i)
{
    struct call_stack *stk = op->is_pressing ? coro_call_fork_spare(op->stk) : coro_call_fork(op->stk);

    if (stk)
        put_child_fd(stk, op, i);
    return stk;
}

struct call_stack *
op_call_new(const struct op *op)
{
    return op->is_pressing ? coro_call_new_spare() : coro_call_new();
}

struct call_stack *
op_call(const struct op *op, enum fop fop, unsigned i)
{
    struct call_stack *stk = op_call_new(op);

    if (!stk)
        return NULL;
    stk->caller = op->caller;
    stk->call.fop = fop;
    stk->call.loc.inode = ref_or_null(op->inode);
    struct fd *fd = op->file ? repl_fd_child(op->file, i) : NULL;
    stk->call.fd = fd && fop_info[fop].traits & FOP_BY_FD ? fd_ref(fd) : NULL;
    return stk;
}

struct dict *
call_xdata(struct call_stack *stk)
{
    if (!stk->call.xdata)
        stk->call.xdata = dict_new(&stk->arena);
    return stk->call.xdata;
}

/* ---- calls to several children --------------------------------------------------------------- */

void
fan_begin(struct fan *f)
{
    f->sent = f->good = f->unsent = f->unread = 0;
    coro_group_begin(&f->group);
}

void
fan_wind(struct fan *f, const struct op *op, unsigned i, struct call_stack *stk)
{
    f->sent |= CHILD(i);
    f->stk[i] = stk;
    if (stk)
        coro_group_wind(&f->group, stk, op->r->xl->children[i]);
}

static void
read_result(struct fan *f, unsigned i)
{
    enum shortage shortage = f->stk[i] ? f->stk[i]->reply.shortage : SHORTAGE_UNSENT;

    f->ret[i] = f->stk[i] ? coro_call_result(f->stk[i]) : -ENOMEM;
    f->good |= f->ret[i] >= 0 ? CHILD(i) : 0;
    f->unsent |= shortage == SHORTAGE_UNSENT ? CHILD(i) : 0;
    f->unread |= shortage == SHORTAGE_UNREAD ? CHILD(i) : 0;
}

void
fan_wait(struct fan *f)
{
    coro_group_wait(&f->group);
    for_each_child(i, f->sent) read_result(f, i);
}

enum { MEMORY_WAIT_MS = 20 };

/* Winds the unsent calls again. */
static void
send_again(struct fan *f, const struct op *op, fan_call_fn make, const void *arg)
{
    child_set again = f->unsent;

    f->unsent = 0;
    coro_group_begin(&f->group);
    for_each_child(i, again)
    {
        if (f->stk[i])
            call_stack_again(f->stk[i]);
        else
            f->stk[i] = make(op, i, arg);
        if (f->stk[i])
            coro_group_wind(&f->group, f->stk[i], op->r->xl->children[i]);
    }
    coro_group_wait(&f->group);
    for_each_child(i, again) read_result(f, i);
}

/* Frees spare calls at once, for the next operation that needs them; of their replies only the result
 * remains. */
static void
give_back_spares(struct fan *f)
{
    for_each_child(i, f->sent)
    {
        if (!f->stk[i] || !call_stack_is_spare(f->stk[i]))
            continue;
        call_stack_free(f->stk[i]);
        f->stk[i] = NULL;
    }
}

/* Winds the unsent calls until all have gone out. */
static void
send_unsent(struct fan *f, const struct op *op, fan_call_fn make, const void *arg)
{
    while (f->unsent) {
        log_event(LOG_WARNING, op->r->xl, "replicate-starved",
                  "out of memory for a call that must reach every brick; retrying every 20 ms");
        coro_pause(MEMORY_WAIT_MS);
        send_again(f, op, make, arg);
        give_back_spares(f);
    }
}

struct call_stack *
fan_fork(const struct op *op, unsigned i, const void *unused)
{
    (void)unused;
    return op_fork(op, i);
}

int
fan_ask(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg)
{
    struct call_stack *stk[REPLICAS_MAX];
    child_set made = 0;

    for_each_child(i, to)
    {
        stk[i] = make(op, i, arg);
        made |= stk[i] ? CHILD(i) : 0;
    }
    bool is_short = made != to;

    fan_begin(f);
    for_each_child(i, made)
    {
        if (is_short)
            call_stack_free(stk[i]);
        else
            fan_wind(f, op, i, stk[i]);
    }
    fan_wait(f);
    if (is_short || (f->sent && f->unsent == f->sent)) {
        fan_end(f);
        return -ENOMEM;
    }
    send_unsent(f, op, make, arg);
    return 0;
}

/* Uses spare calls if normal ones are not available. No coroutine sleeps while it has a spare call. */
void
fan_insist(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg)
{
    fan_begin(f);
    for_each_child(i, to) fan_wind(f, op, i, make(op, i, arg));
    fan_wait(f);
    if (!f->unsent)
        return;
    struct op pressing = *op;

    pressing.is_pressing = true;
    send_again(f, &pressing, make, arg);
    give_back_spares(f);
    send_unsent(f, &pressing, make, arg);
}

void
fan_end(struct fan *f)
{
    for_each_child(i, f->sent)
    {
        if (f->stk[i])
            call_stack_free(f->stk[i]);
    }
    f->sent = f->good = f->unsent = f->unread = 0;
}

int
fan_errno(const struct fan *f)
{
    int err = 0;

    for_each_child(i, f->sent & ~f->good) err = replica_worse_errno(err, -f->ret[i]);
    return err;
}

bool
fan_is_symmetric(const struct fan *f)
{
    int err = 0;

    if (!f->sent || fan_done(f))
        return false;
    for_each_child(i, f->sent)
    {
        if (f->ret[i] == -ENOTCONN || (err && f->ret[i] != err))
            return false;
        err = f->ret[i];
    }
    return true;
}

int
fan_take(struct fan *f, struct op *op, unsigned i)
{
    struct fop_reply *to = &op->stk->reply;
    const struct fop_reply *from = &f->stk[i]->reply;
    struct arena *arena = &op->stk->arena;
    int err = 0;

    to->op_ret = from->op_ret;
    to->op_errno = from->op_errno;
    to->stat = from->stat;
    to->pre = from->pre;
    to->post = from->post;
    to->pre2 = from->pre2;
    to->post2 = from->post2;
    to->statvfs = from->statvfs;
    to->flock = from->flock;
    to->flock.owner = (struct lk_owner){0}; /* the lock owner is in the memory of the child's call stack */
    to->xdata = dict_dup(from->xdata, arena, &err);
    if (!err)
        to->dict = dict_dup(from->dict, arena, &err);
    return err;
}

void
fan_take_refusal(struct fan *f, struct op *op)
{
    child_set refused = f->sent & ~f->good;
    int err = 0;

    for_each_child (i, refused) {
        if (!op->stk->reply.xdata && f->stk[i] && f->stk[i]->reply.xdata)
            op->stk->reply.xdata = dict_dup(f->stk[i]->reply.xdata, &op->stk->arena, &err);
    }
}

/* ---- the caller's own call ------------------------------------------------------------------- */

static xl_verdict
child_has_answered(struct frame *f, struct call_stack *stk)
{
    (void)stk;
    coroutine_resume(f->local.ptr);
    return XL_OWNED;
}

static void
drop_reply(struct call_stack *stk)
{
    fd_unref(stk->reply.fd);
    iobuf_unref(stk->reply.iobuf);
    memset(&stk->reply, 0, sizeof stk->reply);
}

int
op_call_child(struct op *op, unsigned i)
{
    struct call_stack *stk = op->stk;
    struct frame *f = frame_push(stk, op->r->xl, child_has_answered);

    if (!f)
        return -ENOMEM;
    drop_reply(stk); /* the reply of a child that was asked before */
    f->local.ptr = coroutine_self();
    put_child_fd(stk, op, i);
    call_stack_wind_child(stk, op->r->xl->children[i]);
    coroutine_yield();
    if (op->fd && stk->call.fd != op->fd) {
        fd_unref(stk->call.fd);
        stk->call.fd = fd_ref(op->fd);
    }
    return coro_call_result(stk);
}
