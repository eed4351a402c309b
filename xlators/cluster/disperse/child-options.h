/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* child-options: the values of quorum-count and ec-read-mask of a set of `count` bricks, of which `data` are
 * needed for a file. Also for `kiln volume set`, which checks a value before it is in a volfile.
 *
 * thread: any; the functions keep no pointers to their arguments. */
#ifndef KILN_DISPERSE_CHILD_OPTIONS_H
#define KILN_DISPERSE_CHILD_OPTIONS_H

#include "base/reason.h"
#include "xlators/cluster/children.h"

/* Checks a value of quorum-count: 0 (no quorum besides `data`), or `data` to `count`. Returns 0, or -EINVAL
 * with the possible values in *why. */
int disperse_quorum_check(int64_t value, unsigned count, unsigned data, struct reason *why);
/* Parses a value of ec-read-mask: the indices of at least `data` different bricks, with ':' between them.
 * Empty parts and repetitions are no errors, as in stock. Returns 0, or -EINVAL with the fault in *why. */
int disperse_mask_parse(const char *text, unsigned count, unsigned data, child_set *out, struct reason *why);

#endif
