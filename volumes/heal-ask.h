/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-ask: sends a request to a self-heal daemon over its unix socket, and returns the answer (management
 * 4.11).
 *
 * thread: any thread that may wait; not a worker, because workers deliver the answer.
 */
#ifndef KILN_VOLUMES_HEAL_ASK_H
#define KILN_VOLUMES_HEAL_ASK_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* The numbers of the daemon's protocol. */
enum heal_ask { HEAL_ASK_INDEX = 1, HEAL_ASK_FULL = 2, HEAL_ASK_STATISTICS = 7 };

/* Sends the request to the daemon at `socket`, and waits some seconds for a daemon that does not listen
 * yet. Returns 0 with the answer in *out, an object of texts and a new reference, or -errno with *why. */
int heal_ask(const char *socket, const struct volume *v, enum heal_ask what, json_t **out,
             struct problem *why);

#endif
