/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/rpc-message.h"

enum { ACCEPTED = 0, DENIED = 1, REJECT_AUTH_ERROR = 1 };

/* A credential or verifier: flavor, then a body of at most 400 bytes. A body is padded as any opaque. */
static char *
get_auth(struct xdr *x, uint32_t *flavor, uint32_t *bytes)
{
    char *body;

    *flavor = xdr_get_u32(x);
    *bytes = xdr_get_u32(x);
    if (*bytes > RPC_AUTH_BYTES_MAX)
        xdr_fail(x, -EBADMSG);
    body = xdr_take(x, xdr_padded(*bytes));
    return body;
}

int
rpc_decode_call_head(struct xdr *x, struct rpc_call_head *head)
{
    uint32_t type, rpc_version, verifier_flavor, verifier_bytes;

    head->xid = xdr_get_u32(x);
    type = xdr_get_u32(x);
    if (!x->error && type != RPC_CALL && type != RPC_REPLY)
        return -EPROTO;
    rpc_version = xdr_get_u32(x);
    if (type != RPC_CALL || rpc_version != RPC_VERSION)
        xdr_fail(x, -EBADMSG);
    head->program = xdr_get_u32(x);
    head->version = xdr_get_u32(x);
    head->procedure = xdr_get_u32(x);
    head->cred = get_auth(x, &head->cred_flavor, &head->cred_bytes);
    get_auth(x, &verifier_flavor, &verifier_bytes);
    return x->error;
}

int
rpc_encode_call_head(struct xdr *x, const struct rpc_call_head *head)
{
    xdr_put_u32(x, head->xid);
    xdr_put_u32(x, RPC_CALL);
    xdr_put_u32(x, RPC_VERSION);
    xdr_put_u32(x, head->program);
    xdr_put_u32(x, head->version);
    xdr_put_u32(x, head->procedure);
    xdr_put_u32(x, head->cred_flavor);
    xdr_put_opaque(x, head->cred, head->cred_bytes);
    xdr_put_u64(x, 0); /* verifier: flavor 0, no body */
    return x->error;
}

/* xid, REPLY, accepted, an empty verifier, status. */
static void
put_accepted(char out[RPC_REPLY_SUCCESS_BYTES], uint32_t xid, uint32_t status)
{
    xdr_store_u32(out, xid);
    xdr_store_u32(out + 4, RPC_REPLY);
    xdr_store_u32(out + 8, ACCEPTED);
    xdr_store_u64(out + 12, 0);
    xdr_store_u32(out + 20, status);
}

void
rpc_encode_success(char out[RPC_REPLY_SUCCESS_BYTES], uint32_t xid)
{
    put_accepted(out, xid, RPC_SUCCESS);
}

size_t
rpc_encode_error(char out[RPC_REPLY_ERROR_BYTES_MAX], uint32_t xid, enum rpc_accept status)
{
    put_accepted(out, xid, status);
    if (status != RPC_PROG_MISMATCH)
        return RPC_REPLY_SUCCESS_BYTES;
    xdr_store_u64(out + RPC_REPLY_SUCCESS_BYTES, 0); /* lowest and highest version; stock sends zeros, too */
    return RPC_REPLY_SUCCESS_BYTES + 8;
}

size_t
rpc_encode_denied(char out[RPC_REPLY_ERROR_BYTES_MAX], uint32_t xid, uint32_t auth_status)
{
    xdr_store_u32(out, xid);
    xdr_store_u32(out + 4, RPC_REPLY);
    xdr_store_u32(out + 8, DENIED);
    xdr_store_u32(out + 12, REJECT_AUTH_ERROR);
    xdr_store_u32(out + 16, auth_status);
    return 20;
}

size_t
rpc_encode_undecodable(char out[RPC_REPLY_ERROR_BYTES_MAX])
{
    return rpc_encode_error(out, 0, RPC_GARBAGE_ARGS);
}

int
rpc_decode_reply_head(struct xdr *x, uint32_t *xid)
{
    uint32_t type, status, flavor, bytes;

    *xid = xdr_get_u32(x);
    type = xdr_get_u32(x);
    status = xdr_get_u32(x);
    if (!x->error && (type != RPC_REPLY || status > DENIED))
        xdr_fail(x, -EBADMSG);
    if (!x->error && status == DENIED)
        return -ENOTCONN;
    get_auth(x, &flavor, &bytes);
    status = xdr_get_u32(x);
    if (!x->error && status != RPC_SUCCESS)
        return -ENOTCONN;
    return x->error;
}
