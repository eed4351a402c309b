/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-jobs: long work over several hosts. A job is a key of the store, and each running job is owned by
 * one live host, by a second key bound to its lease. When the owner dies, another host claims the job and
 * goes on.
 *
 *     /kiln/jobs/ID          {"kind": "drain", "host", "state", "done", "total", "started", "ended",
 *                            "text"}; the state is running, done, failed or stopped
 *     /kiln/job-owner/ID     the name of the owner
 *
 * The only kind is drain: each brick of a host is replaced by a brick on another host (cluster-place.h), one
 * after the other, each after the set has nothing left to heal.
 *
 * Deaths: a step is a replace-brick, which is whole or undone (cluster-bricks.h); the next owner counts the
 * bricks that are left. A job that ends between its last step and its record runs again and finds nothing to
 * do.
 *
 * Functions return 0 or -errno with *why; thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_JOBS_H
#define KILN_VOLUMES_CLUSTER_JOBS_H

#include <jansson.h>

#include "volumes/problem.h"

/* Begins a drain. `id` (37 bytes) gets the job's id. */
int cluster_jobs_drain(const char *host, char *id, struct problem *why);
/* {"jobs": [{"id", "kind", "host", "state", "owner", ...}, ...]}, a new reference. */
int cluster_jobs_list(json_t **out, struct problem *why);
/* The owner ends the job after the step that it is doing. */
int cluster_jobs_stop(const char *id, struct problem *why);

/* Claims running jobs without an owner, and runs them in threads. The keeper of cluster.c calls the function
 * every few seconds. */
void cluster_jobs_look(void);
/* Ends the jobs of this host after their steps; another host goes on with them. */
void cluster_jobs_end(void);

#endif
