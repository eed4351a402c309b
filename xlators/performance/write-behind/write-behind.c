/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* performance/write-behind: answers a write before the bricks have executed it.
 *
 * The layer sits above features/utime and all clusters. A caller sees the same results as without the layer,
 * except that an error may be reported later:
 *
 *   WRITE          answered at once, while the file has less than `cache-size` bytes (1 MiB) and 256 pieces
 *                  under way; a write without room waits for room. A write waits for the bricks with O_SYNC
 *                  or O_DSYNC, with O_DIRECT and `strict-O_DIRECT`, and while the buffers of all files hold
 *                  64 MiB
 *   READ           waits for writes whose range ends behind the beginning of the read
 *   FSYNC, FLUSH   wait for all writes of the file, and return the error of a failed one
 *   STAT, SETATTR, TRUNCATE, FALLOCATE, SEEK, LK, LINK ...   wait for all writes of the file. LK because
 *                  another client that gets the lock next must see the data written under it
 *   LOOKUP, READDIRP   do not wait. Their attributes of a file that had writes under way meanwhile may be
 *                  old, so LOOKUP stats such a file again when its writes have ended, and READDIRP omits its
 *                  attributes
 *
 * A WRITE that must clear set-id bits (HINT_KILLS_PRIVS) has ended only when they are cleared.
 *
 * Other clients see a write when the bricks have executed it, so after a close at the latest. If this process
 * dies, only data is lost that no close or fsync has confirmed: those calls fail then, as the mount does.
 *
 * A mount that ends waits for the writes under way (stop), and answers no write early from then on. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "log/dump.h"
#include "mem/iobuf.h"
#include "xlators/performance/write-behind/write-behind-internal.h"

#define HELD_MAX (UINT64_C(64) << 20)

/* flush-behind: the FLUSH that reaches a brick drops locks. A late FLUSH would drop locks that the same
 * process has taken meanwhile. trickling-writes: always on. */
static const struct option wb_options[] = {
    OPT_SIZE(struct wb_conf, window, "cache-size", "1MB", UINT64_C(1) << 30),
    OPT_SIZE(struct wb_conf, aggregate, "aggregate-size", "128KB", UINT64_C(1) << 20),
    OPT_BOOL(struct wb_conf, strict_o_direct, "strict-O_DIRECT", "off"),
    OPT_BOOL(struct wb_conf, strict_order, "strict-write-ordering", "off"),
    OPT_BOOL(struct wb_conf, pass_through, "pass-through", "off"),
    OPT_MUST_BE("resync-failed-syncs-after-fsync", "off"),
    OPT_IGNORED("flush-behind"),
    OPT_IGNORED("trickling-writes"),
    /* kadalu has an option in each layer that switches it; glusterd and kadalu omit a layer that is off */
    OPT_IGNORED("write-behind"),
    OPT_END,
};

