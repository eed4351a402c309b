/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-plan: computes the new volume when bricks are added, removed or replaced: which bricks stay, come
 * and leave. Refuses calls that make no sense. A plan is a plain value, like a volume: this module touches
 * no disk and no brick.
 *
 * Bricks keep their ids, so that the records of clients and bricks about them stay true. A replacement
 * brick gets the id of the brick that it replaces.
 */
#ifndef KILN_VOLUMES_BRICK_PLAN_H
#define KILN_VOLUMES_BRICK_PLAN_H

#include "volumes/problem.h"
#include "volumes/volume.h"

struct brick_plan {
    struct volume *fresh; /* the volume after the change; owned by the plan */
    bool comes[VOLUME_BRICKS_MAX];  /* indexed as the bricks of `fresh`: the brick is new */
    bool leaves[VOLUME_BRICKS_MAX]; /* indexed as the bricks of the old volume: the brick leaves */
    bool is_fewer_replicas;         /* the remaining bricks hold the files of the leaving ones */
};

/* Each of the next functions fills *plan, which brick_plan_end() releases, also after a failure. They
 * return 0 or -errno with *why. */

/* `added` is a volume with the new bricks. `replica` 0 keeps the number of replicas. */
int brick_plan_add(struct brick_plan *plan, const struct volume *now, const struct volume *added,
                   unsigned replica, bool with_arbiter, struct problem *why);
/* The bricks of `removed` are identified by their paths. */
int brick_plan_remove(struct brick_plan *plan, const struct volume *now, const struct volume *removed,
                      unsigned replica, struct problem *why);
/* `to` is a volume with one brick. The brick may have the path of the old one, if the folder was created
 * anew. */
int brick_plan_replace(struct brick_plan *plan, const struct volume *now, const char *from,
                       const struct volume *to, struct problem *why);
void brick_plan_end(struct brick_plan *plan);
/* Tells whether this brick of `fresh` is in a set of new bricks only, which lack nothing. */
bool brick_plan_is_whole_set(const struct brick_plan *plan, const struct volume *now, unsigned brick);

#endif
