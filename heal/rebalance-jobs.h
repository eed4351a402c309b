/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rebalance-jobs: the rebalances of kiln-heal, at most one for each volume. A job has a graph of the whole
 * volume and a rebalancer (rebalance.h).
 *
 * kiln-heal does both kinds of work, because a separate process would cost each host another 6 MB and would
 * need the same channel, connections and restarts. Both keep their states on the bricks alone, so the death
 * of the process harms neither.
 *
 * Threads: the main thread starts and drops jobs; any thread may look. One mutex guards the list; the other
 * fields are constant after the job was started. */
#ifndef KILN_HEAL_REBALANCE_JOBS_H
#define KILN_HEAL_REBALANCE_JOBS_H

#include <jansson.h>

/* Starts the job of the message "rebalance" (channel.h), unless the same job runs or has ended. Logs a
 * failure, and then tells kilnd that the job has ended. */
void rebalance_jobs_take(const json_t *message);
/* Stops the volume's job and forgets it. No such job is no error. */
void rebalance_jobs_drop(const char *volume);
void rebalance_jobs_drop_all(void);
/* Returns the progress of the volume's job, a new reference. NULL: no job, or no memory. */
json_t *rebalance_jobs_look(const char *volume);

#endif
