/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls to the peer. Their xids overlap with those of the peer's calls, but the direction tells both
 * apart. */
#include <assert.h>

#include "rpc/server/rpc-server.h"
#include "rpc/xdr/callback-program.h"

int
rpc_callback(struct conn *c, uint32_t procedure, const void *body, size_t bytes)
{
    struct rpc_call_head head = {
        .xid = conn_next_xid(c),
        .program = CALLBACK_PROGRAM,
        .version = CALLBACK_PROGRAM_VERSION,
        .procedure = procedure,
    };
    char message[RPC_CALLBACK_BYTES_MAX];
    struct xdr x;
    int err;

    xdr_init(&x, message, sizeof message, NULL);
    err = rpc_encode_call_head(&x, &head);
    assert(bytes % 4 == 0);
    xdr_put_bytes(&x, body, bytes);
    err = err ? err : x.error;
    return err ? err : conn_send(c, message, (size_t)(x.at - message), NULL, NULL, 0);
}
