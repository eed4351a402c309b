/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* An operation's life, and its calls to children through the shared fan (xlators/cluster/fan.h). */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/disperse-internal.h"
#include "xlators/cluster/lock-calls.h"

/* ---- life of an operation -------------------------------------------------------------------- */

static struct inode *
ec_ref_or_null(struct inode *inode)
{
    return inode ? inode_ref(inode) : NULL;
}

static void
ec_copy_name(char out[FOP_NAME_MAX + 1], const char *name)
{
    size_t len = name ? strnlen(name, FOP_NAME_MAX) : 0;

    if (len)
        memcpy(out, name, len);
    out[len] = '\0';
}

/* Bricks count a lock owner's locks; an owner longer than stock's 8 bytes is cut. */
static void
copy_owner(struct ec_op *op, const struct lk_owner *from)
{
    uint32_t len = from->len < sizeof op->owner ? from->len : sizeof op->owner;

    if (len)
        memcpy(op->owner, from->bytes, len);
    op->caller.lk_owner = (struct lk_owner){.len = len, .bytes = op->owner};
}

static void
ec_op_begin(struct ec_op *op, struct disperse *d, struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;

    op->d = d;
    op->stk = stk;
    op->fop = call->fop;
    op->inode = ec_ref_or_null(call->fd ? call->fd->inode : call->loc.inode);
    op->dir = ec_ref_or_null(call->loc.parent);
    op->dir2 = ec_ref_or_null(call->loc2.parent);
    op->fd = call->fd ? fd_ref(call->fd) : NULL;
    struct ec_fd *file = op->fd && !op->fd->is_anonymous ? fd_ctx(op->fd, d->xl) : NULL;
    op->file = file ? ec_fd_ref(file) : NULL;
    op->caller = (struct caller){.pid = stk->caller.pid, .uid = stk->caller.uid, .gid = stk->caller.gid};
    copy_owner(op, &stk->caller.lk_owner);
    op->is_pinned = graph_pin(d->xl->graph);
    op->quorum = atomic_load(&d->quorum);
    ec_copy_name(op->name, call->loc.parent ? call->loc.name : NULL);
    ec_copy_name(op->name2, call->loc2.parent ? call->loc2.name : NULL);
}

static void
ec_op_end(struct ec_op *op)
{
    struct graph *g = op->d->xl->graph;
    bool is_pinned = op->is_pinned;

    inode_unref(op->inode);
    inode_unref(op->dir);
    inode_unref(op->dir2);
    fd_unref(op->fd);
    if (op->file)
        ec_fd_unref(op->file);
    if (is_pinned)
        graph_unpin(g); /* this may free the layer */
}

typedef void (*ec_go_fn)(struct ec_op *op);

/* Operations that are absent are refused: lease, rchecksum, copy_file_range and others. The kernel's and
 * programs' fallbacks read and write instead. */
