/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Fops: by bytes, encoded and decoded by the codec that the server uses, too, or inside of this process
 * (rpc/transport/fop-path.h). The slot of the call, and with it timeouts and the loss of the connection, are
 * the same for both. */
#include <errno.h>
#include <string.h>

#include "rpc/client/rpc-client-internal.h"
#include "rpc/xdr/fop-codec.h"

/* Copies a payload of several pieces into one buffer. NULL: no memory. */
static struct iobuf *
gather_payload(const struct fop_call *call, struct iovec *out)
{
    struct iobuf *buf = iobuf_get(call->payload_bytes);
    size_t at = 0;

    if (!buf)
        return NULL;
    for (int i = 0; i < call->payload_count; i++) {
        memcpy(buf->bytes + at, call->payload[i].iov_base, call->payload[i].iov_len);
        at += call->payload[i].iov_len;
    }
    *out = (struct iovec){buf->bytes, at};
    return buf;
}

/* ---- the way by bytes ------------------------------------------------------------------------ */

/* A fop on its way out, on the sender's stack. */
struct outgoing_fop {
    struct fop_message m; /* the first member */
    struct outgoing o;
    struct iovec iov[FOP_PAYLOAD_IOVS];
    /* the encoded message: in `small`, or in `buf` behind the mark */
    struct iobuf *buf;
    size_t bytes;
    char small[RPC_SMALL_CALL_BYTES];
};

static int
bytes_begin(struct fop_path *p, struct fop_message *m)
{
    struct outgoing_fop *f = (struct outgoing_fop *)m;
    const struct fop_call *call = m->call;
    struct xdr x;

    (void)p;
    f->bytes = outgoing_head_bytes(&f->o) + fop_call_size(call->fop, call) - call->payload_bytes;
    if (f->bytes + call->payload_bytes > TRANSPORT_RECORD_MAX)
        return -EMSGSIZE;
    if (f->bytes > sizeof f->small && !(f->buf = iobuf_get(TRANSPORT_MARK_BYTES + f->bytes)))
        return -ENOMEM;
    xdr_init(&x, f->buf ? f->buf->bytes + TRANSPORT_MARK_BYTES : f->small, f->bytes, NULL);
    outgoing_put_head(&f->o, &x, FOP_PROGRAM, FOP_PROGRAM_VERSION, call->fop);
    (void)fop_encode_call(call->fop, &x, call); /* fits, because the size was computed before */
    return 0;
}

static int
bytes_run(struct fop_path *p, struct fop_message *m, struct conn *conn)
{
    struct outgoing_fop *f = (struct outgoing_fop *)m;
    int err;

    (void)p;
    if (!f->buf)
        return conn_send(conn, f->small, f->bytes, m->payload, f->iov, m->iov_count);
    if (!m->payload)
        return conn_send_iobuf(conn, f->buf, f->bytes);
    err = conn_send(conn, f->buf->bytes + TRANSPORT_MARK_BYTES, f->bytes, m->payload, f->iov, m->iov_count);
    iobuf_unref(f->buf);
    return err;
}

static void
bytes_drop(struct fop_path *p, struct fop_message *m)
{
    struct outgoing_fop *f = (struct outgoing_fop *)m;

    (void)p;
    iobuf_unref(m->payload);
    iobuf_unref(f->buf);
}

static const struct fop_path_ops bytes_ops = {.begin = bytes_begin, .run = bytes_run, .drop = bytes_drop};

/* ---- sending --------------------------------------------------------------------------------- */

/* Sends the call on this path. *is_begun: the path has the payload's reference, and the slot is used up; else
 * nothing has happened. The call may be gone when this returns. */
static int
send_by(const struct fop_path_ops *ops, struct fop_path *p, struct outgoing_fop *f,
        const struct outgoing_reply *reply, bool *is_begun)
{
    int err = ops->begin(p, &f->m);

    if (err)
        return err;
    *is_begun = true;
    struct rpc_client *c = f->o.client;
    uint32_t xid = f->m.xid;
    struct conn *conn = outgoing_publish(&f->o, reply);
    if (!conn) {
        ops->drop(p, &f->m);
        return -ENOTCONN;
    }
    /* counted before the call may be answered */
    atomic_fetch_add_explicit(&c->fops_sent[reply->what], 1, memory_order_relaxed);
    err = ops->run(p, &f->m, conn);
    if (err)
        atomic_fetch_sub_explicit(&c->fops_sent[reply->what], 1, memory_order_relaxed);
    return outgoing_sent(&f->o, xid, err);
}

