/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* children: sets of the children of a layer that fans out to the same bricks each time (cluster/replicate,
 * cluster/disperse). Plain values; any thread. */
#ifndef KILN_CLUSTER_CHILDREN_H
#define KILN_CLUSTER_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gfid.h"

#define FAN_CHILDREN_MAX 31
typedef uint32_t child_set; /* bit i: child i */
#define CHILD(i) ((child_set)1 << (i))
#define CHILDREN(n) ((child_set)(((uint64_t)1 << (n)) - 1))

/* Returns the number of children in the set. */
static inline unsigned
children_count(child_set s)
{
    return (unsigned)__builtin_popcount(s);
}

/* Returns the first child of a set that is not empty. */
static inline unsigned
child_first(child_set s)
{
    return (unsigned)__builtin_ctz(s);
}

/* SuperFastHash of a gfid; spreads the reads of files over the children, in all clients alike. */
uint32_t gfid_super_fast_hash(const struct gfid *gfid);

/* A single loop statement, so that `break` and `continue` work as usual. */
#define for_each_child(i, set)                                                                               \
    for (child_set i##_left = (set), i = 0; i##_left && (i = child_first(i##_left), true);                   \
         i##_left &= i##_left - 1)

#endif
