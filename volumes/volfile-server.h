/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfile-server: what clients ask a glusterd before they can mount, answered by this daemon on glusterd's
 * port: the volfile of a volume, and the port of a brick (spec: management 2.2, 2.7, 3).
 *
 * A client that has got a volfile keeps its connection, as a guest of the transport's, and is told when
 * volumes change (rpc_tell_volfiles_changed()): it asks again then. It asks as anybody may: who may use a
 * brick is the brick's to say.
 *
 * Threads: the functions are the main thread's. */
#ifndef KILN_VOLUMES_VOLFILE_SERVER_H
#define KILN_VOLUMES_VOLFILE_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* `brick_port`: where all bricks are served. 0, or -errno with a text. */
int volfile_server_start(uint16_t port, uint16_t brick_port, char *error, size_t error_size);
/* No new connections; those there are end with transport_close_all(). */
void volfile_server_stop(void);
/* After transport_close_all(). */
void volfile_server_free(void);

#endif
