/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pools: the pools that operations on a graph take from, made together. */
#ifndef KILN_GRAPH_POOLS_H
#define KILN_GRAPH_POOLS_H

/* mem_pools_init() and the pools of arena, iobuf, dict, call stack, inode and fd, in the order in which they
 * need each other. Once, in the main thread, before anything takes from one; again does nothing. 0 or -errno.
 */
int graph_pools_init(void);

#endif
