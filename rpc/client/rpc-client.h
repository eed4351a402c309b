/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-client: the client side of RPC, for calls to glusterd or to a brick (spec: wire 1, 3.1).
 *
 * One connection at a time, made again as long as the client is open; calls with their own xids, each
 * answered by exactly one callback; pings and timeouts only while calls wait.
 *
 *          start            connected           rpc_client_up()
 *     idle ------> connecting -----> shaking hands ----------> up
 *                   ^    |                 |                   |
 *                   |    | failed          | lost              | lost, or dropped for a reason:
 *                   |    v                 v                   v every call that waits gets -ENOTCONN
 *                   +-- backing off <------+-------------------+
 *
 *     close, from everywhere: closed, then `gone`
 *
 * The first retry comes after retry_min_ms; each further retry waits twice as long, up to retry_max_ms. A
 * quarter of each wait is random, so that many clients do not reconnect to a server in step.
 *
 * thread: every function from any thread, unless its comment says otherwise. Callbacks run on workers: a
 * reply's on the worker that read it, several of one client at the same time. No lock of the client is
 * held in a callback.
 *
 * A call takes no lock except that of the connection's send queue. It allocates memory only when more calls
 * are concurrent than ever before.
 *
 * Bounds on the memory that a peer can make us hold: records as in transport.h (short ones until the
 * client is up or `is_trusted`); a reply that no call waits for is dropped at once; a reply that does not
 * decode makes the client close the connection. */
#ifndef KILN_RPC_CLIENT_H
#define KILN_RPC_CLIENT_H

#include "base/parcel.h"
#include "mem/iobuf.h"
#include "rpc/transport/dial.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/rpc-message.h"
#include "stack/call-stack.h"

struct rpc_client;

struct rpc_client_ops {
    /* A connection has been made: the owner identifies itself, and ends with rpc_client_up(), or
     * rpc_client_drop() if the peer refuses. Until then only calls with `is_handshake` are sent. On a
     * worker. */
    void (*connected)(struct rpc_client *c, void *arg);
    /* A connection has ended; its calls have had their callbacks. Another will be made. Not called after
     * rpc_client_close(). */
    void (*down)(struct rpc_client *c, bool was_up, void *arg);
    /* An attempt to connect has failed (-errno); another follows. On a worker. May be NULL. */
    void (*unreachable)(struct rpc_client *c, int err, void *arg);
    /* The peer calls us and expects no reply. `args` is at the first argument and lives until return.
     * NULL: such calls are ignored. */
    void (*called)(struct rpc_client *c, const struct rpc_call_head *head, struct xdr *args, void *arg);
    /* Called after rpc_client_close(): no callback runs or will run, and the client is freed. On a worker. */
    void (*gone)(void *arg);
};

struct rpc_client_options {
    const char *name;         /* for messages; copied */
    struct dial_target where; /* copied */
    /* a peer that sends nothing for this long while calls wait is taken for dead; 0: never */
    unsigned ping_timeout_s;
    unsigned call_timeout_s;  /* of calls without a timeout of their own; 0: none */
    unsigned retry_min_ms, retry_max_ms; /* 0: RPC_CLIENT_RETRY_* */
    unsigned calls_max;                  /* most concurrent calls; 0: XID_CALLS_MAX */
    unsigned tick_ms;  /* precision of the timeouts; 0: 1000 */
    bool is_trusted;   /* the peer may send long records from the start */
    bool is_inside;    /* fops to a brick of this process go as calls, not as bytes (fop-path.h) */
};
#define RPC_CLIENT_RETRY_MIN_MS 200
#define RPC_CLIENT_RETRY_MAX_MS 3000

/* Makes a client that is not connected yet. `ops` and `arg` are kept. NULL with *err: -ENOMEM, -EINVAL,
 * -ENAMETOOLONG. */
struct rpc_client *rpc_client_new(const struct rpc_client_options *options, const struct rpc_client_ops *ops,
                                  void *arg, int *err);
/* Connects, and connects again after each loss. Called once. */
void rpc_client_start(struct rpc_client *c);

/* ---- a client that survives an exec(2) (rpc/transport/saved.h) ------------------------------- */

/* Stops reading the present connection, if there is one, or reads on; in turn. One thread. */
void rpc_client_pause(struct rpc_client *c, bool pauses);
/* Of a paused client: no call waits for its reply, and nobody reads or sends. The caller looks twice. */
bool rpc_client_rests(struct rpc_client *c);
/* Writes the connection of a client that rests, or that there is none to save (down, or encrypted). Then the
 * new program's rpc_client_restore() returns false. */
