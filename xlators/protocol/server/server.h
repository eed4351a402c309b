/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/server: the top of every brick's graph, and the process's end of all client connections. */
#ifndef KILN_PROTOCOL_SERVER_H
#define KILN_PROTOCOL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/fop.h"

struct client;
struct graph;

/* Listens for the clients of all bricks of the process: on a TCP port (`host` NULL: all addresses; `port` 0: any, *port_out
 * tells) and, unless it is NULL, on a unix socket. 0 or -errno with a text in `error`. */
int server_listen_start(const char *host, uint16_t port, const char *unix_path, uint16_t *port_out, char *error,
                        size_t error_size);
/* Accepts no more, ends every connection and waits until what they left is cleaned up. */
void server_listen_stop(void);

/* Storage has come up or gone down: every connection of the brick is told. */
void server_child_event(struct graph *g, bool is_up);

/* For features/locks: the client holds a lock that somebody else wants. Nothing is sent if it has no connection left. */
void client_callback_inodelk_contention(struct client *client, const struct gfid *gfid, const struct fop_flock *flock,
                                        uint32_t pid, const char *domain);

#endif
