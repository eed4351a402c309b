/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* own-dir: opens directories of this process's user as descriptors. Another user who may write a parent
 * directory can change the target of a path between two calls, but not the directory behind a descriptor. */
#ifndef KILN_BASE_OWN_DIR_H
#define KILN_BASE_OWN_DIR_H

#include <sys/types.h>

/* Opens the directory at `path`, which this process made just now or earlier, and checks that it belongs
 * to this user. Sets the mode to `mode`, regardless of the umask. Returns a descriptor (closed on exec),
 * or -errno: -ENOTDIR or -ELOOP (a symlink, a file), -EPERM (another user's directory). thread: any. */
int own_dir_open(const char *path, mode_t mode);

#endif
