/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pgfid: how many names a file, symlink or device has in each directory, while update-link-count-parent is on
 * (spec: brick 2.4):
 *
 *   trusted.pgfid.<parent gfid> = number of names, 4 bytes, big-endian
 *
 * Nothing here goes by it. Stock bricks find paths of files by it when quota or trash are on; they note what
 * is missing when a file is looked up, and believe what is there. Failure is logged and no more. */
#ifndef KILN_POSIX_PGFID_H
#define KILN_POSIX_PGFID_H

#include "xlators/storage/posix/handle.h"

/* `by` names more, or less. The caller holds the object lock, or nobody else knows the object yet. */
void posix_pgfid_count(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent, int by);

#endif
