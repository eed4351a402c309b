/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/fop-path.h"

#include <stdlib.h>

#include "rpc/transport/transport.h"

static pthread_mutex_t offers_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf lock */
static struct cds_list_head offers = CDS_LIST_HEAD_INIT(offers);

struct fop_path *
fop_path_offer(const struct fop_path_client_ops *ops, void *client)
{
    struct fop_path *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    refcount_init(&p->refs, 1);
    pthread_mutex_init(&p->lock, NULL);
    p->client = client;
    p->client_ops = ops;
    p->is_offered = true;
    gfid_random(&p->token);
    pthread_mutex_lock(&offers_lock);
    cds_list_add(&p->offered, &offers);
    pthread_mutex_unlock(&offers_lock);
    return p;
}

struct fop_path *
fop_path_take(const struct gfid *token)
{
    struct fop_path *p, *found = NULL;

    pthread_mutex_lock(&offers_lock);
    cds_list_for_each_entry (p, &offers, offered) {
        if (gfid_equal(&p->token, token))
            found = p;
    }
    if (found) {
        cds_list_del(&found->offered);
        found->is_offered = false;
        fop_path_ref(found);
    }
    pthread_mutex_unlock(&offers_lock);
    return found;
}

void
fop_path_open(struct fop_path *p, const struct fop_path_ops *ops, void *server, struct conn *conn)
{
    p->server = server;
    p->conn = conn ? conn_keep(conn) : NULL;
    atomic_store_explicit(&p->ops, ops, memory_order_release);
}

void
fop_path_close(struct fop_path *p)
{
    pthread_mutex_lock(&offers_lock);
    if (p->is_offered)
        cds_list_del(&p->offered);
    p->is_offered = false;
    pthread_mutex_unlock(&offers_lock);
    pthread_mutex_lock(&p->lock);
    p->client = NULL;
    pthread_mutex_unlock(&p->lock);
}

void
fop_path_unref(struct fop_path *p)
{
    if (!p || !refcount_put(&p->refs))
        return;
    if (p->conn)
        conn_unref(p->conn);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void
fop_path_answer(struct fop_path *p, uint32_t xid, int err, const struct fop_reply *reply)
{
    pthread_mutex_lock(&p->lock);
    void *client = p->client;

    if (client)
        p->client_ops->hold(client);
    pthread_mutex_unlock(&p->lock);
    if (client)
        p->client_ops->answered(client, xid, err, reply);
}
