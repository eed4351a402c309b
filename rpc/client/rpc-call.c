/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls out, and records in: replies go to their calls, calls of the peer go to `called`.
 *
 * A message is complete before its slot is published, because from then on its callback may run, on
 * another thread, and free everything that the caller's arguments point to. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "rpc/client/rpc-client-internal.h"

/* ---- out ------------------------------------------------------------------------------------- */

static bool
may_send(const struct rpc_client *c, bool is_handshake)
{
    int state = atomic_load_explicit(&c->state, memory_order_acquire);

    return state == CLIENT_UP || (is_handshake && state == CLIENT_SHAKING_HANDS);
}

int
outgoing_begin(struct outgoing *o, struct rpc_client *c, const struct caller *caller, bool is_handshake)
{
    static const struct caller nobody;

    if (!may_send(c, is_handshake))
        return -ENOTCONN;
    o->client = c;
    o->cred_flavor = atomic_load_explicit(&c->cred_flavor, memory_order_relaxed);
    int bytes = cred_encode(o->cred_flavor, caller ? caller : &nobody, o->cred, sizeof o->cred);

    if (bytes < 0)
        return -EINVAL;
    o->cred_bytes = (uint32_t)bytes;
    o->slot = xid_take(&c->calls);
    return o->slot ? 0 : xid_is_full(&c->calls) ? -EAGAIN : -ENOMEM;
}

void
outgoing_put_head(struct outgoing *o, struct xdr *x, uint32_t program, uint32_t version, uint32_t procedure)
{
    (void)rpc_encode_call_head(x, &(struct rpc_call_head){ /* x keeps the error */
                                       .xid = o->slot->xid,
                                       .program = program,
                                       .version = version,
                                       .procedure = procedure,
                                       .cred_flavor = o->cred_flavor,
                                       .cred_bytes = o->cred_bytes,
                                       .cred = o->cred,
                                   });
}

int
outgoing_cancel(struct outgoing *o, int err)
{
    xid_put(&o->client->calls, o->slot);
    return err;
}

/* In ticks. The present tick does not count, because it has begun some time ago. */
static uint32_t
deadline_of(const struct rpc_client *c, unsigned timeout_s)
{
    if (timeout_s == 0)
        timeout_s = atomic_load_explicit(&c->call_timeout_s, memory_order_relaxed);
    if (timeout_s == RPC_CALL_WAITS)
        return XID_NO_DEADLINE;
    uint32_t ticks = (uint32_t)((uint64_t)timeout_s * 1000 / c->tick_ms);
    uint32_t at = atomic_load_explicit(&c->tick, memory_order_relaxed) + ticks + 1;

    return at == XID_NO_DEADLINE ? at + 1 : at;
}

struct conn *
outgoing_publish(struct outgoing *o, const struct outgoing_reply *reply)
{
    struct xid_slot *s = o->slot;
    struct conn *conn = client_hold(o->client);

    if (!conn) {
        (void)outgoing_cancel(o, 0);
        client_let_go(o->client);
        return NULL;
    }
    s->cb = (void (*)(void))reply->cb;
    s->arg = reply->arg;
    s->what = reply->what;
    atomic_store_explicit(&s->deadline, deadline_of(o->client, reply->timeout_s), memory_order_relaxed);
    xid_publish(s);
    return conn;
}

/* A call that was not sent is undone, unless the loss of the connection has answered it already. */
int
outgoing_sent(struct outgoing *o, uint32_t xid, int err)
{
    struct rpc_client *c = o->client;
    bool was_late;

    if (err) {
        struct xid_slot *s = xid_claim(&c->calls, xid, &was_late);

        if (s)
            xid_put(&c->calls, s);
        else
            err = 0;
    } else if (!atomic_load(&c->is_watched)) {
        client_watch(c);
    }
    client_let_go(c);
    return err;
}

int
outgoing_send(struct outgoing *o, const struct outgoing_reply *reply, const char *head, size_t head_bytes,
              struct iobuf *payload, const struct iovec *iov, int iov_count)
{
    uint32_t xid = o->slot->xid;
    struct conn *conn = outgoing_publish(o, reply);

    if (!conn) {
        iobuf_unref(payload);
        return -ENOTCONN;
    }
    return outgoing_sent(o, xid, conn_send(conn, head, head_bytes, payload, iov, iov_count));
}

int
outgoing_send_iobuf(struct outgoing *o, const struct outgoing_reply *reply, struct iobuf *buf, size_t bytes)
{
    uint32_t xid = o->slot->xid;
    struct conn *conn = outgoing_publish(o, reply);

    if (!conn) {
        iobuf_unref(buf);
        return -ENOTCONN;
    }
    return outgoing_sent(o, xid, conn_send_iobuf(conn, buf, bytes));
}

static void
put_message(struct outgoing *o, const struct rpc_call *call, char *out, size_t bytes)
{
    struct xdr x;

    xdr_init(&x, out, bytes, NULL);
    outgoing_put_head(o, &x, call->program, call->version, call->procedure);
    if (call->args_bytes)
        memcpy(x.at, call->args, call->args_bytes);
}

