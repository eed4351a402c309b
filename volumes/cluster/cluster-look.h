/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-look: answers about volumes whose bricks are on several hosts: each host is asked for its bricks,
 * with a deadline of CLUSTER_LOOK_S seconds. A brick of a host that does not answer has the member "error".
 *
 * A heal, its statistics and a split-brain go to the host that heals the volume (cluster.h) alone. A full
 * heal becomes a job (job-heal.c).
 *
 * thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_LOOK_H
#define KILN_VOLUMES_CLUSTER_LOOK_H

#include <jansson.h>

#include "volumes/problem.h"

enum { CLUSTER_HOST_BYTES = 256 };

/* Runs the verb on this host and on each other host with bricks of the volumes in the answer, and puts the
 * answers together. Returns 0, or -errno of this host with *why. */
int cluster_look(const char *verb, json_t *args, json_t **out, struct problem *why);
/* Answers for this host alone. */
int cluster_look_here(const char *verb, json_t *args, json_t **out, struct problem *why);
/* Asks the host that heals the volume "name" for a volume-heal; `host` gets its name. Returns 0 or -errno
 * with *why. */
int cluster_ask_healer(json_t *args, char host[CLUSTER_HOST_BYTES], json_t **out, struct problem *why);

#endif
