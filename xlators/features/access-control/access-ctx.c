/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/features/access-control/access-internal.h"

static struct mem_pool *ctx_pool, *fill_pool;

/* One stat of an inode for its context. The stat's reply and fill_start() meet at `arrived`: the second of
 * the two continues the parked call. */
struct fill {
    struct access_ctx *ctx;
    uint64_t generation; /* of the context when the stat was sent */
    struct call_stack *parked;
    bool is_parent; /* -ENOENT of a parent directory becomes -ESTALE for a caller that names an entry in it */
    int result;
    atomic_int arrived;
};

int
access_pools_init(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (!ctx_pool)
        ctx_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "access-ctx", .xlator = "features/access-control", .size = sizeof(struct access_ctx)});
    if (!fill_pool)
        fill_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "access-fill", .xlator = "features/access-control", .size = sizeof(struct fill)});
    pthread_mutex_unlock(&once);
    return ctx_pool && fill_pool ? 0 : -ENOMEM;
}

void
access_ctx_free(struct access_ctx *ctx)
{
    free(ctx->access);
    free(ctx->inherited);
    pthread_mutex_destroy(&ctx->mutex);
    mem_put(ctx);
}

/* Returns the inode's context and creates it if necessary. NULL: no memory. */
static struct access_ctx *
access_ctx_get(struct xlator *xl, struct inode *inode)
{
    struct access_ctx *ctx = inode_ctx(inode, xl);

    if (ctx)
        return ctx;
    struct access_ctx *fresh = mem_get0_owner(ctx_pool, xl->graph->owner);
    if (!fresh)
        return NULL;
    pthread_mutex_init(&fresh->mutex, NULL);
    ctx = inode_ctx_install(inode, xl, fresh);
    if (ctx != fresh)
        access_ctx_free(fresh);
    return ctx;
}

struct access_ctx *
access_ctx_lock(struct access_query *q, struct inode *inode, int *err)
{
    struct access_ctx *ctx = access_ctx_get(q->xl, inode);

    if (!ctx) {
        *err = -ENOMEM;
        return NULL;
    }
    pthread_mutex_lock(&ctx->mutex);
    if (ctx->is_valid)
        return ctx;
    pthread_mutex_unlock(&ctx->mutex);
    struct fd *fd = q->stk->call.fd;
    q->missing = inode;
    q->fd = fd && fd->inode == inode ? fd : NULL;
    *err = ACCESS_UNKNOWN;
    return NULL;
}

static int
parse_acl_key(const struct dict *xdata, enum dict_key key, struct acl **out)
{
    const struct dict_pair *p = dict_find(xdata, key);

    *out = NULL;
    if (!p || (p->type != DICT_PTR && p->type != DICT_UNTYPED && p->type != DICT_STR))
        return 0;
    return acl_parse(p->v.bytes, p->len, out);
}

static int
fill_ctx(struct fill *f, const struct fop_reply *r)
{
    struct acl *access, *inherited = NULL;
    int rc = parse_acl_key(r->xdata, DICT_KEY_ACL_ACCESS, &access);

    if (!rc)
        rc = parse_acl_key(r->xdata, DICT_KEY_ACL_DEFAULT, &inherited);
    if (!rc) {
        struct access_ctx *ctx = f->ctx;

        pthread_mutex_lock(&ctx->mutex);
        if (ctx->generation == f->generation && !ctx->is_valid) {
            ctx->uid = r->stat.uid;
            ctx->gid = r->stat.gid;
            ctx->mode = r->stat.mode;
            ctx->access = access;
            ctx->inherited = inherited;
            ctx->is_valid = true;
            access = inherited = NULL;
        } /* a change came in between: the rule asks again if necessary */
        pthread_mutex_unlock(&ctx->mutex);
    }
    free(access);
    free(inherited);
    return rc == -EINVAL ? -EIO : rc;
}

