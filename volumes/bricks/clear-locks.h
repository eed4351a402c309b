/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* clear-locks: removes locks of a file or folder of a volume on each brick that has the object (brick
 * 8.9). The daemon asks its own bricks and needs no client.
 *
 * thread: any thread that is registered with RCU and may wait for a disk; not a worker.
 */
#ifndef KILN_VOLUMES_CLEAR_LOCKS_H
#define KILN_VOLUMES_CLEAR_LOCKS_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* `path` starts at the root of the volume: "/dir/file". `kind` is inode, entry or posix; `state` is
 * blocked, granted or all; `range` is "WHENCE,START-LENGTH", for entry locks a name, or NULL for all.
 * Returns 0 with *out
 *
 *     {"name", "path", "bricks": [{"path", "cleared": "the answer of the brick"}, {"path", "error"}]}
 *
 * for the bricks that have the object, or -errno with *why; -ENOENT: no brick has it. */
int clear_locks(const struct volume *v, const char *path, const char *kind, const char *state,
                const char *range, json_t **out, struct problem *why);

#endif
