/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattrop: the arithmetic of (f)xattrop on values in memory (spec: brick 7.1). */
#ifndef KILN_POSIX_XATTROP_H
#define KILN_POSIX_XATTROP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The wire's numbers. OR and AND (2, 3) are not done by bricks. */
enum {
    XATTROP_ADD = 0,
    XATTROP_ADD64 = 1,
    XATTROP_GET_AND_SET = 4,
    XATTROP_ADD_DEFAULT = 5,
    XATTROP_ADD64_DEFAULT = 6,
};

/* How long the value is that a request of `len` bytes works on: `len`, or half of it where defaults follow
 * the deltas. -EINVAL: not a whole number of numbers, or an operation that is not known (unless the request
 * is all zero: then it only asks). */
ssize_t xattrop_result_len(uint32_t op, const void *request, size_t len);

/* Changes `value` (len as told above) in place. */
void xattrop_apply(uint32_t op, const void *request, unsigned char *value, size_t len);

#endif
