/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-jobs: long work over several hosts. A job is a key of the store, and each running job is owned by
 * one live host, by a second key bound to its lease. When the owner dies, another host claims the job and
 * goes on.
 *
 *     /kiln/jobs/ID          {"kind", "host", "volume" or "scope", "state", "done", "total", "started",
 *                            "ended", "text"}; the state is running, done, failed or stopped
 *     /kiln/job-owner/ID     the name of the owner
 *
 *     drain       replaces each brick of a host by a brick on another host (cluster-place.h), each after the
 *                 set of the brick before has nothing left to heal
 *     heal        has the healing host of a volume walk all of it (job-heal.c)
 *     rebalance   has this host's kiln-heal do the task of a volume (rebalance.h)
 *     upgrade     has each host run a newer kilnd, one after the other (job-upgrade.c)
 *
 * Deaths: a step of a drain is a replace-brick, which is whole or undone (cluster-bricks.h); the next owner
 * counts the bricks that are left. A rebalance begins its walk anew at the next owner, and finds files that
 * have moved in their places. An owner without its store drops the walk; until it has seen that, two walks
 * may run, and a lock lets only one of them migrate a file. A job that ends between its last step and its
 * record runs again and finds nothing to do.
 *
 * Functions return 0 or -errno with *why; thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_JOBS_H
#define KILN_VOLUMES_CLUSTER_JOBS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/gfid.h"
#include "volumes/problem.h"

struct volume;

/* Begins a drain. `id` (37 bytes) gets the job's id. */
int cluster_jobs_drain(const char *host, char *id, struct problem *why);
/* Begins a full heal of a started, replicated volume. */
int cluster_jobs_heal(const char *volume, char id[GFID_TEXT_SIZE], struct problem *why);
/* Begins an upgrade of all hosts, which must be up. program NULL: the file that each kilnd was started
 * from. */
int cluster_jobs_upgrade(const char *program, char *id, struct problem *why);
/* {"jobs": [{"id", "kind", "host", "state", "owner", ...}, ...]}, a new reference. */
int cluster_jobs_list(json_t **out, struct problem *why);
/* The owner ends the job after the step that it is doing. */
int cluster_jobs_stop(const char *id, struct problem *why);
/* The record of a new job as text, for a transaction that begins the job together with another change. The
 * caller frees it; NULL: no memory. */
char *cluster_job_text(const char *kind, const char *key, const char *subject);
/* The record of the job with another state, likewise; also NULL if the store does not answer. */
char *cluster_job_ended_text(const char *id, const char *state);
/* The progress of a rebalance as its owner wrote it last, a new reference; NULL: not known. */
json_t *cluster_jobs_progress(const char *id);
/* Tells whether this host does the running task of the volume. */
bool cluster_jobs_does_task(const struct volume *v);

/* Claims running jobs without an owner, and runs them in threads. The keeper of cluster.c calls the function
 * every few seconds. */
void cluster_jobs_look(void);
/* Ends the jobs of this host after their steps; another host goes on with them. */
void cluster_jobs_end(void);

#endif
