/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-pending: what a brick's index says is to be healed on other bricks: read from the folder of the brick,
 * without a client and without its locks. What is healed meanwhile may still be named.
 *
 * thread: any that may wait for a disk.
 */
#ifndef KILN_VOLUMES_HEAL_PENDING_H
#define KILN_VOLUMES_HEAL_PENDING_H

#include <jansson.h>

#include "volumes/volume.h"

#define HEAL_PENDING_NAMED_MAX 1000
#define HEAL_PENDING_LOOKED_MAX 100000

/* {"count": N, "split_brain_count": N, "entries": ["/dir/file" or "<gfid:...>", ...], "split_brain": those of
 * the entries that have no good copy}, at most HEAL_PENDING_NAMED_MAX of them, a new reference; with "error"
 * where the index cannot be read, then the counts are null. NULL: no memory.
 *
 * In split-brain is what each brick of the set is accused by another one to have missed, in its data or its
 * metadata, as the bricks' folders say; and, as entries of their own, names that are other objects on other
 * bricks, in folders whose entries a brick has missed. HEAL_PENDING_LOOKED_MAX names are compared, at most.
 */
json_t *heal_pending_of_brick(const struct volume *v, unsigned brick);

/* How many objects the brick accuses others to have missed; -errno where its index cannot be read. */
long heal_pending_accused(const char *path);

#endif
