/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-client-internal: a client's insides.
 *
 *   rpc-client.c   its life: connect, back off, close       rpc-call.c    calls out, records in
 *   rpc-watch.c    timeouts and pings                       rpc-fop.c     fops
 *
 * `refs` counts what may still call into the client: the owner until rpc_client_close(), an attempt to
 * connect, a connection until its calls are failed and nobody sends on it, the retry timer, the watch. The
 * last one posts `gone`.
 *
 * Who sends holds the client (client_hold()) from before he looks at `conn` until he is done with it: a
 * counter, no lock. When a connection has ended, CLIENT_ENDED is set in that counter; who then takes it to 0
 * releases the connection and looks for the next one: nobody can have the old one in hands any more. Letting
 * go is the last thing a call does to the client.
 */
#ifndef KILN_RPC_CLIENT_INTERNAL_H
#define KILN_RPC_CLIENT_INTERNAL_H

#include "rpc/client/rpc-client.h"
#include "rpc/client/xid-table.h"

enum client_state {
    CLIENT_IDLE,
    CLIENT_CONNECTING,
    CLIENT_SHAKING_HANDS,
    CLIENT_UP,
    CLIENT_LOST,
    CLIENT_BACKING_OFF,
    CLIENT_CLOSED
};

struct rpc_client {
    /* read by every call */
    _Atomic(struct conn *) conn; /* a reference; NULL: none */
    atomic_int state;            /* enum client_state; written under `lock` */
    atomic_uint holders;         /* and CLIENT_ENDED */
    _Atomic uint32_t cred_flavor;
    _Atomic uint32_t tick; /* counted by the watch while it runs; never XID_NO_DEADLINE */
    atomic_bool is_watched;
    _Atomic uint32_t call_timeout_s; /* this and the next: rpc_client_set_timeouts() */
    atomic_uint ping_timeout_s;
    struct xid_table calls;

    const struct rpc_client_ops *ops;
    void *arg;
    char *name, *host, *path;
    struct dial_target where;
    unsigned retry_min_ms, retry_max_ms, tick_ms;
    bool is_trusted;
    struct refcount refs;
    struct worker_job gone_job;

    pthread_mutex_t lock; /* guards what follows, up to the watch's, and changes of `state` */
    struct conn *ended;   /* the connection that CLIENT_ENDED is about */
    struct dialler dialler;
    struct timer retry;
    uint16_t redirect_port; /* 0: none */
    bool is_dropped;        /* this connection, with a reason in the log already */
    unsigned failures;      /* to connect or shake hands, in a row */
    uint64_t connects, losses;

    /* the watch's: rpc-watch.c */
    struct timer watch_timer;
    struct worker_job watch_job;
    uint64_t heard_bytes;     /* conn_bytes_in() when it was last seen to change */
    uint32_t heard_tick;
    const struct conn *heard_of; /* compared only */
    atomic_bool is_pinging;
    _Atomic uint64_t timeouts, unknown_replies, calls_in, pings;
    _Atomic uint64_t fops_sent[FOP_COUNT]; /* by fop; each by relaxed additions */
};

/* rpc-client.c */
void client_unref(struct rpc_client *c);
#define CLIENT_ENDED 0x80000000u
/* The connection, for sending; NULL: none. In every case client_let_go() follows. */
static inline struct conn *
client_hold(struct rpc_client *c)
{
    atomic_fetch_add(&c->holders, 1);
    return atomic_load(&c->conn);
}
void client_release_ended(struct rpc_client *c);
static inline void
client_let_go(struct rpc_client *c)
{
    if (atomic_fetch_sub(&c->holders, 1) == (CLIENT_ENDED | 1))
        client_release_ended(c);
}

static inline void
client_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* rpc-call.c */
void client_record(struct conn *conn, struct record *r, void *arg);
/* Every call that waits is answered with -ENOTCONN. */
void client_fail_calls(struct rpc_client *c);
/* The callback of a call that is the caller's by now. */
void client_answer_error(struct rpc_client *c, rpc_reply_fn cb, void *arg, int err);

/* A call on its way out: taken, encoded, sent. */
struct outgoing {
    struct rpc_client *client;
    struct xid_slot *slot;
    uint32_t cred_flavor, cred_bytes;
    char cred[RPC_AUTH_BYTES_MAX];
};
/* A slot and a credential for a call, which is let through in this state. 0 or -errno: nothing is taken. */
int outgoing_begin(struct outgoing *o, struct rpc_client *c, const struct caller *caller, bool is_handshake);
/* The head's bytes; its encoding. */
static inline size_t
outgoing_head_bytes(const struct outgoing *o)
{
    return rpc_call_head_size(o->cred_bytes);
}
void outgoing_put_head(struct outgoing *o, struct xdr *x, uint32_t program, uint32_t version,
                       uint32_t procedure);
/* Gives up: the callback is not called. Returns err. */
int outgoing_cancel(struct outgoing *o, int err);
struct outgoing_reply {
    rpc_reply_fn cb;
    void *arg;
    unsigned timeout_s;
    uint32_t what;
};
/* Sends the message (`head` and, by reference, the payload). As rpc_client_call(). */
int outgoing_send(struct outgoing *o, const struct outgoing_reply *reply, const char *head, size_t head_bytes,
                  struct iobuf *payload, const struct iovec *iov, int iov_count);
/* The same with a whole message in `buf` behind TRANSPORT_MARK_BYTES. */
int outgoing_send_iobuf(struct outgoing *o, const struct outgoing_reply *reply, struct iobuf *buf,
                        size_t bytes);

/* Messages up to this size are made on the C stack. */
#define RPC_SMALL_CALL_BYTES 1024

/* rpc-watch.c */
void client_watch_init(struct rpc_client *c);
/* A call waits, and nobody looks at its time. */
void client_watch(struct rpc_client *c);
/* For rpc_client_close(). */
void client_watch_stop(struct rpc_client *c);

#endif
