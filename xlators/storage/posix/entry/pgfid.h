/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pgfid: the number of names that a file, symlink or device has in each directory, while
 * update-link-count-parent is on (spec: brick 2.4):
 *
 *   trusted.pgfid.<parent gfid> = number of names, 4 bytes, big-endian
 *
 * Kiln does not use these xattrs. When quota or trash is on, stock bricks use the xattrs to find paths of
 * files. Stock adds missing xattrs at LOOKUP, and trusts existing xattrs. A failure is only logged. Any
 * thread. */
#ifndef KILN_POSIX_PGFID_H
#define KILN_POSIX_PGFID_H

#include "xlators/storage/posix/object/handle.h"

/* Adds `by` to the count. The caller holds the object lock, or no other call knows the object yet. */
void posix_pgfid_count(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent, int by);

#endif
