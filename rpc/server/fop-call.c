/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Converts between a request and its call stack: fop arguments in, fop results out, the counterpart of
 * rpc/client. Knows the codec and call stacks, but not bricks: the meaning of a fop is left to
 * protocol/server. */
#include <assert.h>

#include "mem/iobuf.h"
#include "rpc/server/rpc-server-internal.h"
#include "rpc/xdr/fop-codec.h"

static_assert(RPC_REPLY_SUCCESS_BYTES + FOP_REPLY_FIXED_MAX <= RPC_SMALL_REPLY_BYTES,
              "a fixed-size reply is a small one");

bool
rpc_fop_decode(struct rpc_request *req)
{
    enum fop fop = (enum fop)req->procedure;
    int err;

    assert(req->procedure < FOP_COUNT);
    if (req->inside) /* inside.c has copied the call */
        return true;
    err = fop_decode_call(fop, &req->args, &req->stk.call);
    if (!err && req->sequence)
        err = sequence_resolve(req);
    if (err == -EBADMSG)
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
    else if (err)
        rpc_fop_reply_error(req, -err);
    return err == 0;
}

void
rpc_fop_reply_error(struct rpc_request *req, int err)
{
    req->stk.reply.op_ret = -1;
    req->stk.reply.op_errno = err;
    rpc_fop_reply(req);
}

/* Sends a reply that does not fit the C stack: listings, xattr sets. */
static void
reply_large(struct rpc_request *req, size_t bytes)
{
    struct iobuf *buf = iobuf_get(RPC_REPLY_HEAD_BYTES + bytes);
    struct xdr x;
    int err;

    if (!buf) { /* the smallest possible answer, which fits the C stack */
        req->stk.reply.xdata = NULL;
        rpc_fop_reply_error(req, ENOMEM);
        return;
    }
    xdr_init(&x, buf->bytes + RPC_REPLY_HEAD_BYTES, bytes, NULL);
    err = fop_encode_reply(req->stk.call.fop, &x, &req->stk.reply);
    assert(err == 0 && x.at == x.end);
    (void)err;
    if (!req->stk.reply.payload.iov_len || req->stk.reply.op_ret < 0) {
        rpc_reply_iobuf(req, buf, RPC_REPLY_HEAD_BYTES + bytes);
        return;
    }
    /* readv with much xdata: rare enough to be copied */
    struct iobuf *payload = req->stk.reply.iobuf;
    struct iovec iov = req->stk.reply.payload;

    req->stk.reply.iobuf = NULL;
    rpc_reply(req, buf->bytes + RPC_REPLY_HEAD_BYTES, bytes, payload, &iov, 1);
    iobuf_unref(buf);
}

void
rpc_fop_reply(struct rpc_request *req)
{
    struct fop_reply *r = &req->stk.reply;
    char message[RPC_SMALL_REPLY_BYTES];
    enum fop fop = (enum fop)req->procedure;
    size_t bytes = fop_reply_size(fop, r);
    struct iobuf *payload = NULL;
    struct iovec iov = {0};
    struct xdr x;

    req->stk.call.fop = fop;
    if (req->sequence) {
        sequence_answer(req);
        return;
    }
    if (req->inside) {
        inside_answer(req, 0);
        return;
    }
    if (RPC_REPLY_SUCCESS_BYTES + bytes > sizeof message) {
        reply_large(req, bytes);
        return;
    }
    rpc_encode_success(message, req->xid);
    xdr_init(&x, message + RPC_REPLY_SUCCESS_BYTES, sizeof message - RPC_REPLY_SUCCESS_BYTES, NULL);
    (void)fop_encode_reply(fop, &x, r); /* fits, because of the size check */
    if (fop == FOP_readv && r->op_ret > 0) {
        /* must be exactly op_ret bytes, because the client relies on that (wire 6.3) */
        assert(r->iobuf && r->payload.iov_len == (size_t)r->op_ret);
        payload = r->iobuf;
        r->iobuf = NULL;
        iov = r->payload;
    }
    rpc_reply_head_sent(req, message, (size_t)(x.at - message), payload, &iov, payload ? 1 : 0);
}
