/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount/fuse: the top of a client's graph: a mount point of this machine.
 *
 * The program that makes the graph is told by graph->watch what becomes of the bricks, as always, and by this
 * when the mount point has been unmounted: on a worker, once. */
#ifndef KILN_MOUNT_FUSE_H
#define KILN_MOUNT_FUSE_H

#include <stdbool.h>

struct graph;

/* Before the first graph is made. `unmounted`: see above. `left`: a file that had stayed with an older graph
 * was closed; of the graph that serves, by any thread, seldom without need. */
void fuse_set_hooks(void (*unmounted)(struct graph *g), void (*left)(struct graph *g));
/* Before graph_drain(), which refuses what the kernel asks from then on: takes the mount point away, and what
 * is still to be written of a file that nobody has open is written meanwhile. Lazily: files that are open
 * stay, and fail later. Once or more. */
void fuse_unmount(struct graph *g);
/* The mount point of `from` becomes that of `to`, whose mount/fuse has the option takes-over, which has been
 * started, and whose bricks are there. What the kernel knows and has open stays: names by number are looked
 * up, files are opened anew, with their locks. Requests wait meanwhile. 0, and `from` may be drained when
 * fuse_keeps() says so; -EBUSY: some of its requests have not ended in time, -ENOTCONN: it serves nobody, and
 * nothing has changed. A thread of the mount's own, outside of read sections. */
int fuse_switch(struct graph *from, struct graph *to);
/* Whether files that are open at the mount point of `now`, which serves, are still those of `g`: they could
 * not be opened anew. Such a graph is drained before `now` is freed, and freed after it, which closes its
 * files. */
bool fuse_keeps(struct graph *now, const struct graph *g);
/* After the last graph is gone: what was kept for all of them. */
void fuse_process_end(void);

#endif