/* Sends the call inside of this process if the connection has such a path, else by bytes. The caller holds
 * the client. */
static int
send_fop(struct outgoing_fop *f, const struct outgoing_reply *reply)
{
    struct fop_path *p = f->o.client->is_inside ? atomic_load(&f->o.client->fop_path) : NULL;
    struct iobuf *payload = f->m.payload;
    bool is_begun = false;
    int err = -EAGAIN;

    if (p && fop_path_is_open(p))
        err = send_by(atomic_load_explicit(&p->ops, memory_order_acquire), p, f, reply, &is_begun);
    if (err == -EAGAIN && !is_begun)
        err = send_by(&bytes_ops, NULL, f, reply, &is_begun);
    if (!err || is_begun)
        return err;
    iobuf_unref(payload);
    return outgoing_cancel(&f->o, err);
}

int
rpc_client_fop(struct rpc_client *c, const struct fop_call *call, const struct caller *caller,
               struct iobuf *payload, unsigned timeout_s, rpc_reply_fn cb, void *arg)
{
    struct outgoing_reply reply = {.cb = cb, .arg = arg, .timeout_s = timeout_s, .what = call->fop};
    struct outgoing_fop f;
    int err = outgoing_begin(&f.o, c, caller, false);

    if (err) {
        iobuf_unref(payload);
        return err;
    }
    if (call->payload_bytes > TRANSPORT_RECORD_MAX) {
        iobuf_unref(payload);
        return outgoing_cancel(&f.o, -EMSGSIZE);
    }
    /* the call may be gone before the payload is queued */
    memcpy(f.iov, call->payload, sizeof f.iov);
    f.buf = NULL;
    f.m = (struct fop_message){.call = call,
                               .cred_flavor = f.o.cred_flavor,
                               .cred_bytes = f.o.cred_bytes,
                               .cred = f.o.cred,
                               .iov = f.iov,
                               .iov_count = call->payload_count,
                               .xid = f.o.slot->xid};
    if (call->payload_bytes && !payload) {
        payload = gather_payload(call, f.iov);
        f.m.iov_count = 1;
        if (!payload)
            return outgoing_cancel(&f.o, -ENOMEM);
    }
    f.m.payload = payload;
    (void)client_hold(c);
    err = send_fop(&f, &reply);
    client_let_go(c);
    return err;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void
path_hold(void *client)
{
    struct rpc_client *c = client;

    refcount_get(&c->refs); /* the connection has a reference, because its path is not closed */
    (void)client_hold(c);
}

static void
path_answered(void *client, uint32_t xid, int err, const struct fop_reply *reply)
{
    struct rpc_client *c = client;
    struct rpc_reply r = {.client = c, .err = err, .fop = reply};

    client_answer(c, xid, &r);
    client_let_go(c);
    client_unref(c);
}

const struct fop_path_client_ops client_path_ops = {.hold = path_hold, .answered = path_answered};

static void
set_reply_error(struct fop_reply *out, int err)
{
    memset(out, 0, sizeof *out);
    out->op_ret = -1;
    out->op_errno = err;
}

/* Decodes a reply, which keeps the record, or a copy of it if it lies in a spare buffer. 0 or -errno. */
static int
decode_reply(struct rpc_reply *r, enum fop fop, struct fop_reply *out, struct arena *arena)
{
    struct iobuf *buf = r->record.bufs[0];
    struct xdr x = r->results;

    if (iobuf_is_spare(buf)) {
        size_t bytes = xdr_left(&x);
        struct iobuf *copy = x.more_count ? NULL : iobuf_get(bytes);

        if (!copy)
            return -ENOMEM;
        memcpy(copy->bytes, x.at, bytes);
        xdr_init(&x, copy->bytes, bytes, arena);
        buf = copy;
    } else {
        iobuf_ref(buf);
    }
    x.arena = arena;
    int err = fop_decode_reply(fop, &x, out);

    /* pieces that were separate have been joined on the arena */
    if (err)
        iobuf_unref(buf);
    else
        out->iobuf = buf;
    return err;
}

/* Decodes without memory. The results of a read-only call are lost. For other calls the outcome matters, so
 * the results that have room in `out` are decoded. */
static int
decode_scarcely(struct rpc_reply *r, enum fop fop, struct fop_reply *out)
{
    bool needs_dict = fop == FOP_xattrop || fop == FOP_fxattrop;
    struct xdr x = r->results;

    if (fop_info[fop].traits & FOP_LOOKS || x.more_count)
        return -ENOMEM;
    memset(out, 0, sizeof *out);
    x.skips_dicts = true;
    int err = fop_decode_reply(fop, &x, out);

    out->flock.owner = (struct lk_owner){0}; /* would point into the record */
    return err || !needs_dict || out->op_ret < 0 ? err : -ENOMEM;
}

/* Takes a reply that came as a call. Without memory, as decode_scarcely() does. 0 or -ENOMEM. */
static int
copy_reply(const struct fop_reply *from, enum fop fop, struct fop_reply *out, struct arena *arena)
{
    bool needs_dict = fop == FOP_xattrop || fop == FOP_fxattrop;
    int err = fop_copy_reply(fop, from, out, arena);

    if (!err)
        return 0;
    iobuf_unref(out->iobuf);
    *out = *from;
    out->xdata = out->dict = NULL;
    out->fd = NULL;
    out->path = NULL;
    out->entries = NULL;
    out->holds_inodes = false;
    out->locks = NULL;
    out->iobuf = NULL;
    out->payload = (struct iovec){0};
    out->flock.owner = (struct lk_owner){0};
    return fop_info[fop].traits & FOP_LOOKS || (needs_dict && out->op_ret >= 0) ? -ENOMEM : 0;
}

/* The kernel accepts no larger errno from a FUSE server: it drops the reply, and the caller hangs. */
enum { ERRNO_LIMIT = 511 };

static bool
is_of_a_lock(enum fop fop)
{
    return fop == FOP_lk || fop == FOP_inodelk || fop == FOP_finodelk || fop == FOP_entrylk ||
           fop == FOP_fentrylk;
}

/* A brick that answers a lock call with a number that is no errno may have granted the lock, and the next
 * call of this client would wait for it. So the connection ends, and with the connection all its locks.
 * (Stock answers with 0 in rare cases of a lock that is not granted.) */
static void
check_errno(struct rpc_reply *r, enum fop fop, struct fop_reply *out)
{
    if (out->op_ret >= 0 || (out->op_errno > 0 && out->op_errno <= ERRNO_LIMIT))
        return;
    bool ends = out->op_errno && is_of_a_lock(fop) && !r->err && !r->fop;

    if (ends)
        rpc_reply_is_garbage(r, fop_info[fop].name);
    out->op_errno = ends ? ENOTCONN : EIO;
}

void
rpc_reply_fop(struct rpc_reply *r, enum fop fop, struct fop_reply *out, struct arena *arena)
{
    int err = r->err;

    memset(out, 0, sizeof *out);
    /* a lost operation and an unanswered one look the same to the caller (wire 1.6) */
    if (err && err != -ENOMEM) {
        set_reply_error(out, ENOTCONN);
        return;
    }
    if (!err && r->fop)
        err = copy_reply(r->fop, fop, out, arena);
    else if (!err)
        err = decode_reply(r, fop, out, arena);
    if (err == -ENOMEM && !r->err && !r->fop)
        err = decode_scarcely(r, fop, out);
    if (err == -EBADMSG) {
        rpc_reply_is_garbage(r, fop_info[fop].name);
        err = -ENOTCONN;
    }
    if (err)
        set_reply_error(out, -err);
    check_errno(r, fop, out);
    if (err == -ENOMEM)
        out->shortage = SHORTAGE_UNREAD;
}
