/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-peer: a brick that we are a client of (spec: wire 3).
 *
 *      connect to glusterd's port          DUMP lists portmap: PORTBYBRICK, and connect to the
 *                                        / brick's port at once
 *      or to the brick's own  ----> DUMP < DUMP lists the fops: SETVOLUME ----> up
 *                                        \ neither: the connection is of no use
 *
 * After a loss everything begins anew, at the first port; each login is a new client to the brick: fds and
 * locks of the one before are gone. Everything that `rpc_client` says of calls and threads holds; this only
 * logs in.
 */
#ifndef KILN_RPC_BRICK_PEER_H
#define KILN_RPC_BRICK_PEER_H

#include "rpc/client/rpc-client.h"

struct brick_peer;

/* What the brick said when it let us in. Lives until `up` returns. */
struct brick_login {
    const char *volume_id;    /* NULL: it has said none */
    const char *process_uuid; /* of the brick's process; NULL: none */
    bool is_child_up;         /* false: wait for the callback CHILD_UP before anything is asked */
    bool removals_pass;       /* inodelks of dht. domains do not hold back removals: a brick of kilnd's */
};

/* All on workers. Absent ones are not called, but `gone` is a must. */
struct brick_peer_ops {
    void (*up)(struct brick_peer *p, const struct brick_login *login, void *arg);
    /* Logged in no more: calls have had their callbacks, fd numbers mean nothing. Another login is tried. */
    void (*down)(struct brick_peer *p, void *arg);
    /* An attempt has failed before it came to a login: nobody listens, glusterd knows no port, the peer is no
     * brick. */
    void (*unreachable)(struct brick_peer *p, void *arg);
    /* The brick does not let us in: `op_errno` and its words ("" if it said none). It is tried again as long
     * as the peer is not closed; EACCES with words is meant for good (wire 3.3). */
    void (*refused)(struct brick_peer *p, int op_errno, const char *words, void *arg);
    /* A callback of the brick's (rpc/xdr/callback-program.h). */
    void (*called)(struct brick_peer *p, const struct rpc_call_head *head, struct xdr *args, void *arg);
    void (*gone)(void *arg);
};

struct brick_peer_text {
    const char *key, *value;
};

struct brick_peer_options {
    struct rpc_client_options rpc;
    const char *brick;        /* remote-subvolume: the brick's exact path */
    const char *process_uuid; /* unique per process, graph and peer; a number of the login is added */
    const char *process_name; /* "fuse", "kiln-mount" ... */
    const char *volume_id;    /* as text; NULL: not known, the brick's is taken */
    /* Further pairs, the layer's options as text: username, password, subdir-mount ... */
    const struct brick_peer_text *texts;
    unsigned text_count;
};

/* Everything is copied. NULL with *err: as rpc_client_new(); -EINVAL too for a volume_id or process_uuid that
 * is too long. */
struct brick_peer *brick_peer_new(const struct brick_peer_options *options, const struct brick_peer_ops *ops,
                                  void *arg, int *err);
void brick_peer_start(struct brick_peer *p);
/* As rpc_client_close(): then `gone`. */
void brick_peer_close(struct brick_peer *p);
/* For calls, once up. */
struct rpc_client *brick_peer_client(struct brick_peer *p);

#endif
