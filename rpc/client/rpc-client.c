/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A client's life. Each state that is ended by an event (an attempt, a connection, a timer) has one
 * reference, which is handed from one state to the next. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "log/log.h"
#include "rpc/client/rpc-client-internal.h"
#include "rpc/transport/tls-config.h"

static const char *const state_names[] = {
    [CLIENT_IDLE] = "idle",
    [CLIENT_CONNECTING] = "connecting",
    [CLIENT_SHAKING_HANDS] = "shaking hands",
    [CLIENT_UP] = "up",
    [CLIENT_LOST] = "lost",
    [CLIENT_BACKING_OFF] = "backing off",
    [CLIENT_CLOSED] = "closed",
};

static enum client_state
state_locked(const struct rpc_client *c)
{
    return (enum client_state)atomic_load_explicit(&c->state, memory_order_relaxed);
}

static void
set_state_locked(struct rpc_client *c, enum client_state state)
{
    atomic_store_explicit(&c->state, state, memory_order_release);
}

/* ---- end of a client ------------------------------------------------------------------------- */

static void
client_free(struct rpc_client *c)
{
    xid_table_fini(&c->calls);
    dialler_fini(&c->dialler);
    pthread_mutex_destroy(&c->lock);
    free(c->name);
    free(c->host);
    free(c->path);
    tls_config_unref(c->where.tls);
    tls_config_unref(c->lent_tls);
    free(c);
}

static void
gone_job(struct worker_job *job)
{
    struct rpc_client *c = caa_container_of(job, struct rpc_client, gone_job);
    void (*gone)(void *) = c->ops->gone;
    void *arg = c->arg;

    client_free(c);
    gone(arg);
}

void
client_unref(struct rpc_client *c)
{
    if (refcount_put(&c->refs))
        worker_post(&c->gone_job);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* The caller's reference goes to the attempt. Under the lock, so that a close finds an attempt to cancel. */
static void
dial_locked(struct rpc_client *c)
{
    struct dial_target where = c->where;

    if (c->redirect_port)
        where.port = c->redirect_port;
    c->redirect_port = 0;
    if (where.port == TLS_MANAGEMENT_PORT) /* as stock, by the number alone (gluster11 4.1) */
        where.tls = tls_management();
    tls_config_unref(c->lent_tls);
    c->lent_tls = where.tls;
    if (where.tls)
        tls_config_ref(where.tls);
    set_state_locked(c, CLIENT_CONNECTING);
    dialler_start(&c->dialler, &where);
}

static unsigned
retry_delay_ms(const struct rpc_client *c)
{
    unsigned delay = c->retry_min_ms, chance = 0;

    for (unsigned i = 1; i < c->failures && delay < c->retry_max_ms; i++)
        delay *= 2;
    if (delay > c->retry_max_ms)
        delay = c->retry_max_ms;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance)
        chance = 0;
    return delay - chance % (delay / 4 + 1);
}

/* The caller's reference goes to the timer. */
static void
back_off_locked(struct rpc_client *c)
{
    set_state_locked(c, CLIENT_BACKING_OFF);
    timer_start(&c->retry, retry_delay_ms(c));
}

/* The timer's reference goes to the attempt, or is dropped. */
static void
retry_now(struct rpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool is_due = state_locked(c) == CLIENT_BACKING_OFF;

    if (is_due)
        dial_locked(c);
    pthread_mutex_unlock(&c->lock);
    if (!is_due)
        client_unref(c);
}

static void
retry_due(struct timer *t)
{
    retry_now(caa_container_of(t, struct rpc_client, retry));
}

static void
client_dial_failed(struct dialler *d, int err)
{
    struct rpc_client *c = caa_container_of(d, struct rpc_client, dialler);

    if (c->ops->unreachable && err != -ECANCELED)
        c->ops->unreachable(c, err, c->arg);
    pthread_mutex_lock(&c->lock);
    bool is_closed = state_locked(c) == CLIENT_CLOSED;
    unsigned failures = ++c->failures;

    if (!is_closed)
        back_off_locked(c);
    pthread_mutex_unlock(&c->lock);
    if (is_closed)
        client_unref(c);
    else if (failures == 1)
        log_event(LOG_WARNING, NULL, "rpc-client-cannot-connect", "%s: %s; trying again until it works",
                  c->name, strerror(-err));
}

