/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattrop: the arithmetic of (f)xattrop on values in memory (spec: brick 7.1). Any thread. */
#ifndef KILN_POSIX_XATTROP_H
#define KILN_POSIX_XATTROP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The numbers on the wire. Bricks do not implement OR and AND (2, 3). */
enum {
    XATTROP_ADD = 0,
    XATTROP_ADD64 = 1,
    XATTROP_GET_AND_SET = 4,
    XATTROP_ADD_DEFAULT = 5,
    XATTROP_ADD64_DEFAULT = 6,
};

/* Returns the length of the value that a request of `len` bytes works on: `len`, or half of it where defaults
 * follow the deltas. -EINVAL: not a whole number of numbers, or an unknown operation (unless the request is
 * all zero, which only reads). */
ssize_t xattrop_result_len(uint32_t op, const void *request, size_t len);

/* Changes `value` (of the length above) in place. */
void xattrop_apply(uint32_t op, const void *request, unsigned char *value, size_t len);

#endif
