/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-client: a client that has logged in to a brick: one identity, shared by any number of connections
 * (spec: wire 3.5).
 *
 * Lifetime: made by the first login, found by later logins with the same key. Each connection and each
 * call in flight holds a reference, and the client holds a pin on its graph, so a reference to a client
 * keeps the graph too. When the last connection goes (brick_client_disconnect), new logins no longer find
 * the client, client_gone of every layer is called, and the fds are flushed and closed. A call that is
 * still running then may yet take a lock: layers see is_gone, and client_gone is called once more when the
 * last reference goes and no call can add a lock.
 *
 * Threads: the graph's clients_lock guards its list, `connections` and `conn`. The other fields, except
 * the atomic fields, are set at login. */
#ifndef KILN_FS_BRICK_CLIENT_H
#define KILN_FS_BRICK_CLIENT_H

#include "fs/fd.h"

#define BRICK_CLIENT_UID_MAX 1024
#define BRICK_CLIENT_CRED_MAX 408 /* flavor, length, at most 400 bytes */

struct conn;

struct brick_client {
    struct refcount refs;
    struct graph *graph;       /* pinned */
    struct cds_list_head link; /* graph's list of clients, under its mutex */
    char *uid;                 /* process-uuid of the handshake */
    char *process_name, *version;
    int opversion;
    bool is_trusted;           /* logged in with a verified username */
    atomic_bool is_gone;       /* set before the first client_gone */
    struct gfid subdir_gfid;   /* null: whole volume */
    unsigned connections;      /* under the graph's client mutex */
    struct fd_table fds;
    struct conn *conn;         /* connection for callbacks; under the graph's client mutex; NULL when gone */
    uint64_t id;               /* for statedumps */
    atomic_uint locks;         /* of all kinds, granted and waiting; counted by features/locks */
    uint32_t cred_bytes;
    uint8_t cred[BRICK_CLIENT_CRED_MAX]; /* credential as it was on the wire: part of the key */
    _Atomic(void *) ctx[]; /* as in an inode, by xl->slot[CTX_CLIENT] */
};

struct brick_client_key {
    const char *uid;
    const void *cred; /* flavor, length and body of the login's credential; 0 bytes: never shared */
    uint32_t cred_bytes;
};

struct brick_client_facts {
    const char *process_name, *version;
    int opversion;
    bool is_trusted;
    struct gfid subdir_gfid;
};

/* Adds a connection to the client with this key, which is made if it does not exist. The returned
 * reference belongs to the connection and ends with brick_client_disconnect(). The caller's pin on the
 * graph is taken over. NULL: no memory; the pin is not taken over. */
struct brick_client *brick_client_connect(struct graph *g, const struct brick_client_key *key,
                                          const struct brick_client_facts *facts);

/* Removes a connection. True: it was the last connection and new logins no longer find the client: the
 * caller cleans up (brick_client_layers_gone, then flush and close the fds). The caller keeps the
 * reference. */
bool brick_client_disconnect(struct brick_client *c);

/* Calls client_gone of every layer, top first. Any thread, in a read section, without locks. */
void brick_client_layers_gone(struct brick_client *c);

/* The layer's context on this client; NULL: none yet. Valid until client_release, which is called when the
 * last reference to the client is gone. */
static inline void *
brick_client_ctx(struct brick_client *c, const struct xlator *xl)
{
    return atomic_load_explicit(&c->ctx[xl->slot[CTX_CLIENT] - 1], memory_order_acquire);
}

/* Installs `fresh` unless another thread was faster; returns the installed context. The caller frees
 * `fresh` if another context is returned. */
void *brick_client_ctx_install(struct brick_client *c, const struct xlator *xl, void *fresh);

/* Takes another reference. The caller must already hold one. Any thread, no lock. */
static inline struct brick_client *
brick_client_ref(struct brick_client *c)
{
    refcount_get(&c->refs);
    return c;
}

/* Ends a client whose last reference has been dropped: for brick_client_unref(). */
void brick_client_end(struct brick_client *c);
/* Drops a reference. The last one calls the layers' client_gone once more and client_release, in the
 * calling thread, and unpins the graph, so the caller holds no lock of a layer. NULL allowed. */
static inline void
brick_client_unref(struct brick_client *c)
{
    if (c && refcount_put(&c->refs))
        brick_client_end(c);
}

#endif
