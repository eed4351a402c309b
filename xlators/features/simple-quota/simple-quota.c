/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/simple-quota: limits on folders (spec: gluster11 2). A folder with the xattr
 * trusted.glusterfs.namespace is a namespace. The xattr trusted.gfs.squota.limit of the folder is its limit
 * in bytes. The layer counts how much this brick stores below the folder, refuses changes that would exceed
 * the limit with EDQUOT, and shows usage and limit in STATFS.
 *
 * The layer sits above features/locks, so a change that waits for a lock is charged only after it was done.
 * When the layer is switched off (pass-through), only xattr operations pass through the layer, which still
 * protects the mark. It keeps namespace and charge per inode. On disk it keeps the xattr
 * trusted.gfs.squota.size, for users and for stock's bricks, and a state file that survives kills (state.c).
 * Its locks are described in squota-internal.h.
 *
 * Differences from stock's layer, of which clients notice nothing: doc/gluster-versions.md. Bricks do not
 * know each other: with several bricks behind distribute, kadalu's crawler sends each brick the sum
 * (glusterfs.quota.total-usage).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "log/dump.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/features/simple-quota/squota-internal.h"

static const struct option squota_options[] = {
    OPT_BOOL(struct squota_conf, passes_through, "pass-through", "on"),
    OPT_BOOL(struct squota_conf, cmd_from_all, "cmd-from-all-client", "off"),
    OPT_STR(struct squota_conf, use_backend, "use-backend", NULL), /* not implemented (graph/unbuilt.h) */
    /* glusterd 11 writes this option, and stock's layer does not know it either */
    OPT_IGNORED("no-distribute"),
    OPT_END,
};

static bool
squota_is_active(const void *conf)
{
    return !((const struct squota_conf *)conf)->passes_through;
}

/* ---- changes of one object ------------------------------------------------------------------- */

/* Indices of a frame's local.u64. Objects: a struct squota_inode, or 0. The call holds the references to
 * their inodes. */
enum { OF_OBJECT, OF_PARENT, OF_PARENT2, OF_VICTIM, OF_RESERVED, OF_SLOT };

static struct squota_inode *
local_ctx(const struct frame *f, int which)
{
    return (struct squota_inode *)(uintptr_t)f->local.u64[which];
}

static void
set_local_ctx(struct frame *f, int which, struct squota_inode *ctx)
{
    f->local.u64[which] = (uintptr_t)ctx;
}

static xl_verdict
data_changed(struct frame *f, struct call_stack *stk)
{
    squota_end(f->xl, local_ctx(f, OF_OBJECT), stk->reply.op_ret < 0 ? SQUOTA_UNSURE : SQUOTA_CHANGED,
               &stk->reply.post, (int64_t)f->local.u64[OF_RESERVED]);
    return XL_PASS;
}

/* The reply does not show the object's new blocks. */
xl_verdict
squota_object_changed(struct frame *f, struct call_stack *stk)
{
    squota_end(f->xl, local_ctx(f, OF_OBJECT), stk->reply.op_ret < 0 ? SQUOTA_AS_WAS : SQUOTA_UNSURE, NULL,
               (int64_t)f->local.u64[OF_RESERVED]);
    return XL_PASS;
}

xl_verdict
squota_change_of(struct xlator *xl, struct call_stack *stk, struct inode *inode,
                 const struct squota_need *need, frame_cb cb)
{
    int64_t reserved;
    int err;
    struct squota_inode *ctx = inode ? squota_begin(xl, stk, inode, NULL, need, &reserved, &err) : NULL;

    if (!ctx)
        return inode && err ? err : XL_PASS;
    struct frame *f = frame_push(stk, xl, cb);
    if (!f) {
        squota_end(xl, ctx, SQUOTA_AS_WAS, NULL, reserved);
        return -ENOMEM;
    }
    set_local_ctx(f, OF_OBJECT, ctx);
    f->local.u64[OF_RESERVED] = (uint64_t)reserved;
    return XL_PASS;
}

static xl_verdict
squota_writev(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    const struct squota_need need = {.offset = c->offset, .bytes = c->payload_bytes};

    return squota_change_of(xl, stk, c->loc.inode, &need, data_changed);
}

static xl_verdict
squota_allot(struct xlator *xl, struct call_stack *stk)
{
    const struct squota_need need = {
        .offset = stk->call.offset, .bytes = stk->call.size, .allots = stk->call.fop == FOP_fallocate};

    return squota_change_of(xl, stk, stk->call.loc.inode, &need, data_changed);
}

