/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-place: chooses hosts and folders for bricks. A host offers the folders of its --brick-root; a
 * brick is a folder below with the name of the volume and of the brick's number. Live hosts with most free
 * bytes come first, among equals those with fewer bricks. No replica set gets two bricks of one host.
 *
 * Returns 0 or -errno with *why; thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_PLACE_H
#define KILN_VOLUMES_CLUSTER_PLACE_H

#include <stdint.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* Adds the bricks of `sets` replica sets to a volume without bricks. `bytes`: the free space that each brick
 * needs. */
int cluster_place_sets(struct volume *v, unsigned sets, uint64_t bytes, struct problem *why);
/* Adds to `to`, a volume without bricks, the replacement of this brick of `v`, on a host that has none of the
 * brick's set. */
int cluster_place_other(const struct volume *v, unsigned brick, struct volume *to, struct problem *why);

#endif
