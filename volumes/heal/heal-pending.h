/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-pending: lists the entries of a brick's index that wait for heal on other bricks. The functions
 * read the folder of the brick, without a client and without the brick's locks, so the result may include
 * entries that were healed meanwhile.
 *
 * thread: any thread that may wait for a disk.
 */
#ifndef KILN_VOLUMES_HEAL_PENDING_H
#define KILN_VOLUMES_HEAL_PENDING_H

#include <jansson.h>

#include "volumes/volume.h"

#define HEAL_PENDING_NAMED_MAX 1000
#define HEAL_PENDING_LOOKED_MAX 100000

#define HEAL_PENDING_JUDGED_MAX 10000

/* Returns at most HEAL_PENDING_JUDGED_MAX gfids of the brick's index as an array, a new reference; NULL
 * without memory. An index that cannot be read has none. */
json_t *heal_pending_gfids(const char *brick);

/* Returns {"count": N, "split_brain_count": N, "entries": ["/dir/file" or "<gfid:...>", ...],
 * "split_brain": the entries without a good copy, "under_heal": the entries that are healed at this moment,
 * "failed": {entry: text, ...}} as a new reference, with at most HEAL_PENDING_NAMED_MAX entries. If the index
 * cannot be read, the counts are null and "error" is set. Returns NULL without memory.
 *
 * `judged` has the self-heal daemon's judgement, an enum crawl_need for each gfid: entries that need no heal
 * are left out. NULL, or no member: the entry counts. `faults` has the text of the latest failed heal for
 * each gfid. Both may be NULL.
 *
 * With a store only bricks of this host are looked at, and "accused" has [gfid, mask, mask, mask, place] for
 * each object: the bricks of the set that bricks of this host accuse of missing data, metadata and names, and
 * the object's place in "entries". The host that puts the answers together judges by the masks of all bricks
 * (heal_pending_is_split()).
 *
 * An entry is in split-brain if another brick accuses (in its pending xattrs) each brick of the set of
 * missing changes of data or metadata. Names under which the bricks hold different objects are entries of
 * their own; at most HEAL_PENDING_LOOKED_MAX names are compared, in folders with pending entry changes.
 */
json_t *heal_pending_of_brick(const struct volume *v, unsigned brick, const json_t *judged,
                              const json_t *faults);

enum { HEAL_PENDING_KINDS = 3 };
/* Tells whether no brick of the set is good enough to heal the others: bit B of accused[0] and accused[1] is
 * set if a brick accuses brick B of missing changes of data, and of metadata. Pending changes of names do not
 * count. */
bool heal_pending_is_split(const struct volume *v, const unsigned accused[HEAL_PENDING_KINDS]);

/* Returns the number of objects that the brick accuses other bricks of having missed, or -errno if its
 * index cannot be read. */
long heal_pending_accused(const char *path);

#endif
