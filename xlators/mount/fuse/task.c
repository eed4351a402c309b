/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A task holds a pin on the graph, so that the graph's objects stay until the reply; the program that ends
 * the mount waits for the pins (graph_drain).
 *
 * The caller's uid, gid and pid come with the request. Supplementary groups are read from /proc, at most
 * once in 10 ms, see groups.c, unless the brick checks no permission. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read-section.h"
#include "data/dict.h"
#include "log/log.h"
#include "rpc/xdr/cred.h"
#include "xlators/mount/fuse/fuse-internal.h"

static struct mem_pool *pool;

int
task_pools_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct task, 0);
    return pool ? 0 : -ENOMEM;
}

/* ---- the caller ------------------------------------------------------------------------------ */

/* Sets the caller's groups. If the process has ended (`count` below 0), the primary group must suffice. */
static int
set_groups(struct task *t, const uint32_t *groups, int count)
{
    struct caller *c = &t->stk->caller;

    c->groups = NULL;
    c->group_count = 0;
    if (count <= 0)
        return 0;
    uint32_t *copy = arena_alloc(&t->stk->arena, (size_t)count * sizeof *groups);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, groups, (size_t)count * sizeof *groups);
    c->groups = copy;
    c->group_count = (uint32_t)count;
    return 0;
}

static void
read_groups(struct task *t, const struct fuse_ctx *ctx)
{
    uint32_t groups[CRED_GROUPS_MAX];
    int count = groups_of(ctx, groups, &t->has_old_groups);

    if (set_groups(t, groups, count))
        task_is_short(t);
}

/* Reads groups anew that may be 10 ms old. Returns 1 if they differ, 0, or -ENOMEM. */
static int
renew_groups(struct task *t)
{
    uint32_t groups[CRED_GROUPS_MAX];
    const struct caller *c = &t->stk->caller;

    if (!t->has_old_groups)
        return 0;
    t->has_old_groups = false;
    int count = groups_now(fuse_req_ctx(t->req), groups);

    if (count >= 0 && (unsigned)count == c->group_count &&
        (count == 0 || memcmp(groups, c->groups, (size_t)count * sizeof *groups) == 0))
        return 0;
    return set_groups(t, groups, count) ? -ENOMEM : 1;
}

/* False if no brick checks permissions for the operation (brick 9.1): open(2) has checked them, or there are
 * none. For root and internal pids no operation is checked; pid 1 counts as an NFS server, whose reads and
 * writes are checked. */
static bool
needs_groups(const struct caller *c, enum fop fop)
{
    if (c->uid == 0)
        return false;
    switch (fop) {
    case FOP_stat:
    case FOP_fstat:
    case FOP_readlink:
    case FOP_statfs:
    case FOP_flush:
    case FOP_fsync:
    case FOP_fsyncdir:
    case FOP_release:
    case FOP_releasedir:
    case FOP_lk:
    case FOP_seek:
    case FOP_fallocate:
    case FOP_discard:
    case FOP_zerofill:
        return false;
    case FOP_readv:
    case FOP_writev:
    case FOP_ftruncate:
        return c->pid == 1;
    default:
        return true;
    }
}

/* Without a lock owner in the request, the owner is the process: four bytes, as stock's mounts send. */
static void
set_caller(struct task *t)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(t->req);
    struct caller *c = &t->stk->caller;
    uint32_t pid = (uint32_t)ctx->pid;

    int64_t pid_of_all = fuse_conf(t->m)->client_pid;

    c->pid = pid_of_all ? (int32_t)pid_of_all : ctx->pid;
    c->uid = ctx->uid;
    c->gid = ctx->gid;
    memcpy(t->owner, &pid, sizeof pid);
    c->lk_owner = (struct lk_owner){.len = sizeof pid, .bytes = t->owner};
    if (needs_groups(c, t->stk->call.fop))
        read_groups(t, ctx);
}

void
task_set_owner(struct task *t, uint64_t owner)
{
    memcpy(t->owner, &owner, sizeof owner);
    t->stk->caller.lk_owner = (struct lk_owner){.len = sizeof owner, .bytes = t->owner};
}

/* ---- making tasks ---------------------------------------------------------------------------- */

