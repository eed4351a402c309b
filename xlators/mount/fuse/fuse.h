/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount/fuse: the top of a client's graph: a mount point of this machine.
 *
 * The program that makes the graph gets the bricks' state from graph->watch, as usual, and a call of
 * `unmounted`, on a worker and only once, when the mount point has been unmounted. */
#ifndef KILN_MOUNT_FUSE_H
#define KILN_MOUNT_FUSE_H

#include <stdbool.h>

struct graph;

/* Call before the first graph is made. `unmounted`: see above. `left`: a file that had stayed with an older
 * graph was closed; the argument is the serving graph; called by any thread, rarely without need. */
void fuse_set_hooks(void (*unmounted)(struct graph *g), void (*left)(struct graph *g));
/* Removes the mount point. Call before graph_drain(), which refuses later requests, so that data of closed
 * files can still be written. The unmount is lazy: open files stay, and fail later. May be called again. */
void fuse_unmount(struct graph *g);
/* Moves the mount point of `from` to `to`, whose mount/fuse has the option takes-over, which has been
 * started, and whose bricks are connected. The kernel's inodes and open files stay: inodes are looked up,
 * files are opened again, with their locks. Requests wait meanwhile. Returns 0: drain `from` when
 * fuse_keeps() is false; -EBUSY: some requests of `from` have not ended in time, or -ENOTCONN: `from` does
 * not serve, and nothing has changed. Call in a thread of the program, outside of read sections. */
int fuse_switch(struct graph *from, struct graph *to);
/* Returns whether open files at the mount point of `now`, the serving graph, still belong to `g`, because
 * these files could not be opened again. Drain such a graph before `now` is freed, and free the drained graph
 * afterwards: freeing `now` closes these files. */
bool fuse_keeps(struct graph *now, const struct graph *g);

/* ---- a newer program of the same process: saved.c -------------------------------------------- */

struct parcel;
/* Stops reading requests. 0, -ENOMEM, -ENOTCONN: the mount point is not served; -EBUSY: files of bricks
 * before the last change of bricks are open. Main thread, as the next functions, outside of read sections. */
int fuse_freeze_begin(struct graph *g);
/* Continues the freeze that fuse_freeze_begin() has begun; never waits. Returns 1 if no request is under way
 * or will begin, 0 if the caller must ask again soon, or -errno if this mount cannot be saved now. */
int fuse_freeze_look(struct graph *g);
/* Says what the looks wait for; constant. After fuse_freeze_begin() has returned 0. */
const char *fuse_freeze_obstacle(struct graph *g);
/* Everything goes on. After fuse_freeze_begin() has returned 0. */
void fuse_thaw(struct graph *g);
/* Writes a mount at which a look has returned 1, with its bricks. 0 or -errno. */
int fuse_save(struct graph *g, struct parcel *to);
/* Lets the descriptors survive exec(2), or not. 0 or -errno. */
int fuse_keep_open(struct graph *g, bool keeps);
/* For a new graph with the same volfile, which is not started yet: takes the mount point. 0 or -errno. */
int fuse_restore(struct graph *g, struct parcel *from);
/* Serves the mount point of a restored graph, which is started. Waits for bricks. 0 or -errno. */
int fuse_go_on(struct graph *g);
/* Sets the number of programs before this one in the process. Called before the first graph is made. */
void fuse_set_generation(unsigned programs);

/* Frees memory kept for all graphs; call after the last graph is gone. */
void fuse_process_end(void);

#endif
