/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* quota: limits of whole volumes and of folders, enforced by features/simple-quota of the bricks.
 *
 * The limit of a volume is its option kiln.limit. Each brick stores it as the limit of its root folder,
 * which is a namespace; quotas_follow() updates the bricks after a brick or the option has changed. The
 * limit of a folder is stored only as an xattr of the folder on each brick.
 *
 * A brick counts its own files. In a volume with several subvolumes, kilnd tells each brick once a second
 * the usage of all bricks, so that a limit holds for their sum; within that second each brick checks its
 * own additions only. The usage of a replicated volume is that of the fullest replica of each set.
 *
 * Threads: quotas_follow(), quota_set() and quota_list() wait for disks; any thread that may make brick
 * calls (brick-call.h) may call them. quota_usage() may be called by any thread and does not wait. */
#ifndef KILN_VOLUMES_QUOTA_H
#define KILN_VOLUMES_QUOTA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "volumes/problem.h"

struct volume;

/* Must run before all other functions. */
void quotas_begin(void);
/* Sets the limit of the volume on its bricks. Logs failures. */
void quotas_follow(const char *name);
/* Removes the volume's limit from its bricks. Must run before the option is removed, because a brick that
 * stops counting keeps the xattr. */
void quota_clear(const struct volume *v);
/* Stops telling bricks the usage of others. Must run before workers_stop(). */
void quotas_stop(void);

/* Sets the limit of the folder `path`, which starts at the root of the volume; 0 removes the limit. All
 * bricks must be online. Returns 0 or -errno. */
int quota_set(const struct volume *v, const char *path, uint64_t limit, struct problem *why);
/* Returns {"name": ..., "limits": [{"path", "limit", "used", "counting"}, ...]}, with the limit of the
 * volume as "/". Returns 0 or -errno. */
int quota_list(const struct volume *v, json_t **out, struct problem *why);

struct quota_usage {
    bool is_known; /* the volume counts usage, and a brick of each set is online */
    bool is_counting;
    uint64_t limit, used;
};
/* The usage of the whole volume. */
void quota_usage(const struct volume *v, struct quota_usage *out);

#endif
