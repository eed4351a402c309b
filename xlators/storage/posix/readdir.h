/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* readdir: the entries of an open directory, as the kernel gives them. */
#ifndef KILN_POSIX_READDIR_H
#define KILN_POSIX_READDIR_H

#include <dirent.h>
#include <stddef.h>

/* Not 0: stop, and that is the scan's result. */
typedef int (*posix_dir_fn)(const struct dirent64 *d, void *arg);

/* Calls fn for each entry from where `fd` stands, "." and ".." included. `buf` (aligned for a struct
 * dirent64) is room for one system call's worth. 0 at the end, what fn returned, or -errno. */
int posix_dir_scan(int fd, char *buf, size_t size, posix_dir_fn fn, void *arg);

#endif