/* Makes a task for a pinned graph. */
static struct task *
task_make(fuse_req_t req, struct fuse_mount *m, struct xlator *xl)
{
    struct task *t = mem_get0_owner(pool, m->owner);
    struct call_stack *stk = t ? coro_call_new() : NULL;

    if (!stk) {
        mem_put(t);
        return NULL;
    }
    atomic_fetch_add(&m->running, 1);
    t->m = m;
    t->xl = xl;
    t->req = req;
    t->stk = stk;
    return t;
}

/* Makes the object's graph, which may be an older graph, the graph that the task calls. */
static void
task_set_graph(struct task *t, struct inode *inode)
{
    struct graph *before = t->xl->graph, *now = inode_table_graph(inode->table);

    if (now == before)
        return;
    if (!graph_pin(now)) { /* all graphs are ending */
        t->err = -ENOTCONN;
        return;
    }
    graph_unpin(before);
    t->xl = now->top;
}

/* Sets the inode. If the object has files in an older graph, only that graph may know the object. */
static void
task_set_number(struct task *t, fuse_ino_t number)
{
    struct fuse_node *node = node_at(t->m, number);
    struct fd *kept = node && atomic_load(&node->kept) ? file_kept_fd_of(t->m, node) : NULL;

    t->stk->call.loc.inode = kept ? inode_ref(kept->inode) : node_inode(t->m, number);
    task_set_graph(t, t->stk->call.loc.inode);
    fd_unref(kept);
}

struct task *
task_new(fuse_req_t req, enum fop fop, fuse_ino_t number, void (*go)(struct task *t))
{
    struct fuse_mount *m = fuse_req_userdata(req);
    struct xlator *xl = m->xl;
    struct graph *g = xl->graph;

    if (!graph_pin(g)) {
        fuse_reply_err(req, ENOTCONN);
        return NULL;
    }
    struct task *t = task_make(req, m, xl);
    if (!t) {
        fuse_reply_err(req, ENOMEM);
        graph_unpin(g);
        return NULL;
    }
    t->go = go;
    t->stk->call.fop = fop;
    t->number = number;
    if (number)
        task_set_number(t, number);
    set_caller(t);
    return t;
}

struct task *
task_new_inside(struct task *waiting, enum fop fop, void (*go)(struct task *t))
{
    struct graph *g = waiting->xl->graph;
    const struct caller *c = &waiting->stk->caller;

    if (!graph_pin(g))
        return NULL;
    struct task *t = task_make(NULL, waiting->m, waiting->xl);
    if (!t) {
        graph_unpin(g);
        return NULL;
    }
    t->go = go;
    t->stk->call.fop = fop;
    t->stk->call.loc.inode = inode_ref(waiting->stk->call.loc.inode);
    t->stk->call.fd = waiting->stk->call.fd ? fd_ref(waiting->stk->call.fd) : NULL;
    t->stk->caller = (struct caller){.pid = c->pid, .uid = c->uid, .gid = c->gid};
    memcpy(t->owner, waiting->owner, sizeof t->owner);
    t->stk->caller.lk_owner = (struct lk_owner){.len = c->lk_owner.len, .bytes = t->owner};
    return t;
}

void
task_is_short(struct task *t)
{
    t->go = NULL;
}

const char *
task_text(struct task *t, const char *text)
{
    const char *copy = arena_dup(&t->stk->arena, text, strlen(text));

    if (!copy)
        task_is_short(t);
    return copy;
}

/* Sets a name. The kernel allows names of up to 1,024 bytes. Bricks do not have such names, and the layers
 * below have room for FOP_NAME_MAX. */
static void
set_loc(struct task *t, struct loc *loc, fuse_ino_t parent, const char *name)
{
    loc->parent = node_inode(t->m, parent);
    loc->name = task_text(t, name);
    if (strlen(name) > FOP_NAME_MAX && !t->err)
        t->err = -ENAMETOOLONG;
}

void
task_set_new_entry(struct task *t, fuse_ino_t parent, const char *name)
{
    set_loc(t, &t->stk->call.loc2, parent, name);
    if (t->xl != t->m->xl && !t->err)
        t->err = -ESTALE; /* a link to an object of an older graph, in a folder of this graph */
}

void
task_set_entry(struct task *t, fuse_ino_t parent, const char *name)
{
    set_loc(t, &t->stk->call.loc, parent, name);
}

void
task_set_file(struct task *t, struct fuse_file_info *fi)
{
    t->file = file_of(t->m, fi);
    task_set_fd(t, fd_ref(t->file->fd));
    if (t->file->is_lost && t->stk->call.fop != FOP_release)
        t->err = -EBADFD;
}

