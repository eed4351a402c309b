/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cred: who asks, as an RPC credential says it (spec: wire 1.5). Each message names its own flavor.
 * thread: any; nothing is kept but what goes to an arena. */
#ifndef KILN_RPC_XDR_CRED_H
#define KILN_RPC_XDR_CRED_H

#include "rpc/xdr/rpc-message.h"
#include "stack/call-stack.h"

enum {
    CRED_NONE = 0,
    CRED_UNIX = 1,
    CRED_GLUSTERFS_V1 = 5,
    CRED_GLUSTERFS_V2 = 390039,
    CRED_GLUSTERFS_V3 = 390040,
};

/* So many groups fit into a v3 body without an owner; each byte of an owner leaves room for one less. */
enum { CRED_GROUPS_MAX = 91 };

/* Fills `caller` from the `bytes` long `body`, which is not changed; the owner's bytes stay in it, groups go
 * to `arena`. Unknown flavors are as none: pid, uid and gid 0. 0; -EACCES: too many groups, too long an
 * owner, or no credential of its flavor; -ENOMEM. */
int cred_decode(uint32_t flavor, const char *body, uint32_t bytes, struct caller *caller,
                struct arena *arena);

/* v2 or v3 at `out`, which has `size` bytes (RPC_AUTH_BYTES_MAX do); the group list is cut to what a body can
 * hold. The bytes written, or -EINVAL (owner too long, other flavor), -ENOBUFS. */
int cred_encode(uint32_t flavor, const struct caller *caller, char *out, size_t size);

#endif
