/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cred: the caller of a message, from and to its RPC credential (spec: wire 1.5). Each message names its
 * flavor.
 * thread: any; nothing is kept except groups on the arena. */
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

/* The groups that fit into a v3 body without an owner; each byte of an owner takes the place of a group. */
enum { CRED_GROUPS_MAX = 91 };

/* Fills `caller` from the `bytes` long `body`, which is not changed; the owner's bytes stay in `body`, groups
 * go to `arena`. An unknown flavor counts as none: pid, uid and gid 0. Returns 0; -EACCES: too many groups,
 * too long an owner, or no credential of its flavor; -ENOMEM. */
int cred_decode(uint32_t flavor, const char *body, uint32_t bytes, struct caller *caller,
                struct arena *arena);

/* Writes v2 or v3 to `out`, which has `size` bytes (RPC_AUTH_BYTES_MAX suffice); the group list is cut to the
 * room of a body. Returns the bytes written, or -EINVAL (owner too long, another flavor), -ENOBUFS. */
int cred_encode(uint32_t flavor, const struct caller *caller, char *out, size_t size);

#endif
