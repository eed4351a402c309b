/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-client: a peer that this side calls: glusterd, or a brick (spec: wire 1, 3.1).
 *
 * One connection at a time, made again for as long as the client is open; calls with their own xids, each
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
 * The first retry comes after retry_min_ms, each further one after twice as long up to retry_max_ms, with a
 * quarter of chance, so that many clients do not come back to one server in step.
 *
 * thread: every function from any thread, but where it says otherwise. Callbacks run on workers: a reply's on
 * the one that read it, several of one client at the same time. No lock of the client is held in a callback.
 *
 * A call takes no lock of the client's and allocates nothing once as many calls as are under way now have
 * been before; the one lock is the connection's send queue.
 *
 * Bounds on what a peer can make us hold: records as in transport.h (short ones until the client is up or
 * `is_trusted`); a reply nobody waits for is dropped at once; one that does not decode costs the peer its
 * connection.
 */
#ifndef KILN_RPC_CLIENT_H
#define KILN_RPC_CLIENT_H

#include "mem/iobuf.h"
#include "rpc/transport/dial.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/rpc-message.h"
#include "stack/call-stack.h"

struct rpc_client;

struct rpc_client_ops {
    /* A connection is there: say who we are, and end with rpc_client_up(), or rpc_client_drop() if the peer
     * will not have us. No call but those with `is_handshake` is let through before. On a worker. */
    void (*connected)(struct rpc_client *c, void *arg);
    /* A connection has ended; its calls have had their callbacks. Another will be made. Not after
     * rpc_client_close(). */
    void (*down)(struct rpc_client *c, bool was_up, void *arg);
    /* An attempt to connect has failed (-errno); another follows. On a worker. NULL: nobody wants to know. */
    void (*unreachable)(struct rpc_client *c, int err, void *arg);
    /* The peer calls us; it expects no reply. `args` is at the first argument and lives until return. NULL:
     * such calls are ignored. */
    void (*called)(struct rpc_client *c, const struct rpc_call_head *head, struct xdr *args, void *arg);
    /* After rpc_client_close(): no callback runs or will, the client is freed. On a worker. */
    void (*gone)(void *arg);
};

struct rpc_client_options {
    const char *name;         /* for messages; copied */
    struct dial_target where; /* copied */
    /* a peer that is not heard of for so long while calls wait has died; 0: never */
    unsigned ping_timeout_s;
    unsigned call_timeout_s;  /* of calls that name none; 0: none */
    unsigned retry_min_ms, retry_max_ms; /* 0: RPC_CLIENT_RETRY_* */
    unsigned calls_max;                  /* under way at the same time; 0: XID_CALLS_MAX */
    unsigned tick_ms;  /* how exact the timeouts are; 0: 1000 */
    bool is_trusted;   /* long records from the start */
};
#define RPC_CLIENT_RETRY_MIN_MS 200
#define RPC_CLIENT_RETRY_MAX_MS 3000

/* Not connected yet. `ops` and `arg` are kept. NULL with *err: -ENOMEM, -EINVAL, -ENAMETOOLONG. */
struct rpc_client *rpc_client_new(const struct rpc_client_options *options, const struct rpc_client_ops *ops,
                                  void *arg, int *err);
/* Once: connects, and connects again. */
void rpc_client_start(struct rpc_client *c);
/* Once. Every call that waits gets -ENOTCONN; then `gone`. No call is begun after this one; one whose
 * callback has run, but that is still on its way out of rpc_client_call(), is waited for. Not from a timer.
 */
void rpc_client_close(struct rpc_client *c);

/* As in the options, from now on: of the ping at once, of calls for those to come. Any thread. */
void rpc_client_set_timeouts(struct rpc_client *c, unsigned ping_timeout_s, unsigned call_timeout_s);

/* The handshake has succeeded. False: the connection has been lost meanwhile. From `connected` or a handshake
 * call's reply. */
bool rpc_client_up(struct rpc_client *c);
bool rpc_client_is_up(const struct rpc_client *c);
/* This connection is of no use: it is closed, with the reason in the log. Another is made after the usual
 * wait. */
