/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every change of a replicated volume, for unit tests that make each of them with faults, lies or lacks of
 * memory: a change is made in a fresh volume of a few files, and a finished run is healed and checked. */
#ifndef KILN_CLUSTER_REPLICATE_TEST_REPLICA_CHANGES_H
#define KILN_CLUSTER_REPLICATE_TEST_REPLICA_CHANGES_H

#include "xlators/cluster/replicate/changelog.h"
#include "xlators/cluster/test-children.h"

enum { REPLICA_SHAPES = 3, REPLICA_CHANGES = 28 };

extern const struct replica_shape {
    const char *name;
    unsigned count;
    bool has_arbiter;
} replica_shapes[REPLICA_SHAPES];

extern const struct replica_change {
    const char *name;
    void (*prepare)(void); /* with all children up; may be NULL */
    int (*act)(void);
    bool (*is_done)(struct store *s);
    enum change kind;
    const char *marked; /* the object whose counters tell which copies lack the change */
    /* a third state that an unanswered change may leave; may be NULL */
    bool (*is_half)(struct store *s);
} replica_changes[REPLICA_CHANGES];

struct replica_variant {
    bool is_warm;    /* a change in the same folder has just been made, so locks are shared */
    bool tells_late; /* a child that goes down fails its calls before it sends the event */
    void (*before_act)(void); /* called just before the change; may be NULL */
};

extern struct store replica_before; /* child 0 before the change */

/* Makes the volume of the changes. */
void replica_volume_make(const struct replica_shape *shape);
/* Makes the change with these faults in a fresh volume. Returns its result, after all holds have ended. */
int replica_change_run(const struct replica_shape *shape, const struct replica_change *c,
                       const struct replica_variant *v, const struct fault *faults, unsigned fault_count);
/* Heals, ends the scene and adds findings: a change reported as done is recorded and is on all copies after
 * the heal, else the state is the old or the new one; the copies are equal, and no lock or counter is left.
 * `ret`: the result of the run. */
void replica_change_finish(const struct replica_shape *shape, const struct replica_change *c, int ret);
/* Has the copy of child i the change? */
bool replica_has_change(const struct replica_change *c, unsigned i);
/* Does child i hold what the change changes? An arbiter holds no data. */
bool replica_can_tell(const struct replica_change *c, unsigned i);
/* Brings all children up, and looks all names up until the copies are equal, at most a few times. */
void replica_heal_all(void);

#endif
