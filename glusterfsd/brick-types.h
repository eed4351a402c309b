/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-types: the layer types that the volfile of a brick may name. Constant; any thread. */
#ifndef KILN_GLUSTERFSD_BRICK_TYPES_H
#define KILN_GLUSTERFSD_BRICK_TYPES_H

#include "stack/xlator.h"

/* Finds a type by its name; NULL: kilnd does not know the type. Also finds types that are known and not
 * built (LAYER_NOT_BUILT). */
xlator_type_find brick_type_find;
/* Returns the types by number from 0, and NULL after the last. */
const struct xlator_type *brick_type_at(size_t number);

#endif
