/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-plan: what becomes of a volume when bricks are added, removed or replaced: which stay, come and
 * leave, and which of these calls makes no sense. A value, as volumes are: nothing here touches a disk or a
 * brick.
 *
 * Bricks keep their ids, so that what clients and bricks note down about them stays true. What replaces a
 * brick gets its id.
 */
#ifndef KILN_VOLUMES_BRICK_PLAN_H
#define KILN_VOLUMES_BRICK_PLAN_H

#include "volumes/problem.h"
#include "volumes/volume.h"

struct brick_plan {
    struct volume *fresh; /* what the volume becomes; the plan's */
    bool comes[VOLUME_BRICKS_MAX];  /* of fresh's bricks: it is made */
    bool leaves[VOLUME_BRICKS_MAX]; /* of the old volume's: it goes */
    bool is_fewer_replicas;         /* the files of those that leave are in bricks that stay */
};

/* Each fills *plan, which brick_plan_end() empties, also after a failure. 0 or -errno with *why. */

/* `added`: a volume whose bricks are the new ones. `replica` 0: as it is. */
int brick_plan_add(struct brick_plan *plan, const struct volume *now, const struct volume *added,
                   unsigned replica, bool with_arbiter, struct problem *why);
/* The bricks of `removed`, by their paths. */
int brick_plan_remove(struct brick_plan *plan, const struct volume *now, const struct volume *removed,
                      unsigned replica, struct problem *why);
/* `to`: a volume with one brick. It may have the path of the old one: a folder that was made anew. */
int brick_plan_replace(struct brick_plan *plan, const struct volume *now, const char *from,
                       const struct volume *to, struct problem *why);
void brick_plan_end(struct brick_plan *plan);

#endif
