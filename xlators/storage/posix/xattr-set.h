/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-set: what setting and removing xattrs share. */
#ifndef KILN_POSIX_XATTR_SET_H
#define KILN_POSIX_XATTR_SET_H

#include "xlators/storage/posix/data.h"

/* A change of xattrs between two looks at the object. `change` gets the object and `arg`. Afterwards, in this
 * order: what the caller wants of the times, a sync if xdata has trusted.glusterfs.durable-op, and the iatts
 * in the reply's xdata, with which clients keep their caches. XL_DONE or -errno. */
typedef int (*posix_xattr_change)(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                                  struct inode *inode);
int posix_xattr_change_object(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                              struct inode *inode, posix_xattr_change change);

#endif
