/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-set: the common part of setting and removing xattrs. */
#ifndef KILN_POSIX_XATTR_SET_H
#define KILN_POSIX_XATTR_SET_H

#include "xlators/storage/posix/data/data.h"

/* Runs `change` on the object between two stats of it. Afterwards, in this order: sets the times that the
 * caller requests, syncs if xdata has trusted.glusterfs.durable-op, and adds the iatts to the reply's xdata,
 * with which clients update their caches. Returns XL_DONE or -errno. */
typedef int (*posix_xattr_change)(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                                  struct inode *inode);
int posix_xattr_change_object(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                              struct inode *inode, posix_xattr_change change);

#endif
