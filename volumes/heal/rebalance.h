/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rebalance: begins and ends the rebalances of volumes. The process kiln-heal (healer.h) does the work; the
 * volume keeps the task (volume-task.h), so that a rebalance goes on after a restart of either process.
 *
 *     start ──▶ task saved: running ──▶ message to kiln-heal ──▶ the walk ──▶ "ended" ──▶ saved: completed
 *                                             ▲ sent again to each new kiln-heal
 *
 * With a store the task is done by one host at a time, the owner of a job (cluster-jobs.h).
 *
 * Threads: rebalance_follow() is called as healer_follow() is; the other functions by any thread that may
 * call the operations of volumes.h. */
#ifndef KILN_VOLUMES_REBALANCE_H
#define KILN_VOLUMES_REBALANCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "volumes/problem.h"

struct volume;

/* Must run after healer_begin(). `port`: the port of the bricks. */
void rebalance_begin(uint16_t port);
/* Gives the volume's running task to the process, or takes the task away. Logs failures. */
void rebalance_follow(const char *volume);
/* Waits for saves that are under way. Must run after healer_stop(). */
void rebalance_end(void);

/* Begin a task. Return 0 or -errno with *why. `kind`: TASK_LAYOUTS or TASK_FILES. */
int rebalance_start(const char *volume, const char *kind, struct problem *why);
/* Begins to drain the bricks of `removed`, a volume with only these bricks: whole sets. */
int rebalance_start_drain(const char *volume, const struct volume *removed, struct problem *why);
/* Stops the running task; a drain that has ended, too. `is_drain`: the kind that is meant. */
int rebalance_stop(const char *volume, bool is_drain, struct problem *why);
/* Returns the progress that this host's process reports, a new reference; NULL: it does not answer. */
json_t *rebalance_progress(const char *volume);
/* Returns the task with its progress, a new reference: {"kind", "state", "look"}. NULL: no task so far, or
 * no memory. Waits for the process. */
json_t *rebalance_status(const struct volume *v);
/* Checks that the drain of exactly these bricks has completed. Returns 0 or -errno with *why. */
int rebalance_check_drained(const char *volume, const struct volume *removed, struct problem *why);

#endif
