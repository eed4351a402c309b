/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/index: records which objects need healing, as files that a self-heal daemon can list (spec: brick
 * 7).
 *
 * The layer sits high in the graph, above io-threads, because it acts both before storage (an entry must
 * exist before its counter is set) and after it. It keeps the known state of an object's entries per inode,
 * and on disk the directories described in index-internal.h. A crash can leave an entry too many, but never
 * one too few.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/reason.h"
#include "graph/graph.h"
#include "log/dump.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/features/index/index-internal.h"

static struct mem_pool *ctx_pool;

static int
index_pools_init(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (!ctx_pool)
        ctx_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "index-ctx", .xlator = "features/index", .size = sizeof(struct index_ctx)});
    pthread_mutex_unlock(&once);
    return ctx_pool ? 0 : -ENOMEM;
}

/* ---- contexts -------------------------------------------------------------------------------- */

struct index_ctx *
index_ctx_new(struct xlator *xl)
{
    struct index_ctx *ctx = mem_get0_owner(ctx_pool, xl->graph->owner);

    if (!ctx)
        return NULL;
    pthread_mutex_init(&ctx->mutex, NULL);
    CDS_INIT_LIST_HEAD(&ctx->parked);
    return ctx;
}

void
index_ctx_free(struct index_ctx *ctx)
{
    assert(!ctx->is_busy);
    pthread_mutex_destroy(&ctx->mutex);
    mem_put(ctx);
}

struct index_ctx *
index_ctx_get(struct xlator *xl, struct inode *inode)
{
    struct index_ctx *ctx = inode_ctx(inode, xl);

    if (ctx)
        return ctx;
    struct index_ctx *fresh = index_ctx_new(xl);
    if (!fresh)
        return NULL;
    ctx = inode_ctx_install(inode, xl, fresh);
    if (ctx != fresh)
        index_ctx_free(fresh);
    return ctx;
}

xl_verdict
index_enter(struct xlator *xl, struct index_ctx *ctx, struct call_stack *stk, index_go go)
{
    struct call_stub *stub = NULL;
    xl_verdict verdict = XL_PASS;

    pthread_mutex_lock(&ctx->mutex);
    if (!ctx->is_busy) {
        ctx->is_busy = true;
    } else if ((stub = call_stub_new(stk, xl, go))) {
        cds_list_add_tail(&stub->link, &ctx->parked);
        verdict = XL_OWNED;
    } else {
        verdict = -ENOMEM;
    }
    pthread_mutex_unlock(&ctx->mutex);
    return verdict;
}

void
index_leave(struct index_ctx *ctx)
{
    struct call_stub *stub = NULL;

    pthread_mutex_lock(&ctx->mutex);
    if (cds_list_empty(&ctx->parked)) {
        ctx->is_busy = false;
    } else { /* passed on to the next parked call, still busy */
        stub = cds_list_first_entry(&ctx->parked, struct call_stub, link);
        cds_list_del(&stub->link);
    }
    pthread_mutex_unlock(&ctx->mutex);
    if (stub)
        call_stub_post(stub);
}

/* ---- the type -------------------------------------------------------------------------------- */

static int
index_init(struct xlator *xl, struct reason *why)
{
    const struct index_conf *conf = xlator_conf(xl);
    int rc = index_pools_init();

    if (!conf->base)
        return reason_set(why, -EINVAL, "option index-base is missing");
    if (rc)
        return rc;
    struct index_private *priv = calloc(1, sizeof *priv);
    if (!priv)
        return -ENOMEM;
    priv->base_fd = priv->listing.fd = -1;
    pthread_mutex_init(&priv->mutex, NULL);
    gfid_random(&priv->virtual_gfid);
    gfid_random(&priv->base_uuid);
    xl->private = priv;
    rc = index_base_open(xl, why);
    if (rc && priv->base_fd >= 0)
        close(priv->base_fd);
    if (rc) {
        pthread_mutex_destroy(&priv->mutex);
        free(priv);
        xl->private = NULL;
    }
    return rc;
}

static void
index_fini(struct xlator *xl)
{
    struct index_private *priv = index_private(xl);

    if (priv->listing.fd >= 0)
        close(priv->listing.fd);
    close(priv->base_fd);
    pthread_mutex_destroy(&priv->mutex);
    free(priv);
    xl->private = NULL;
}

static void
index_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    index_ctx_free(ctx);
}

static void
index_dump(struct xlator *xl, struct dump *dump)
{
    struct index_private *priv = index_private(xl);

    dump_section(dump, "xlator.features.index.%s", xl->name);
    dump_line(dump, "name-notes", "%ld", atomic_load(&priv->name_notes));
    for (int t = 0; t < INDEX_GFID_TYPES; t++)
        dump_line(dump, index_dir_names[t], "%ld", atomic_load(&priv->counts[t]));
}

static const struct option index_options[] = {
    OPT_STR(struct index_conf, base, "index-base", NULL),
    OPT_STR(struct index_conf, dirty_list, "xattrop-dirty-watchlist", NULL),
    OPT_STR(struct index_conf, pending_list, "xattrop-pending-watchlist", NULL),
    OPT_STR(struct index_conf, list64, "xattrop64-watchlist", "trusted.ec.dirty"),
    OPT_END,
};

static const struct xlator_ops index_ops = {
    /* keeps calls on virtual directories away from storage, which does not know these directories */
    .any = index_any,
    .xattrop = index_xattrop,
    .fxattrop = index_xattrop,
    .lookup = index_lookup,
    .fstat = index_fstat,
    .opendir = index_opendir,
    .readdir = index_readdir,
    .unlink = index_unlink,
    .link = index_names_change,
    .rename = index_names_change,
    .inodelk = index_names_inodelk,
    .rmdir = index_unlink,
    .getxattr = index_getxattr,
};

const struct xlator_type features_index_xlator = {
    .name = "features/index",
    .traits = LAYER_SKIPS_PLAIN_WRITES,
    .options = index_options,
    .at_start = (const char *const[]){"index-base", "xattrop-dirty-watchlist", NULL},
    .conf_size = sizeof(struct index_conf),
    .ops = &index_ops,
    .keeps = KEEPS(CTX_INODE),
    .init = index_init,
    .fini = index_fini,
    .inode_forget = index_inode_forget,
    .fd_closed = index_fd_closed,
    .dump = index_dump,
};