static xl_verdict
squota_copy(struct xlator *xl, struct call_stack *stk)
{
    const struct squota_need need = {.offset = stk->call.offset2, .bytes = stk->call.size};

    return squota_change_of(xl, stk, stk->call.loc2.inode, &need, data_changed);
}

/* A truncate that grows a file allots nothing, or one block for the new end. A discard frees blocks. */
static xl_verdict
squota_cut(struct xlator *xl, struct call_stack *stk)
{
    return squota_change_of(xl, stk, stk->call.loc.inode, NULL, data_changed);
}

static xl_verdict
squota_open(struct xlator *xl, struct call_stack *stk)
{
    return stk->call.flags & O_TRUNC
               ? squota_change_of(xl, stk, stk->call.loc.inode, NULL, squota_object_changed)
               : XL_PASS;
}

/* Xattrs that do not fit into the file system's inode use a block. */
static xl_verdict
squota_xattrop(struct xlator *xl, struct call_stack *stk)
{
    return squota_change_of(xl, stk, stk->call.loc.inode, NULL, squota_object_changed);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The objects that a change of names involves. */
struct names {
    struct squota_inode *object, *parent, *parent2, *victim;
    int64_t reserved;
};

static void
names_end(struct xlator *xl, const struct names *n)
{
    squota_end(xl, n->object, SQUOTA_AS_WAS, NULL, 0);
    squota_end(xl, n->victim, SQUOTA_AS_WAS, NULL, 0);
    squota_end(xl, n->parent2, SQUOTA_AS_WAS, NULL, 0);
    squota_end(xl, n->parent, SQUOTA_AS_WAS, NULL, n->reserved);
}

/* Begins a change of a further object. Does nothing if *err says that the previous one failed. */
static struct squota_inode *
begin_also(struct xlator *xl, struct call_stack *stk, struct inode *inode, struct inode *parent, int *err)
{
    int64_t reserved;

    return inode && *err == 0 ? squota_begin(xl, stk, inode, parent, NULL, &reserved, err) : NULL;
}

/* Returns XL_PASS with *frame set, or with *frame NULL if no change was begun. */
static xl_verdict
names_begun(struct xlator *xl, struct call_stack *stk, const struct names *n, int err, frame_cb cb,
            struct frame **frame)
{
    bool is_any = n->object || n->parent || n->parent2 || n->victim;
    struct frame *f = is_any && !err ? frame_push(stk, xl, cb) : NULL;

    *frame = f;
    if (!f) {
        names_end(xl, n);
        return is_any && !err ? -ENOMEM : err ? err : XL_PASS;
    }
    set_local_ctx(f, OF_OBJECT, n->object);
    set_local_ctx(f, OF_PARENT, n->parent);
    set_local_ctx(f, OF_PARENT2, n->parent2);
    set_local_ctx(f, OF_VICTIM, n->victim);
    f->local.u64[OF_RESERVED] = (uint64_t)n->reserved;
    return XL_PASS;
}

static const struct iatt *
made_object(const struct call_stack *stk)
{
    struct gfid wanted;
    bool is_new = stk->reply.op_ret >= 0;

    /* A CREATE may have opened an existing file. Its gfid is then not the one that the client proposed. */
    if (is_new && stk->call.fop == FOP_create)
        is_new = dict_get_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &wanted) == 0 &&
                 gfid_equal(&wanted, &stk->reply.stat.gfid);
    return is_new ? &stk->reply.stat : NULL;
}

static xl_verdict
name_made(struct frame *f, struct call_stack *stk)
{
    struct squota_inode *parent = local_ctx(f, OF_PARENT), *object = local_ctx(f, OF_OBJECT);
    bool is_done = stk->reply.op_ret >= 0;

    if (parent)
        squota_made(f->xl, parent, (unsigned)f->local.u64[OF_SLOT], made_object(stk));
    squota_end(f->xl, object, is_done && stk->call.flags & O_TRUNC ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL, 0);
    squota_end(f->xl, parent, is_done ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL,
               (int64_t)f->local.u64[OF_RESERVED]);
    return XL_PASS;
}

