/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volume-task: the latest rebalance of a volume, a part of the volume's value:
 *
 *     {"kind": "layouts", "files" or "drain", "state": "running", "stopped", "completed" or "failed",
 *      "number": of the task, "leaving": [ids of bricks that are drained], "look": the progress at its end,
 *      "job": id of the job of a store that does the task}
 *
 * A drain empties whole sets of bricks, which then can be removed. Clients create nothing on these bricks
 * from the start of the drain until it is stopped, or the bricks are removed. Other changes of the bricks
 * are refused until then.
 *
 * A plain value: the functions touch no disk, no brick and no lock. */
#ifndef KILN_VOLUMES_VOLUME_TASK_H
#define KILN_VOLUMES_VOLUME_TASK_H

#include "volumes/volume.h"

#define TASK_LAYOUTS "layouts"
#define TASK_FILES "files"
#define TASK_DRAIN "drain"
#define TASK_RUNNING "running"
#define TASK_STOPPED "stopped"

/* The texts stay the volume's. NULL: no task so far. */
const char *volume_task_kind(const struct volume *v);
const char *volume_task_state(const struct volume *v);
/* 0: no task so far. */
json_int_t volume_task_number(const struct volume *v);
/* The job of a store that does the task (cluster-jobs.h); NULL: no task, or no store. */
const char *volume_task_job(const struct volume *v);
bool volume_task_is_running(const struct volume *v);
/* Tells whether the brick at this place is drained, or was and waits for its removal. */
bool volume_task_leaves(const struct volume *v, unsigned brick);
/* Gives the volume a running task; `leaving` has an entry for each brick, NULL: none leaves. job NULL: no
 * store. Returns 0 or -ENOMEM. */
int volume_task_begin(struct volume *v, const char *kind, const bool *leaving, const char *job);
/* Ends the task. `look` is borrowed; NULL: the progress is not known. Returns 0 or -ENOMEM. */
int volume_task_end(struct volume *v, const char *state, json_t *look);
/* Checks a task read from disk. Returns 0 or -EINVAL. */
int volume_task_check(const json_t *task, struct problem *why);

#endif
