/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-data: the parts of a heal of fragments. heal-data.c has the whole, heal-block.c a range of stripes,
 * heal-mend.c counters of which no K are equal.
 *
 * thread: all functions run in the coroutine of the heal, under the lock on the file. */
#ifndef KILN_CLUSTER_DISPERSE_HEAL_DATA_H
#define KILN_CLUSTER_DISPERSE_HEAL_DATA_H

#include "xlators/cluster/disperse/heal.h"

struct ec_data_heal {
    struct ec_heal *h;
    child_set sources, sinks;
    bool compares; /* a client may have died during a write: the sources' fragments may not belong together */
    uint64_t size, version;
};

/* Heals `count` stripes from `first` on: compares the sources, mends stripes that do not belong together, and
 * writes to the sinks; a sink that fails is dropped. Returns 0 or -errno. */
int ec_heal_block(struct ec_data_heal *x, uint64_t first, size_t count);
/* Makes bytes behind the file's end, in the stripe that the file ends in, zeros, if a dead client has left
 * others. x->size must be the size now. Returns 0 or -errno. */
int ec_heal_last_stripe(struct ec_data_heal *x);
/* Sets *is to whether the fragments of the children `of`, more than K, belong together in `count` stripes
 * from `first` on. Returns 0 or -errno. */
int ec_block_belongs(struct ec_heal *h, child_set of, uint64_t first, size_t count, bool *is);
/* Makes the counters of children equal whose fragments belong together, and sets *out to these children, at
 * least K, of which K have all stripes of the size; 0: the fragments do not decide. Returns 0 or -errno. */
int ec_mend_counters(struct ec_data_heal *x, child_set *out);
/* Returns the length of the n-th longest fragment of the children `of`, in chunks; 0: fewer children. */
uint64_t ec_nth_longest(const struct ec_heal *h, child_set of, unsigned n);
/* Returns the children of `of` whose fragments have at least this length, in chunks. */
child_set ec_at_least(const struct ec_heal *h, child_set of, uint64_t chunks);

#endif
