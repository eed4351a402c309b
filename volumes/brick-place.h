/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-place: the folder of a brick, from nothing to a folder that carries the volume's id, and back. Each
 * step can be undone by what the volume's definition says, so that a daemon killed between two of them can.
 */
#ifndef KILN_VOLUMES_BRICK_PLACE_H
#define KILN_VOLUMES_BRICK_PLACE_H

#include <stdbool.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* May this path become a brick? It is an empty folder, or nothing in a folder that is there; the file system
 * can be written; neither it nor a folder above it belongs to a volume. Changes nothing. 0 with *is_missing:
 * it will have to be made. -errno with *why. */
int brick_place_check(const char *path, bool *is_missing, struct problem *why);

/* Makes the folder if `made` says so, and writes the volume's id to it. 0, or -errno with *why: then it is as
 * it was. */
int brick_place_make(const struct volume *v, const struct volume_brick *b, struct problem *why);

/* Takes the id away if it is this volume's, and then removes a folder that was made for it, if it is empty.
 * Of a place that was never made: nothing. 0 or -errno with *why. */
int brick_place_unmake(const struct volume *v, const struct volume_brick *b, struct problem *why);

/* Of a folder that has this volume's id, and that no client has got to see: takes away what the daemon's own
 * layers have put below .glusterfs when it was served. 0 or -errno with *why. */
int brick_place_clear(const struct volume *v, const struct volume_brick *b, struct problem *why);

/* How many of the volume's bricks lie on the file system of this one, itself included; 1 if nobody can
 * tell. */
unsigned brick_place_shared(const struct volume *v, unsigned brick);

#endif