static void
fill_done(struct call_stack *asked)
{
    struct fill *f = asked->owner;
    const struct fop_reply *r = &asked->reply;
    struct call_stack *parked = f->parked;

    f->result = r->op_ret < 0 ? -r->op_errno : fill_ctx(f, r);
    if (f->result == -ENOENT && f->is_parent)
        f->result = -ESTALE;
    call_stack_free(asked);
    if (atomic_exchange(&f->arrived, 1) == 0)
        return; /* fill_start() is still running and continues the call: no recursion */
    int result = f->result;
    mem_put(f);
    if (result < 0)
        call_stack_fail(parked, -result);
    else
        call_stack_retry(parked);
}

static int
fill_ask(struct access_query *q, struct fill *f)
{
    struct call_stack *asked = call_stack_new(fill_done, f);
    struct dict *xdata = asked ? dict_new(&asked->arena) : NULL;

    if (!xdata || dict_set_int(xdata, DICT_KEY_ACL_ACCESS, 0) ||
        dict_set_int(xdata, DICT_KEY_ACL_DEFAULT, 0)) {
        if (asked)
            call_stack_free(asked);
        return -ENOMEM;
    }
    asked->call.fop = q->fd ? FOP_fstat : FOP_stat;
    asked->call.loc.inode = inode_ref(q->missing);
    asked->call.fd = q->fd ? fd_ref(q->fd) : NULL;
    asked->call.gfid = q->missing->gfid;
    asked->call.xdata = xdata;
    call_stack_wind_below(asked, q->xl);
    return 0;
}

/* Sends the stat. Returns 0 if the context was filled at once, or -errno. *is_parked: the call will be
 * retried, and the caller must not touch it. */
static int
fill_start(struct access_query *q, bool *is_parked)
{
    struct access_ctx *ctx = access_ctx_get(q->xl, q->missing);
    struct fill *f = ctx ? mem_get_owner(fill_pool, q->xl->graph->owner) : NULL;

    if (!f)
        return -ENOMEM;
    const struct fop_call *c = &q->stk->call;
    *f = (struct fill){.ctx = ctx,
                       .parked = q->stk,
                       .is_parent = q->missing == c->loc.parent || q->missing == c->loc2.parent};
    pthread_mutex_lock(&ctx->mutex);
    f->generation = ctx->generation;
    pthread_mutex_unlock(&ctx->mutex);
    int rc = fill_ask(q, f);
    if (!rc && atomic_exchange(&f->arrived, 1) == 0) {
        *is_parked = true;
        return 0;
    }
    rc = rc ? rc : f->result;
    mem_put(f);
    return rc;
}

int
access_run(struct xlator *xl, struct call_stack *stk, access_rule rule, bool *is_parked)
{
    *is_parked = false;
    for (;;) {
        struct access_query q = {.xl = xl, .stk = stk};
        int rc = rule(&q);

        if (rc != ACCESS_UNKNOWN)
            return rc;
        rc = fill_start(&q, is_parked);
        if (rc || *is_parked)
            return rc;
    }
}

static xl_verdict
forget_cb(struct frame *f, struct call_stack *stk)
{
    struct inode *inode = f->local.ptr;
    struct access_ctx *ctx = inode_ctx(inode, f->xl);

    (void)stk;
    if (ctx) { /* also after a failure, because part of the change may have been done */
        pthread_mutex_lock(&ctx->mutex);
        ctx->generation++;
        ctx->is_valid = false;
        free(ctx->access);
        free(ctx->inherited);
        ctx->access = ctx->inherited = NULL;
        pthread_mutex_unlock(&ctx->mutex);
    }
    inode_unref(inode);
    return XL_PASS;
}

int
access_forget_later(struct xlator *xl, struct call_stack *stk, struct inode *inode)
{
    struct frame *f = frame_push(stk, xl, forget_cb);

    if (!f)
        return -ENOMEM;
    f->local.ptr = inode_ref(inode);
    return 0;
}
