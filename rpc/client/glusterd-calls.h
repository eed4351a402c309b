/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* glusterd-calls: what bricks and clients ask glusterd (spec: management 2, 3). Each function sends one call
 * on a client that is connected to it; the reply goes to `cb`, which has it decoded by the function of the
 * same name.
 *
 * Questions return as rpc_client_call(), and -ENAMETOOLONG. None has a timeout: a glusterd that has just
 * started accepts connections seconds before it answers. A connection to glusterd needs no handshake:
 * `connected` calls rpc_client_up(). Decoders return 0, the peer's own -errno, or the error of the call; what
 * does not decode costs glusterd its connection.
 *
 * thread: any; `cb` runs on a worker, once. Strings are not kept.
 */
#ifndef KILN_RPC_GLUSTERD_CALLS_H
#define KILN_RPC_GLUSTERD_CALLS_H

#include "rpc/client/rpc-client.h"

#define GLUSTERD_PORT 24007

/* The volfile of this id. `brick` is the process's --brick-name; NULL: a client asks. */
int glusterd_getspec(struct rpc_client *c, const char *id, const char *brick, rpc_reply_fn cb, void *arg);
struct glusterd_spec {
    const char *text; /* `bytes` of it and a NUL; in the record or on the arena */
    size_t bytes;
    struct dict *xdata; /* NULL: none */
};
int glusterd_getspec_reply(struct rpc_reply *r, struct arena *arena, struct glusterd_spec *out);

/* The brick is served by this process on this port; it is not any more. */
int portmap_signin(struct rpc_client *c, const char *brick, uint16_t port, int32_t pid, rpc_reply_fn cb,
                   void *arg);
int portmap_signout(struct rpc_client *c, const char *brick, uint16_t port, rpc_reply_fn cb, void *arg);
int portmap_sign_reply(struct rpc_reply *r);

/* Where is this brick served? In the handshake of a client that looks for it. */
int portmap_port(struct rpc_client *c, const char *brick, unsigned timeout_s, rpc_reply_fn cb, void *arg);
int portmap_port_reply(struct rpc_reply *r, uint16_t *port); /* -ENOENT: it is not */

#endif