void rpc_client_save(struct rpc_client *c, struct parcel *to);
/* Lets the socket of a saved connection survive exec(2), or not. 0 or -errno. */
int rpc_client_keep_open(struct rpc_client *c, bool keeps);
/* In place of rpc_client_start(): takes the saved connection, on which the client is up at once, without
 * `connected`. rpc_client_go_on() then reads. False: there is no connection, and the caller starts the
 * client. Called once. */
bool rpc_client_restore(struct rpc_client *c, struct parcel *from);
void rpc_client_go_on(struct rpc_client *c);

/* Closes the client. Every waiting call gets -ENOTCONN; then `gone`. Called once; no call may be begun
 * afterwards. A call whose callback has run, but that is still inside rpc_client_call(), is waited for.
 * Not from a timer. */
void rpc_client_close(struct rpc_client *c);

/* Changes the timeouts of the options: the ping's at once, the calls' for future calls. Any thread. */
void rpc_client_set_timeouts(struct rpc_client *c, unsigned ping_timeout_s, unsigned call_timeout_s);
/* Encrypts later connections with `tls`, of which the client takes a reference, or does not (NULL). The
 * present connection stays. A client that waits for the next attempt to connect tries at once. Not from a
 * timer, nor while rpc_client_close() runs. */
void rpc_client_set_tls(struct rpc_client *c, struct tls_config *tls);
/* Whether later connections are encrypted. Any thread. */
bool rpc_client_has_tls(struct rpc_client *c);

/* Declares the handshake successful. False: the connection has been lost meanwhile. From `connected` or a
 * handshake call's reply. */
