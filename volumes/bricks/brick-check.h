/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-check: checks a brick that is offline. Every object must have a gfid, and the handle of that gfid
 * must lead to the object (spec: brick 2.2). The check only reads, and costs three or four system calls
 * per object.
 *
 * thread: any thread that may wait for a disk for as long as a walk through the brick takes.
 */
#ifndef KILN_VOLUMES_BRICK_CHECK_H
#define KILN_VOLUMES_BRICK_CHECK_H

#include <jansson.h>

#define BRICK_CHECK_NAMED_MAX 1000

/* Returns {"objects": N, "bad": N, "flaws": ["/dir/file: it has no gfid", ...]} as a new reference, with
 * at most BRICK_CHECK_NAMED_MAX flaws, and with "error" if the walk failed. Returns NULL without memory. */
json_t *brick_check(const char *path);

#endif
