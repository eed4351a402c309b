/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-sys: the xattr system calls, relative to a directory's descriptor.
 *
 * An object of the brick is named as (dirfd, path): a handle below the handles directory, a name in an open
 * directory. path NULL or "": `dirfd` is the object itself, opened for reading or writing (an O_PATH
 * descriptor has no xattrs). A relative path with AT_FDCWD and an absolute path mean what they always mean.
 *
 * Linux 6.13 has getxattrat(2) and its sisters. Older kernels get the same effect through
 * "/proc/self/fd/<dirfd>/<path>", which costs one more path walk. Which of the two is found out once, at the
 * first call.
 *
 * `follow`: a symlink at the end of `path` is followed (directories' handles are symlinks); else the symlink
 * itself is meant.
 *
 * thread: any. All return 0 or a length, or -errno; a missing xattr is -ENODATA.
 */
#ifndef KILN_POSIX_XATTR_SYS_H
#define KILN_POSIX_XATTR_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/xattr.h> /* XATTR_CREATE, XATTR_REPLACE */

/* The value's length. size 0: only the length, nothing is written. -ERANGE: `buf` is too small. */
ssize_t kx_get(int dirfd, const char *path, const char *name, void *buf, size_t size, bool follow);

/* flags: 0, XATTR_CREATE (-EEXIST) or XATTR_REPLACE (-ENODATA). */
int kx_set(int dirfd, const char *path, const char *name, const void *value, size_t size, int flags,
           bool follow);

/* The names, each with its NUL, one after another; their length in all. size 0: only the length. -ERANGE. */
ssize_t kx_list(int dirfd, const char *path, char *buf, size_t size, bool follow);

int kx_remove(int dirfd, const char *path, const char *name, bool follow);

/* For tests: 0 as probed, 1 only the new system calls, 2 only /proc. */
void kx_force(int mode);

#endif
