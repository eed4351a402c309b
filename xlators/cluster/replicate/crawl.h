/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* crawl: the self-heal daemon's work for a replica set. A crawler belongs to a graph with cluster/replicate
 * on top.
 *
 *      index    for each child: reads the lists of objects with pending heals that the brick keeps
 *               (features/index: xattrop, then dirty), heals directories, then the other objects, and
 *               removes entries of objects that have gone. Repeats while objects were healed, because an
 *               object can be healed only after the folder that has its name
 *      full     walks the whole tree from the root and compares all names and objects
 *
 * An index crawl runs when a child comes up, each `heal-timeout` seconds, and when asked for; after a crawl
 * in which heals failed for a reason that may pass (a lock, a full disk), again after 1 second, then 2
 * and so on up to `heal-timeout`. A crawl heals `shd-max-threads` objects at a time, or, if that option is
 * not set, `background-self-heal-count`; all crawlers of the process together CRAWL_OBJECTS_MAX. With
 * `heal-throttle` the heals give way to clients (xlators/cluster/heal-throttle.h).
 *
 * A crawl of a set with a new brick begins when no client works without that brick (crawl-new-bricks.c).
 *
 * A crawler that dies, with its process or when the graph is drained, leaves each object and each index
 * entry as a heal that stops leaves them (heal.h): the next crawl begins anew.
 *
 * Threads: the functions may be called by any thread, crawler_free() by one. The crawler's lock guards all
 * fields that a crawl and other threads share. */
#ifndef KILN_CLUSTER_CRAWL_H
#define KILN_CLUSTER_CRAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gfid.h"
#include "xlators/cluster/crawl-looks.h"

struct graph;
struct crawler;

enum { CRAWL_OBJECTS_MAX = 32, CRAWL_FAULTS_KEPT = 100 };

/* A heal that failed, as of the latest attempt. */
struct crawl_fault {
    struct gfid gfid;
    int why;     /* errno, positive */
    char child[64]; /* name of the child that failed; "": not known */
};

enum crawl_need { CRAWL_NO_HEAL, CRAWL_HEAL, CRAWL_UNDER_HEAL };

/* Makes a crawler, before graph_start(). NULL: no memory. `share`: the replica sets of the volume, which
 * share its limit of objects at a time. `heals` false: the crawler heals nothing, it only answers. */
struct crawler *crawler_new(struct graph *g, unsigned share, bool heals);
/* Called after graph_drain(), or instead of graph_start(): no child event comes any more. */
void crawler_free(struct crawler *c);
/* Called by cluster/replicate when a child has come up. */
void crawler_child_up(struct crawler *c);
/* Returns 0; -EPERM: this crawler heals nothing; -ENOTCONN: not all children are up, and the crawl begins
 * when they are. */
int crawler_ask(struct crawler *c, bool is_full);
/* Tells whether a full crawl was asked for and has not walked the whole tree yet. A full crawl that the loss
 * of a child cuts begins anew when the child is back. */
bool crawler_full_is_due(struct crawler *c);
/* Ends a full crawl before its next folder, or forgets it. */
void crawler_stop_full(struct crawler *c);

/* Returns the number of bricks of the set. */
unsigned crawler_children(const struct crawler *c);
/* Fills at most CRAWL_LOOKS_KEPT looks at the child, the oldest first. Returns their number. */
unsigned crawler_looks(struct crawler *c, unsigned child, struct crawl_look out[CRAWL_LOOKS_KEPT]);
/* Copies the text that tells the client that the crawl waits for: "process P on H"; "": it waits for none. */
void crawler_waits_for(struct crawler *c, char *who, size_t size);
unsigned crawler_faults(struct crawler *c, struct crawl_fault out[CRAWL_FAULTS_KEPT]);

/* Judges the objects by a LOOKUP on the children that are up, and waits for the result; not on a worker. An
 * object that cannot be judged counts as CRAWL_HEAL. Returns 0 or -ENOMEM. */
int crawler_judge(struct crawler *c, const struct gfid *gfids, size_t count, uint8_t *needs);

/* How a user resolves split-brain. */
enum crawl_choice { CRAWL_BIGGER_FILE, CRAWL_LATEST_MTIME, CRAWL_SOURCE };
/* Resolves the split-brain of an object in favour of the biggest copy, the one changed last, or that of
 * child `source`; of a name in the folder `gfid` that leads to different objects, if `name` is not NULL.
 * Waits; not on a worker. Returns 0; -EINVAL: no split-brain; -ENODATA: no copy is the biggest, or the
 * latest; or -errno. */
int crawler_resolve(struct crawler *c, const struct gfid *gfid, const char *name, enum crawl_choice how,
                    unsigned source);

#endif
