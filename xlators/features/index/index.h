/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* index: the figure of features/index that other modules read.
 * thread: any, while the graph is pinned. */
#ifndef KILN_INDEX_H
#define KILN_INDEX_H

#include <stdint.h>

struct xlator;

/* Returns the number of objects whose pending xattrs on this brick accuse another brick of a missed change.
 * The layer counts in memory, so this reads no disk. */
int64_t index_pending(struct xlator *xl);

#endif
