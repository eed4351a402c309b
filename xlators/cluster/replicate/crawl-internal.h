/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* crawl-internal: the crawler, shared by its parts. crawl.c walks the indices and the tree and heals;
 * crawl-new-bricks.c waits before that for clients that do not know a new brick; crawl-questions.c answers
 * questions about objects, and resolves split-brain. */
#ifndef KILN_REPLICATE_CRAWL_INTERNAL_H
#define KILN_REPLICATE_CRAWL_INTERNAL_H

#include "event/timer.h"
#include "xlators/cluster/replicate/crawl.h"
#include "xlators/cluster/replicate/heal.h"

enum { WANTS_INDEX = 1, WANTS_FULL = 2 };

struct crawler {
    struct graph *graph;
    struct replicate *r;
    unsigned share;
    bool heals;
    bool has_made_hidden; /* of the running crawl */
    child_set accused;    /* new children whose objects are accused; of the running crawl */
    struct timer timer; /* until the next crawl */
    struct worker_job job;
    struct crawl_looks *looks;

    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t ended;
    unsigned wanted; /* bits WANTS_*: crawls that are still to begin */
    unsigned doing;  /* bits WANTS_* of the running crawl */
    bool is_running, is_stopped;
    unsigned retries; /* crawls in turn that left failed heals */
    unsigned follow_ups; /* crawls since a child came up; crawl_next_pause() */
    struct crawl_fault faults[CRAWL_FAULTS_KEPT];
    unsigned fault_count;
    char waits_for[256]; /* the client that the crawl waits for; "": none */
    struct gfid under_heal[CRAWL_OBJECTS_MAX * 2]; /* null: free */
};

/* Returns how many objects the crawler heals at a time. */
unsigned crawl_width(const struct crawler *c);
/* Tells whether no object may be healed now, because all children must be up. */
bool crawl_must_stop(const struct crawler *c);
/* Before a crawl: waits until no client works without a new brick, and accuses what that brick has. Returns 0
 * or -errno: the crawl must not begin. */
int crawl_prepare(struct crawler *c);
/* After heal_look(): tell whether the object has to be healed, and whether no copy of it is good. */
bool crawl_needs_heal(const struct heal *h, uint32_t type);
bool crawl_is_split_brain(struct heal *h, uint32_t type, struct view *v);
/* Asks for crawls, bits WANTS_*. The caller holds c->lock. */
void crawl_want(struct crawler *c, unsigned what);

#endif
