/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-marks: makes a brick accuse other bricks of its set of lacking everything, in the way in which
 * replicating clients record missed changes: by counts of pending changes on the root folder, which also
 * put the folder into the brick's index (brick 7.1). The self-heal daemon repairs the root folder, marks
 * each object that it creates there as incomplete, and so heals the whole tree. A brick of a dispersed set
 * sets the dirty mark of the root folder instead, and accuses no brick.
 *
 * thread: any thread that is registered with RCU and may wait for a disk; not a worker.
 */
#ifndef KILN_VOLUMES_BRICK_MARKS_H
#define KILN_VOLUMES_BRICK_MARKS_H

#include "volumes/problem.h"
#include "volumes/volume.h"

/* Marks, on the online brick `knows`, the bricks of its set for which `lacks` is true. Returns 0 or -errno
 * with *why; -ENOENT: brick `knows` is offline. */
int brick_marks_put(const struct volume *v, unsigned knows, const bool *lacks, struct problem *why);

#endif
