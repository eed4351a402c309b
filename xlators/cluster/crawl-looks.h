/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* crawl-looks: the results of a set's latest crawls, for `heal statistics`, and the pause before the next
 * crawl. A look is the reading of one child's index, or a walk of the whole tree, which counts as a look at
 * the first child.
 *
 * thread: any; one crawl of a child at a time. */
#ifndef KILN_CLUSTER_CRAWL_LOOKS_H
#define KILN_CLUSTER_CRAWL_LOOKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/gfid.h"

enum { CRAWL_LOOKS_KEPT = 10 };

struct crawl_look {
    bool is_full, is_running;
    time_t started, ended;
    uint64_t healed, split, failed;
    uint64_t left;       /* objects of the list that are still to be healed; of a full crawl: folders */
    struct gfid current; /* object whose heal began last */
};

struct crawl_looks;

/* NULL: no memory. */
struct crawl_looks *looks_new(unsigned children);
void looks_free(struct crawl_looks *l);
/* Begins a look at the child; the functions below change the look that began last. */
void looks_begin(struct crawl_looks *l, unsigned child, bool is_full);
void looks_end(struct crawl_looks *l, unsigned child);
void looks_set_left(struct crawl_looks *l, unsigned child, uint64_t left);
void looks_begin_object(struct crawl_looks *l, unsigned child, const struct gfid *gfid);
enum look_result { LOOK_NOTHING, LOOK_HEALED, LOOK_SPLIT, LOOK_FAILED };
/* `is_listed`: the object was one of those that are left. */
void looks_end_object(struct crawl_looks *l, unsigned child, enum look_result result, bool is_listed);
/* Fills at most CRAWL_LOOKS_KEPT looks at the child, the oldest first. Returns their number. */
unsigned looks_get(struct crawl_looks *l, unsigned child, struct crawl_look out[CRAWL_LOOKS_KEPT]);

/* After the crawl at a child's return, further crawls follow: a client that reaches the child later than the
 * self-heal daemon changes objects without the child until then, after the daemon has read their list.
 *
 * Returns the milliseconds until the next crawl: `pause_ms`, or fewer if a follow-up is due before. `*done`
 * counts the follow-ups; CRAWL_FOLLOW_UPS: none is due. The caller's lock guards it. */
enum { CRAWL_FOLLOW_UPS = 3 };
uint64_t crawl_next_pause(unsigned *done, uint64_t pause_ms);

#endif