static struct inode *
wb_inode_of_call(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static bool
may_be_early(const struct wb *wb, const struct wb_conf *conf, const struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;
    uint32_t flags = call->flags | call->fd->flags;
    uint32_t waits = O_DSYNC | (O_SYNC & ~(uint32_t)O_DSYNC) | (conf->strict_o_direct ? O_DIRECT : 0);

    return !conf->pass_through && !(flags & waits) && !call->xdata && call->payload_count == 1 &&
           call->payload_iobuf && call->size && call->size <= conf->window &&
           call->offset + call->size > call->offset && !atomic_load(&wb->is_stopping) &&
           atomic_load(&wb->held) + call->payload_iobuf->size <= HELD_MAX;
}

static struct wb_waiter
for_range(const struct fop_call *call)
{
    bool appends = (call->flags | call->fd->flags) & O_APPEND;

    return (struct wb_waiter){.start = appends ? 0 : call->offset, .end = UINT64_MAX};
}

static xl_verdict
wait_for_range_go(struct xlator *xl, struct call_stack *stk)
{
    struct wb_waiter w = for_range(&stk->call);

    wb_wait(wb_inode_get(xl->private, wb_inode_of_call(stk)), &w);
    return XL_PASS;
}

/* READ, and writes that are not answered early: wait for older writes first. A read that reaches beyond the
 * written range needs to know the length of the file. */
static xl_verdict
pass_in_order(struct xlator *xl, struct call_stack *stk)
{
    struct wb_inode *wi = wb_inode_get(xl->private, wb_inode_of_call(stk));
    struct wb_waiter w = for_range(&stk->call);

    return wi && wb_has_to_wait(wi, &w) ? coro_fop(xl, stk, wait_for_range_go) : XL_PASS;
}

/* Queues a write whose bytes are reserved. */
static xl_verdict
queue_it(struct xlator *xl, struct call_stack *stk)
{
    if (wb_queue(wb_inode_get(xl->private, wb_inode_of_call(stk)), stk))
        return pass_in_order(xl, stk);
    stk->reply.op_ret = (int32_t)stk->call.size;
    return XL_DONE;
}

static xl_verdict
wait_for_room_go(struct xlator *xl, struct call_stack *stk)
{
    const struct wb_conf *conf = xlator_conf(xl);
    struct wb_waiter w = {.room = stk->call.size, .window = conf->window};

    wb_wait(wb_inode_get(xl->private, wb_inode_of_call(stk)), &w);
    return queue_it(xl, stk);
}

static xl_verdict
wb_writev(struct xlator *xl, struct call_stack *stk)
{
    const struct wb_conf *conf = xlator_conf(xl);
    struct wb *wb = xl->private;
    bool is_early = may_be_early(wb, conf, stk);
    struct wb_inode *wi =
        is_early ? wb_inode_make(wb, wb_inode_of_call(stk)) : wb_inode_get(wb, wb_inode_of_call(stk));
    int err = wi ? wb_take_error(wi, stk->call.fd) : 0;

    if (err)
        return err;
    if (!is_early || !wi)
        return pass_in_order(xl, stk);
    if (!wb_reserve(wi, stk->call.size, conf->window))
        return coro_fop(xl, stk, wait_for_room_go);
    return queue_it(xl, stk);
}

/* ---- calls that wait for writes -------------------------------------------------------------- */

static const struct wb_waiter for_all = {.end = UINT64_MAX};

static xl_verdict
wait_for_all_go(struct xlator *xl, struct call_stack *stk)
{
    struct wb_waiter w = for_all;

    wb_wait(wb_inode_get(xl->private, wb_inode_of_call(stk)), &w);
    return XL_PASS;
}

static xl_verdict
wb_after_all(struct xlator *xl, struct call_stack *stk)
{
    struct wb_inode *wi = wb_inode_get(xl->private, wb_inode_of_call(stk));
    struct wb_waiter w = for_all;

    return wi && wb_has_to_wait(wi, &w) ? coro_fop(xl, stk, wait_for_all_go) : XL_PASS;
}

static xl_verdict
wb_open(struct xlator *xl, struct call_stack *stk)
{
    return stk->call.flags & O_TRUNC ? wb_after_all(xl, stk) : XL_PASS;
}

/* Sends a FLUSH about locks to the brick even after an error of a write. */
static xl_verdict
flush_after_error(struct xlator *xl, struct call_stack *stk, int err)
{
    struct call_stack *copy = coro_call_fork(stk);

    if (copy) {
        (void)coro_call(copy, xlator_next(xl, FOP_flush)); /* the older error is returned */
        call_stack_free(copy);
    }
    return err;
}

/* Returns whether a FLUSH ends here: the bricks have nothing to do, nor have other layers. */
static bool
is_local_flush(const struct xlator *xl, const struct call_stack *stk)
{
    return stk->call.fop == FOP_flush && stk->call.hint.kind == HINT_FLUSH_OF_MOUNT &&
           !(xl->graph->traits & LAYER_WRITES_AT_FLUSH);
}

static xl_verdict
tell_go(struct xlator *xl, struct call_stack *stk)
{
    struct wb_inode *wi = wb_inode_get(xl->private, wb_inode_of_call(stk));
    struct wb_waiter w = for_all;

    wb_wait(wi, &w);
    bool is_local = is_local_flush(xl, stk);
    int err = wb_take_error(wi, stk->call.fd);

    if (err)
        return stk->call.fop == FOP_flush && !is_local ? flush_after_error(xl, stk, err) : err;
    return is_local ? XL_DONE : XL_PASS;
}

/* FSYNC and FLUSH return the errors of writes. */
static xl_verdict
wb_tell(struct xlator *xl, struct call_stack *stk)
{
    struct wb_inode *wi = wb_inode_get(xl->private, wb_inode_of_call(stk));
    struct wb_waiter w = for_all;

    if (wi && (atomic_load(&wi->errors) || wb_has_to_wait(wi, &w)))
        return coro_fop(xl, stk, tell_go);
    return is_local_flush(xl, stk) ? XL_DONE : XL_PASS;
}

/* ---- replies about files with writes under way ----------------------------------------------- */

/* Pushes a frame that notes the moment, so that the reply can tell whether a file had writes since. */
static xl_verdict
wb_watch(struct xlator *xl, struct call_stack *stk, frame_cb cb)
{
    struct wb *wb = xl->private;
    struct frame *f = frame_push(stk, xl, cb);

    if (!f)
        return -ENOMEM;
    f->local.u64[0] = atomic_load(&wb->ended);
    return XL_PASS;
}

/* True if no file had writes since. Once `left` is 0, `ended` includes all of them. */
static bool
no_writes_since(struct wb *wb, uint64_t ended)
{
    return !atomic_load(&wb->left) && atomic_load(&wb->ended) == ended;
}

/* Returns a reference to the file with these attributes if it had writes since, or NULL. */
static struct inode *
busy_file(struct wb *wb, const struct iatt *a, uint64_t ended)
{
    struct inode *inode = S_ISREG(a->mode) ? inode_find(wb->xl->graph->inodes, &a->gfid) : NULL;
    struct wb_inode *wi = wb_inode_get(wb, inode);

    if (wi && wb_was_busy(wi, ended))
        return inode;
    inode_unref(inode);
    return NULL;
}

struct look_again {
    struct xlator *xl;
    struct call_stack *stk; /* the LOOKUP, with its reply */
    struct inode *inode;    /* a reference */
};

static int
stat_again(const struct look_again *l, struct iatt *out)
{
    struct wb_waiter w = for_all;
    struct call_stack *stk = coro_call_new();

    wb_wait(wb_inode_get(l->xl->private, l->inode), &w);
    if (!stk)
        return -ENOMEM;
    stk->caller = l->stk->caller; /* the pointers in it belong to the LOOKUP, which waits */
    stk->call.fop = FOP_stat;
    stk->call.loc.inode = inode_ref(l->inode);
    int ret = coro_call(stk, xlator_next(l->xl, FOP_stat));

    if (ret >= 0)
        *out = stk->reply.stat;
    call_stack_free(stk);
    return ret;
}

/* `arg` lies on the stack of the starter, so it is valid only until the first yield. */
static void
look_again_go(void *arg)
{
    struct look_again l = *(struct look_again *)arg;
    int ret = stat_again(&l, &l.stk->reply.stat);

    inode_unref(l.inode);
    if (ret < 0)
        call_stack_fail(l.stk, -ret);
    else
        call_stack_unwind(l.stk);
}

static xl_verdict
wb_looked_up(struct frame *f, struct call_stack *stk)
{
    struct wb *wb = f->xl->private;
    uint64_t ended = f->local.u64[0];

    if (stk->reply.op_ret < 0 || no_writes_since(wb, ended))
        return XL_PASS;
    struct look_again l = {.xl = f->xl, .stk = stk, .inode = busy_file(wb, &stk->reply.stat, ended)};

    if (!l.inode)
        return XL_PASS;
    int err = coro_run(look_again_go, &l);

    if (!err)
        return XL_OWNED;
    inode_unref(l.inode);
    return err;
}

static xl_verdict
wb_lookup(struct xlator *xl, struct call_stack *stk)
{
    return wb_watch(xl, stk, wb_looked_up);
}

/* Omits the attributes of files with writes. A caller that needs them sends a LOOKUP. */
static xl_verdict
wb_listed(struct frame *f, struct call_stack *stk)
{
    struct wb *wb = f->xl->private;
    uint64_t ended = f->local.u64[0];

    if (stk->reply.op_ret < 0 || no_writes_since(wb, ended))
        return XL_PASS;
    for (struct dirent_entry *e = stk->reply.entries; e; e = e->next) {
        struct inode *inode = busy_file(wb, &e->iatt, ended);

        if (inode)
            e->iatt = (struct iatt){0};
        inode_unref(inode);
    }
    return XL_PASS;
}

static xl_verdict
wb_readdirp(struct xlator *xl, struct call_stack *stk)
{
    return wb_watch(xl, stk, wb_listed);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
wb_init(struct xlator *xl, struct reason *why)
{
    struct wb *wb;

    (void)why;
    if (wb_pools_init() || !(wb = calloc(1, sizeof *wb)))
        return -ENOMEM;
    wb->xl = xl;
    pthread_mutex_init(&wb->lock, NULL);
    pthread_cond_init(&wb->idle, NULL);
    xl->private = wb;
    return 0;
}

/* Waits until all answered writes are done, before the layers below stop. Their timeouts bound the wait. */
static void
wb_stop(struct xlator *xl)
{
    struct wb *wb = xl->private;

    atomic_store(&wb->is_stopping, true);
    pthread_mutex_lock(&wb->lock);
    while (atomic_load(&wb->left))
        pthread_cond_wait(&wb->idle, &wb->lock);
    pthread_mutex_unlock(&wb->lock);
}

static void
wb_fini(struct xlator *xl)
{
    struct wb *wb = xl->private;

    pthread_cond_destroy(&wb->idle);
    pthread_mutex_destroy(&wb->lock);
    free(wb);
}

static void
wb_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    wb_inode_free(ctx);
}

static void
wb_fd_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    (void)xl;
    (void)fd;
    wb_file_free(ctx);
}