/* The attempt's reference becomes the connection's. */
static int
client_accepted(struct conn *conn, void *arg)
{
    struct rpc_client *c = arg;

    pthread_mutex_lock(&c->lock);
    bool is_wanted = state_locked(c) == CLIENT_CONNECTING;

    if (is_wanted) {
        c->is_dropped = false;
        c->connects++;
        atomic_store(&c->cred_flavor, CRED_GLUSTERFS_V2);
        atomic_store(&c->conn, conn_ref(conn));
        set_state_locked(c, c->is_restored ? CLIENT_UP : CLIENT_SHAKING_HANDS);
    }
    pthread_mutex_unlock(&c->lock);
    if (!is_wanted) {
        client_unref(c);
        return -ECANCELED;
    }
    if (c->is_trusted || c->is_restored)
        conn_set_trusted(conn);
    if (c->is_restored)
        return 0;
    c->ops->connected(c, c->arg);
    return 0;
}

/* ---- losing ---------------------------------------------------------------------------------- */

static void
client_conn_closed(struct conn *conn, void *arg)
{
    struct rpc_client *c = arg;

    pthread_mutex_lock(&c->lock);
    enum client_state was = state_locked(c);

    assert(atomic_load(&c->conn) == conn);
    atomic_store(&c->conn, NULL);
    c->ended = conn;
    c->ended_path = atomic_exchange(&c->fop_path, NULL);
    struct fop_path *path = c->ended_path;
    c->losses++;
    conn_tls_failure(conn, c->tls_failure, sizeof c->tls_failure);
    c->failures = was == CLIENT_UP ? 0 : c->failures + 1;
    if (was != CLIENT_CLOSED)
        set_state_locked(c, CLIENT_LOST);
    pthread_mutex_unlock(&c->lock);
    if (path)
        fop_path_close(path);
    client_fail_calls(c);
    if (c->ops->down && was != CLIENT_CLOSED)
        c->ops->down(c, was == CLIENT_UP, c->arg);
    if (atomic_fetch_or(&c->holders, CLIENT_ENDED) == 0)
        client_release_ended(c);
}

/* The connection's reference goes to the next attempt or to the wait for it. */
void
client_release_ended(struct rpc_client *c)
{
    unsigned nobody = CLIENT_ENDED;

    pthread_mutex_lock(&c->lock);
    struct conn *ended = c->ended;
    struct fop_path *path = c->ended_path;
    /* fails if another sender has come meanwhile, and found no connection: that sender will call this
     * function again */
    bool releases = atomic_compare_exchange_strong(&c->holders, &nobody, 0);
    bool is_closed = state_locked(c) == CLIENT_CLOSED;

    if (releases && !is_closed) {
        if (c->redirect_port)
            dial_locked(c);
        else
            back_off_locked(c);
    }
    pthread_mutex_unlock(&c->lock);
    if (!releases)
        return;
    fop_path_unref(path);
    conn_unref(ended);
    if (is_closed)
        client_unref(c);
}

static void
close_conn(struct rpc_client *c)
{
    struct conn *conn = client_hold(c);

    if (conn)
        conn_close(conn);
    client_let_go(c);
}

/* True for the first drop of each connection. */
static bool
begin_drop(struct rpc_client *c, uint16_t redirect_port)
{
    pthread_mutex_lock(&c->lock);
    bool is_first =
        !c->is_dropped && (state_locked(c) == CLIENT_SHAKING_HANDS || state_locked(c) == CLIENT_UP);

    if (is_first) {
        c->is_dropped = true;
        c->redirect_port = redirect_port;
    }
    pthread_mutex_unlock(&c->lock);
    return is_first;
}

