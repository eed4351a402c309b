/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* readdir: the entries of an open directory, as the kernel returns them. Any thread. */
#ifndef KILN_POSIX_READDIR_H
#define KILN_POSIX_READDIR_H

#include <dirent.h>
#include <stddef.h>

/* A result other than 0 stops the scan, which returns it. */
typedef int (*posix_dir_fn)(const struct dirent64 *d, void *arg);

/* Calls fn for each entry from the position of `fd` on, "." and ".." included. `buf` (aligned for a struct
 * dirent64) has room for the results of one system call. Returns 0 at the end, the result of fn, or -errno.
 */
int posix_dir_scan(int fd, char *buf, size_t size, posix_dir_fn fn, void *arg);

#endif
