/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-age: recognizes a brick whose disk was set back, for example to a snapshot of last week. The other
 * bricks do not accuse (pending xattr) such a brick of the writes that it had and lost, so clients would read
 * its old data.
 *
 *     HOST's kilnd: BRICK/.glusterfs/kiln-age gets N + 1, on disk ─▶ store: ages/HOST = {brick: N + 1, ...}
 *
 * An age grows when its kilnd starts, each BRICK_AGE_S seconds while calls change the brick, once after the
 * last of these calls, and when kilnd ends in order, after the last client is gone. A brick with a lower age
 * than in the store is refused. A brick without an age is taken: it is new, or was made by an older kilnd. So
 * after an orderly end each disk that goes back is recognized. After a kill or a loss of power, a disk that
 * goes back to a moment less than BRICK_AGE_S seconds before is not.
 *
 * Deaths: between the two steps the brick is ahead of the store, which is no flaw; the next start closes the
 * gap. A store that was restored
 * from a backup is behind the bricks, likewise. A host that starts without its store serves its bricks, and
 * ends a brick that was set back when the store answers.
 *
 * Without a store (cluster.h) the functions do nothing. One mutex guards the ages; it is held while they are
 * read from the store, and not during a system call on a brick.
 *
 * thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_BRICK_AGE_H
#define KILN_VOLUMES_BRICK_AGE_H

#include <stdbool.h>
#include <stddef.h>

#include "volumes/volume.h"

enum { BRICK_AGE_S = 12 };

/* Returns 0 if the brick may be attached, or -EIO with a text. A store that does not answer is no
 * error. */
int brick_age_check(const struct volume *v, unsigned brick, char *error, size_t error_size);
/* Lets the ages of the attached and changed bricks of this host grow, in a thread that may hang in a dead
 * disk. */
void brick_ages_grow(void);
/* Lets that thread end; a thread that hangs in a dead disk is left behind after 10 s. */
void brick_ages_end(void);
/* Lets the ages grow a last time, after brick_ages_end() and after the bricks were detached. Without a store
 * the ages stay. */
void brick_ages_finish(bool is_store_there);

#endif
