/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* groups: the groups of users, from this machine's name service (option manage-gids; spec: brick 3.1).
 *
 * A brick caches the groups of a user for gid-timeout. The name service may block for a long time, so workers
 * never ask it. A few threads of the process do, which exist only while there are users to ask about. A call
 * of a user who is not in the cache waits without holding a thread. All calls that wait for one user wait for
 * the same answer.
 *
 * The threads take turns among the bricks, and among the clients (addresses) of a brick. A client may have
 * GROUPS_QUEUED_MAX users of a brick in the queue. A call of a further unknown user fails with EAGAIN.
 *
 * A user whom the machine does not know is only in the group of the call. While the name service fails, the
 * last known groups of a user stay valid; a user without known groups is in none. The service is asked again
 * after a few seconds.
 */
#ifndef KILN_PROTOCOL_SERVER_GROUPS_H
#define KILN_PROTOCOL_SERVER_GROUPS_H

#include <stdint.h>

#include "stack/call-stack.h"

struct dump;
struct groups;
struct rpc_request;

/* Bounds of a brick's cache: users, and bytes of their lists. When it is full, the client with the largest
 * share loses its oldest user. */
#define GROUPS_USERS_MAX 1024
#define GROUPS_BYTES_MAX (1u << 20)
/* More than the calls of one connection, which rpc.outstanding-rpc-limit bounds, can ask for. */
#define GROUPS_QUEUED_MAX 2048
/* Groups of one user; the kernel's own limit. Further groups are left out, and logged. */
#define GROUPS_OF_USER_MAX 65536

/* Creates the cache of a brick. NULL: no memory. */
struct groups *groups_new(const struct xlator *xl);
/* Frees the cache after groups_stop(), when no call waits any more. */
void groups_free(struct groups *g);

/* Replaces the groups of req's caller by those of its uid, on the arena of the call. 0: done. GROUPS_ASKED:
 * the request is parked, and may be freed already; `go` is called later, once, on a worker, with 0 or -errno
 * (-ENOTCONN after groups_stop()). -ENOMEM. -EAGAIN: no thread, or the client has too many users in the
 * queue. */
enum { GROUPS_ASKED = 1 };
int groups_of_caller(struct groups *g, struct rpc_request *req, uint64_t timeout_ns,
                     void (*go)(struct rpc_request *req, int err));

/* groups_stop() resumes all waiting calls with an error, and lets no further call wait until groups_start().
 * A new cache is started. */
void groups_stop(struct groups *g);
void groups_start(struct groups *g);

void groups_dump(struct groups *g, struct dump *d);

#endif
