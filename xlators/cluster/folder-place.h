/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* folder-place: the name by which one child has a folder, which another client may have renamed while the
 * child was away. For heals, which move the folder from there, and for files of dispersed volumes.
 *
 * thread: the coroutine of a heal; all data lies on its stack. */
#ifndef KILN_CLUSTER_FOLDER_PLACE_H
#define KILN_CLUSTER_FOLDER_PLACE_H

#include "stack/xlator.h"

struct iatt;

struct folder_place {
    struct inode *dir; /* a reference, or NULL */
    const char *name;  /* in the arena of `stk` */
    struct call_stack *stk;
};

/* Reads the attributes of a name on child `i`; `heal` is the argument of folder_place_find(). Returns 0 or
 * -errno. */
typedef int folder_look(const void *heal, unsigned i, struct inode *dir, const char *name, struct iatt *out);

enum { FOLDER_PLACE_UNKNOWN = 1 };

/* Asks child `i` of `xl` for the path of a folder, and looks up its names but the last one. `stk` is a
 * GETXATTR of the folder without a key, which *out takes over; NULL: no memory. Returns 0,
 * FOLDER_PLACE_UNKNOWN (the child reports no path) or -errno; the caller calls folder_place_end() in any
 * case. */
int folder_place_find(struct folder_place *out, struct xlator *xl, unsigned i, struct call_stack *stk,
                      folder_look *look, const void *heal);
/* The same of a file: by the first of its names. A name with a ':' may be cut short, so the caller looks for
 * the file there. */
int file_place_find(struct folder_place *out, struct xlator *xl, unsigned i, struct call_stack *stk,
                    folder_look *look, const void *heal);
/* Drops the reference and frees the call. */
void folder_place_end(struct folder_place *p);

#endif
