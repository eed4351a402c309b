/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfile-server: answers, on the port of glusterd, the requests that clients send to glusterd before they
 * mount: the volfile of a volume, and the port of a brick (spec: management 2.2, 2.7, 3).
 *
 * A client keeps its connection after it got a volfile, as a guest of the transport. It is notified when
 * volumes change (rpc_tell_volfiles_changed()) and then fetches the volfile again. There is no access
 * control here: each brick decides which clients may log in.
 *
 * Threads: the main thread calls all functions. */
#ifndef KILN_VOLUMES_VOLFILE_SERVER_H
#define KILN_VOLUMES_VOLFILE_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* `brick_port` is the port of all bricks. Returns 0, or -errno with a text. */
int volfile_server_start(uint16_t port, uint16_t brick_port, char *error, size_t error_size);
/* Accepts no new connections; existing ones end with transport_close_all(). */
void volfile_server_stop(void);
/* Must run after transport_close_all(). */
void volfile_server_free(void);

#endif
