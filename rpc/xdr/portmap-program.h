/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* portmap-program: glusterd's table of bricks and ports (spec: management 3). A brick is named by its exact
 * path. Pairs of put and get, by the rules of xdr-types.h (owner, errors, threads). */
#ifndef KILN_RPC_XDR_PORTMAP_PROGRAM_H
#define KILN_RPC_XDR_PORTMAP_PROGRAM_H

#include "rpc/xdr/xdr.h"

#define PORTMAP_PROGRAM 34123456
#define PORTMAP_PROGRAM_VERSION 1
enum {
    PORTMAP_NULL,
    PORTMAP_PORTBYBRICK,
    PORTMAP_BRICKBYPORT,
    PORTMAP_SIGNUP,
    PORTMAP_SIGNIN,
    PORTMAP_SIGNOUT
};

/* PORTBYBRICK's arguments are the brick's text alone. */
struct port_by_brick_reply {
    int32_t op_ret, op_errno;
    int32_t status, port;
};
void xdr_put_port_by_brick_reply(struct xdr *x, const struct port_by_brick_reply *r);
void xdr_get_port_by_brick_reply(struct xdr *x, struct port_by_brick_reply *out);

/* SIGNIN: a port and a pid; SIGNOUT: a port and an rdma port, 0. */
struct portmap_sign {
    const char *brick;
    int32_t port, other;
};
#define PORTMAP_BRICK_MAX 4096
void xdr_put_portmap_sign(struct xdr *x, const struct portmap_sign *s);
void xdr_get_portmap_sign(struct xdr *x, struct portmap_sign *out);

/* The reply to SIGNIN and to SIGNOUT. */
struct portmap_reply {
    int32_t op_ret, op_errno;
};
void xdr_get_portmap_reply(struct xdr *x, struct portmap_reply *out);

#endif
