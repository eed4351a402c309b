/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-bricks: adds, removes and replaces bricks of a volume of several hosts, by a plan of brick-plan.h.
 *
 *     begin   each host with new bricks makes them, and records them in its copy as coming
 *     leave   each host with leaving bricks detaches them and checks that no data is only there; hosts with
 *             remaining bricks check that these are served, if the volume gets fewer replicas
 *     mark    online bricks of a set with new bricks accuse these (pending xattr)
 *     COMMIT  one transaction; then the hosts attach the new bricks, and clients follow
 *
 * A failure before the commit is undone: hosts remove coming bricks that the volume does not have, and attach
 * leaving bricks again. A host whose new brick does not start after the commit has the former bricks
 * restored.
 *
 * Deaths: when the lease of the changing host ends, every host that has begun compares its volume with the
 * store's and undoes by that. A host that dies with coming bricks undoes them when it returns, by its copy. A
 * leaving brick of a dead host is not asked for when it is replaced; the host detaches it when it returns.
 * Marks of a change that was not committed accuse bricks that do not exist, or the old brick, which is then
 * healed once more.
 *
 * Returns 0 or -errno with *why; thread: any that may wait; not a worker. */
#ifndef KILN_VOLUMES_CLUSTER_BRICKS_H
#define KILN_VOLUMES_CLUSTER_BRICKS_H

#include <jansson.h>
#include <stdbool.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* As the functions of volumes.h with the same ends of names. Bricks in texts are HOST:/path. */
int cluster_add_bricks(const char *name, const struct volume *added, unsigned replica, bool with_arbiter,
                       struct problem *why);
int cluster_remove_bricks(const char *name, const struct volume *removed, unsigned replica,
                          struct problem *why);
int cluster_replace_brick(const char *name, const char *from, const struct volume *to, struct problem *why);
int cluster_take_brick_down(const char *name, const char *brick, struct problem *why);

/* Answers a step of another host. -ENOSYS: `verb` is none of these steps. */
int cluster_bricks_serve(const char *verb, json_t *args, json_t **out, struct problem *why);

#endif
