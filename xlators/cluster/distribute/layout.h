/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* layout: the distribution of a folder's names over the subvolumes: one range of hashes for each subvolume.
 *
 * A layout is built from the subvolumes' replies about a folder (layout_read, layout_failed), then settled.
 * A settled layout is read-only: any thread with a reference may read it. On disk a range is an xattr of 16
 * bytes, trusted.glusterfs.dht: four big-endian numbers of 32 bits: commit hash, type, start, stop, both
 * ends included. 0 to 0 is no range.
 *
 * thread: before layout_settle() the building thread, afterwards any. */
#ifndef KILN_DISTRIBUTE_LAYOUT_H
#define KILN_DISTRIBUTE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/refcount.h"

#define LAYOUT_BYTES 16
#define LAYOUT_CHILDREN_MAX 65535
/* A commit hash that no volume has: names are looked up on all subvolumes. */
#define LAYOUT_COMMIT_INVALID 1

enum { LAYOUT_NORMAL = 0, LAYOUT_SET_BY_USER = 1 };

/* err of a subvolume that has the folder, but no range on disk. */
enum { LAYOUT_NO_XATTR = -1 };

struct layout_range {
    int32_t err; /* 0, LAYOUT_NO_XATTR, or the errno of the LOOKUP */
    uint32_t commit, type, start, stop;
    uint16_t sorted; /* child with the n-th range by start (an array over all ranges) */
};

struct layout {
    struct refcount refs;
    uint32_t generation; /* generation of struct dist; a layout of an older generation is refreshed */
    uint32_t commit;     /* LAYOUT_COMMIT_INVALID unless all ranges have the same commit hash */
    uint16_t count, range_count;
    bool is_pooled;
    struct layout_range of[]; /* indexed by child */
};

/* Counts of a layout's defects. */
struct layout_flaws {
    unsigned holes, overlaps;
    unsigned missing;  /* the folder does not exist there, or has no gfid (ENODATA) */
    unsigned no_xattr; /* the folder exists, without a range */
    unsigned away;     /* ENOTCONN */
    unsigned other;    /* other errors, and xattrs that do not decode */
};

int layout_pools_init(void);
/* Returns a layout with err ENOTCONN for all children. NULL: out of memory. */
struct layout *layout_new(unsigned count, uint16_t owner);
struct layout *layout_ref(struct layout *l);
void layout_unref(struct layout *l); /* NULL allowed */

/* Sets the range of child `i`, which has the folder, from the xattr; NULL: no xattr. An invalid xattr
 * (another length or type, or start greater than stop) becomes the child's error EINVAL. */
void layout_read(struct layout *l, unsigned i, const void *bytes, size_t len);
void layout_failed(struct layout *l, unsigned i, int err);
/* Completes the layout after the replies of all children. */
void layout_settle(struct layout *l);

void layout_write(const struct layout_range *r, uint8_t bytes[LAYOUT_BYTES]);
bool layout_range_is_empty(const struct layout_range *r);
void layout_check(const struct layout *l, struct layout_flaws *out);
/* Returns the child whose range has the hash; -1: no range has it. */
int layout_find(const struct layout *l, uint32_t hash);
bool layout_equal(const struct layout *a, const struct layout *b);

/* Computes a new distribution over the children whose err is 0 or LAYOUT_NO_XATTR and whose weight is not
 * 0. `order` has all children in the order that all clients use; `hash` selects the first child in this
 * order that gets a range. At most `spread` children get one (0: all); all other children get the empty
 * range. Settles the layout. */
struct layout_plan {
    const uint16_t *order;
    const uint32_t *weights;
    uint32_t hash, spread, commit;
};
void layout_assign(struct layout *l, const struct layout_plan *plan);
/* Exchanges the ranges of `l` among the children that have one, so that many hashes stay where `old` has
 * them; only if all ranges are equally large (but for rounding). Returns 0 or -ENOMEM. */
int layout_keep_near(struct layout *l, const struct layout *old);

#endif
