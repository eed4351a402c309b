/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* simple-quota: the requests of the daemon to the quota layer of one of its bricks. The caller has the graph
 * pinned.
 *
 * thread: any. A function may wait for the disk where its comment says so. Otherwise it only takes the
 * layer's lock, for as long as it needs to walk the namespaces. */
#ifndef KILN_SIMPLE_QUOTA_H
#define KILN_SIMPLE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gfid.h"

struct graph;
struct squota_shared;

struct simple_quota_usage {
    struct gfid ns;   /* the namespace's folder */
    int64_t limit;    /* bytes; 0: none */
    int64_t used;     /* bytes */
    bool is_counting; /* a count is running: `used` is the sum so far */
};

enum simple_quota_look {
    SIMPLE_QUOTA_AS_KNOWN,
    SIMPLE_QUOTA_FRESH,  /* first stats, on the disk, the objects that changed a moment ago: may wait */
    SIMPLE_QUOTA_TO_TELL /* fresh, for a sum that simple_quota_tell() will tell the brick */
};
/* Lists the namespaces of the brick in order of their gfids. The caller frees *list, also when it is empty.
 * Returns 0; -EOPNOTSUPP: the brick does not count; -ENOMEM. */
int simple_quota_list(struct graph *g, enum simple_quota_look look, struct simple_quota_usage **list,
                      unsigned *count);

struct simple_quota_told {
    struct gfid ns;
    int64_t total;                /* bytes that all bricks use */
    int64_t local;                /* those of them that bricks of this process use, as listed */
    struct squota_shared *shared; /* of these bricks; NULL: none */
};
/* Tells each namespace in `list` (in order of gfids) the sum of all bricks (glusterfs.quota.total-usage). The
 * brick adds its own changes since the last listing SIMPLE_QUOTA_TO_TELL, and those of the other bricks in
 * `shared`, where the brick has the number `cell` (< 0: none). `missing`: 0, or a number that stands for the
 * set of subvolumes that the sum lacks. Their usage counts as in the last sum that had
 * the subvolumes. A brick keeps the sum beyond the brick's end. */
void simple_quota_tell(struct graph *g, const struct simple_quota_told *list, unsigned count, int cell,
                       uint32_t missing);
/* The volume has no other subvolume any more: makes the brick forget the sum. */
void simple_quota_untell(struct graph *g);

/* Usage of the bricks of one volume in this process: a cell for each brick, `replica` cells for each
 * subvolume. The cells are 0 at first. The caller gets a reference. NULL: no memory. */
struct squota_shared *simple_quota_shared_new(unsigned bricks, unsigned replica);
void simple_quota_shared_set(struct squota_shared *s, unsigned cell, int64_t bytes);
struct squota_shared *simple_quota_shared_ref(struct squota_shared *s);
void simple_quota_shared_unref(struct squota_shared *s);

/* compares two struct simple_quota_usage by gfid, for qsort() */
int simple_quota_compare(const void *a, const void *b);

#endif
