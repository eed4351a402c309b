/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dead-changes: the comparison of objects that a client was changing when it died, for layers that keep parts
 * or copies of an object on each child (cluster/replicate, cluster/disperse).
 *
 * With all children there, such a layer sends a change of names, or of fragments' attributes, without a mark
 * before it. If the client dies after it has sent the change to some children only, the children differ. No
 * application knows of the change, but no healer that walks the index knows of it, either. Each brick knows
 * that a client held the object's lock when its connection ended, and keeps a note
 * (features/index/index-dead.c). The next mount or healer that has all children:
 *
 *      ask        each child for its notes: GETXATTR kiln.dead-changes of the root
 *      compare    each object of a note, as the layer does it, and heal it
 *      forget     the notes: LOOKUP with the number of each child's note. A brick keeps a note that another
 *                 death has renewed meanwhile
 *
 * An object that cannot be compared now, because another healer has its lock or a name in it is locked,
 * waits, and so do all objects if a child does not answer with its notes: the errand runs again after 2
 * seconds, then 4 and so on up to 64, while any waits.
 *
 * If the client that compares dies, the notes stay for the next one. A child that is missing keeps its note,
 * and the other children, too, until all are there. If a change marks the object meanwhile (a child went
 * away), the marks lead all healers to the object, as always.
 *
 * thread: dead_changes_ask() from any thread, in a read section. The comparison is an errand (errand.h), so
 * one coroutine runs it at a time; pause_ms and is_stopping are under the lock. */
#ifndef KILN_CLUSTER_DEAD_CHANGES_H
#define KILN_CLUSTER_DEAD_CHANGES_H

#include <pthread.h>

#include "base/gfid.h"
#include "event/timer.h"
#include "xlators/cluster/errand.h"

/* The layer's part; static. */
struct dead_changes_of {
    /* Returns whether all children are up, and the layer goes on. */
    bool (*is_ready)(struct xlator *xl);
    /* Compares the object and makes it the same on all children; `contents`, too: a write was under way.
     * Returns 0, also if no child has the object any more, or -errno: the object waits. In a coroutine. */
    int (*compare)(struct xlator *xl, const struct gfid *gfid, bool contents);
};

struct dead_changes {
    struct errand errand;
    struct timer again; /* until the errand runs for objects that wait */
    const struct dead_changes_of *of;
    pthread_mutex_t lock;
    uint64_t pause_ms; /* the next time of `again` */
    bool is_stopping;
};

/* Called once, before the layer has children. */
void dead_changes_init(struct dead_changes *c, struct xlator *xl, const struct dead_changes_of *of);
/* Has the notes read soon, if the bricks keep notes. */
void dead_changes_ask(struct dead_changes *c);
/* Ends the waiting; a run that is under way goes on until the layer's is_ready() returns false. */
void dead_changes_stop(struct dead_changes *c);
void dead_changes_fini(struct dead_changes *c);

#endif
