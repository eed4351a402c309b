/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-op-program: Gluster Brick operations, the calls of glusterd to a brick process on the process's unix
 * socket (spec: management 4). */
#ifndef KILN_RPC_XDR_BRICK_OP_PROGRAM_H
#define KILN_RPC_XDR_BRICK_OP_PROGRAM_H

#include "rpc/xdr/xdr-types.h"

#define BRICK_OP_PROGRAM 4867634
#define BRICK_OP_PROGRAM_VERSION 2
enum {
    BRICK_OP_NULL,
    BRICK_OP_TERMINATE,
    BRICK_OP_XLATOR_INFO,
    BRICK_OP_XLATOR_OP,
    BRICK_OP_STATUS,
    BRICK_OP_BRICK_OP,
    BRICK_OP_XLATOR_DEFRAG,
    BRICK_OP_NODE_PROFILE,
    BRICK_OP_NODE_STATUS,
    BRICK_OP_VOLUME_BARRIER_OP,
    BRICK_OP_BARRIER,
    BRICK_OP_NODE_BITROT,
    BRICK_OP_ATTACH,
    BRICK_OP_DUMP_METRICS,
    BRICK_OP_SVC_ATTACH,
    BRICK_OP_SVC_DETACH,
    BRICK_OP_PROCEDURE_COUNT
};

#define BRICK_OP_TEXT_MAX 8192

struct brick_op_call {
    const char *name;   /* the brick, or another text by procedure (management 4.3) */
    int32_t op;         /* the procedure's number once more */
    struct dict *input; /* NULL: none */
    struct dict *dict;  /* NULL: none */
};
/* By the rules of xdr-types.h (owner, errors, threads); texts of at most BRICK_OP_TEXT_MAX bytes. */
void xdr_put_brick_op_call(struct xdr *x, const struct brick_op_call *c);
void xdr_get_brick_op_call(struct xdr *x, struct brick_op_call *out);

struct brick_op_reply {
    int32_t op_ret, op_errno;
    struct dict *output;  /* NULL: none */
    const char *op_errstr; /* NULL: "" */
};
/* The same. */
void xdr_put_brick_op_reply(struct xdr *x, const struct brick_op_reply *r);
void xdr_get_brick_op_reply(struct xdr *x, struct brick_op_reply *out);
static inline size_t
xdr_brick_op_reply_size(const struct brick_op_reply *r)
{
    return 8 + xdr_old_dict_size(r->output) + xdr_string_size(r->op_errstr);
}

#endif