void rpc_client_drop(struct rpc_client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same without a word, and the next one goes to this port of the same host, at once; those after it to
 * the first. */
void rpc_client_redirect(struct rpc_client *c, uint16_t port);
/* Which credential calls carry from now on: CRED_GLUSTERFS_V2 (of a new connection) or V3. In the handshake.
 */
void rpc_client_set_cred(struct rpc_client *c, uint32_t flavor);
const char *rpc_client_name(const struct rpc_client *c);

/* ---- calls ----------------------------------------------------------------------------------- */

/* What came back. Belongs to the callback until it returns; strings and opaques that are decoded point into
 * the record. */
struct rpc_reply {
    int err; /* 0: `results` is at the first result. -ENOTCONN: connection lost, or refused on the level of
              * RPC; -ETIMEDOUT: no answer in time, the peer may still do what was asked; -ENOMEM: it has
              * answered, and there was no memory for all of that */
    /* in one piece or more; its arena is the callback's to set before it decodes dicts and lists */
    struct xdr results;
    struct record record;
    struct rpc_client *client;
};
typedef void (*rpc_reply_fn)(struct rpc_reply *r, void *arg);

struct rpc_call {
    uint32_t program, version, procedure;
    const struct caller *caller; /* NULL: pid, uid and gid 0 */
    const void *args;            /* encoded; copied */
    size_t args_bytes;
    unsigned timeout_s; /* 0: the client's; RPC_CALL_WAITS: none */
    bool is_handshake;  /* goes out before rpc_client_up() */
    rpc_reply_fn cb;
    void *arg;
};
#define RPC_CALL_WAITS UINT32_MAX

/* Sends. 0: `cb` is called once, on a worker, perhaps before this returns. Otherwise it is not called:
 * -ENOTCONN, -EAGAIN (as many calls are under way as may be), -ENOMEM (nothing has gone out, and the
 * connection stays), -EMSGSIZE, -EINVAL (the credential cannot be encoded). */
int rpc_client_call(struct rpc_client *c, const struct rpc_call *call);

/* Between these two no other connection takes this one's place: what a peer has numbered for one connection
 * only (fds), is looked up and sent between them, and `down` has made it invalid before the next connection
 * begins. They may be nested, and cost an atomic each; they are held for as long as a call takes to be sent.
 */
void rpc_client_hold(struct rpc_client *c);
void rpc_client_let_go(struct rpc_client *c);

/* For small arguments: encodes into the caller's buffer, `x` has been filled. */
static inline int
rpc_client_call_xdr(struct rpc_client *c, struct rpc_call *call, const struct xdr *x, const char *start)
{
    if (x->error)
        return x->error;
    call->args = start;
    call->args_bytes = (size_t)(x->at - start);
    return rpc_client_call(c, call);
}

/* In a callback: the results do not decode. Drops the connection; `what` names the call. */
void rpc_reply_is_garbage(struct rpc_reply *r, const char *what);

/* ---- fops: program 1298437 version 400 ------------------------------------------------------- */

/* Sends `call` (its wire members: gfids, fd numbers, names ...) as rpc_client_call() does. The payload's
 * bytes lie in `payload`, whose reference is taken over, or are copied if that is NULL. The call and its
 * caller are not looked at after return, or after `cb` has run. */
int rpc_client_fop(struct rpc_client *c, const struct fop_call *call, const struct caller *caller,
                   struct iobuf *payload, unsigned timeout_s, rpc_reply_fn cb, void *arg);
/* In `cb`: what came back of such a call. `out` is always filled: an error of RPC's or of the codec's is
 * op_ret -1 with op_errno; garbage (ENOTCONN) has cost the peer its connection; without memory for what it
 * brings, ENOMEM and SHORTAGE_UNREAD, or of a change what is known without its dicts. Dicts and lists are on
 * `arena`; what points into the record is kept by out->iobuf. A READ may bring more than was asked for: the
 * caller knows how much that was. */
void rpc_reply_fop(struct rpc_reply *r, enum fop fop, struct fop_reply *out, struct arena *arena);

/* ---- figures --------------------------------------------------------------------------------- */

struct rpc_client_stats {
    const char *state;
    unsigned waiting, expired;
    uint64_t connects, losses, timeouts, unknown_replies, calls_in, pings;
};
/* As they are at this moment. Any thread. */
void rpc_client_stats(struct rpc_client *c, struct rpc_client_stats *out);
/* Calls of rpc_client_fop() that went out, since the client was made. */
uint64_t rpc_client_fops_sent(struct rpc_client *c, enum fop fop);

#endif