int
rpc_client_call(struct rpc_client *c, const struct rpc_call *call)
{
    struct outgoing_reply reply = {
        .cb = call->cb, .arg = call->arg, .timeout_s = call->timeout_s, .what = call->procedure};
    char small[RPC_SMALL_CALL_BYTES];
    struct outgoing o;
    int err = outgoing_begin(&o, c, call->caller, call->is_handshake);

    if (err)
        return err;
    size_t bytes = outgoing_head_bytes(&o) + call->args_bytes;

    if (bytes > TRANSPORT_RECORD_MAX)
        return outgoing_cancel(&o, -EMSGSIZE);
    if (bytes <= sizeof small) {
        put_message(&o, call, small, bytes);
        return outgoing_send(&o, &reply, small, bytes, NULL, NULL, 0);
    }
    struct iobuf *buf = iobuf_get(TRANSPORT_MARK_BYTES + bytes);

    if (!buf)
        return outgoing_cancel(&o, -ENOMEM);
    put_message(&o, call, buf->bytes + TRANSPORT_MARK_BYTES, bytes);
    return outgoing_send_iobuf(&o, &reply, buf, bytes);
}

/* ---- in -------------------------------------------------------------------------------------- */

void
client_answer_error(struct rpc_client *c, rpc_reply_fn cb, void *arg, int err)
{
    struct rpc_reply r = {.client = c, .err = err};

    xdr_fail(&r.results, err); /* a callback that decodes nevertheless gets zeros */
    cb(&r, arg);
}

void
client_fail_calls(struct rpc_client *c)
{
    unsigned from = 0;
    struct xid_slot *s;

    while ((s = xid_claim_any(&c->calls, &from))) {
        rpc_reply_fn cb = (rpc_reply_fn)s->cb;
        void *arg = s->arg;

        xid_put(&c->calls, s);
        client_answer_error(c, cb, arg, -ENOTCONN);
    }
}

/* A reply to an unknown call: never made, or answered before. A late reply is not logged. */
static void
unknown_reply(struct rpc_client *c, uint32_t xid)
{
    client_count(&c->unknown_replies);
    log_event(LOG_WARNING, NULL, "rpc-client-unknown-reply",
              "%s: reply %u belongs to no waiting call", c->name, xid);
}

void
client_answer(struct rpc_client *c, uint32_t xid, struct rpc_reply *r)
{
    bool was_late;
    struct xid_slot *s = xid_claim(&c->calls, xid, &was_late);

    if (!s) {
        if (!was_late)
            unknown_reply(c, xid);
        return;
    }
    rpc_reply_fn cb = (rpc_reply_fn)s->cb;
    void *arg = s->arg;

    xid_put(&c->calls, s);
    if (!r->err && r->record.is_cut)
        r->err = -ENOMEM;
    if (r->err)
        xdr_fail(&r->results, r->err);
    cb(r, arg);
}

static void
client_reply_arrived(struct rpc_client *c, struct rpc_reply *r)
{
    uint32_t xid;

    r->err = rpc_decode_reply_head(&r->results, &xid);
    if (r->err == -EBADMSG)
        rpc_client_drop(c, "the head of a reply cannot be decoded");
    else
        client_answer(c, xid, r);
}

/* The peer's calls are small and come in one piece; a call that does not expects no answer either, so
 * dropping the connection is the only reaction. */
static void
call_arrived(struct rpc_client *c, struct xdr *x, bool is_cut)
{
    struct rpc_call_head head;
    int err = is_cut ? -ENOMEM : rpc_decode_call_head(x, &head);

    if (err || x->more_count) {
        rpc_client_drop(c, "a call of the peer's cannot be decoded");
        return;
    }
    client_count(&c->calls_in);
    if (c->ops->called)
        c->ops->called(c, &head, x, c->arg);
}

void
client_record(struct conn *conn, struct record *r, void *arg)
{
    struct rpc_client *c = arg;
    struct rpc_reply reply = {.client = c, .record = *r};

    (void)conn;
    xdr_init(&reply.results, r->iov[0].iov_base, r->iov[0].iov_len, NULL);
    reply.results.more = reply.record.iov + 1;
    reply.results.more_count = r->count - 1;
    switch (rpc_message_type(&reply.results)) {
    case RPC_REPLY:
        client_reply_arrived(c, &reply);
        break;
    case RPC_CALL:
        call_arrived(c, &reply.results, r->is_cut);
        break;
    default:
        rpc_client_drop(c, "a record is neither a call nor a reply");
        break;
    }
    record_release(&reply.record);
}

void
rpc_reply_is_garbage(struct rpc_reply *r, const char *what)
{
    if (r->record.count) /* else there was no reply */
        rpc_client_drop(r->client, "the reply to %s cannot be decoded", what);
}
