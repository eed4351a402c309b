/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* glusterd-calls: the calls of bricks and clients to glusterd (spec: management 2, 3). Each function sends
 * one call on a client that is connected to glusterd; the reply goes to `cb`, which decodes it with the
 * function of the same name.
 *
 * The calling functions return as rpc_client_call(), or -ENAMETOOLONG. None has a timeout, because a
 * glusterd that has just started accepts connections seconds before it answers. A connection to glusterd
 * needs no handshake: `connected` calls rpc_client_up(). Decoders return 0, the peer's -errno, or the
 * error of the call; after a reply that does not decode the connection is dropped.
 *
 * thread: any; `cb` runs on a worker, once. Strings are not kept. */
#ifndef KILN_RPC_GLUSTERD_CALLS_H
#define KILN_RPC_GLUSTERD_CALLS_H

#include "rpc/client/rpc-client.h"

#define GLUSTERD_PORT 24007

/* Fetches the volfile of this id. `brick` is the process's --brick-name; NULL: the caller is a client. */
int glusterd_getspec(struct rpc_client *c, const char *id, const char *brick, rpc_reply_fn cb, void *arg);
struct glusterd_spec {
    const char *text; /* `bytes` bytes and a NUL; in the record or on the arena */
    size_t bytes;
    struct dict *xdata; /* NULL: none */
};
int glusterd_getspec_reply(struct rpc_reply *r, struct arena *arena, struct glusterd_spec *out);

/* Announce that this process serves the brick on this port, and that it no longer does. */
int portmap_signin(struct rpc_client *c, const char *brick, uint16_t port, int32_t pid, rpc_reply_fn cb,
                   void *arg);
int portmap_signout(struct rpc_client *c, const char *brick, uint16_t port, rpc_reply_fn cb, void *arg);
int portmap_sign_reply(struct rpc_reply *r);

/* Asks for the port of a brick. In the handshake of a client that connects to the brick. */
int portmap_port(struct rpc_client *c, const char *brick, unsigned timeout_s, rpc_reply_fn cb, void *arg);
int portmap_port_reply(struct rpc_reply *r, uint16_t *port); /* -ENOENT: the brick is not served */

#endif
