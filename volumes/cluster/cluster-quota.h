/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-quota: limits of folders of a volume whose bricks are on several hosts.
 *
 *     set, remove   quota-check on all hosts with bricks ─▶ quota-set on all these hosts
 *     list          quota-rows of all these hosts ─▶ the sum
 *
 * All hosts must be up for a set. A host that dies between check and set misses the limit, and so does each
 * host that the asker has not reached when the asker dies. The command then has reported an error or nothing,
 * and the same command sets the limit on all hosts. In a volume of several subvolumes, bricks that miss a
 * limit also get the limit within a second from the rows of the other bricks (quota.h).
 *
 * All functions: 0 or -errno with *why; thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_QUOTA_H
#define KILN_VOLUMES_CLUSTER_QUOTA_H

#include <jansson.h>
#include <stdint.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* As the functions of quota.h with the same names, on all hosts with bricks. A host that does not answer has
 * no rows in the list. */
int cluster_quota_check(const struct volume *v, const char *path, struct problem *why);
int cluster_quota_set(const struct volume *v, const char *path, uint64_t limit, struct problem *why);
int cluster_quota_list(const struct volume *v, json_t **out, struct problem *why);

/* Answers the question of a host (cluster-ask.h). -ENOSYS without *why: not a question about limits. */
int cluster_quota_serve(const char *verb, json_t *args, json_t **out, struct problem *why);

#endif
