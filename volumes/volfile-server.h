/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfile-server: what clients ask a glusterd before they can mount, answered by this daemon on glusterd's
 * port: the volfile of a volume, and the port of a brick (spec: management 2.2, 2.7, 3).
 *
 * A client that has got a volfile keeps its connection, and is told when volumes change: it asks again then.
 * It asks as anybody may: who may use a brick is the brick's to say.
 *
 * Threads: volfile_server_changed() by any; the other two by the main thread, one after the other. One mutex
 * guards the list of those who are told; no call is made under it.
 */
#ifndef KILN_VOLUMES_VOLFILE_SERVER_H
#define KILN_VOLUMES_VOLFILE_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* `brick_port`: where all bricks are served. 0, or -errno with a text. */
int volfile_server_start(uint16_t port, uint16_t brick_port, char *error, size_t error_size);
/* Every client is told that its volfile may be another. */
void volfile_server_changed(void);
/* No new connections; those there are end with transport_close_all(). */
void volfile_server_stop(void);
/* After transport_close_all(). */
void volfile_server_free(void);

#endif
