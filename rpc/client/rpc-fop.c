/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Fops, encoded and decoded by the codec that the server uses, too. */
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

static void
encode_message(struct outgoing *o, const struct fop_call *call, char *out, size_t bytes)
{
    struct xdr x;

    xdr_init(&x, out, bytes, NULL);
    outgoing_put_head(o, &x, FOP_PROGRAM, FOP_PROGRAM_VERSION, call->fop);
    (void)fop_encode_call(call->fop, &x, call); /* fits, because the size was computed before */
}

/* Takes `payload` over. */
static int
send_fop(struct outgoing *o, const struct outgoing_reply *reply, const struct fop_call *call,
         struct iobuf *payload, const struct iovec *iov, int iov_count)
{
    char small[RPC_SMALL_CALL_BYTES];
    size_t bytes = outgoing_head_bytes(o) + fop_call_size(call->fop, call) - call->payload_bytes;

    if (bytes <= sizeof small) {
        encode_message(o, call, small, bytes);
        return outgoing_send(o, reply, small, bytes, payload, iov, iov_count);
    }
    struct iobuf *buf =
        bytes + call->payload_bytes <= TRANSPORT_RECORD_MAX ? iobuf_get(TRANSPORT_MARK_BYTES + bytes) : NULL;
    int err;

    if (!buf) {
        iobuf_unref(payload);
        return outgoing_cancel(o, bytes + call->payload_bytes <= TRANSPORT_RECORD_MAX ? -ENOMEM : -EMSGSIZE);
    }
    encode_message(o, call, buf->bytes + TRANSPORT_MARK_BYTES, bytes);
    if (!payload)
        return outgoing_send_iobuf(o, reply, buf, bytes);
    err = outgoing_send(o, reply, buf->bytes + TRANSPORT_MARK_BYTES, bytes, payload, iov, iov_count);
    iobuf_unref(buf);
    return err;
}

int
rpc_client_fop(struct rpc_client *c, const struct fop_call *call, const struct caller *caller,
               struct iobuf *payload, unsigned timeout_s, rpc_reply_fn cb, void *arg)
{
    struct outgoing_reply reply = {.cb = cb, .arg = arg, .timeout_s = timeout_s, .what = call->fop};
    struct iovec iov[FOP_PAYLOAD_IOVS];
    int iov_count = call->payload_count;
    struct outgoing o;
    int err = outgoing_begin(&o, c, caller, false);

    if (err) {
        iobuf_unref(payload);
        return err;
    }
    if (call->payload_bytes > TRANSPORT_RECORD_MAX) {
        iobuf_unref(payload);
        return outgoing_cancel(&o, -EMSGSIZE);
    }
    /* the call may be gone before the payload is queued */
    memcpy(iov, call->payload, (size_t)iov_count * sizeof *iov);
    if (call->payload_bytes && !payload) {
        payload = gather_payload(call, iov);
        iov_count = 1;
        if (!payload)
            return outgoing_cancel(&o, -ENOMEM);
    }
    /* counted before the call may be answered; the call may be gone afterwards */
    atomic_fetch_add_explicit(&c->fops_sent[call->fop], 1, memory_order_relaxed);
    err = send_fop(&o, &reply, call, payload, iov, iov_count);
    if (err)
        atomic_fetch_sub_explicit(&c->fops_sent[reply.what], 1, memory_order_relaxed);
    return err;
}

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

/* The kernel accepts no larger errno from a FUSE server: it drops the reply, and the caller hangs. */
enum { ERRNO_LIMIT = 511 };

static void
check_errno(struct fop_reply *out)
{
    if (out->op_ret < 0 && (out->op_errno <= 0 || out->op_errno > ERRNO_LIMIT))
        out->op_errno = EIO;
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
    if (!err)
        err = decode_reply(r, fop, out, arena);
    if (err == -ENOMEM && !r->err)
        err = decode_scarcely(r, fop, out);
    if (err == -EBADMSG) {
        rpc_reply_is_garbage(r, fop_info[fop].name);
        err = -ENOTCONN;
    }
    if (err)
        set_reply_error(out, -err);
    check_errno(out);
    if (err == -ENOMEM)
        out->shortage = SHORTAGE_UNREAD;
}
