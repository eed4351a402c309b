/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <string.h>

#include "mount/client-volume.h"
#include "mount/types.h"

extern const struct xlator_type mount_fuse_xlator;

const struct xlator_type *
mount_type_find(const char *name)
{
    return strcmp(name, mount_fuse_xlator.name) == 0 ? &mount_fuse_xlator : client_type_find(name);
}
