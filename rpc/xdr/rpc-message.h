/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-message: the heads of ONC RPC messages (spec: wire 1.2 to 1.4, 10.12).
 * thread: any; nothing is kept. Decoded fields point into the record. */
#ifndef KILN_RPC_XDR_RPC_MESSAGE_H
#define KILN_RPC_XDR_RPC_MESSAGE_H

#include "rpc/xdr/xdr.h"

enum rpc_message_type { RPC_CALL = 0, RPC_REPLY = 1 };

enum rpc_accept { RPC_SUCCESS = 0, RPC_PROG_UNAVAIL, RPC_PROG_MISMATCH, RPC_PROC_UNAVAIL, RPC_GARBAGE_ARGS };

/* A denied call's reason (reject status AUTH_ERROR). */
enum rpc_auth_error { RPC_AUTH_OK = 0, RPC_AUTH_BADCRED = 1, RPC_AUTH_REJECTED = 2 };

#define RPC_VERSION 2
#define RPC_AUTH_BYTES_MAX 400 /* of a credential's or verifier's body */

/* Returns the record's type, its second word, without decoding the head; -1: the record is too short. */
static inline int64_t
rpc_message_type(const struct xdr *x)
{
    return xdr_left(x) < 8 ? -1 : (int64_t)xdr_load_u32(x->at + 4);
}

struct rpc_call_head {
    uint32_t xid, program, version, procedure;
    uint32_t cred_flavor, cred_bytes;
    char *cred; /* in the record */
};

/* Leaves `x` at the first argument.
 *   0
 *   -EBADMSG  cannot be decoded: answered by rpc_encode_undecodable()
 *   -EPROTO   neither call nor reply: the connection is to be closed */
int rpc_decode_call_head(struct xdr *x, struct rpc_call_head *head);
/* With an empty verifier. `cred` is already encoded, cred_bytes long (a multiple of 4). 0 or -ENOBUFS. */
int rpc_encode_call_head(struct xdr *x, const struct rpc_call_head *head);
/* The bytes that rpc_encode_call_head() writes. */
static inline size_t
rpc_call_head_size(size_t cred_bytes)
{
    return 40 + cred_bytes;
}

#define RPC_REPLY_SUCCESS_BYTES 24
#define RPC_REPLY_ERROR_BYTES_MAX 32
/* Accepted and executed: the results follow. */
void rpc_encode_success(char out[RPC_REPLY_SUCCESS_BYTES], uint32_t xid);
/* Accepted, but not executed. The bytes written. */
size_t rpc_encode_error(char out[RPC_REPLY_ERROR_BYTES_MAX], uint32_t xid, enum rpc_accept status);
size_t rpc_encode_denied(char out[RPC_REPLY_ERROR_BYTES_MAX], uint32_t xid, uint32_t auth_status);
size_t rpc_encode_undecodable(char out[RPC_REPLY_ERROR_BYTES_MAX]);

/* The client's direction: leaves `x` at the results. 0; -EBADMSG; -ENOTCONN: the call was refused on the
 * level of RPC (wire 1.4). */
int rpc_decode_reply_head(struct xdr *x, uint32_t *xid);

#endif
