/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* virtual-xattr: names that getxattr answers by code (spec: brick 6.3). Those of the index and lock layers
 * never come here. */
#ifndef KILN_POSIX_VIRTUAL_XATTR_H
#define KILN_POSIX_VIRTUAL_XATTR_H

#include "xlators/storage/posix/handle.h"

/* Puts the answer into stk's reply dict under `name`. op_ret's value, -ENODATA (nothing to say), -ENOTSUP (no
 * such name), -errno. */
ssize_t posix_virtual_get(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                          struct inode *inode, const char *name);

#endif
