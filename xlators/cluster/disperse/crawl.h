/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* crawl: the self-heal daemon's work for a dispersed set (crawl.c), for the programs that start it. */
#ifndef KILN_CLUSTER_DISPERSE_CRAWL_H
#define KILN_CLUSTER_DISPERSE_CRAWL_H

struct graph;

/* Asks for a crawl of the set, in a graph with cluster/disperse on top. Returns 0; -EPERM: the set is not
 * healed here (iam-self-heal-daemon, self-heal-daemon); -ENOTCONN: K or fewer bricks are connected, and the
 * crawl begins when more are.
 * thread: any */
int disperse_crawl_ask(struct graph *g);

#endif
