/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-peer: a brick that this process is a client of (spec: wire 3).
 *
 *      connect to glusterd's port          DUMP lists portmap: PORTBYBRICK, and connect to the
 *                                        / brick's port at once
 *      or to the brick's own  ----> DUMP < DUMP lists the fops: SETVOLUME ----> up
 *                                        \ neither: the connection is dropped
 *
 * After a loss everything begins again, at the first port; each login is a new client to the brick: fds
 * and locks of the previous login are gone. The rules of rpc-client.h for calls and threads apply; this
 * module only logs in. */
#ifndef KILN_RPC_BRICK_PEER_H
#define KILN_RPC_BRICK_PEER_H

#include "rpc/client/rpc-client.h"

struct brick_peer;

/* The brick's answer to a successful login. Lives until `up` returns. */
struct brick_login {
    const char *volume_id;    /* NULL: not in the answer */
    const char *process_uuid; /* of the brick's process; NULL: none */
    bool is_child_up;         /* false: no calls before the callback CHILD_UP */
    /* inodelks of dht. domains do not hold back removals: only a brick of kilnd sets this */
    bool removals_pass;
    /* the brick reports a client that waits for our lock on all names of a folder: as removals_pass */
    bool has_names_notices;
    bool has_name_notes; /* the brick keeps notes about names that a rename changes: as removals_pass */
    bool has_sequences; /* the brick takes several calls in one record (sequence-program.h) */
};

/* All run on workers. All but `gone` may be NULL. */
struct brick_peer_ops {
    void (*up)(struct brick_peer *p, const struct brick_login *login, void *arg);
    /* The login has ended: calls have had their callbacks, and fd numbers are invalid. Another login is
     * tried. */
    void (*down)(struct brick_peer *p, void *arg);
    /* An attempt has failed before a login: the port refuses connections, glusterd knows no port, the peer
     * is no brick, or it has ended two connections in a row without an answer. */
    void (*unreachable)(struct brick_peer *p, void *arg);
    /* The brick refuses the login with `op_errno` and a text ("" if there is none). Further logins are
     * tried as long as the peer is not closed; EACCES with a text is final for the brick (wire 3.3). */
    void (*refused)(struct brick_peer *p, int op_errno, const char *words, void *arg);
    /* A callback of the brick has arrived (rpc/xdr/callback-program.h). */
    void (*called)(struct brick_peer *p, const struct rpc_call_head *head, struct xdr *args, void *arg);
    void (*gone)(void *arg);
};

struct brick_peer_text {
    const char *key, *value;
};

struct brick_peer_options {
    struct rpc_client_options rpc;
    const char *brick;        /* remote-subvolume: the brick's exact path */
    const char *process_uuid; /* unique per process, graph and peer; the number of the login is appended */
    const char *process_name; /* "fuse", "kiln-mount" ... */
    const char *volume_id;    /* as text; NULL: unknown, the brick's id is accepted */
    /* Further pairs, the layer's options as text: username, password, subdir-mount ... */
    const struct brick_peer_text *texts;
    unsigned text_count;
};

/* Makes a peer; all options are copied. NULL with *err: as rpc_client_new(); also -EINVAL for a volume_id
 * or process_uuid that is too long. */
struct brick_peer *brick_peer_new(const struct brick_peer_options *options, const struct brick_peer_ops *ops,
                                  void *arg, int *err);
void brick_peer_start(struct brick_peer *p);
/* Writes the facts from the login, and the connection, for brick_peer_restore() of a new program in this
 * process; as rpc_client_save(). */
void brick_peer_save(struct brick_peer *p, struct parcel *to);
/* In place of brick_peer_start(): takes the saved connection, without `up`. False: there is none, and the
 * caller starts the peer. */
bool brick_peer_restore(struct brick_peer *p, struct parcel *from);
/* Like rpc_client_close(): then `gone`. */
void brick_peer_close(struct brick_peer *p);
/* Copies why no login is possible, if more attempts are pointless; "": they are not. In `unreachable`. */
void brick_peer_failure(struct brick_peer *p, char *out, size_t size);
/* The client for calls, once up. */
struct rpc_client *brick_peer_client(struct brick_peer *p);

#endif