void
task_set_fd(struct task *t, struct fd *fd)
{
    t->stk->call.fd = fd;
    inode_unref(t->stk->call.loc.inode);
    t->stk->call.loc.inode = inode_ref(fd->inode);
    task_set_graph(t, fd->inode);
}

void
task_ask_gfid(struct task *t)
{
    struct gfid gfid;

    gfid_random(&gfid);
    t->stk->call.xdata = dict_new(&t->stk->arena);
    if (!t->stk->call.xdata || dict_set_gfid(t->stk->call.xdata, DICT_KEY_GFID_REQ, &gfid))
        task_is_short(t);
}

/* ---- running tasks --------------------------------------------------------------------------- */

static void
task_end(struct task *t)
{
    struct graph *g = t->xl->graph;
    struct fuse_mount *m = t->m;

    call_stack_free(t->stk);
    if (t->before)
        call_stack_free(t->before);
    if (t->again)
        call_stack_free(t->again);
    mem_put(t);
    /* the pin keeps the mount, which is freed after the drain of all graphs */
    atomic_fetch_sub(&m->running, 1);
    graph_unpin(g);
}

static void
task_run(void *arg)
{
    struct task *t = arg;

    if (t->m->restored)
        task_see(t);
    t->go(t);
    task_end(t);
}

/* True if the call sets S_ISGID, which a brick clears without an error if the caller is not in the group. */
static bool
sets_group_bit(const struct fop_call *c)
{
    return (c->mode | c->stbuf.mode) & S_ISGID;
}

void
task_start(struct task *t)
{
    if (t->has_old_groups && sets_group_bit(&t->stk->call) && renew_groups(t) < 0)
        task_is_short(t);
    int err = !t->go ? -ENOMEM : t->err ? t->err : coro_run(task_run, t);

    if (!err)
        return;
    task_fail(t, err);
    task_end(t);
}

/* Repeats a refused call, if the caller's groups have changed since they were read, and gives the call the
 * new reply. */
static int
wind_again(struct task *t, struct call_stack *stk, int refusal)
{
    int changed = renew_groups(t);

    if (changed <= 0)
        return changed < 0 ? changed : refusal;
    stk->caller.groups = t->stk->caller.groups;
    stk->caller.group_count = t->stk->caller.group_count;
    t->again = coro_call_fork(stk);
    if (!t->again)
        return -ENOMEM;
    int ret = coro_call(t->again, t->xl);
    struct fop_reply refused = stk->reply;

    stk->reply = t->again->reply;
    t->again->reply = refused;
    return ret;
}

int
task_wind(struct task *t, struct call_stack *stk)
{
    int ret = coro_call(stk, t->xl);

    return (ret == -EACCES || ret == -EPERM) && t->has_old_groups ? wind_again(t, stk, ret) : ret;
}

/* A task that has finished waiting and must wait for the end of a switch. On the task's stack. */
struct parked {
    struct cds_list_head link; /* under the mount's lock */
    struct coroutine *self;
};

/* Counts the task as running again; waits during a switch, which may change the graph of the task's file. */
static void
count_or_park(struct fuse_mount *m)
{
    struct parked p = {.self = coroutine_self()};

    pthread_mutex_lock(&m->lock);
    bool waits = m->is_switching;

    if (waits)
        cds_list_add_tail(&p.link, &m->parked);
    else
        atomic_fetch_add(&m->running, 1);
    pthread_mutex_unlock(&m->lock);
    if (waits)
        coroutine_yield(); /* tasks_go_on() has counted this task */
}

void
tasks_hold_back(struct fuse_mount *m)
{
    pthread_mutex_lock(&m->lock);
    m->is_switching = true;
    pthread_mutex_unlock(&m->lock);
}

void
tasks_go_on(struct fuse_mount *m)
{
    struct parked *p, *next;
    CDS_LIST_HEAD(all);

    pthread_mutex_lock(&m->lock);
    m->is_switching = false;
    cds_list_splice(&m->parked, &all);
    CDS_INIT_LIST_HEAD(&m->parked);
    cds_list_for_each_entry (p, &all, link)
        atomic_fetch_add(&m->running, 1);
    pthread_mutex_unlock(&m->lock);
    read_section_begin();
    cds_list_for_each_entry_safe (p, next, &all, link)
        coroutine_resume(p->self); /* frees the stack that holds `p` */
    read_section_end();
}