static const ec_go_fn start_functions[FOP_COUNT] = {
    [FOP_lookup] = ec_lookup_go,
    [FOP_readv] = ec_readv_go,
    [FOP_seek] = ec_seek_go,
    [FOP_writev] = ec_writev_go,
    [FOP_truncate] = ec_truncate_go,
    [FOP_ftruncate] = ec_truncate_go,
    [FOP_fallocate] = ec_fallocate_go,
    [FOP_discard] = ec_discard_go,
    [FOP_zerofill] = ec_discard_go,
    [FOP_stat] = ec_stat_go,
    [FOP_fstat] = ec_stat_go,
    [FOP_readlink] = ec_one_go,
    [FOP_access] = ec_one_go,
    [FOP_getxattr] = ec_getxattr_go,
    [FOP_fgetxattr] = ec_getxattr_go,
    [FOP_setattr] = ec_setattr_go,
    [FOP_fsetattr] = ec_setattr_go,
    [FOP_setxattr] = ec_setxattr_go,
    [FOP_fsetxattr] = ec_setxattr_go,
    [FOP_removexattr] = ec_setxattr_go,
    [FOP_fremovexattr] = ec_setxattr_go,
    [FOP_xattrop] = ec_setattr_go,
    [FOP_fxattrop] = ec_setattr_go,
    [FOP_create] = ec_entry_go,
    [FOP_mknod] = ec_entry_go,
    [FOP_mkdir] = ec_entry_go,
    [FOP_symlink] = ec_entry_go,
    [FOP_unlink] = ec_entry_go,
    [FOP_rmdir] = ec_entry_go,
    [FOP_link] = ec_link_go,
    [FOP_rename] = ec_rename_go,
    [FOP_open] = ec_open_go,
    [FOP_opendir] = ec_opendir_go,
    [FOP_readdir] = ec_readdir_go,
    [FOP_readdirp] = ec_readdir_go,
    [FOP_flush] = ec_flush_go,
    [FOP_fsync] = ec_fsync_go,
    [FOP_fsyncdir] = ec_fsync_go,
    [FOP_statfs] = ec_statfs_go,
    [FOP_lk] = ec_lk_go,
    [FOP_inodelk] = ec_locks_go,
    [FOP_finodelk] = ec_locks_go,
    [FOP_entrylk] = ec_locks_go,
    [FOP_fentrylk] = ec_locks_go,
    [FOP_ipc] = ec_ipc_go,
};

static void
ec_run_call(void *arg)
{
    struct call_stack *stk = arg;
    struct ec_op op = {0};

    ec_op_begin(&op, stk->xl->private, stk);
    bool is_local = op.fop == FOP_flush && stk->call.hint.kind == HINT_FLUSH_OF_MOUNT && op.inode &&
                    !ec_is_unwritten(op.d, op.inode);

    if (children_count(atomic_load(&op.d->up)) < op.d->data && !is_local)
        ec_fail(&op, -ENOTCONN);
    else
        start_functions[op.fop](&op);
    ec_op_end(&op);
}

xl_verdict
ec_start(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (!start_functions[stk->call.fop])
        return -EOPNOTSUPP;
    return coro_run(ec_run_call, stk) ? call_stack_unsent(stk) : XL_OWNED;
}

void
ec_reply(struct ec_op *op)
{
    struct call_stack *stk = op->stk;

    op->stk = NULL;
    call_stack_unwind(stk);
}

void
ec_fail(struct ec_op *op, int err)
{
    struct call_stack *stk = op->stk;

    op->stk = NULL;
    call_stack_fail(stk, err < 0 ? -err : EIO);
}

void
ec_finish(struct ec_op *op, int err)
{
    if (err < 0 || op->lacks_quorum)
        ec_fail(op, err < 0 ? err : -EIO);
    else
        ec_reply(op);
}

/* ---- calls to one child ---------------------------------------------------------------------- */

/* Replaces the caller's fd by the child's. Without one the child is called by gfid (anonymous fd). */
static int
swap_fd(struct call_stack *stk, const struct ec_op *op, unsigned i)
{
    if (!stk->call.fd)
        return 0;
    struct fd *fd = op->file ? ec_fd_child(op->file, i) : NULL;
    bool makes = op->fop == FOP_open || op->fop == FOP_opendir || op->fop == FOP_create;

    fd = makes ? NULL : fd ? fd_ref(fd) : fd_new_anonymous(stk->call.fd->inode, NULL);
    fd_unref(stk->call.fd);
    stk->call.fd = fd;
    return fd || makes ? 0 : -ENOMEM;
}

struct call_stack *
ec_fork(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = is_spare ? coro_call_fork_spare(op->stk) : coro_call_fork(op->stk);

    (void)unused;
    if (stk && swap_fd(stk, op, i)) {
        call_stack_free(stk);
        return NULL;
    }
    return stk;
}

