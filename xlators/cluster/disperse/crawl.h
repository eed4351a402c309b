/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* crawl: the self-heal daemon's work for a dispersed set (crawl.c, crawl-tree.c), for the programs that start
 * it. The functions take a graph with cluster/disperse on top.
 *
 * thread: any */
#ifndef KILN_CLUSTER_DISPERSE_CRAWL_H
#define KILN_CLUSTER_DISPERSE_CRAWL_H

#include "xlators/cluster/crawl-looks.h"

struct graph;

/* Asks for a crawl of the set, or for a full one. Returns 0; -EPERM: the set is not healed here
 * (iam-self-heal-daemon, self-heal-daemon); -ENOTCONN: the crawl begins when more than K bricks are
 * connected, or for a full one all. */
int disperse_crawl_ask(struct graph *g, bool is_full);
/* Tells whether a full crawl was asked for and has not walked the whole tree yet. A full crawl that the loss
 * of a brick cuts begins anew when the brick is back. */
bool disperse_crawl_full_is_due(struct graph *g);
/* Ends a full crawl before its next folder, or forgets it. */
void disperse_crawl_stop_full(struct graph *g);
/* Fills at most CRAWL_LOOKS_KEPT looks at the child, the oldest first. Returns their number. */
unsigned disperse_crawl_looks(struct graph *g, unsigned child, struct crawl_look out[CRAWL_LOOKS_KEPT]);

#endif