void
rpc_client_drop(struct rpc_client *c, const char *format, ...)
{
    char why[256];
    va_list args;

    if (!begin_drop(c, 0))
        return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    log_event(LOG_WARNING, NULL, "rpc-client-dropped", "%s: %s; the connection is closed", c->name, why);
    close_conn(c);
}

void
rpc_client_redirect(struct rpc_client *c, uint16_t port)
{
    if (begin_drop(c, port))
        close_conn(c);
}

/* ---- functions for the owner ----------------------------------------------------------------- */

const struct transport_ops client_transport_ops = {
    .accepted = client_accepted, .record = client_record, .closed = client_conn_closed};

static int
copy_dial_target(struct rpc_client *c, const struct dial_target *where)
{
    c->where = *where;
    c->host = where->host ? strdup(where->host) : NULL;
    c->path = where->path ? strdup(where->path) : NULL;
    c->where.host = c->host;
    c->where.path = c->path;
    if (c->where.tls)
        tls_config_ref(c->where.tls);
    return (where->host && !c->host) || (where->path && !c->path) ? -ENOMEM : 0;
}

static void
take_options(struct rpc_client *c, const struct rpc_client_options *o)
{
    rpc_client_set_timeouts(c, o->ping_timeout_s, o->call_timeout_s);
    c->retry_min_ms = o->retry_min_ms ? o->retry_min_ms : RPC_CLIENT_RETRY_MIN_MS;
    c->retry_max_ms = o->retry_max_ms ? o->retry_max_ms : RPC_CLIENT_RETRY_MAX_MS;
    c->tick_ms = o->tick_ms ? o->tick_ms : 1000;
    c->is_trusted = o->is_trusted;
    c->is_inside = o->is_inside;
    xid_table_init(&c->calls, o->calls_max ? o->calls_max : XID_CALLS_MAX);
}

struct rpc_client *
rpc_client_new(const struct rpc_client_options *options, const struct rpc_client_ops *ops, void *arg,
               int *err)
{
    *err = dial_target_check(&options->where);
    if (*err)
        return NULL;
    struct rpc_client *c = calloc(1, sizeof *c);

    *err = -ENOMEM;
    if (!c)
        return NULL;
    c->ops = ops;
    c->arg = arg;
    refcount_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    dialler_init(&c->dialler, &client_transport_ops, client_dial_failed, c);
    timer_init(&c->retry, retry_due);
    c->gone_job.run = gone_job;
    atomic_init(&c->tick, 1);
    atomic_init(&c->cred_flavor, CRED_GLUSTERFS_V2);
    take_options(c, options);
    client_watch_init(c);
    c->name = strdup(options->name);
    if (!c->name || copy_dial_target(c, &options->where)) {
        client_free(c);
        return NULL;
    }
    *err = 0;
    return c;
}

void
rpc_client_start(struct rpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    assert(state_locked(c) == CLIENT_IDLE);
    refcount_get(&c->refs);
    dial_locked(c);
    pthread_mutex_unlock(&c->lock);
}

void
rpc_client_close(struct rpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    assert(state_locked(c) != CLIENT_CLOSED);
    set_state_locked(c, CLIENT_CLOSED);
    pthread_mutex_unlock(&c->lock);
    if (timer_stop(&c->retry))
        client_unref(c);
    client_watch_stop(c);
    dialler_cancel(&c->dialler);
    close_conn(c);
    client_unref(c);
}

void
rpc_client_set_timeouts(struct rpc_client *c, unsigned ping_timeout_s, unsigned call_timeout_s)
{
    atomic_store(&c->ping_timeout_s, ping_timeout_s);
    atomic_store(&c->call_timeout_s, call_timeout_s ? call_timeout_s : RPC_CALL_WAITS);
}

void
rpc_client_set_tls(struct rpc_client *c, struct tls_config *tls)
{
    if (tls)
        tls_config_ref(tls);
    pthread_mutex_lock(&c->lock);
    struct tls_config *before = c->where.tls;

    c->where.tls = tls;
    c->failures = 0;
    pthread_mutex_unlock(&c->lock);
    tls_config_unref(before);
    if (timer_stop(&c->retry))
        retry_now(c);
}

