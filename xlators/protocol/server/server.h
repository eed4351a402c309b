/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/server: the top of every brick's graph, and the listener for all client connections of the
 * process. */
#ifndef KILN_PROTOCOL_SERVER_H
#define KILN_PROTOCOL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/fop.h"

struct brick_client;
struct graph;

/* Sets the limits of the process from the options of the first brick, as for the port. Call it before
 * server_listen_start(). */
void server_set_limits(const struct graph *g);

struct server_listen {
    const char *host;      /* NULL: all addresses */
    uint16_t port;         /* 0: any */
    /* Returns the brick of this name, pinned, or NULL. Called by workers. */
    struct graph *(*find_brick)(const char *name);
    /* Returns the brick whose volfile has the options of the process, pinned, or NULL. Called by workers. */
    struct graph *(*first_brick)(void);
    /* True if the missing brick of this name is being attached or detached. NULL: never. */
    bool (*is_brick_changing)(const char *name);
    bool no_sequences; /* do not offer rpc_sequence_program */
    /* Called before any client can connect, to restore clients of an earlier program. NULL: there is none. */
    void (*restore)(void);
};

/* Listens for the clients of all bricks of the process; *port_out is the TCP port. Returns 0, or -errno with
 * a text in `error`. */
int server_listen_start(const struct server_listen *listen, uint16_t *port_out, char *error,
                        size_t error_size);
/* The state that clients have at a brick: connections, open files, locks, calls that wait for locks. One
 * program saves it while the transport is frozen, and the next one in the same process (bricks/upgrade.h)
 * restores it in server_listen.restore, both in the main thread. A client whose state cannot be restored as a
 * whole is cut off, logs in anew, and opens its files again.
 *
 * server_save_brick: 0 or -errno; -EAGAIN: a call is just going on, so thaw and try again. */
struct parcel;
int server_save_brick(struct graph *g, struct parcel *to);
struct server_restored {
    unsigned connections, files, lost_clients;
};
void server_restore_brick(struct graph *g, struct parcel *from, struct server_restored *sum);

/* Stops accepting, ends every connection and waits until the cleanup after them is done. */
void server_listen_stop(void);

/* The process options in the volfile of a brick; they count if the brick is the first one. The strings live
 * until the graph's options change. */
struct server_process_options {
    const char *bind_address, *statedump_path; /* NULL: not given */
    const char *volspec_directory;             /* folder of the client volfiles; NULL: not given */
    int64_t port;                              /* -1: not given */
};
struct server_process_options server_process_options(const struct graph *g);

/* For features/locks: tells the client that another client waits for its lock. Sends nothing if the client
 * has no connection. */
void brick_client_callback_inodelk_contention(struct brick_client *client, const struct gfid *gfid,
                                              const struct fop_flock *flock, uint32_t pid,
                                              const char *domain);
/* The same for a lock of the client on all names of a folder. */
void brick_client_callback_entrylk_contention(struct brick_client *client, const struct gfid *gfid,
                                              uint32_t type, uint32_t pid, const char *domain);

/* For features/upcall: tells clients that an object has changed or is forgotten. `clients`: their numbers, in
 * order; clients that have gone are skipped. Takes clients_lock; never blocks. A client that does not read
 * its callbacks is disconnected. */
struct cache_invalidation;
void brick_clients_callback_cache_invalidation(struct graph *g, const uint64_t *clients, unsigned count,
                                               const struct cache_invalidation *what);

#endif
