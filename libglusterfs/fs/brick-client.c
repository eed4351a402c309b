/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-client: found or made at login, released when its last connection and then its last call end. */
#include "fs/brick-client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fs-internal.h"
#include "graph/graph.h"

static struct ctx_pools client_pools = {.name = "struct brick_client", .head = sizeof(struct brick_client)};
static atomic_ullong last_id;

int
brick_client_pool_init(void)
{
    if (!client_pools.usual)
        client_pools.usual = mem_pool_new_fn(client_pools.head, 16, client_pools.name);
    return client_pools.usual ? 0 : -ENOMEM;
}

static void
brick_client_free(struct brick_client *c)
{
    free(c->uid);
    free(c->process_name);
    free(c->version);
    mem_put(c);
}

static struct brick_client *
brick_client_new(struct graph *g, const struct brick_client_key *key, const struct brick_client_facts *facts)
{
    struct mem_pool *pool = ctx_pool_for(&client_pools, g->slots[CTX_CLIENT]);
    struct brick_client *c = pool ? mem_get0_owner(pool, g->owner) : NULL;

    if (!c)
        return NULL;
    refcount_init(&c->refs, 1);
    c->graph = g;
    c->uid = strdup(key->uid);
    c->process_name = strdup(facts->process_name);
    c->version = strdup(facts->version);
    c->opversion = facts->opversion;
    c->is_trusted = facts->is_trusted;
    c->subdir_gfid = facts->subdir_gfid;
    c->cred_bytes = key->cred_bytes <= BRICK_CLIENT_CRED_MAX ? key->cred_bytes : 0;
    if (c->cred_bytes)
        memcpy(c->cred, key->cred, c->cred_bytes);
    c->id = atomic_fetch_add(&last_id, 1) + 1;
    if (!c->uid || !c->process_name || !c->version) {
        brick_client_free(c);
        return NULL;
    }
    fd_table_init(&c->fds);
    c->fds.brick_files = &g->files;
    return c;
}

/* The identity is (uid, credential). The verification of the username and the mounted directory must
 * agree, too: a second connection must not get more rights than its own login allows. */
static bool
client_matches(const struct brick_client *c, const struct brick_client_key *key,
        const struct brick_client_facts *facts)
{
    return c->cred_bytes && c->cred_bytes == key->cred_bytes &&
           memcmp(c->cred, key->cred, key->cred_bytes) == 0 && strcmp(c->uid, key->uid) == 0 &&
           c->is_trusted == facts->is_trusted && gfid_equal(&c->subdir_gfid, &facts->subdir_gfid);
}

static struct brick_client *
client_find_locked(struct graph *g, const struct brick_client_key *key,
                   const struct brick_client_facts *facts)
{
    struct brick_client *c;

    cds_list_for_each_entry(c, &g->clients, link)
        if (client_matches(c, key, facts))
            return c;
    return NULL;
}

struct brick_client *
brick_client_connect(struct graph *g, const struct brick_client_key *key,
                     const struct brick_client_facts *facts)
{
    struct brick_client *fresh = brick_client_new(g, key, facts), *c;

    if (!fresh)
        return NULL;
    pthread_mutex_lock(&g->clients_lock);
    if ((c = client_find_locked(g, key, facts)))
        brick_client_ref(c);
    else
        cds_list_add_tail(&(c = fresh)->link, &g->clients);
    c->connections++;
    pthread_mutex_unlock(&g->clients_lock);
    if (c != fresh) {
        fd_table_fini(&fresh->fds);
        brick_client_free(fresh);
        graph_unpin(g); /* the existing client has its own pin */
    }
    return c;
}

bool
brick_client_disconnect(struct brick_client *c)
{
    pthread_mutex_lock(&c->graph->clients_lock);
    bool is_last = --c->connections == 0;

    if (is_last) {
        cds_list_del_init(&c->link);
        atomic_store(&c->is_gone, true);
    }
    pthread_mutex_unlock(&c->graph->clients_lock);
    if (is_last)
        fd_table_close(&c->fds);
    return is_last;
}

void
brick_client_layers_gone(struct brick_client *c)
{
    for (unsigned l = 0; l < c->graph->layer_count; l++) {
        struct xlator *xl = &c->graph->layers[l];

        if (xl->type->client_gone)
            xl->type->client_gone(xl, c);
    }
}

void *
brick_client_ctx_install(struct brick_client *c, const struct xlator *xl, void *fresh)
{
    void *was = NULL;

    if (atomic_compare_exchange_strong_explicit(&c->ctx[xl->slot[CTX_CLIENT] - 1], &was, fresh,
                                                memory_order_acq_rel, memory_order_acquire))
        return fresh;
    return was;
}

static void
release_contexts(struct brick_client *c)
{
    for (unsigned l = 0; l < c->graph->layer_count; l++) {
        struct xlator *xl = &c->graph->layers[l];
        void *ctx = xl->slot[CTX_CLIENT] ? brick_client_ctx(c, xl) : NULL;

        if (ctx && xl->type->client_release)
            xl->type->client_release(xl, c, ctx);
    }
}

void
brick_client_end(struct brick_client *c)
{
    struct graph *g = c->graph;

    /* Calls that were running when the client disconnected may have taken locks since. No call runs now. */
    brick_client_layers_gone(c);
    fd_table_fini(&c->fds);
    release_contexts(c);
    brick_client_free(c);
    graph_unpin(g);
}