static xl_verdict
squota_make(struct xlator *xl, struct call_stack *stk)
{
    static const struct squota_need need = {.fixed = SQUOTA_NAME_NEEDS};
    struct names n = {0};
    struct gfid gfid;
    struct frame *f;
    int err = 0;

    n.parent = squota_begin(xl, stk, stk->call.loc.parent, NULL, &need, &n.reserved, &err);
    /* a CREATE of an existing file */
    n.object = begin_also(xl, stk, stk->call.loc.inode, stk->call.loc.parent, &err);
    xl_verdict verdict = names_begun(xl, stk, &n, err, name_made, &f);
    if (f && n.parent && dict_get_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0)
        f->local.u64[OF_SLOT] = squota_expect(xl, n.parent, &gfid);
    return verdict;
}

/* True if a features/trash below keeps removed files. */
static bool
keeps_removed(const struct xlator *xl)
{
    const struct graph *g = xl->graph;

    for (unsigned i = 0; i < g->layer_count; i++) {
        if (strcmp(g->layers[i].type->name, "features/trash") == 0 && xlator_is_on(&g->layers[i]))
            return true;
    }
    return false;
}

/* State of an object that has lost a name. The reply has the link count before the removal, which includes
 * the handle. */
static enum squota_after
after_removal(const struct frame *f, const struct call_stack *stk, const struct squota_inode *ctx)
{
    uint64_t links = 0;

    if (S_ISDIR(ctx->inode->type))
        return SQUOTA_GONE;
    if (dict_get_uint(stk->reply.xdata, DICT_KEY_RESPONSE_LINK_COUNT, &links) < 0 || links > 1)
        return SQUOTA_UNSURE;
    return atomic_load(&ctx->inode->open_fds) > 0 || keeps_removed(f->xl) ? SQUOTA_UNSURE : SQUOTA_GONE;
}

/* The trash is in the root directory. */
static void
move_to_trash(struct xlator *xl, struct squota_inode *ctx)
{
    struct inode *root = inode_root(xl->graph->inodes);
    int err;
    struct squota_inode *of_root = squota_inode_get(xl, root, NULL, &err);

    if (err == 0 && of_root->ns != ctx->ns)
        squota_moved(xl, ctx, of_root->ns);
    inode_unref(root);
}

static int
ask_link_count(struct call_stack *stk)
{
    if (!stk->call.xdata)
        stk->call.xdata = dict_new(&stk->arena);
    if (!stk->call.xdata)
        return -ENOMEM;
    return dict_set_uint(stk->call.xdata, DICT_KEY_REQUEST_LINK_COUNT, 1);
}

/* The folder of a namespace was removed. */
static void
ns_removed(struct xlator *xl, struct squota_inode *ctx)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    if (squota_is_root_of(ctx, &ctx->inode->gfid) && !ctx->ns->is_gone) {
        squota_state_drop(q->state, ctx->ns->record);
        ctx->ns->record = 0;
        ctx->ns->is_gone = true;
    }
    pthread_mutex_unlock(&q->lock);
}

static void
object_removed(struct frame *f, struct call_stack *stk, struct squota_inode *ctx)
{
    uint64_t links = 0;

    if (!ctx)
        return;
    bool is_last = dict_get_uint(stk->reply.xdata, DICT_KEY_RESPONSE_LINK_COUNT, &links) == 0 && links <= 1;
    squota_end(f->xl, ctx, after_removal(f, stk, ctx), NULL, 0);
    if (S_ISDIR(ctx->inode->type))
        ns_removed(f->xl, ctx);
    else if (is_last && stk->call.fop == FOP_unlink && keeps_removed(f->xl))
        move_to_trash(f->xl, ctx);
}

static xl_verdict
name_removed(struct frame *f, struct call_stack *stk)
{
    struct squota_inode *object = local_ctx(f, OF_OBJECT), *parent = local_ctx(f, OF_PARENT);
    bool is_done = stk->reply.op_ret >= 0;

    if (is_done)
        object_removed(f, stk, object);
    else
        squota_end(f->xl, object, SQUOTA_AS_WAS, NULL, 0);
    /* A healer removes a folder together with its contents. */
    if (is_done && stk->call.fop == FOP_rmdir && stk->call.flags && parent)
        squota_walk_start(f->xl, parent->ns, true);
    squota_end(f->xl, parent, is_done ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL, 0);
    return XL_PASS;
}

static xl_verdict
squota_remove(struct xlator *xl, struct call_stack *stk)
{
    struct loc *loc = &stk->call.loc;
    struct names n = {0};
    struct frame *f;
    int err = 0;

    n.parent = begin_also(xl, stk, loc->parent, NULL, &err);
    n.object = begin_also(xl, stk, loc->inode, loc->parent, &err);
    if (n.object && err == 0 && stk->call.fop == FOP_unlink)
        err = ask_link_count(stk);
    return names_begun(xl, stk, &n, err, name_removed, &f);
}