bool rpc_client_up(struct rpc_client *c);
bool rpc_client_is_up(const struct rpc_client *c);
/* Closes this connection and logs the reason. Another is made after the usual wait. */
void rpc_client_drop(struct rpc_client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Closes this connection without a log line and connects at once to this port of the same host; later
 * connections go to the first port. */
void rpc_client_redirect(struct rpc_client *c, uint16_t port);
/* Sets the credential of future calls: CRED_GLUSTERFS_V2 (the default of a new connection) or V3. In the
 * handshake. */
void rpc_client_set_cred(struct rpc_client *c, uint32_t flavor);
/* In the handshake, with is_inside: offers the peer a way for fops without bytes, and sets *token to the
 * name of the offer, for the login. False: the peer is another process, or no memory. */
bool rpc_client_offer_path(struct rpc_client *c, struct gfid *token);
/* True if fops go as calls on this connection. */
bool rpc_client_is_inside(struct rpc_client *c);
const char *rpc_client_name(const struct rpc_client *c);
/* Writes the address of the peer whose connection has ended, for logs. Returns whether the peer has sent
 * anything. In `down`. */
bool rpc_client_lost_peer(struct rpc_client *c, char out[CONN_PEER_TEXT_MAX]);
enum { TLS_FAILURE_MAX = 384 };
/* Copies why the last connection could not be encrypted; "": its end had another reason. In `down`. */
void rpc_client_tls_failure(struct rpc_client *c, char *out, size_t size);

/* ---- calls ----------------------------------------------------------------------------------- */

/* A reply. Belongs to the callback until it returns; decoded strings and opaques point into the record. */
struct rpc_reply {
    /* 0: `results` is at the first result. -ENOTCONN: connection lost, or the call was refused by the RPC
     * layer; -ETIMEDOUT: no answer in time, the peer may still execute the call; -ENOMEM: the peer has
     * answered, and there was no memory for the whole answer */
    int err;
    /* in one or more pieces; the callback sets results.arena before decoding dicts and lists */
    struct xdr results;
    struct record record;
    struct rpc_client *client;
    const struct fop_reply *fop; /* the reply to a fop that went as a call; NULL: it is in `results` */
};
typedef void (*rpc_reply_fn)(struct rpc_reply *r, void *arg);

struct rpc_call {
    uint32_t program, version, procedure;
    const struct caller *caller; /* NULL: pid, uid and gid 0 */
    const void *args;            /* encoded; copied */
    size_t args_bytes;
    unsigned timeout_s; /* 0: the client's default; RPC_CALL_WAITS: none */
    bool is_handshake;  /* is sent before rpc_client_up() */
    rpc_reply_fn cb;
    void *arg;
};
#define RPC_CALL_WAITS UINT32_MAX

/* Sends a call. 0: `cb` is called once, on a worker, perhaps before this returns. Otherwise `cb` is not
 * called: -ENOTCONN, -EAGAIN (too many concurrent calls), -ENOMEM (nothing was sent, and the connection
 * stays), -EMSGSIZE, -EINVAL (the credential cannot be encoded). */
int rpc_client_call(struct rpc_client *c, const struct rpc_call *call);

/* Between hold and let_go no other connection replaces the present connection. An fd number or the like,
 * which is valid for one connection only, is looked up and sent between them; `down` has made it invalid
 * before the next connection begins. Calls may be nested, and cost an atomic operation each; they should last
 * only as long as sending a call. */
void rpc_client_hold(struct rpc_client *c);
void rpc_client_let_go(struct rpc_client *c);

/* For small arguments that were encoded into the caller's buffer: sends them. `x` is behind the last
 * argument. */
static inline int
rpc_client_call_xdr(struct rpc_client *c, struct rpc_call *call, const struct xdr *x, const char *start)
{
    if (x->error)
        return x->error;
    call->args = start;
    call->args_bytes = (size_t)(x->at - start);
    return rpc_client_call(c, call);
}

/* Called in a callback if the results do not decode. Drops the connection; `what` names the call. */
void rpc_reply_is_garbage(struct rpc_reply *r, const char *what);

/* ---- fops: program 1298437 version 400 ------------------------------------------------------- */

/* Sends `call` (its wire members: gfids, fd numbers, names ...) as rpc_client_call() does. The payload's
 * bytes lie in `payload`, whose reference is taken over, or are copied if `payload` is NULL. The call and its
 * caller are not used after return, or after `cb` has run. */
int rpc_client_fop(struct rpc_client *c, const struct fop_call *call, const struct caller *caller,
                   struct iobuf *payload, unsigned timeout_s, rpc_reply_fn cb, void *arg);
/* The calls of a sequence (rpc/xdr/sequence-program.h), in the order in which the peer runs them. */
struct rpc_step {
    const struct fop_call *call; /* has no payload */
    const struct caller *caller;
    bool always; /* runs also if an earlier call has failed */
    unsigned fd_of, gfid_of; /* number of the earlier step, from 1, whose fd or object is used; 0: none */
};
/* Sends the calls in one record, for a peer that has the program. -EMSGSIZE: too many calls or bytes for one
 * record. Else as rpc_client_fop(). */
int rpc_client_sequence(struct rpc_client *c, const struct rpc_step *steps, unsigned count,
                        unsigned timeout_s, rpc_reply_fn cb, void *arg);
/* Called in `cb`: decodes the replies, as rpc_reply_fop() does each. A call that was not run has failed with
 * ECANCELED and SHORTAGE_UNSENT. All replies, and their dicts, are valid until the last call's arena is
 * released. */
struct rpc_step_reply {
    enum fop fop;
    struct fop_reply *out;
    struct arena *arena;
};
void rpc_reply_sequence(struct rpc_reply *r, const struct rpc_step_reply *replies, unsigned count);

/* Called in `cb`: decodes the reply to a fop. `out` is always filled: an error of the RPC layer or the
 * codec is op_ret -1 with op_errno; after garbage (ENOTCONN) the connection is dropped; without memory for
 * the results the error is ENOMEM with SHORTAGE_UNREAD, but for a change the results without its dicts are
 * returned if that is possible. Dicts and lists are on `arena`; out->iobuf keeps the record that other
 * results point into. A READ may return more than requested: the caller must check. */
void rpc_reply_fop(struct rpc_reply *r, enum fop fop, struct fop_reply *out, struct arena *arena);

/* ---- statistics ------------------------------------------------------------------------------ */

struct rpc_client_stats {
    const char *state;
    unsigned waiting, expired;
    uint64_t connects, losses, timeouts, unknown_replies, calls_in, pings;
    uint64_t calls_joined; /* calls that came behind others in the same record: rpc_client_sequence() */
};
/* Fills *out with the present values. Any thread. */
void rpc_client_stats(struct rpc_client *c, struct rpc_client_stats *out);
/* Number of calls sent by rpc_client_fop() and rpc_client_sequence() since the client was made. */
uint64_t rpc_client_fops_sent(struct rpc_client *c, enum fop fop);

#endif
