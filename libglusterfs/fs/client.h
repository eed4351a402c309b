/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* client: who has logged in to a brick: one identity, however many connections share it (spec: wire 3.5).
 *
 * Threads: found and counted under the table's mutex (clients are few). Fields but the counters are set at login.
 * `connections` drops to 0: client_gone of every layer, fds closed, object freed with its last reference (calls in flight hold one).
 */
#ifndef KILN_FS_CLIENT_H
#define KILN_FS_CLIENT_H

#include "fs/fd.h"

#define CLIENT_UID_MAX 1024

struct conn;

struct client {
    struct refcount refs;
    struct graph *graph;
    struct cds_list_head link; /* graph's list of clients, under its mutex */
    char *uid;                 /* process-uuid of the handshake */
    char *process_name, *version;
    int opversion;
    bool is_trusted;           /* logged in with a verified username */
    struct gfid subdir_gfid;   /* null: whole volume */
    unsigned connections;      /* under the graph's client mutex */
    struct fd_table fds;
    struct conn *conn;         /* where callbacks go; under the graph's client mutex; NULL when gone */
    uint64_t id;               /* for statedumps */
};

static inline struct client *
client_ref(struct client *c)
{
    refcount_get(&c->refs);
    return c;
}

void client_unref(struct client *c); /* NULL allowed */

#endif
