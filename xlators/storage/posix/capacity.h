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
    uint64_t device; /* st_dev of the brick: bricks with the same device share these figures */
};

/* `xl` is a storage/posix layer. Without a size the figures are not known yet. Any thread that has the
 * brick pinned. */
void posix_capacity(const struct xlator *xl, struct posix_capacity *out);

#endif
