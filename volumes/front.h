/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* front: a daemon that keeps its volumes itself (kilnd --state): what is started and ended, in which order.
 *
 *     front_open()      the state folder is taken and read           nothing is served
 *     front_attach()    the bricks of volumes that are started
 *     front_listen()    clients may ask for volfiles and ports, kiln for anything
 *     front_stop()      nobody may any more
 *     front_close()     the state folder is given back
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

/* `prepare`: as in volumes.h. 0 or -errno with a text of whole sentences. */
int front_open(const char *state_dir, int (*prepare)(struct volfile *v, char *error, size_t error_size),
               char *error, size_t error_size);
void front_attach(void);
/* `port`: where volfiles are asked for; `brick_port`: where bricks are served; `dump_dir`, which stays: where
 * statedumps go. 0 or -errno with a text. */
int front_listen(uint16_t port, uint16_t brick_port, const char *dump_dir, char *error, size_t error_size);
/* Before transport_close_all(). */
void front_stop(void);
/* After it, with the bricks detached. Both are harmless if nothing was opened. */
void front_close(void);

#endif
