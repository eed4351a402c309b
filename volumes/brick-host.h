/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-host: the bricks of this host among the bricks of a volume.
 *
 * A kilnd without a store has no name, and every brick is a folder of its machine. A kilnd with a store
 * serves the bricks of its own name only.
 *
 * thread: brick_host_begin() before other threads; then any. */
#ifndef KILN_VOLUMES_BRICK_HOST_H
#define KILN_VOLUMES_BRICK_HOST_H

#include <stdbool.h>

#include "volumes/volume.h"

/* `name` must stay valid. */
void brick_host_begin(const char *name);
/* This host's name; "": kilnd has no store. */
const char *brick_host_own(void);
bool brick_host_is_here(const struct volume_brick *b);
/* Tells whether the two bricks are folders of the same machine. */
bool brick_host_is_same(const struct volume_brick *a, const struct volume_brick *b);
/* Returns the place of the brick "HOST:/path" or "/path" (this host's), or -1. Without a store the host is
 * ignored. */
int brick_host_find(const struct volume *v, const char *text);
/* Returns the place of the brick with the path of `b` on the same machine, or -1. */
int brick_host_find_same(const struct volume *v, const struct volume_brick *b);
/* Returns true if the volume has this brick, with the same id, on this host. */
bool brick_host_has(const struct volume *v, const struct volume_brick *b);
/* Returns true if some brick of the volume is a folder of this machine. */
bool brick_host_has_any(const struct volume *v);

#endif