bool
rpc_client_has_tls(struct rpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool has_tls = c->where.tls != NULL;

    pthread_mutex_unlock(&c->lock);
    return has_tls;
}

bool
rpc_client_up(struct rpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    bool is_up = state_locked(c) == CLIENT_SHAKING_HANDS && !c->is_dropped;

    if (is_up) {
        set_state_locked(c, CLIENT_UP);
        c->failures = 0;
    }
    pthread_mutex_unlock(&c->lock);
    struct conn *conn = client_hold(c);

    if (is_up && conn)
        conn_set_trusted(conn);
    client_let_go(c);
    return is_up;
}

void
rpc_client_hold(struct rpc_client *c)
{
    (void)client_hold(c);
}

void
rpc_client_let_go(struct rpc_client *c)
{
    client_let_go(c);
}

bool
rpc_client_offer_path(struct rpc_client *c, struct gfid *token)
{
    struct conn *conn = client_hold(c);
    struct fop_path *p = c->is_inside && conn && conn_is_to_self(conn) && !atomic_load(&c->fop_path)
                             ? fop_path_offer(&client_path_ops, c)
                             : NULL;
    bool is_kept = false;

    if (p) {
        *token = p->token;
        pthread_mutex_lock(&c->lock);
        is_kept = atomic_load(&c->conn) == conn; /* else the connection has ended already */
        if (is_kept)
            atomic_store(&c->fop_path, p);
        pthread_mutex_unlock(&c->lock);
    }
    if (p && !is_kept) {
        fop_path_close(p);
        fop_path_unref(p);
    }
    client_let_go(c);
    return is_kept;
}

bool
rpc_client_is_inside(struct rpc_client *c)
{
    (void)client_hold(c);
    struct fop_path *p = atomic_load(&c->fop_path);
    bool is_inside = p && fop_path_is_open(p);

    client_let_go(c);
    return is_inside;
}

bool
rpc_client_is_up(const struct rpc_client *c)
{
    return atomic_load_explicit(&c->state, memory_order_acquire) == CLIENT_UP;
}

void
rpc_client_set_cred(struct rpc_client *c, uint32_t flavor)
{
    assert(flavor == CRED_GLUSTERFS_V2 || flavor == CRED_GLUSTERFS_V3);
    atomic_store(&c->cred_flavor, flavor);
}

bool
rpc_client_lost_peer(struct rpc_client *c, char out[CONN_PEER_TEXT_MAX])
{
    pthread_mutex_lock(&c->lock);
    bool has_sent = conn_bytes_in(c->ended) > 0;

    conn_peer_text(c->ended, out);
    pthread_mutex_unlock(&c->lock);
    return has_sent;
}

void
rpc_client_tls_failure(struct rpc_client *c, char *out, size_t size)
{
    pthread_mutex_lock(&c->lock);
    snprintf(out, size, "%s", c->tls_failure);
    pthread_mutex_unlock(&c->lock);
}

const char *
rpc_client_name(const struct rpc_client *c)
{
    return c->name;
}

void
rpc_client_stats(struct rpc_client *c, struct rpc_client_stats *out)
{
    pthread_mutex_lock(&c->lock);
    *out = (struct rpc_client_stats){
        .state = state_names[state_locked(c)], .connects = c->connects, .losses = c->losses};
    pthread_mutex_unlock(&c->lock);
    out->timeouts = atomic_load(&c->timeouts);
    out->unknown_replies = atomic_load(&c->unknown_replies);
    out->calls_in = atomic_load(&c->calls_in);
    out->pings = atomic_load(&c->pings);
    out->calls_joined = atomic_load(&c->calls_joined);
    xid_count(&c->calls, &out->waiting, &out->expired);
}

uint64_t
rpc_client_fops_sent(struct rpc_client *c, enum fop fop)
{
    return atomic_load_explicit(&c->fops_sent[fop], memory_order_relaxed);
}
