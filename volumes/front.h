/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* front: starts and stops, in order, the parts of a daemon that keeps its volumes itself (kilnd --state).
 *
 *     front_open()      lock and read the state folder; nothing is served yet
 *     front_attach()    attach the bricks of started volumes
 *     front_listen()    accept volfile and port requests of clients, and requests of kiln
 *     front_stop()      accept no more requests
 *     front_close()     release the state folder
 *
 * thread: the main thread.
 */
#ifndef KILN_VOLUMES_FRONT_H
#define KILN_VOLUMES_FRONT_H

#include <stddef.h>
#include <stdint.h>

struct volfile;

#define FRONT_SOCKET_DIR "/run/kiln"
#define FRONT_SOCKET FRONT_SOCKET_DIR "/kilnd.socket"

struct cluster_options;
/* `prepare` is the hook of volumes.h, `hook_deadline_s` the deadline of hook scripts in seconds (0: the
 * default), `shared` (NULL: none) the store that this host shares with others. Returns 0, or -errno with an
 * error text of whole sentences. */
int front_open(const char *state_dir, unsigned hook_deadline_s, const struct cluster_options *shared,
               int (*prepare)(struct volfile *v, char *error, size_t error_size), char *error,
               size_t error_size);
void front_attach(void);
/* `port` is the port for volfile requests, `brick_port` the port of the bricks. Returns 0 or -errno with a
 * text. */
int front_listen(uint16_t port, uint16_t brick_port, char *error, size_t error_size);
/* Ends waits of requests for other hosts: before the management socket is closed. Harmless without
 * front_open(). */
void front_quiet(void);
/* Must run before transport_close_all(). */
void front_stop(void);
/* Must run after transport_close_all(), with all bricks detached. Both functions do nothing if
 * front_open() was not called. */
void front_close(void);

#endif
