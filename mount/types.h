/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* types: the layer types of a mount. Constant. */
#ifndef KILN_MOUNT_TYPES_H
#define KILN_MOUNT_TYPES_H

#include "stack/xlator.h"

/* Finds the layer types that the volfile of a client may name, also those that a mount
 * leaves out. NULL: no such type. Any thread. */
xlator_type_find mount_type_find;

#endif
