/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fragments: tells whether a dispersed set can do without a brick: at least K other bricks are served, and
 * have the newest fragment of each object. Only objects in the bricks' indices can lack fragments. The
 * functions read the folders of the bricks, which are on this host, without locks; the counters of an object
 * that a client changes at this moment are read again for a while.
 *
 * thread: any thread that may wait for a disk.
 */
#ifndef KILN_VOLUMES_FRAGMENTS_H
#define KILN_VOLUMES_FRAGMENTS_H

#include <stdbool.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* Returns 0 if the set of this brick can do without it, or -errno with *why. */
int fragments_check_without(const struct volume *v, unsigned brick, struct problem *why);

#endif
