/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* While calls wait, a timer ticks: it expires calls that have waited too long, and pings a silent peer.
 *
 * A call reads no clock: its deadline is a number of ticks. The first call that finds no watch running
 * starts the watch; a tick that finds no call waiting ends it. So an idle client has no wake-ups, and is
 * not pinged (wire 1.7).
 *
 * The client pings a peer that has sent nothing for a quarter of the ping timeout, and drops the connection
 * after a whole ping timeout of silence. Stock pings once in a ping timeout, so stock takes up to twice as
 * long to notice a dead peer. */
#include <errno.h>

#include "rpc/client/rpc-client-internal.h"
#include "rpc/xdr/dump-program.h"

static void
ping_answered(struct rpc_reply *r, void *arg)
{
    struct rpc_client *c = arg;

    (void)r; /* only the arrival matters */
    atomic_store(&c->is_pinging, false);
}

static void
send_ping(struct rpc_client *c)
{
    struct rpc_call call = {
        .program = DUMP_PROGRAM,
        .version = DUMP_PROGRAM_VERSION,
        .procedure = DUMP_PING,
        .timeout_s = RPC_CALL_WAITS,
        .is_handshake = true,
        .cb = ping_answered,
        .arg = c,
    };

    if (atomic_exchange(&c->is_pinging, true))
        return;
    client_count(&c->pings);
    if (rpc_client_call(c, &call))
        atomic_store(&c->is_pinging, false); /* the next tick tries again, or finds the connection gone */
}

static uint32_t
to_ticks(const struct rpc_client *c, unsigned seconds)
{
    return (uint32_t)((uint64_t)seconds * 1000 / c->tick_ms);
}

/* Ticks since the last bytes of this connection. */
static uint32_t
silent_ticks(struct rpc_client *c, const struct conn *conn, uint32_t now)
{
    uint64_t bytes = conn_bytes_in(conn);

    if (conn != c->heard_of || bytes != c->heard_bytes) {
        c->heard_of = conn;
        c->heard_bytes = bytes;
        c->heard_tick = now;
    }
    return now - c->heard_tick;
}

static void
ping_if_silent(struct rpc_client *c, uint32_t now)
{
    unsigned timeout_s = atomic_load(&c->ping_timeout_s);
    uint32_t limit = to_ticks(c, timeout_s), silent = 0;
    struct conn *conn = client_hold(c);

    if (conn)
        silent = silent_ticks(c, conn, now);
    client_let_go(c);
    if (silent >= limit && silent)
        rpc_client_drop(c, "the peer sent nothing for %u s while calls wait", timeout_s);
    else if (silent > limit / 4)
        send_ping(c);
}

static bool
expire_calls(struct rpc_client *c, uint32_t now)
{
    struct xid_expired e;
    unsigned from = 0;
    bool waiting = false;

    while (xid_expire(&c->calls, now, &from, &waiting, &e)) {
        client_count(&c->timeouts);
        client_answer_error(c, (rpc_reply_fn)e.cb, e.arg, -ETIMEDOUT);
    }
    return waiting;
}

/* True: another tick follows. A call that was published after the first look has seen the watch running,
 * so this looks again after it has cleared is_watched. */
static bool
watch_goes_on(struct rpc_client *c, bool waiting)
{
    unsigned n = 0, expired;

    pthread_mutex_lock(&c->lock);
    bool is_open = atomic_load(&c->state) != CLIENT_CLOSED;

    if (is_open && !waiting) {
        atomic_store(&c->is_watched, false);
        xid_count(&c->calls, &n, &expired);
        waiting = n > 0;
        if (waiting)
            atomic_store(&c->is_watched, true);
    }
    if (is_open && waiting)
        timer_start(&c->watch_timer, c->tick_ms);
    pthread_mutex_unlock(&c->lock);
    return is_open && waiting;
}

static void
watch_job(struct worker_job *job)
{
    struct rpc_client *c = caa_container_of(job, struct rpc_client, watch_job);
    uint32_t now = atomic_load(&c->tick) + 1;

    if (now == XID_NO_DEADLINE)
        now++;
    atomic_store(&c->tick, now);
    bool waiting = expire_calls(c, now);

    if (waiting && atomic_load(&c->ping_timeout_s))
        ping_if_silent(c, now);
    if (!watch_goes_on(c, waiting))
        client_unref(c);
}

static void
watch_tick(struct timer *t)
{
    worker_post(&caa_container_of(t, struct rpc_client, watch_timer)->watch_job);
}

void
client_watch_init(struct rpc_client *c)
{
    timer_init(&c->watch_timer, watch_tick);
    c->watch_job.run = watch_job;
}

void
client_watch(struct rpc_client *c)
{
    pthread_mutex_lock(&c->lock);
    if (!atomic_load(&c->is_watched) && atomic_load(&c->state) != CLIENT_CLOSED) {
        atomic_store(&c->is_watched, true);
        refcount_get(&c->refs);
        c->heard_tick = atomic_load(&c->tick);
        timer_start(&c->watch_timer, c->tick_ms);
    }
    pthread_mutex_unlock(&c->lock);
}

void
client_watch_stop(struct rpc_client *c)
{
    if (timer_stop(&c->watch_timer))
        client_unref(c);
}
