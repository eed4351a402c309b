/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* clear-locks: locks of a file or folder of a volume are taken away, on each brick that has it (brick 8.9).
 * The daemon asks its own bricks: no client is needed.
 *
 * thread: any that is registered with RCU and may wait for a disk; not a worker.
 */
#ifndef KILN_VOLUMES_CLEAR_LOCKS_H
#define KILN_VOLUMES_CLEAR_LOCKS_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* `path`: from the volume's root, "/dir/file". `kind`: inode, entry or posix; `state`: blocked, granted or
 * all; `range`: "WHENCE,START-LENGTH", of entry locks a name; NULL: all. 0 with *out
 *
 *     {"name", "path", "bricks": [{"path", "cleared": "what the brick says"}, {"path", "error"}]}
 *
 * of the bricks that have it; or -errno with *why: -ENOENT, no brick has it. */
int clear_locks(const struct volume *v, const char *path, const char *kind, const char *state,
                const char *range, json_t **out, struct problem *why);

#endif
