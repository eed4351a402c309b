/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* client: questions that a program may ask a mount's protocol/client layers. */
#ifndef KILN_PROTOCOL_CLIENT_H
#define KILN_PROTOCOL_CLIENT_H

#include <stdbool.h>

struct gfid;
struct graph;

/* Finds the id of the volume, which a brick sends at the login. False: no brick has sent the id. Takes a lock
 * of the layer; any thread. */
bool client_volume_id(struct graph *g, struct gfid *out);

#endif
