/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* capacity: how full a brick's disk is, as it was seen at most five seconds ago: asking makes no system call,
 * so a disk that does not answer holds nobody up. */
#ifndef KILN_POSIX_CAPACITY_H
#define KILN_POSIX_CAPACITY_H

#include <stdint.h>

struct xlator;

struct posix_capacity {
    uint64_t bytes, bytes_used, bytes_free; /* free: for those who are not root */
    uint64_t inodes, inodes_free;
};

/* `xl` is a storage/posix layer. All 0: it could not be seen yet. Any thread that has the brick pinned. */
void posix_capacity(const struct xlator *xl, struct posix_capacity *out);

#endif
