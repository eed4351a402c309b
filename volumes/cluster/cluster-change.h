/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-change: changes of volumes whose bricks are on several hosts. Any host makes a change: it reads the
 * volume from the store, computes the new one, and writes it by a transaction that compares the revision
 * read. If another host was faster, it begins again with the newer volume. Then it waits until the hosts
 * with bricks of the volume have applied the change.
 *
 *     create   CREATING, bound to the lease of the host ─▶ each host makes its bricks ─▶ CREATED
 *     start    STARTED ─▶ each host attaches; one fails and no force: the former status again
 *     set      the new options ─▶ each host applies; one refuses: the former options again
 *     stop, delete    a host that is down follows when it returns
 *
 * Deaths: a dead creator loses its lease, the volume vanishes from the store, and each host undoes the bricks
 * that it made: at once, or when it returns, by the copy in its state folder. A host that dies while it makes
 * bricks fails the create. A creator that dies after CREATED has created the volume. One that dies after
 * STARTED leaves a started volume; status shows bricks that did not start. One that dies after the new
 * options leaves the options, and a brick that refuses them keeps its former ones and reports the refusal in
 * its host's log.
 *
 * All functions: 0 or -errno with *why; thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_CHANGE_H
#define KILN_VOLUMES_CLUSTER_CHANGE_H

#include <jansson.h>
#include <stdbool.h>

#include "volumes/cluster/store.h"
#include "volumes/problem.h"
#include "volumes/volume.h"

/* As the functions of volumes.h with the same names. */
int cluster_create(struct volume *v, struct problem *why);
int cluster_adopt(struct volume *v, struct problem *why);
/* As volumes_start(). */
int cluster_start_volume(const char *name, bool is_forced, struct problem *why);
int cluster_stop_volume(const char *name, struct problem *why);
int cluster_delete(const char *name, struct problem *why);
int cluster_set(const char *name, const json_t *options, struct problem *why);
int cluster_reset(const char *name, const char *key, unsigned *count, struct problem *why);
/* Like volumes_change(). `also` (NULL: none) is made in the same transaction, if its revision allows. */
int cluster_change(const char *name, int (*fn)(struct volume *fresh, void *arg, struct problem *why),
                   void *arg, const struct store_change *also, struct problem *why);
/* Removes a host that is down and has no brick. */
int cluster_remove_host(const char *host, struct problem *why);

struct cluster_ask;
/* Lists each host with bricks of the volume once, and this host. Returns the number. `asks` has room for
 * brick_count + 1. */
unsigned cluster_hosts_of(const struct volume *v, struct cluster_ask *asks);
/* Asks these hosts, which must all answer. Consumes `args`. *why: the first failure. */
int cluster_ask_hosts(const struct volume *v, const char *verb, json_t *args, struct problem *why);

/* For cluster-bricks.c. Returns the volume as the store has it, or NULL with *why. */
struct volume *cluster_read_volume(const char *name, int64_t *revision, struct problem *why);
/* Compares the bricks with those of all other volumes. *layout: the revision of this check. */
int cluster_compare_paths(const struct volume *v, int64_t *layout, struct problem *why);
/* Writes `fresh` in the place of `now`, waits for the hosts, and takes the change back if a host refuses. */
int cluster_commit(const struct volume *now, const struct volume *fresh, int64_t from, int64_t layout,
                   int64_t *at, struct problem *why);

/* Answers the question of a host (cluster-ask.h). *out: a new reference, or NULL. */
int cluster_serve(const char *verb, json_t *args, json_t **out, struct problem *why);

#endif