static const struct squota_ns *
ctx_namespace(const struct squota_inode *ctx)
{
    return ctx ? ctx->ns : NULL;
}

static xl_verdict
name_linked(struct frame *f, struct call_stack *stk)
{
    bool is_done = stk->reply.op_ret >= 0;

    squota_end(f->xl, local_ctx(f, OF_OBJECT), is_done ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL, 0);
    squota_end(f->xl, local_ctx(f, OF_PARENT2), is_done ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL, 0);
    return XL_PASS;
}

static xl_verdict
squota_link(struct xlator *xl, struct call_stack *stk)
{
    struct names n = {0};
    struct frame *f;
    int err = 0;

    n.object = begin_also(xl, stk, stk->call.loc.inode, NULL, &err);
    n.parent2 = begin_also(xl, stk, stk->call.loc2.parent, NULL, &err);
    if (err == 0 && squota_is_checked(&stk->caller) && ctx_namespace(n.object) != ctx_namespace(n.parent2))
        err = -EXDEV;
    return names_begun(xl, stk, &n, err, name_linked, &f);
}

/* An internal client has moved an object to another namespace. */
static void
moved_over(struct frame *f, struct squota_inode *object, struct squota_inode *from, struct squota_inode *to)
{
    struct squota_ns *old = from ? from->ns : NULL, *fresh = to ? to->ns : NULL;

    if (!object || !S_ISDIR(object->inode->type)) {
        if (object)
            squota_moved(f->xl, object, fresh);
        return;
    }
    if (squota_is_root_of(object, &object->inode->gfid))
        return;
    struct squota *q = squota_of(f->xl);
    pthread_mutex_lock(&q->lock);
    q->generation++;
    pthread_mutex_unlock(&q->lock);
    if (old)
        squota_walk_start(f->xl, old, true);
    if (fresh)
        squota_walk_start(f->xl, fresh, false);
}

static void
account_rename(struct frame *f, struct call_stack *stk)
{
    struct squota_inode *object = local_ctx(f, OF_OBJECT), *from = local_ctx(f, OF_PARENT),
                        *to = local_ctx(f, OF_PARENT2);
    struct squota *q = squota_of(f->xl);

    object_removed(f, stk, local_ctx(f, OF_VICTIM));
    if (stk->call.loc.parent != stk->call.loc2.parent && ctx_namespace(from) != ctx_namespace(to))
        moved_over(f, object, from, to);
    if (!object)
        return;
    if (S_ISDIR(object->inode->type)) {
        pthread_mutex_lock(&q->lock);
        if (object->ns && object->ns->walk)
            squota_walk_again(object->ns->walk, &object->inode->gfid);
        pthread_mutex_unlock(&q->lock);
    }
    squota_end(f->xl, object, SQUOTA_UNSURE, NULL, 0);
}

static xl_verdict
name_moved(struct frame *f, struct call_stack *stk)
{
    bool is_done = stk->reply.op_ret >= 0;

    if (is_done) {
        account_rename(f, stk);
    } else {
        squota_end(f->xl, local_ctx(f, OF_VICTIM), SQUOTA_AS_WAS, NULL, 0);
        squota_end(f->xl, local_ctx(f, OF_OBJECT), SQUOTA_AS_WAS, NULL, 0);
    }
    squota_end(f->xl, local_ctx(f, OF_PARENT2), is_done ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL, 0);
    squota_end(f->xl, local_ctx(f, OF_PARENT), is_done ? SQUOTA_UNSURE : SQUOTA_AS_WAS, NULL, 0);
    return XL_PASS;
}

static xl_verdict
squota_rename(struct xlator *xl, struct call_stack *stk)
{
    struct loc *from = &stk->call.loc, *to = &stk->call.loc2;
    struct names n = {0};
    struct frame *f;
    int err = 0;

    n.parent = begin_also(xl, stk, from->parent, NULL, &err);
    if (to->parent != from->parent)
        n.parent2 = begin_also(xl, stk, to->parent, NULL, &err);
    n.object = begin_also(xl, stk, from->inode, from->parent, &err);
    if (to->inode != from->inode)
        n.victim = begin_also(xl, stk, to->inode, to->parent, &err);
    bool crosses = to->parent != from->parent && ctx_namespace(n.parent) != ctx_namespace(n.parent2);
    if (err == 0 && crosses && squota_is_checked(&stk->caller))
        err = -EXDEV;
    if (err == 0 && n.victim)
        err = ask_link_count(stk);
    return names_begun(xl, stk, &n, err, name_moved, &f);
}

