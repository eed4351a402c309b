/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-path: which object of a volume lies at a path, by what a brick's folder holds. */
#ifndef KILN_VOLUMES_BRICK_PATH_H
#define KILN_VOLUMES_BRICK_PATH_H

#include "base/gfid.h"

/* `path` is from the volume's root, "/...". 0 or -errno; -ENODATA: the object is none of the volume's;
 * -ELOOP or -EXDEV: the path leads through a symlink, or out of the brick. */
int brick_path_gfid(const char *brick, const char *path, struct gfid *gfid);

#endif
