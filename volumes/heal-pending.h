/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-pending: what a brick's index says is to be healed on other bricks: read from the folder of the brick,
 * without a client and without its locks. What is healed meanwhile may still be named.
 *
 * thread: any that may wait for a disk.
 */
#ifndef KILN_VOLUMES_HEAL_PENDING_H
#define KILN_VOLUMES_HEAL_PENDING_H

#include <jansson.h>

#define HEAL_PENDING_NAMED_MAX 1000

/* {"count": N, "entries": ["/dir/file" or "<gfid:...>", ...]}, at most HEAL_PENDING_NAMED_MAX of them, a new
 * reference; with "error" where the index cannot be read, then "count" is null. NULL: no memory. */
json_t *heal_pending_of_brick(const char *path);

#endif
