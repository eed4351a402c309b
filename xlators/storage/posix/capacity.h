/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* capacity: the free space of a brick's disk, at most five seconds old. Reading the figures makes no system
 * call, so a disk that does not respond blocks no reader. */
#ifndef KILN_POSIX_CAPACITY_H
#define KILN_POSIX_CAPACITY_H

#include <stdint.h>

struct xlator;

struct posix_capacity {
    uint64_t bytes, bytes_used, bytes_free; /* free: for users other than root */
    uint64_t inodes, inodes_free;
};

/* `xl` is a storage/posix layer. All 0: the figures are not known yet. Any thread that has the brick pinned.
 */
void posix_capacity(const struct xlator *xl, struct posix_capacity *out);

#endif