int
task_call_waiting(struct task *t)
{
    struct fuse_mount *m = t->m;

    atomic_fetch_sub(&m->running, 1);
    int ret = task_call(t);

    count_or_park(m);
    return ret;
}

/* Copies the task's call, without groups, which belong to the old stack and do not matter for an open file.
 */
static void
copy_call(struct task *t, struct call_stack *stk)
{
    const struct fop_call *call = &t->stk->call;

    stk->caller = t->stk->caller;
    stk->caller.groups = NULL;
    stk->caller.group_count = 0;
    stk->call.fop = call->fop;
    stk->call.cmd = call->cmd;
    stk->call.hint.kind = call->hint.kind;
    stk->call.type = call->type;
    stk->call.flock = call->flock;
    stk->call.loc.inode = inode_ref(t->file->fd->inode);
    stk->call.fd = fd_ref(t->file->fd);
}

bool
task_follow(struct task *t, int ret)
{
    struct graph *now = fd_graph(t->file->fd);

    if (now == t->xl->graph || (ret < 0 && ret != -ENOTCONN) || !graph_pin(now))
        return false;
    struct call_stack *stk = coro_call_new();
    if (!stk) {
        graph_unpin(now);
        return false;
    }
    copy_call(t, stk);
    call_stack_free(t->stk);
    graph_unpin(t->xl->graph);
    t->stk = stk;
    t->xl = now->top;
    return true;
}

int
task_call(struct task *t)
{
    return task_wind(t, t->stk);
}

/* The kernel passes only the inode, even if the application has passed an open file. */
static const struct {
    enum fop by_number, by_file;
} twins[] = {
    {FOP_stat, FOP_fstat},
    {FOP_setattr, FOP_fsetattr},
    {FOP_setxattr, FOP_fsetxattr},
    {FOP_getxattr, FOP_fgetxattr},
    {FOP_removexattr, FOP_fremovexattr},
};

/* Repeats the call by a file that is open on the inode. NULL: no file is open, or the call has no such
 * form. */
static struct call_stack *
call_by_file(struct task *t, const struct call_stack *stk)
{
    struct fuse_node *node = stk->call.fd ? NULL : node_at(t->m, t->number);
    struct call_stack *again = NULL;
    size_t i = 0;

    while (i < sizeof twins / sizeof twins[0] && twins[i].by_number != stk->call.fop)
        i++;
    if (!node || i == sizeof twins / sizeof twins[0])
        return NULL;
    struct fd *fd = file_fd_of(t->m, node, t->xl->graph);
    if (fd)
        again = coro_call_fork(stk);
    if (!again) {
        fd_unref(fd);
        return NULL;
    }
    again->call.fop = twins[i].by_file;
    again->call.fd = fd;
    return again;
}

int
task_wind_by_number(struct task *t, struct call_stack **stk)
{
    int ret = task_wind(t, *stk);
    struct call_stack *again = ret == -ENOENT || ret == -ESTALE ? call_by_file(t, *stk) : NULL;

    if (again) {
        if (t->before)
            call_stack_free(t->before);
        t->before = *stk; /* the old call's arena has names and groups */
        *stk = again;
        ret = task_wind(t, again);
    }
    return ret == -ENOENT ? -ESTALE : ret;
}

int
task_call_by_number(struct task *t)
{
    return task_wind_by_number(t, &t->stk);
}

struct call_stack *
task_call_new(struct task *t, enum fop fop)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return NULL;
    stk->caller = t->stk->caller; /* borrows data from the task */
    stk->call.fop = fop;
    stk->call.loc.inode = t->stk->call.loc.inode ? inode_ref(t->stk->call.loc.inode) : NULL;
    stk->call.fd = t->stk->call.fd ? fd_ref(t->stk->call.fd) : NULL;
    return stk;
}

/* ---- replies. A request that the kernel has dropped is no error ------------------------------ */

void
task_fail(struct task *t, int err)
{
    if (t->req)
        fuse_reply_err(t->req, err < 0 ? -err : EIO);
}

void
task_done(struct task *t)
{
    fuse_reply_err(t->req, 0);
}

void
task_result(struct task *t, int ret)
{
    if (ret < 0)
        task_fail(t, ret);
    else
        task_done(t);
}
