/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-sys: the xattr system calls, relative to a directory's descriptor.
 *
 * An object of the brick is named as (dirfd, path): a handle below the handles directory, or a name in an
 * open directory. path NULL or "": `dirfd` is the object itself, opened for reading or writing (an O_PATH
 * descriptor has no xattrs). Relative paths with AT_FDCWD and absolute paths have their usual meaning.
 *
 * Linux 6.13 has getxattrat(2) and its siblings. Older kernels get the same effect through
 * "/proc/self/fd/<dirfd>/<path>", which costs one more path walk. The first call determines which of the two
 * works.
 *
 * `follow`: follows a symlink at the end of `path` (directories' handles are symlinks); otherwise the symlink
 * itself is the object.
 *
 * thread: any. All functions return 0 or a length, or -errno; a missing xattr is -ENODATA.
 */
#ifndef KILN_POSIX_XATTR_SYS_H
#define KILN_POSIX_XATTR_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/xattr.h> /* XATTR_CREATE, XATTR_REPLACE */

/* Returns the value's length. size 0: returns only the length. -ERANGE: `buf` is too small. */
ssize_t kx_get(int dirfd, const char *path, const char *name, void *buf, size_t size, bool follow);

/* flags: 0, XATTR_CREATE (-EEXIST) or XATTR_REPLACE (-ENODATA). */
int kx_set(int dirfd, const char *path, const char *name, const void *value, size_t size, int flags,
           bool follow);

/* Returns the names in succession, each with a NUL, and the total length. size 0: only the length.
 * -ERANGE. */
ssize_t kx_list(int dirfd, const char *path, char *buf, size_t size, bool follow);

int kx_remove(int dirfd, const char *path, const char *name, bool follow);

/* For tests: 0: as probed, 1: only the new system calls, 2: only /proc. */
void kx_force(int mode);

#endif
