/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* groups: which groups users are in, as this machine has it (option manage-gids; spec: brick 3.1).
 *
 * A brick remembers what it has asked for, for gid-timeout. The name service may block for long, so no worker
 * asks it: a few threads of the process do, which exist only while somebody is asked about. A call of a user
 * who is not known yet waits and holds no thread; all that wait for one user wait for one answer.
 *
 * The threads take turns among the bricks, and among the clients (addresses) of a brick. A client may have
 * GROUPS_QUEUED_MAX users of a brick in the queue; a call of yet another unknown user fails with EAGAIN.
 *
 * A user whom the machine does not know is in no group but the call's own. While the name service fails, the
 * groups that were known last count; who was not known is in none. It is asked again after a few seconds.
 */
#ifndef KILN_PROTOCOL_SERVER_GROUPS_H
#define KILN_PROTOCOL_SERVER_GROUPS_H

#include <stdint.h>

#include "stack/call-stack.h"

struct dump;
struct groups;
struct rpc_request;

/* What a brick may remember: users, and bytes of their lists; the oldest of the client that has most go
 * first. */
#define GROUPS_USERS_MAX 1024
#define GROUPS_BYTES_MAX (1u << 20)
/* More than one connection's calls, which are bounded by rpc.outstanding-rpc-limit, can ask for. */
#define GROUPS_QUEUED_MAX 2048
/* Of one user; the kernel's own limit. Further ones are left out, and logged. */
#define GROUPS_OF_USER_MAX 65536

/* A brick's. NULL: no memory. */
struct groups *groups_new(const struct xlator *xl);
/* Nobody waits any more: after groups_stop(). */
void groups_free(struct groups *g);

/* The list of groups of req's caller becomes that of its uid, on the arena of the call. 0: it is done.
 * GROUPS_ASKED: the request is kept, and may be gone already; `go` is called later, once, on a worker, with 0
 * or -errno: -ENOTCONN after groups_stop(). -ENOMEM; -EAGAIN: no thread, or the client has too many
 * users in the queue. */
enum { GROUPS_ASKED = 1 };
int groups_of_caller(struct groups *g, struct rpc_request *req, uint64_t timeout_ns,
                     void (*go)(struct rpc_request *req, int err));

/* Whoever waits is let go, and nobody waits any more, until groups_start(). A new one has been started. */
void groups_stop(struct groups *g);
void groups_start(struct groups *g);

void groups_dump(struct groups *g, struct dump *d);

#endif
