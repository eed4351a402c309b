/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* door: the rules of the one port of all bricks for new connections, made of the demands of the bricks.
 *
 *     bricks of the process      a new connection
 *     none demands TLS           is plain
 *     all demand TLS             speaks TLS, or gets an alert and ends
 *     some demand TLS            may do either; its login is checked against the brick's own demand
 *
 * A ClientHello does not name the brick that the client wants (stock sends no SNI), so all bricks with TLS of
 * a process show the same certificate and accept the same authorities: a brick that names other files is
 * refused when it starts. Glusterd does not put such bricks into one process either (gluster11 4.6).
 *
 * thread: any; door_enter() reads files. */
#ifndef KILN_PROTOCOL_SERVER_DOOR_H
#define KILN_PROTOCOL_SERVER_DOOR_H

#include <stdbool.h>

#include "rpc/transport/tls-options.h"

struct reason;

/* A brick has come, with or without TLS. 0, or -errno with a reason: its files cannot be loaded, or are not
 * those of the other bricks. */
int door_enter(const char *brick, const struct tls_options *tls, struct reason *why);
/* A brick that has entered, goes. */
void door_leave(bool has_tls);
/* For rpc_server_set_tls(). */
struct tls_config *door_config(bool *allows_plain);

#endif
