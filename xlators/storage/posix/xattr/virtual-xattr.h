/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* virtual-xattr: names whose values getxattr computes (spec: brick 6.3). Those of the index and lock layers
 * never reach storage. */
#ifndef KILN_POSIX_VIRTUAL_XATTR_H
#define KILN_POSIX_VIRTUAL_XATTR_H

#include "xlators/storage/posix/object/handle.h"

/* Adds the answer to stk's reply dict under `name`. Returns op_ret's value, -ENODATA (no value), -ENOTSUP
 * (not a virtual name) or -errno. */
ssize_t posix_virtual_get(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                          struct inode *inode, const char *name);

#endif