struct call_stack *
ec_fork_held(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_fork(op, i, is_spare, unused);
    struct dict *d = stk ? call_xdata(stk) : NULL;

    if (d && !dict_set_str(d, DICT_KEY_INODELK_DOM_COUNT, op->d->xl->name))
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

struct call_stack *
ec_call(const struct ec_op *op, enum fop fop, unsigned i, bool is_spare, struct inode *inode,
        const struct ec_fd *file)
{
    struct call_stack *stk = is_spare ? coro_call_new_spare() : coro_call_new();

    if (!stk)
        return NULL;
    stk->caller = op->caller;
    stk->call.fop = fop;
    stk->call.loc.inode = ec_ref_or_null(inode);
    struct fd *fd = file && fop_info[fop].traits & FOP_BY_FD ? ec_fd_child(file, i) : NULL;
    stk->call.fd = fd ? fd_ref(fd) : NULL;
    return stk;
}

struct call_stack *
ec_fd_call(const struct ec_op *op, enum fop fop, unsigned i, bool is_spare, struct inode *inode,
           const struct ec_fd *file)
{
    struct call_stack *stk = ec_call(op, fop, i, is_spare, inode, file);

    if (stk && !stk->call.fd && !(stk->call.fd = fd_new_anonymous(inode, NULL))) {
        call_stack_free(stk);
        return NULL;
    }
    return stk;
}

int
ec_call_child(struct ec_op *op, unsigned i)
{
    struct fd *fd = op->file && op->fd ? ec_fd_child(op->file, i) : NULL;

    return fan_wind_own(op->stk, op->d->xl, i, fd);
}

/* ---- calls to several children --------------------------------------------------------------- */

struct ec_maker {
    struct fan_maker base;
    const struct ec_op *op;
    ec_make_fn make;
    const void *arg;
};

static struct call_stack *
ec_maker_make(const struct fan_maker *base, unsigned i, bool is_spare)
{
    const struct ec_maker *m = caa_container_of(base, struct ec_maker, base);

    return m->make(m->op, i, is_spare, m->arg);
}

static struct ec_maker
ec_maker(const struct ec_op *op, ec_make_fn make, const void *arg)
{
    return (struct ec_maker){
        .base = {.xl = op->d->xl, .make = ec_maker_make}, .op = op, .make = make, .arg = arg};
}

int
ec_ask(struct fan *f, const struct ec_op *op, child_set to, ec_make_fn make, const void *arg)
{
    struct ec_maker m = ec_maker(op, make, arg);

    return fan_send(f, &m.base, to);
}

void
ec_insist(struct fan *f, const struct ec_op *op, child_set to, ec_make_fn make, const void *arg)
{
    struct ec_maker m = ec_maker(op, make, arg);

    fan_press(f, &m.base, to);
}

int
ec_ask_rest(struct fan *f, const struct ec_op *op, ec_make_fn make, const void *arg)
{
    struct ec_maker m = ec_maker(op, make, arg);

    return fan_send_rest(f, &m.base);
}

void
ec_insist_rest(struct fan *f, const struct ec_op *op, ec_make_fn make, const void *arg)
{
    struct ec_maker m = ec_maker(op, make, arg);

    fan_press_rest(f, &m.base);
}

int
ec_ask_with_hold(struct fan *f, struct ec_op *op, ec_make_fn make, const void *arg, struct ec_hold *h,
                 struct ec_early *e)
{
    fan_begin(f);
    for_each_child (i, op->d->all) {
        struct fan_step steps[3] = {{f, make(op, i, false, arg), false}};

        ec_early_steps(op, h, e, i, &steps[1]);
        fan_wind_joined(steps, 3, op->d->xl, i);
    }
    fan_wait(f);
    ec_early_keep(op, h, e);
    return ec_ask_rest(f, op, make, arg);
}

int
ec_lock_in_turn(struct ec_op *op, child_set on, child_set *has)
{
    struct ec_maker m = ec_maker(op, ec_fork, NULL);

    return lock_calls_in_turn(&m.base, op->stk, on, has);
}

int
ec_find_lock_holder(struct ec_op *op, child_set on)
{
    struct ec_maker m = ec_maker(op, ec_fork, NULL);

    return lock_calls_find_holder(&m.base, op->stk, on);
}