static void
wb_dump(struct xlator *xl, struct dump *d)
{
    struct wb *wb = xl->private;

    dump_line(d, "writes-under-way", "%llu", (unsigned long long)atomic_load(&wb->left));
    dump_line(d, "bytes-held", "%zu", atomic_load(&wb->held));
    dump_line(d, "writes-ended", "%llu", (unsigned long long)atomic_load(&wb->ended));
}

const struct xlator_type performance_write_behind_xlator = {
    .name = "performance/write-behind",
    .conf_size = sizeof(struct wb_conf),
    .options = wb_options,
    .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD),
    .traits = LAYER_ANSWERS_EARLY,
    .ops =
        &(const struct xlator_ops){
            .writev = wb_writev,
            .readv = pass_in_order,
            .open = wb_open,
            .flush = wb_tell,
            .fsync = wb_tell,
            .stat = wb_after_all,
            .fstat = wb_after_all,
            .setattr = wb_after_all,
            .fsetattr = wb_after_all,
            .truncate = wb_after_all,
            .ftruncate = wb_after_all,
            .fallocate = wb_after_all,
            .discard = wb_after_all,
            .zerofill = wb_after_all,
            .seek = wb_after_all,
            .rchecksum = wb_after_all,
            .lk = wb_after_all,
            .link = wb_after_all,
            .lookup = wb_lookup,
            .readdirp = wb_readdirp,
        },
    .init = wb_init,
    .fini = wb_fini,
    .stop = wb_stop,
    .inode_forget = wb_inode_forget,
    .fd_release = wb_fd_release,
    .dump = wb_dump,
};
