/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfiles: a brick's volfile that was given as a file is read again on SIGHUP (spec: gluster11 1.1 row 15,
 * 3.3). */
#ifndef KILN_BRICKS_VOLFILES_H
#define KILN_BRICKS_VOLFILES_H

#include <stddef.h>

struct volfile;

/* Reads the file and gives its options to the serving brick (`name` NULL: the name in the file), as
 * graph_follow() does. Then tells the clients that have their own volfiles from this process to fetch these
 * again, also when the brick's own file could not be used. A failure is logged, and the brick keeps its
 * options. `prepare` is called for the volfile before its use: 0 or -errno with a text. Returns at once; the
 * work has a separate thread. */
void volfiles_reread(const char *path, const char *name,
                     int (*prepare)(struct volfile *v, char *error, size_t error_size));

#endif
