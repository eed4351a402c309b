/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-client-internal: declarations shared by the files of a client.
 *
 *   rpc-client.c   its life: connect, back off, close       rpc-call.c    calls out, records in
 *   rpc-watch.c    timeouts and pings                       rpc-fop.c     fops
 *   rpc-saved.c    its connection survives an exec(2)
 *
 * `refs` counts users that may still call into the client: the owner until rpc_client_close(), an attempt
 * to connect, a connection until its calls are failed and its last sender is done, the retry timer, the
 * watch. The last release posts `gone`.
 *
 * A sender holds the client (client_hold()) from before it reads `conn` until it is done with the
 * connection: a counter, no lock. When a connection has ended, CLIENT_ENDED is set in that counter; the
 * sender that then takes the counter to 0 releases the connection and starts the next one, because no
 * thread can still use the old one. client_let_go() is the last access of a call to the client. */
#ifndef KILN_RPC_CLIENT_INTERNAL_H
#define KILN_RPC_CLIENT_INTERNAL_H

#include "rpc/client/rpc-client.h"
#include "rpc/client/xid-table.h"
#include "rpc/transport/fop-path.h"

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
    _Atomic(struct fop_path *) fop_path; /* a reference; for fops, if open. NULL: none. Read by holders */
    atomic_int state;            /* enum client_state; written under `lock` */
    atomic_uint holders;         /* number of holders, and CLIENT_ENDED */
    _Atomic uint32_t cred_flavor;
    _Atomic uint32_t tick; /* incremented by the watch while it runs; never XID_NO_DEADLINE */
    atomic_bool is_watched;
    _Atomic uint32_t call_timeout_s; /* this and ping_timeout_s: rpc_client_set_timeouts() */
    atomic_uint ping_timeout_s;
    struct xid_table calls;

    const struct rpc_client_ops *ops;
    void *arg;
    char *name, *host, *path;
    struct dial_target where; /* its `tls` is under the lock */
    unsigned retry_min_ms, retry_max_ms, tick_ms;
    bool is_trusted, is_inside;
    struct conn *paused; /* a reference; of rpc_client_pause() */
    bool is_restored; /* the connection that is being accepted is of an earlier program; in restoring only */
    struct refcount refs;
    struct worker_job gone_job;

    pthread_mutex_t lock; /* guards the members below, up to those of the watch, and changes of `state` */
    struct conn *ended;   /* the ended connection, while CLIENT_ENDED is set, and its path */
    struct fop_path *ended_path;
    struct dialler dialler;
    struct tls_config *lent_tls; /* a reference: lent to the latest attempt to connect */
    struct timer retry;
    uint16_t redirect_port; /* 0: none */
    bool is_dropped;        /* this connection is being dropped, and the reason is logged already */
    unsigned failures;      /* failures in a row to connect or shake hands */
    uint64_t connects, losses;
    char tls_failure[TLS_FAILURE_MAX]; /* of the last connection; "": none */

    /* private to the watch: rpc-watch.c */
    struct timer watch_timer;
    struct worker_job watch_job;
    uint64_t heard_bytes;     /* conn_bytes_in() when the watch last saw it change */
    uint32_t heard_tick;
    const struct conn *heard_of; /* connection of heard_bytes; only compared, never dereferenced */
    atomic_bool is_pinging;
    _Atomic uint64_t timeouts, unknown_replies, calls_in, pings;
    _Atomic uint64_t fops_sent[FOP_COUNT]; /* by fop; relaxed additions */
    _Atomic uint64_t calls_joined;         /* calls that needed no record of their own */
};

/* rpc-client.c */
extern const struct transport_ops client_transport_ops;
void client_unref(struct rpc_client *c);
#define CLIENT_ENDED 0x80000000u
/* Returns the connection, for sending; NULL: none. In every case client_let_go() must follow. */
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

/* rpc-fop.c */
extern const struct fop_path_client_ops client_path_ops;

/* rpc-call.c */
/* Answers the waiting call `xid`, if there is one. The reply has err and its results. */
void client_answer(struct rpc_client *c, uint32_t xid, struct rpc_reply *r);
void client_record(struct conn *conn, struct record *r, void *arg);
/* Answers every waiting call with -ENOTCONN. */
void client_fail_calls(struct rpc_client *c);
/* Calls the callback of a call that the caller has claimed. */
void client_answer_error(struct rpc_client *c, rpc_reply_fn cb, void *arg, int err);

/* A call on its way out: slot taken, then encoded, then sent. */
struct outgoing {
    struct rpc_client *client;
    struct xid_slot *slot;
    uint32_t cred_flavor, cred_bytes;
    char cred[RPC_AUTH_BYTES_MAX];
};
/* Takes a slot and encodes the credential for a call, if the client's state permits the call. 0 or -errno:
 * nothing is taken. */
int outgoing_begin(struct outgoing *o, struct rpc_client *c, const struct caller *caller, bool is_handshake);
/* Size of the head; outgoing_put_head() encodes it. */
static inline size_t
outgoing_head_bytes(const struct outgoing *o)
{
    return rpc_call_head_size(o->cred_bytes);
}
void outgoing_put_head(struct outgoing *o, struct xdr *x, uint32_t program, uint32_t version,
                       uint32_t procedure);
/* Gives the call up: the callback is not called. Returns err. */
int outgoing_cancel(struct outgoing *o, int err);
/* Completes and publishes the slot, and returns the held connection. NULL: there is none, and the call is
 * cancelled. */
struct outgoing_reply;
struct conn *outgoing_publish(struct outgoing *o, const struct outgoing_reply *reply);
/* Ends the sending of a published call, with its result `err`, and lets the client go. Returns 0, or the
 * error of a call that is undone. */
int outgoing_sent(struct outgoing *o, uint32_t xid, int err);
struct outgoing_reply {
    rpc_reply_fn cb;
    void *arg;
    unsigned timeout_s;
    uint32_t what;
};
/* Sends the message (`head` and, by reference, the payload). Returns as rpc_client_call(). */
int outgoing_send(struct outgoing *o, const struct outgoing_reply *reply, const char *head, size_t head_bytes,
                  struct iobuf *payload, const struct iovec *iov, int iov_count);
/* Like outgoing_send(), with a whole message in `buf` behind TRANSPORT_MARK_BYTES. */
int outgoing_send_iobuf(struct outgoing *o, const struct outgoing_reply *reply, struct iobuf *buf,
                        size_t bytes);

/* Messages up to this size are built on the C stack. */
#define RPC_SMALL_CALL_BYTES 1024

/* rpc-watch.c */
void client_watch_init(struct rpc_client *c);
/* Starts the watch; called when a call waits and the watch is not running. */
void client_watch(struct rpc_client *c);
/* Stops the watch, for rpc_client_close(). */
void client_watch_stop(struct rpc_client *c);

#endif
