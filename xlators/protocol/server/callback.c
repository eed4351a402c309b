/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* callback: calls from the brick to its clients (spec: wire 7). A client without a connection gets no
 * callbacks. */

#include <stdlib.h>

#include "log/log.h"
#include "rpc/xdr/callback-program.h"
#include "xlators/protocol/server/server-internal.h"

#define BODY_ON_STACK 2048

static void
send_child_event(struct conn *c, void *arg)
{
    const bool *is_up = arg;

    (void)rpc_callback(c, *is_up ? CALLBACK_CHILD_UP : CALLBACK_CHILD_DOWN, NULL, 0);
}

void
server_child_event(struct graph *g, bool is_up)
{
    if (server_is_top(g))
        session_each_conn(g, send_child_event, &is_up);
}

static struct conn *
client_conn(struct brick_client *client)
{
    pthread_mutex_lock(&client->graph->clients_lock);
    struct conn *c = client->conn ? conn_ref(client->conn) : NULL;
    pthread_mutex_unlock(&client->graph->clients_lock);
    return c;
}

void
brick_client_callback_inodelk_contention(struct brick_client *client, const struct gfid *gfid,
                                         const struct fop_flock *flock, uint32_t pid, const char *domain)
{
    struct inodelk_contention call = {.gfid = *gfid, .flock = *flock, .pid = pid, .domain = domain};
    char body[BODY_ON_STACK + LK_OWNER_MAX];
    struct xdr x;
    struct conn *c = client_conn(client);

    if (!c)
        return;
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_inodelk_contention(&x, &call);
    if (!x.error) /* domain and owner are bounded so that they fit */
        (void)rpc_callback(c, CALLBACK_INODELK_CONTENTION, body, (size_t)(x.at - body));
    conn_unref(c);
}

void
brick_client_callback_entrylk_contention(struct brick_client *client, const struct gfid *gfid, uint32_t type,
                                         uint32_t pid, const char *domain)
{
    struct entrylk_contention call = {
        .gfid = *gfid, .type = type, .pid = pid, .name = "", .domain = domain};
    char body[BODY_ON_STACK];
    struct xdr x;
    struct conn *c = client_conn(client);

    if (!c)
        return;
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_entrylk_contention(&x, &call);
    if (!x.error) /* the domain is bounded so that it fits */
        (void)rpc_callback(c, CALLBACK_ENTRYLK_CONTENTION, body, (size_t)(x.at - body));
    conn_unref(c);
}

/* ---- CACHE_INVALIDATION ---------------------------------------------------------------------- */

#define TOLD_AT_ONCE 64
#define QUEUED_BYTES_MAX (4u << 20) /* ten thousand unread callbacks */
#define CACHE_INVALIDATION_ALL 0x2000

struct told {
    struct conn *conn;
    struct gfid subdir;
};

static int
compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Finds the connections of those clients that are connected. */
static unsigned
find_told(struct graph *g, const uint64_t *clients, unsigned count, struct told out[TOLD_AT_ONCE])
{
    struct brick_client *c;
    unsigned n = 0;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link) {
        if (n < count && c->conn && bsearch(&c->id, clients, count, sizeof *clients, compare_ids))
            out[n++] = (struct told){.conn = conn_ref(c->conn), .subdir = c->subdir_gfid};
    }
    pthread_mutex_unlock(&g->clients_lock);
    return n;
}

/* Encodes the message. If the xattrs are too large for one message, they are left out, and the flags tell the
 * client to drop all that it caches of the object. */
static size_t
encode_invalidation(const struct cache_invalidation *what, char body[RPC_CALLBACK_BYTES_MAX - 64])
{
    struct cache_invalidation less = *what;
    struct xdr x;

    xdr_init(&x, body, RPC_CALLBACK_BYTES_MAX - 64, NULL);
    xdr_put_cache_invalidation(&x, what);
    if (!x.error)
        return (size_t)(x.at - body);
    less.xdata = NULL;
    less.flags |= CACHE_INVALIDATION_ALL;
    xdr_init(&x, body, RPC_CALLBACK_BYTES_MAX - 64, NULL);
    xdr_put_cache_invalidation(&x, &less);
    return (size_t)(x.at - body);
}

static void
send_invalidation(const struct told *told, const struct cache_invalidation *what)
{
    struct cache_invalidation seen = *what;
    char body[RPC_CALLBACK_BYTES_MAX - 64];

    if (conn_bytes_queued(told->conn) > QUEUED_BYTES_MAX) {
        log_event(LOG_WARNING, NULL, "callbacks-not-read",
                  "a client does not read its cache invalidations: disconnected");
        conn_close(told->conn);
        return;
    }
    if (!gfid_is_null(&told->subdir))
        subdir_translate_invalidation(&seen, &told->subdir);
    (void)rpc_callback(told->conn, CALLBACK_CACHE_INVALIDATION, body,
                       /* the connection is gone: the client drops its cache by itself */
                       encode_invalidation(&seen, body));
}

void
brick_clients_callback_cache_invalidation(struct graph *g, const uint64_t *clients, unsigned count,
                                          const struct cache_invalidation *what)
{
    struct told told[TOLD_AT_ONCE];

    for (unsigned from = 0; from < count; from += TOLD_AT_ONCE) {
        unsigned n =
            find_told(g, clients + from, count - from < TOLD_AT_ONCE ? count - from : TOLD_AT_ONCE, told);

        for (unsigned i = 0; i < n; i++) {
            send_invalidation(&told[i], what);
            conn_unref(told[i].conn);
        }
    }
}
