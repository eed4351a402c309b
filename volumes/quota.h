/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* quota: limits of volumes that this daemon keeps, and of folders in them, by features/simple-quota of
 * their bricks.
 *
 * The limit of a volume is its option kiln.limit. Each brick has it as the limit of its root folder,
 * which is a namespace; quotas_follow() makes it so when a brick or the option has come. The limit of a
 * folder is an xattr of the folder on each brick, and nowhere else.
 *
 * A brick counts what it holds itself. Of a volume with several subvolumes each brick is told once a
 * second what all hold, so that a limit holds for their sum; within that second each checks what it adds
 * itself. Usage of a replicated volume is that of the fullest replica of each set.
 *
 * Threads: quotas_follow(), quota_set() and quota_list() wait for disks: any thread that may make brick
 * calls (brick-call.h). quota_usage() by any thread; it waits for nothing. */
#ifndef KILN_VOLUMES_QUOTA_H
#define KILN_VOLUMES_QUOTA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "volumes/problem.h"

struct volume;

/* Before all others. */
void quotas_begin(void);
/* Makes the bricks of the volume have its limit. A failure is logged. */
void quotas_follow(const char *name);
/* Takes the volume's limit from its bricks, before its option goes: a brick that stops to count keeps the
 * xattr. */
void quota_clear(const struct volume *v);
/* No brick is told any more. Before workers_stop(). */
void quotas_stop(void);

/* The limit of the folder `path` (from the volume's root); 0 takes it away. All bricks must be served. 0
 * or -errno. */
int quota_set(const struct volume *v, const char *path, uint64_t limit, struct problem *why);
/* {"name": ..., "limits": [{"path", "limit", "used", "counting"}, ...]}, the volume's own as "/". 0 or
 * -errno. */
int quota_list(const struct volume *v, json_t **out, struct problem *why);

struct quota_usage {
    bool is_known; /* the volume counts, and a brick of each set is served */
    bool is_counting;
    uint64_t limit, used;
};
/* Of the whole volume. */
void quota_usage(const struct volume *v, struct quota_usage *out);

#endif
