/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-ask: what a self-heal daemon is told, and what it says, over its unix socket (management 4.11).
 *
 * thread: any that may wait; not a worker, which the answer comes on.
 */
#ifndef KILN_VOLUMES_HEAL_ASK_H
#define KILN_VOLUMES_HEAL_ASK_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* The daemon's numbers. */
enum heal_ask { HEAL_ASK_INDEX = 1, HEAL_ASK_FULL = 2, HEAL_ASK_STATISTICS = 7 };

/* Asks the daemon at `socket`; one that does not listen yet is waited for, some seconds. *out: what it says,
 * an object of texts, a new reference. 0, or -errno with *why. */
int heal_ask(const char *socket, const struct volume *v, enum heal_ask what, json_t **out,
             struct problem *why);

#endif
