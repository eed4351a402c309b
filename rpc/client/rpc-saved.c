/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A client's connection in the hands of two programs. The new program begins with new xids, because no call
 * waits when the connection is saved. */
#include "log/log.h"
#include "rpc/client/rpc-client-internal.h"
#include "rpc/transport/saved.h"

void
rpc_client_pause(struct rpc_client *c, bool pauses)
{
    struct conn *conn = pauses ? client_hold(c) : c->paused;

    if (pauses) {
        if (conn)
            conn_pause(conn);
        c->paused = conn ? conn_ref(conn) : NULL;
        client_let_go(c);
    } else if (conn) {
        c->paused = NULL;
        conn_resume(conn);
        conn_unref(conn);
    }
}

bool
rpc_client_rests(struct rpc_client *c)
{
    struct conn *conn = client_hold(c);
    unsigned waiting, expired;

    xid_count(&c->calls, &waiting, &expired);
    bool rests = !conn || (!waiting && !expired && conn_dialled_rests(conn));

    client_let_go(c);
    return rests;
}

/* Held client. */
static void
save_path(struct rpc_client *c, struct parcel *to)
{
    const struct fop_path *p = atomic_load(&c->fop_path);

    conn_save_partner(p && atomic_load(&p->ops) ? p->conn : NULL, to);
}

/* A path that is not taken does no harm: fops go as bytes until the connection's end. */
static void
restore_path(struct rpc_client *c, struct parcel *from)
{
    struct fop_path *p = fop_path_offer(&client_path_ops, c);

    if (p && conn_offer_to_partner(from, &p->token)) {
        atomic_store(&c->fop_path, p); /* no call comes, and no record is read before rpc_client_go_on() */
        return;
    }
    log_event(LOG_WARNING, NULL, "rpc-path-lost", "%s: calls go by the connection from now on", c->name);
    if (p)
        fop_path_close(p);
    fop_path_unref(p);
}

void
rpc_client_save(struct rpc_client *c, struct parcel *to)
{
    struct conn *conn = client_hold(c);
    bool is_saved = conn && rpc_client_is_up(c) && conn_dialled_can_be_saved(conn);

    parcel_put_u32(to, is_saved);
    if (is_saved) {
        parcel_put_u32(to, atomic_load(&c->cred_flavor));
        conn_save(conn, NULL, 0, to);
        if (c->is_inside)
            save_path(c, to);
    }
    client_let_go(c);
}

int
rpc_client_keep_open(struct rpc_client *c, bool keeps)
{
    struct conn *conn = client_hold(c);
    int err = conn && conn_dialled_can_be_saved(conn) ? conn_keep_open(conn, keeps) : 0;

    client_let_go(c);
    return err;
}

bool
rpc_client_restore(struct rpc_client *c, struct parcel *from)
{
    if (!parcel_get_u32(from))
        return false;
    uint32_t flavor = parcel_get_u32(from);

    pthread_mutex_lock(&c->lock);
    c->is_restored = true;
    refcount_get(&c->refs); /* the connection's, after an attempt's */
    atomic_store(&c->state, CLIENT_CONNECTING);
    pthread_mutex_unlock(&c->lock);
    struct conn *conn = conn_restore_dialled(from, &client_transport_ops, c);

    pthread_mutex_lock(&c->lock);
    c->is_restored = false;
    if (!conn)
        atomic_store(&c->state, CLIENT_IDLE);
    pthread_mutex_unlock(&c->lock);
    if (!conn) {
        client_unref(c);
        return false;
    }
    atomic_store(&c->cred_flavor, flavor);
    if (c->is_inside)
        restore_path(c, from);
    conn_unref(conn);
    return true;
}

void
rpc_client_go_on(struct rpc_client *c)
{
    struct conn *conn = client_hold(c);

    if (conn)
        conn_start_restored(conn);
    client_let_go(c);
}