/* ---- background work ------------------------------------------------------------------------- */

static void
squota_timer_due(struct timer *t)
{
    struct squota *q = caa_container_of(t, struct squota, timer);

    pthread_mutex_lock(&q->lock);
    q->is_timer_set = false;
    if (!q->is_stopping && !q->is_job_posted) {
        q->is_job_posted = true;
        worker_post(&q->job);
    }
    pthread_mutex_unlock(&q->lock);
}

static void
squota_job_run(struct worker_job *job)
{
    struct squota *q = caa_container_of(job, struct squota, job);

    squota_look(q->xl, NULL, true);
    squota_ns_store_all(q->xl);
    pthread_mutex_lock(&q->lock);
    q->is_job_posted = false;
    if (q->queued)
        squota_wake(q);
    pthread_cond_broadcast(&q->idle);
    pthread_mutex_unlock(&q->lock);
}

static void
switch_on(struct xlator *xl)
{
    struct squota *q = squota_of(xl);
    bool is_whole;
    struct squota_state *state = squota_state_open(xl, &is_whole);

    pthread_mutex_lock(&q->lock);
    q->state = state;
    q->is_stopping = false;
    q->generation++;
    pthread_mutex_unlock(&q->lock);
    if (state && is_whole)
        squota_recover(xl);
}

