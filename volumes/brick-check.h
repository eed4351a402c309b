/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-check: is a brick that nobody serves whole? Every object has a gfid, and the handle of that gfid
 * leads to it (spec: brick 2.2). Reads only; costs three or four system calls an object.
 *
 * thread: any that may wait for a disk, for as long as a walk through the brick takes.
 */
#ifndef KILN_VOLUMES_BRICK_CHECK_H
#define KILN_VOLUMES_BRICK_CHECK_H

#include <jansson.h>

#define BRICK_CHECK_NAMED_MAX 1000

/* {"objects": N, "bad": N, "flaws": ["/dir/file: it has no gfid", ...]}: at most BRICK_CHECK_NAMED_MAX of
 * them. "error" where the brick cannot be walked through. A new reference; NULL: no memory. */
json_t *brick_check(const char *path);

#endif
