/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fragments: tells whether a dispersed set can do without a brick: at least K other bricks are served, and
 * have the newest fragment of each object. Only objects in the bricks' indices can lack fragments. The
 * functions read the folders of the bricks without locks; the counters of an object that a client changes at
 * this moment are read again for a while.
 *
 * With a store the bricks are on several hosts. Each host reads its own bricks (fragments_here()), and the
 * host that changes the volume asks all of them (cluster-bricks.c).
 *
 * thread: any thread that may wait for a disk.
 */
#ifndef KILN_VOLUMES_FRAGMENTS_H
#define KILN_VOLUMES_FRAGMENTS_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* Reads the bricks of this host in the set that begins with brick `first`. Without `gfids`: {"online":
 * [number of each served brick], "gfids": [each object in an index]}; else {"NUMBER": [[exists, data
 * version, metadata version, size] of each gfid]} of each served brick. An index that cannot be read is that
 * of a lost brick. Returns a new reference; NULL: no memory. */
json_t *fragments_here(const struct volume *v, unsigned first, const json_t *gfids);

/* Asks all hosts of the set as fragments_here(), and merges the answers. NULL with *why. */
typedef json_t *fragments_ask(const struct volume *v, unsigned first, const json_t *gfids,
                              struct problem *why);

/* Returns 0 if the set of this brick can do without it, or -errno with *why. `ask` NULL: all bricks are on
 * this host. */
int fragments_check_without(const struct volume *v, unsigned brick, fragments_ask *ask, struct problem *why);

#endif