static void
wait_for_work(struct squota *q)
{
    pthread_mutex_lock(&q->lock);
    q->is_stopping = true;
    pthread_mutex_unlock(&q->lock);
    timer_stop(&q->timer);
    pthread_mutex_lock(&q->lock);
    q->is_timer_set = false;
    while (q->is_job_posted || q->walks > 0)
        pthread_cond_wait(&q->idle, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

static void
forget_slot(struct inode *inode, void *ctx, void *arg)
{
    struct squota_inode *si = ctx;
    struct squota *q = arg;

    (void)inode;
    pthread_mutex_lock(&q->lock);
    squota_forget_ahead(si);
    si->slot = 0;
    si->is_known = false;
    pthread_mutex_unlock(&q->lock);
}

/* Drops the references that the queue holds. */
static void
empty_queue(struct squota *q)
{
    for (;;) {
        struct inode *inode = NULL;
        pthread_mutex_lock(&q->lock);
        if (!cds_list_empty(&q->queue)) {
            struct squota_inode *ctx = cds_list_first_entry(&q->queue, struct squota_inode, link);
            cds_list_del_init(&ctx->link);
            ctx->is_queued = false;
            q->queued--;
            inode = ctx->inode;
        }
        pthread_mutex_unlock(&q->lock);
        if (!inode)
            return;
        inode_unref(inode);
    }
}

/* Runs while calls are running. They end their changes in namespaces that are no longer used. */
static void
switch_off(struct xlator *xl)
{
    struct squota *q = squota_of(xl);
    struct squota_ns *ns;

    wait_for_work(q);
    pthread_mutex_lock(&q->look_lock);
    empty_queue(q);
    pthread_mutex_lock(&q->lock);
    struct squota_state *state = q->state;
    q->state = NULL;
    q->generation++;
    cds_list_for_each_entry(ns, &q->namespaces, link) {
        ns->is_gone = true;
        ns->record = 0;
    }
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_unlock(&q->look_lock);
    inode_table_each(xl->graph->inodes, xl, forget_slot, q);
    squota_state_close(state, false);
    squota_state_forget(xl);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
squota_init(struct xlator *xl, struct reason *why)
{
    struct squota *q = calloc(1, sizeof *q);

    (void)why;
    if (!q)
        return -ENOMEM;
    q->xl = xl;
    for (q->storage = xl; q->storage->child_count > 0;)
        q->storage = q->storage->children[0];
    pthread_mutex_init(&q->lock, NULL);
    pthread_mutex_init(&q->look_lock, NULL);
    pthread_cond_init(&q->idle, NULL);
    CDS_INIT_LIST_HEAD(&q->namespaces);
    CDS_INIT_LIST_HEAD(&q->queue);
    CDS_INIT_LIST_HEAD(&q->flyers);
    timer_init(&q->timer, squota_timer_due);
    q->job.run = squota_job_run;
    xl->private = q;
    return 0;
}

static void
squota_fini(struct xlator *xl)
{
    struct squota *q = squota_of(xl);
    struct squota_ns *ns, *next;

    cds_list_for_each_entry_safe(ns, next, &q->namespaces, link) {
        simple_quota_shared_unref(ns->shared);
        free(ns);
    }
    pthread_mutex_destroy(&q->lock);
    pthread_mutex_destroy(&q->look_lock);
    pthread_cond_destroy(&q->idle);
    free(q);
    xl->private = NULL;
}

static int
squota_start(struct xlator *xl)
{
    read_section_begin();
    if (xlator_is_on(xl))
        switch_on(xl);
    else
        squota_state_forget(xl);
    read_section_end();
    return 0;
}

static void
squota_stop(struct xlator *xl)
{
    wait_for_work(squota_of(xl));
}

/* Stats all queued objects at the end, so that a later crash of the machine costs nothing. */
static void
squota_drained(struct xlator *xl)
{
    struct squota *q = squota_of(xl);

    read_section_begin();
    if (xlator_is_on(xl)) {
        squota_look(xl, NULL, false);
        squota_ns_store_all(xl);
    }
    read_section_end();
    /* The next process stats the objects whose blocks the file system may still free. */
    empty_queue(q);
    squota_state_close(q->state, true);
    q->state = NULL;
}

static void
squota_reconfigured(struct xlator *xl, const void *old)
{
    bool was_on = squota_is_active(old), is_on = squota_is_active(xlator_conf(xl));

    read_section_begin();
    if (is_on && !was_on)
        switch_on(xl);
    read_section_end();
    if (was_on && !is_on)
        switch_off(xl);
}

static void
squota_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    struct squota *q = squota_of(xl);

    (void)inode;
    pthread_mutex_lock(&q->lock);
    squota_forget_ahead(ctx);
    pthread_mutex_unlock(&q->lock);
    mem_put(ctx);
}

static void
squota_fd_closed(struct xlator *xl, struct fd *fd)
{
    struct squota_inode *ctx = inode_ctx(fd->inode, xl);

    if (ctx && S_ISREG(fd->inode->type))
        squota_closed(xl, ctx);
}

static void
squota_dump(struct xlator *xl, struct dump *d)
{
    struct squota *q = squota_of(xl);
    const struct squota_ns *ns;

    pthread_mutex_lock(&q->lock);
    dump_line(d, "queued", "%u", q->queued);
    dump_line(d, "walks", "%u", q->walks);
    cds_list_for_each_entry(ns, &q->namespaces, link) {
        if (!ns->is_gone)
            dump_line(d, "namespace", "%s limit=%lld used=%lld reserved=%lld counting=%d", GFID(&ns->gfid),
                      (long long)ns->limit, (long long)squota_used(ns), (long long)ns->reserved,
                      ns->walk != NULL);
    }
    pthread_mutex_unlock(&q->lock);
}

static const struct xlator_ops squota_ops = {
    .writev = squota_writev,
    .fallocate = squota_allot,
    .zerofill = squota_allot,
    .copy_file_range = squota_copy,
    .truncate = squota_cut,
    .ftruncate = squota_cut,
    .discard = squota_cut,
    .open = squota_open,
    .xattrop = squota_xattrop,
    .fxattrop = squota_xattrop,
    .create = squota_make,
    .mknod = squota_make,
    .mkdir = squota_make,
    .symlink = squota_make,
    .unlink = squota_remove,
    .rmdir = squota_remove,
    .link = squota_link,
    .rename = squota_rename,
    .setxattr = squota_setxattr,
    .fsetxattr = squota_setxattr,
    .removexattr = squota_removexattr,
    .fremovexattr = squota_removexattr,
    .getxattr = squota_getxattr,
    .fgetxattr = squota_getxattr,
    .statfs = squota_statfs,
};

const struct xlator_type features_simple_quota_xlator = {
    .name = "features/simple-quota",
    .conf_size = sizeof(struct squota_conf),
    .options = squota_options,
    .is_active = squota_is_active,
    .stays_for =
        1ull << FOP_setxattr | 1ull << FOP_fsetxattr | 1ull << FOP_removexattr | 1ull << FOP_fremovexattr,
    .keeps = KEEPS(CTX_INODE),
    .ops = &squota_ops,
    .init = squota_init,
    .fini = squota_fini,
    .start = squota_start,
    .stop = squota_stop,
    .drained = squota_drained,
    .reconfigured = squota_reconfigured,
    .inode_forget = squota_inode_forget,
    .fd_closed = squota_fd_closed,
    .dump = squota_dump,
};
