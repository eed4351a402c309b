/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* simple-quota: what the daemon asks and tells the layer of one of its bricks, beside the calls of clients.
 * The caller has the graph pinned.
 *
 * thread: any. Functions wait for the disk where that is said; else they take the layer's lock for as long as
 * its namespaces are counted. */
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
    bool is_counting; /* `used` is what was found so far */
};

/* The namespaces that the brick knows, in order of their gfids; *list is to be freed, also when it is
 * empty. `is_fresh`: objects that changed a moment ago are looked at first, on the disk. 0; -EOPNOTSUPP:
 * the brick does not count; -ENOMEM. */
int simple_quota_list(struct graph *g, bool is_fresh, struct simple_quota_usage **list, unsigned *count);
/* Each namespace that is in `totals`, which is in order of gfids, is told that all bricks hold `used`
 * together (glusterfs.quota.total-usage). */
void simple_quota_tell(struct graph *g, const struct simple_quota_usage *totals, unsigned count);
int simple_quota_compare(const void *a, const void *b); /* for qsort() of them */

#endif
