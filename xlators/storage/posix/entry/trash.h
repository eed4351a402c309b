/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* trash: moves a file whose last name is removed below a folder of the root (features/trash). */
#ifndef KILN_POSIX_TRASH_H
#define KILN_POSIX_TRASH_H

#include "xlators/storage/posix/entry/entry.h"

/* The file is not to be kept, or cannot be kept, which is logged: the caller removes it. */
#define POSIX_TRASH_NOT 1

/* Replaces the removal that `stk` requests. The caller holds the locks of name and object; `st` is the
 * object's, `inode` may be NULL. Returns 0: the file is kept and the name is gone; POSIX_TRASH_NOT; -errno:
 * nothing was changed, and the call fails. */
int posix_trash_keep(struct xlator *xl, const struct call_stack *stk, struct posix_entry *e,
                     const struct stat *st, struct inode *inode);

#endif
