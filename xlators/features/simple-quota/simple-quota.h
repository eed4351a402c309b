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

struct simple_quota_usage {
    struct gfid ns;   /* the namespace's folder */
    int64_t limit;    /* bytes; 0: none */
    int64_t used;     /* bytes */
    bool is_counting; /* a count is running: `used` is the sum so far */
};

/* Lists the namespaces of the brick in order of their gfids. The caller frees *list, also when it is empty.
 * `is_fresh`: first stats, on the disk, the objects that changed a moment ago. Returns 0; -EOPNOTSUPP: the
 * brick does not count; -ENOMEM. */
int simple_quota_list(struct graph *g, bool is_fresh, struct simple_quota_usage **list, unsigned *count);
/* Tells each namespace in `totals` (in order of gfids) the sum `used` of all bricks
 * (glusterfs.quota.total-usage). */
void simple_quota_tell(struct graph *g, const struct simple_quota_usage *totals, unsigned count);
/* compares two struct simple_quota_usage by gfid, for qsort() */
int simple_quota_compare(const void *a, const void *b);

#endif
