/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-marks: bricks are told that others of their set lack everything, as replicating clients tell them of
 * changes that others have missed: counts of pending changes on the root folder, which bring it into the
 * brick's index (brick 7.1). The self-heal daemon makes the root equal, marks what it makes there, and so
 * comes through the whole tree.
 *
 * thread: any that is registered with RCU and may wait for a disk; not a worker.
 */
#ifndef KILN_VOLUMES_BRICK_MARKS_H
#define KILN_VOLUMES_BRICK_MARKS_H

#include "volumes/problem.h"
#include "volumes/volume.h"

/* Brick `knows` of the volume, which is served, gets marks against those of its set for which `lacks` is
 * true. 0 or -errno with *why: -ENOENT, it is not served. */
int brick_marks_put(const struct volume *v, unsigned knows, const bool *lacks, struct problem *why);

#endif
