/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* questions: opens the management socket and the address of /metrics.
 *
 * Without multiplexing glusterd starts a kilnd for each brick, and all these processes read the same
 * configuration file. The first kilnd gets the socket and the address of the file. Each further kilnd
 * answers at its own socket, SOCKET.PID, and tries every few seconds to get the names of the file, which are
 * free when the first kilnd has ended. A kilnd that is killed leaves a socket that refuses connections; the
 * next kilnd takes the name over. Names of the command line belong to one process, so a name in use is an
 * error there.
 *
 * thread: the main thread. */
#ifndef KILN_GLUSTERFSD_QUESTIONS_H
#define KILN_GLUSTERFSD_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct kilnd_options;

/* Returns 0, or -errno with the reason in `error`. Called before the first brick is attached, so that /readyz
 * answers that kilnd is not ready. */
int questions_listen(const struct kilnd_options *o, char *error, size_t error_size);
/* Closes all listeners. False: a handler hangs, and the listeners stay (http_stop()). */
bool questions_stop(void);

#endif
