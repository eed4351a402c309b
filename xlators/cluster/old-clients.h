/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* old-clients: the clients of the bricks, and the search for a client that works with an old list of bricks.
 *
 * After bricks were added a client works with the old graph until the client has fetched the new volfile and
 * has opened all files in the new graph. The old graph lacks the added bricks:
 *
 *   - In a replica set the client changes objects on the other bricks only, and no pending xattr accuses the
 *     added one. If the self-heal daemon has filled the added brick by then, that copy is stale, and reads
 *     as good. So the daemon fills a new brick when no such client is left (replicate/crawl-new-bricks.c).
 *   - A write of a file that is being moved to an added subvolume is made on the source only, because the
 *     client does not know the xattr linkto's target. A stock client reports success, so the write would be
 *     lost when the copy becomes the file.
 *   - A folder's layout has a hole for the client. The client creates files where other clients do not look.
 *     So a rebalance begins when no such client is left.
 *
 * Each brick tells which processes and graphs are logged in (protocol/server/roll.c). A graph that is logged
 * in to some children of the layer, but not to all needed ones, is old, or cannot reach a child. Children
 * whose bricks do not tell, or tell more than ROLL_BYTES_MAX, are not counted.
 *
 * A stock client keeps the old graph beside the new one until an application calls, and makes that call in
 * the new graph. kiln-mount keeps the old one for open files that have been removed. So a client that has
 * both graphs is idle, or has its last calls in the old graph under way: CHANGING_MS is the time for them.
 *
 * kiln-mount gives each login another graph number. A process counts as a kiln-mount if all graphs have one
 * login each, on several bricks. A rebalance does not wait for kiln-mount, which marks a file whose change
 * cannot be repeated on the copy (distribute/file.c). A heal does wait: kiln-mount has an old graph while the
 * process has more logins at one child than at a needed child, and only an old graph without a login there.
 * Several mounts of one process are judged as one.
 *
 * Not found: a client that fetched the volfile before the change, and logs in after the last look. kilnd has
 * then told the client of the change already. A rebalance looks again before each folder.
 *
 * thread: one coroutine at a time for each struct client_watch. */
#ifndef KILN_CLUSTER_OLD_CLIENTS_H
#define KILN_CLUSTER_OLD_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

struct xlator;

enum { CLIENTS_MS = 1000, CHANGING_MS = 10000 }; /* CLIENTS_MS: between two looks at the clients */

enum old_client {
    CLIENTS_NEW,    /* no client works with an old list of bricks */
    CLIENT_CHANGES, /* a client has an old graph beside a new one */
    CLIENT_OLD      /* a client has only an old graph */
};

struct client_watch {
    struct xlator *xl;   /* the layer whose children are judged */
    const bool *needs;   /* indexed by child: those that all clients need; NULL: all */
    bool spares_numbered; /* processes that give each login another graph number are not judged */
    uint64_t changing_ns; /* time of the first look at a client that changes its graph; 0: none does */
    char who[256];        /* the old client of the latest client_watch_look(); "": none */
};

/* Asks all bricks. Returns an enum old_client, where w->who tells the client's process, or -ENOMEM. */
int old_clients_find(struct client_watch *w);
/* Looks at the clients once. Returns true if none works with an old list, or if one has changed its graph for
 * CHANGING_MS. Otherwise w->who names a client, unless there was no memory for the look. */
bool client_watch_look(struct client_watch *w);

#endif
