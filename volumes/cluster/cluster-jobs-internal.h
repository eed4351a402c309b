/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-jobs-internal: the kinds of jobs (job-*.c), and their records (cluster-jobs.c).
 *
 * A kind runs in a thread of its own while this host owns the job. It returns after the last step, when the
 * record says that the job is to end, or when this host no longer owns the job. */
#ifndef KILN_VOLUMES_CLUSTER_JOBS_INTERNAL_H
#define KILN_VOLUMES_CLUSTER_JOBS_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/gfid.h"
#include "volumes/cluster/cluster-jobs.h"

enum { CLUSTER_JOB_LOOK_S = 2 };

struct job_kind;
/* A job that this host owns. */
struct cluster_job {
    char id[GFID_TEXT_SIZE], subject[256]; /* a host or a volume */
    const struct job_kind *kind;
};

void job_drain_run(const struct cluster_job *j);
void job_heal_run(const struct cluster_job *j);
void job_rebalance_run(const struct cluster_job *j);
void job_upgrade_run(const struct cluster_job *j);

/* job-heal.c: refuses a volume that cannot be healed in full. Returns 0 or -errno with *why. */
int job_heal_check(const char *volume, struct problem *why);
/* Ends the walk of a job that was stopped; a host that does not answer is logged. */
void job_heal_stop_walk(const char *volume);

/* False when kilnd ends. */
bool cluster_job_goes_on(void);
/* Returns 0 if this host owns the job, -EPERM if it does not, or the error of the store, with *why. */
int cluster_job_check_owner(const char *id, struct problem *why);
/* Changes members of a record that is still running. Consumes `members`. Returns false if the job is to
 * end. */
bool cluster_job_update(const char *id, json_t *members);
/* Returns the record of a job that still runs, a new reference. NULL with *why: -ENOENT: the job ended. */
json_t *cluster_job_read(const char *id, struct problem *why);
/* `state`: done, failed or stopped. */
void cluster_job_finish(const char *id, const char *state, const char *text);
/* Begins a job; `key` is the member that names the subject. Returns 0 or -errno with *why. */
int cluster_job_begin(const char *kind, const char *key, const char *subject, char id[GFID_TEXT_SIZE],
                      struct problem *why);
/* Copies the program that `kiln upgrade --rolling PROGRAM` has named on a host, or "", into `program`.
 * -EACCES with *why: no host has signed that order. */
int cluster_job_ordered_program(const json_t *record, const char *id, char *program, size_t size,
                                struct problem *why);
/* Returns true if no brick of the volume has an object that others missed. Asks all hosts. */
bool cluster_volume_is_healed(const char *name);

#endif
