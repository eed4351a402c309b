/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/portmap-program.h"

void
xdr_put_port_by_brick_reply(struct xdr *x, const struct port_by_brick_reply *r)
{
    xdr_put_i32(x, r->op_ret);
    xdr_put_i32(x, r->op_errno);
    xdr_put_i32(x, r->status);
    xdr_put_i32(x, r->port);
}

void
xdr_get_port_by_brick_reply(struct xdr *x, struct port_by_brick_reply *out)
{
    out->op_ret = xdr_get_i32(x);
    out->op_errno = xdr_get_i32(x);
    out->status = xdr_get_i32(x);
    out->port = xdr_get_i32(x);
}

void
xdr_put_portmap_sign(struct xdr *x, const struct portmap_sign *s)
{
    xdr_put_string(x, s->brick);
    xdr_put_i32(x, s->port);
    xdr_put_i32(x, s->other);
}

void
xdr_get_portmap_sign(struct xdr *x, struct portmap_sign *out)
{
    xdr_get_string(x, &out->brick, PORTMAP_BRICK_MAX, -EBADMSG);
    out->port = xdr_get_i32(x);
    out->other = xdr_get_i32(x);
}

void
xdr_get_portmap_reply(struct xdr *x, struct portmap_reply *out)
{
    out->op_ret = xdr_get_i32(x);
    out->op_errno = xdr_get_i32(x);
}
