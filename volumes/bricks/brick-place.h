/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-place: turns a path into the folder of a brick with the volume's id, and back. The definition of
 * the volume says how to undo each step, so a daemon that was killed between two steps can undo them at
 * its next start.
 */
#ifndef KILN_VOLUMES_BRICK_PLACE_H
#define KILN_VOLUMES_BRICK_PLACE_H

#include <stdbool.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* Checks whether this path can become a brick, and changes nothing. The path must be an empty folder, or
 * be missing in an existing folder; its file system must be writable; neither the folder nor a folder
 * above it may belong to a volume. Returns 0 with *is_missing (true: the folder must be created), or
 * -errno with *why. */
int brick_place_check(const char *path, bool *is_missing, struct problem *why);

/* Creates the folder if `made` is true, and writes the volume's id to it. Returns 0, or -errno with *why;
 * then the path is as before. */
int brick_place_make(const struct volume *v, const struct volume_brick *b, struct problem *why);

/* Removes this volume's id, and then removes the folder if it was created for the brick and is empty. Does
 * nothing for a place that was never made. Returns 0 or -errno with *why. */
int brick_place_unmake(const struct volume *v, const struct volume_brick *b, struct problem *why);

/* For a folder that has this volume's id and that no client has seen: removes the files that the daemon's
 * own layers created below .glusterfs while the brick was attached. Returns 0 or -errno with *why. */
int brick_place_clear(const struct volume *v, const struct volume_brick *b, struct problem *why);

/* Returns the number of bricks of the volume, this brick included, on the file system of this brick; 1 if
 * that is unknown. */
unsigned brick_place_shared(const struct volume *v, unsigned brick);

#endif
