/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/brick-op-program.h"

void
xdr_put_brick_op_call(struct xdr *x, const struct brick_op_call *c)
{
    xdr_put_string(x, c->name);
    xdr_put_i32(x, c->op);
    xdr_put_old_dict(x, c->input);
    xdr_put_old_dict(x, c->dict);
}

void
xdr_get_brick_op_call(struct xdr *x, struct brick_op_call *out)
{
    xdr_get_string(x, &out->name, BRICK_OP_TEXT_MAX, -EBADMSG);
    out->op = xdr_get_i32(x);
    out->input = xdr_get_old_dict(x);
    out->dict = xdr_get_old_dict(x);
}

void
xdr_put_brick_op_reply(struct xdr *x, const struct brick_op_reply *r)
{
    xdr_put_i32(x, r->op_ret);
    xdr_put_i32(x, r->op_errno);
    xdr_put_old_dict(x, r->output);
    xdr_put_string(x, r->op_errstr);
}

void
xdr_get_brick_op_reply(struct xdr *x, struct brick_op_reply *out)
{
    out->op_ret = xdr_get_i32(x);
    out->op_errno = xdr_get_i32(x);
    out->output = xdr_get_old_dict(x);
    xdr_get_string(x, &out->op_errstr, BRICK_OP_TEXT_MAX, -EBADMSG);
}
