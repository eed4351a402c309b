/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* layout: which subvolume has which part of a folder's names: one range of hashes for each.
 *
 * A layout is put together from what the subvolumes have said of a folder (layout_read, layout_failed), then
 * settled, and from then on only read: whoever has a reference may look at it. A range is on disk as 16
 * bytes, the xattr trusted.glusterfs.dht: four numbers of 32 bits, big-endian: commit hash, type, start,
 * stop, both ends included. 0 to 0 is no range.
 *
 * thread: the one that puts it together; settled: any.
 */
#ifndef KILN_DISTRIBUTE_LAYOUT_H
#define KILN_DISTRIBUTE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refcount.h"

#define LAYOUT_BYTES 16
#define LAYOUT_CHILDREN_MAX 65535
/* The commit hash that no volume has: names are looked for everywhere. */
#define LAYOUT_COMMIT_INVALID 1

enum { LAYOUT_NORMAL = 0, LAYOUT_SET_BY_USER = 1 };

/* A subvolume that has the folder, but no range on disk. Others: 0, or what its LOOKUP failed with. */
enum { LAYOUT_NO_XATTR = -1 };

struct layout_range {
    int32_t err; /* 0, LAYOUT_NO_XATTR, or an errno */
    uint32_t commit, type, start, stop;
    uint16_t sorted; /* of the layout: the child of the n-th range, by start */
};

struct layout {
    struct refcount refs;
    uint32_t generation; /* of who keeps it: older ones are asked for again */
    uint32_t commit;     /* LAYOUT_COMMIT_INVALID unless all agree */
    uint16_t count, range_count;
    bool is_pooled;
    struct layout_range of[]; /* by child */
};

/* What is wrong with it. */
struct layout_flaws {
    unsigned holes, overlaps;
    unsigned missing;  /* the folder is not there, or has no gfid (ENODATA) */
    unsigned no_xattr; /* it is, without a range */
    unsigned away;     /* ENOTCONN */
    unsigned other;    /* further errors, and what does not decode */
};

int layout_pools_init(void);
/* All of its children ENOTCONN. NULL: no memory. */
struct layout *layout_new(unsigned count, uint16_t owner);
struct layout *layout_ref(struct layout *l);
void layout_unref(struct layout *l); /* NULL allowed */

/* Child `i` has the folder, with this xattr; NULL: with none. What is no range (another length or type, a
 * start behind its stop) is an error of this child: EINVAL. */
void layout_read(struct layout *l, unsigned i, const void *bytes, size_t len);
void layout_failed(struct layout *l, unsigned i, int err);
/* All have been heard. */
void layout_settle(struct layout *l);

void layout_write(const struct layout_range *r, uint8_t bytes[LAYOUT_BYTES]);
bool layout_range_is_empty(const struct layout_range *r);
void layout_check(const struct layout *l, struct layout_flaws *out);
/* Whose range has the hash; -1: nobody's. */
int layout_find(const struct layout *l, uint32_t hash);
bool layout_equal(const struct layout *a, const struct layout *b);

/* A new distribution over the children whose err is 0 or LAYOUT_NO_XATTR and whose weight is not 0. The
 * first of `order` (all children, in the order that all clients use) to get a range is the one that `hash`
 * names, and at most `spread` of them get one (0: all). All others get the empty range. Settles the layout.
 * */
struct layout_plan {
    const uint16_t *order;
    const uint32_t *weights;
    uint32_t hash, spread, commit;
};
void layout_assign(struct layout *l, const struct layout_plan *plan);

#endif
