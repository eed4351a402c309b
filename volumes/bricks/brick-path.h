/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-path: finds the gfid of the object at a path of a volume, by the contents of a brick's folder. */
#ifndef KILN_VOLUMES_BRICK_PATH_H
#define KILN_VOLUMES_BRICK_PATH_H

#include "base/gfid.h"

/* `path` starts at the root of the volume: "/...". Returns 0 or -errno. -ENODATA: the object does not
 * belong to the volume. -ELOOP or -EXDEV: the path leads through a symlink or out of the brick. */
int brick_path_gfid(const char *brick, const char *path, struct gfid *gfid);

#endif
