/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* quota: limits of whole volumes and of folders, enforced by features/simple-quota of the bricks.
 *
 * The limit of a volume is its option kiln.limit. Each brick stores it as the limit of its root folder,
 * which is a namespace; quotas_follow() updates the bricks after a brick or the option has changed. The
 * limit of a folder is stored only as an xattr of the folder on each brick.
 *
 * A brick counts its own files. In a volume with several subvolumes, kilnd tells each brick once a second
 * the usage of all bricks, so that a limit holds for their sum. Within that second each brick adds its own
 * changes and those of the bricks in the same process (simple-quota/shared.c), so the bricks of one process
 * pass the limit by at most one write each. Bricks of other hosts may add their writes until the next sum of
 * each host: a second, or 0.1 s above 7/8 of the limit. A brick keeps the sum beyond its end. While a brick
 * of some subvolume is missing, the usage of that subvolume counts as in the last sum that had the subvolume.
 * The usage of a replicated volume is that of the fullest replica of each set. A brick of a dispersed set
 * with K data bricks counts its fragments: its limit is 1/K of the user's limit, rounded down. All figures
 * here are bytes of fragments, but for those of quota_usage(), quota_list() and quota_describe(). Hosts
 * of a store give each other the usage of their bricks (quota-hosts.h, cluster-quota.h); all functions here
 * touch the bricks of this host only.
 *
 * Threads: quotas_follow(), quota_set() and quota_list() wait for disks; any thread that may make brick
 * calls (brick-call.h) may call them. quota_usage() may be called by any thread and does not wait. */
#ifndef KILN_VOLUMES_QUOTA_H
#define KILN_VOLUMES_QUOTA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "volumes/problem.h"
#include "volumes/quota-rows.h"

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

/* Checks that all bricks of this host are online and have the folder `path`, which starts at the root of the
 * volume. Returns 0 or -errno. */
int quota_check(const struct volume *v, const char *path, struct problem *why);
/* Sets the limit of the folder on the bricks of this host; 0 removes the limit. The bricks must pass
 * quota_check(). Returns 0 or -errno. */
int quota_set(const struct volume *v, const char *path, uint64_t limit, struct problem *why);
/* Returns {"name": ..., "limits": [{"path", "limit", "used", "counting"}, ...]}, with the limit of the
 * volume as "/". Returns 0 or -errno. */
int quota_list(const struct volume *v, json_t **out, struct problem *why);
/* The same from rows of all hosts. `paths`: the paths of folders that no brick of this host has, by their
 * gfids; NULL: none. */
int quota_describe(const struct volume *v, struct quota_rows *rows, const json_t *paths, json_t **out,
                   struct problem *why);
/* Lists the usage of the bricks of this host. quota_rows_end() releases the rows. */
void quota_own_rows(const struct volume *v, enum simple_quota_look look, struct quota_rows *r);
/* Finds the path of the folder from the root of the volume, by its handle on a brick of this host. `path` has
 * room for PATH_MAX bytes. */
bool quota_find_path(const struct volume *v, const struct gfid *gfid, char *path);

struct quota_usage {
    bool is_known; /* the volume counts usage, and a brick of each set is online */
    bool is_counting;
    uint64_t limit, used;
};
/* The usage of the whole volume. */
void quota_usage(const struct volume *v, struct quota_usage *out);

#endif
