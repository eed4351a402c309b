/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* callback: calls from the brick to its clients (spec: wire 7). A client that cannot be reached any more is not told. */

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
    if (!x.error) /* domain and owner are bounded so that it fits */
        (void)rpc_callback(c, CALLBACK_INODELK_CONTENTION, body, (size_t)(x.at - body));
    conn_unref(c);
}
