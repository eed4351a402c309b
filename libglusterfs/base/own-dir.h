/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* own-dir: folders of this process's user, by descriptor. What a path leads to can change between two calls
 * where another user may write a folder above; the folder behind a descriptor cannot. */
#ifndef KILN_BASE_OWN_DIR_H
#define KILN_BASE_OWN_DIR_H

#include <sys/types.h>

/* The folder at `path`, which this process has made just now, or made once: with mode `mode` whatever the
 * umask is, and of this user. A descriptor (closed on exec), or -errno: -ENOTDIR or -ELOOP (a symlink, a
 * file), -EPERM (another user's). Thread: any. */
int own_dir_open(const char *path, mode_t mode);

/* Makes it first, unless there is something. */
int own_dir_make(const char *path, mode_t mode);

#endif
