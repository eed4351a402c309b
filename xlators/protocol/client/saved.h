/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* saved: the bricks of a mount whose process runs a newer program by exec(2) (mount/upgrade.h).
 *
 * A brick knows a mount by its connection: the login, the fds with their numbers and the locks belong
 * to it. So the connection goes to the new program, and the brick notices nothing. The new program
 * makes its own fds: the program opens each file through its layers, and protocol/client answers such
 * an OPEN with the number that the file had. A caller with the pid N + 1 stands for the file with the
 * index N of the saved list; the layers pass a caller's pid on.
 *
 *      OPEN, OPENDIR    answered here, with the fd's flags and locks
 *      LOOKUP           answered by FSTAT of the fd: finds an object without a name, and without its xattrs
 *
 * Without a saved connection (down, or encrypted) the OPEN goes to the brick after a new login, and the
 * fd's locks are taken again then, as after a lost connection (held-locks.c). */
#ifndef KILN_PROTOCOL_CLIENT_SAVED_H
#define KILN_PROTOCOL_CLIENT_SAVED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/parcel.h"

struct fd;
struct graph;
struct xlator;

/* Calls fn for each protocol/client of the graph until fn returns an error, which is returned. */
int clients_each(struct graph *g, int (*fn)(struct xlator *xl, void *arg), void *arg);
/* For the old program. Stops reading from all bricks, or reads on; in turn. No call is under way. One
 * thread. */
void clients_pause(struct graph *g, bool pauses);
/* Of paused clients: true if nothing is under way. The caller looks twice. */
bool clients_rest(struct graph *g);
/* Writes all clients, with their numbers and locks of the mount's open files. 0 or -ENOMEM. */
int clients_save(struct graph *g, struct fd *const *files, size_t count, struct parcel *to);
/* Lets the sockets survive exec(2), or not. 0 or -errno. */
int clients_keep_open(struct graph *g, bool keeps);
/* For the new program, before graph_start(): keeps the saved state. The volfile is the same. 0, -ENOMEM, or
 * -EBADMSG: other layers than expected. */
int clients_restore(struct graph *g, struct parcel *from);
/* True if each client has its brick. */
bool clients_are_up(struct graph *g);
/* Ends the restoration: drops the saved state of files that could not be opened again. No call is under
 * way. */
void clients_restored(struct graph *g);

#endif
