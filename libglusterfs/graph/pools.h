/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pools: makes all memory pools that operations on a graph use. */
#ifndef KILN_GRAPH_POOLS_H
#define KILN_GRAPH_POOLS_H

/* Runs mem_pools_init() and makes the pools of arena, iobuf, dict, call stack, inode and fd, in the order
 * of their dependencies. Called in the main thread before the first use of a pool; a second call does
 * nothing. 0 or -errno. */
int graph_pools_init(void);

#endif
