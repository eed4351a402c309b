/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls of an operation to its children: the shared fan (xlators/cluster/fan.h) with this layer's calls. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/lock-calls.h"
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

xl_verdict
op_start(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (!start_functions[stk->call.fop])
        return -EOPNOTSUPP;
    return coro_run(op_run_call, stk) ? call_stack_unsent(stk) : XL_OWNED;
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

/* ---- calls to several children --------------------------------------------------------------- */

void
fan_wind(struct fan *f, const struct op *op, unsigned i, struct call_stack *stk)
{
    fan_wind_to(f, op->r->xl, i, stk);
}

struct call_stack *
fan_fork(const struct op *op, unsigned i, const void *unused)
{
    (void)unused;
    return op_fork(op, i);
}

struct op_maker {
    struct fan_maker base;
    const struct op *op;
    fan_call_fn make;
    const void *arg;
};

static struct call_stack *
op_maker_make(const struct fan_maker *base, unsigned i, bool is_spare)
{
    const struct op_maker *m = caa_container_of(base, struct op_maker, base);

    if (!is_spare)
        return m->make(m->op, i, m->arg);
    struct op pressing = *m->op;

    pressing.is_pressing = true;
    return m->make(&pressing, i, m->arg);
}

static struct op_maker
op_maker(const struct op *op, fan_call_fn make, const void *arg)
{
    return (struct op_maker){
        .base = {.xl = op->r->xl, .make = op_maker_make}, .op = op, .make = make, .arg = arg};
}

int
fan_ask(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg)
{
    struct op_maker m = op_maker(op, make, arg);

    return fan_send(f, &m.base, to);
}

int
fan_ask_rest(struct fan *f, const struct op *op, fan_call_fn make, const void *arg)
{
    struct op_maker m = op_maker(op, make, arg);

    return fan_send_rest(f, &m.base);
}

void
fan_insist(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg)
{
    struct op_maker m = op_maker(op, make, arg);

    fan_press(f, &m.base, to);
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
    return fan_copy_reply(f, i, op->stk);
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

int
op_call_child(struct op *op, unsigned i)
{
    struct fd *fd = op->file && op->fd ? repl_fd_child(op->file, i) : NULL;

    return fan_wind_own(op->stk, op->r->xl, i, fd);
}

int
op_lock_in_turn(struct op *op, child_set on, child_set *has)
{
    struct op_maker m = op_maker(op, fan_fork, NULL);

    return lock_calls_in_turn(&m.base, op->stk, on, has);
}

int
op_find_lock_holder(struct op *op, child_set on)
{
    struct op_maker m = op_maker(op, fan_fork, NULL);

    return lock_calls_find_holder(&m.base, op->stk, on);
}
