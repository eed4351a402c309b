/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/server: the top of every brick's graph, and the process's end of all client connections. */
#ifndef KILN_PROTOCOL_SERVER_H
#define KILN_PROTOCOL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/fop.h"

struct brick_client;
struct graph;

/* Limits of the process that the options of one brick say: as with the port, the first one's. Before
 * server_listen_start(). */
void server_set_limits(const struct graph *g);

struct server_listen {
    const char *host;      /* NULL: all addresses */
    uint16_t port;         /* 0: any */
    /* The brick of a name that a client asks for, pinned; NULL: there is none. Called by workers. */
    struct graph *(*find_brick)(const char *name);
    /* The brick whose volfile speaks for the process, pinned; NULL: there is none. Called by workers. */
    struct graph *(*first_brick)(void);
    /* There is none now: is one coming or going? NULL: never. */
    bool (*is_brick_changing)(const char *name);
};

/* Listens for the clients of all bricks of the process; *port_out is the TCP port. 0 or -errno with a text in
 * `error`. */
int server_listen_start(const struct server_listen *listen, uint16_t *port_out, char *error,
                        size_t error_size);
/* Accepts no more, ends every connection and waits until what they left is cleaned up. */
void server_listen_stop(void);

/* What the volfile of a brick says about its process: it counts if the brick is the first one. The strings
 * live as long as the graph's options do not change. */
struct server_process_options {
    const char *bind_address, *statedump_path; /* NULL: not given */
    const char *volspec_directory;             /* where client volfiles are; NULL: not given */
    int64_t port;                              /* -1: not given */
};
struct server_process_options server_process_options(const struct graph *g);

/* For features/locks: the client holds a lock that somebody else wants. Nothing is sent if it has no
 * connection left. */
void brick_client_callback_inodelk_contention(struct brick_client *client, const struct gfid *gfid,
                                              const struct fop_flock *flock, uint32_t pid,
                                              const char *domain);

/* For features/upcall: an object has changed, or is forgotten. `clients`: their numbers, in order; whoever
 * has gone meanwhile is not told. Takes clients_lock; never blocks. A client that does not read what it is
 * told is disconnected. */
struct cache_invalidation;
void brick_clients_callback_cache_invalidation(struct graph *g, const uint64_t *clients, unsigned count,
                                               const struct cache_invalidation *what);

#endif
