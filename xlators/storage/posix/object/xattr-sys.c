/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/object/xattr-sys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Architectures share the numbers above 423, except Alpha. */
#if !defined(SYS_getxattrat) && !defined(__alpha__)
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif

/* The kernel's struct xattr_args. */
struct kernel_xattr_args {
    _Alignas(8) uint64_t value;
    uint32_t size;
    uint32_t flags;
};
static_assert(sizeof(struct kernel_xattr_args) == 16, "XATTR_ARGS_SIZE_VER0");

enum { KX_UNKNOWN, KX_AT, KX_PROC };
static atomic_int kx_mode;

void
kx_force(int mode)
{
    atomic_store(&kx_mode, mode);
}

/* Kernels without the call return ENOSYS, container filters EPERM. A plain read of "/" can have neither error
 * for another reason. */
static bool
have_at_calls(void)
{
    int mode = atomic_load_explicit(&kx_mode, memory_order_relaxed);

    if (mode == KX_UNKNOWN) {
#ifdef SYS_getxattrat
        char byte;
        struct kernel_xattr_args args = {.value = (uintptr_t)&byte, .size = sizeof byte};
        long r = syscall(SYS_getxattrat, AT_FDCWD, "/", 0, "user.kiln.probe", &args, sizeof args);

        mode = r < 0 && (errno == ENOSYS || errno == EPERM) ? KX_PROC : KX_AT;
#else
        mode = KX_PROC;
#endif
        atomic_store_explicit(&kx_mode, mode, memory_order_relaxed);
    }
    return mode == KX_AT;
}

static bool
is_fd_itself(const char *path)
{
    return path == NULL || path[0] == '\0';
}

#define PROC_PATH_SIZE (PATH_MAX + 32)

/* Builds the path by which the old calls reach (dirfd, path). Returns 0 or -ENAMETOOLONG. */
static int
proc_path(char out[PROC_PATH_SIZE], int dirfd, const char *path)
{
    int n = dirfd == AT_FDCWD || path[0] == '/'
                ? snprintf(out, PROC_PATH_SIZE, "%s", path)
                : snprintf(out, PROC_PATH_SIZE, "/proc/self/fd/%d/%s", dirfd, path);

    return n >= PROC_PATH_SIZE ? -ENAMETOOLONG : 0;
}

static ssize_t
result(ssize_t r)
{
    return r < 0 ? -errno : r;
}

ssize_t
kx_get(int dirfd, const char *path, const char *name, void *buf, size_t size, bool follow)
{
    char full[PROC_PATH_SIZE];

    if (is_fd_itself(path))
        return result(fgetxattr(dirfd, name, buf, size));
#ifdef SYS_getxattrat
    if (have_at_calls()) {
        struct kernel_xattr_args args = {
            .value = (uintptr_t)buf, .size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size};

        return result(syscall(SYS_getxattrat, dirfd, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, name, &args,
                              sizeof args));
    }
#endif
    int err = proc_path(full, dirfd, path);
    if (err)
        return err;
    return result(follow ? getxattr(full, name, buf, size) : lgetxattr(full, name, buf, size));
}

int
kx_set(int dirfd, const char *path, const char *name, const void *value, size_t size, int flags, bool follow)
{
    char full[PROC_PATH_SIZE];

    if (is_fd_itself(path))
        return (int)result(fsetxattr(dirfd, name, value, size, flags));
    if (size > UINT32_MAX)
        return -E2BIG;
#ifdef SYS_getxattrat
    if (have_at_calls()) {
        struct kernel_xattr_args args = {
            .value = (uintptr_t)value, .size = (uint32_t)size, .flags = (uint32_t)flags};

        return (int)result(syscall(SYS_setxattrat, dirfd, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, name, &args,
                                   sizeof args));
    }
#endif
    int err = proc_path(full, dirfd, path);
    if (err)
        return err;
    return (int)result(follow ? setxattr(full, name, value, size, flags)
                              : lsetxattr(full, name, value, size, flags));
}

ssize_t
kx_list(int dirfd, const char *path, char *buf, size_t size, bool follow)
{
    char full[PROC_PATH_SIZE];

    if (is_fd_itself(path))
        return result(flistxattr(dirfd, buf, size));
#ifdef SYS_getxattrat
    if (have_at_calls())
        return result(syscall(SYS_listxattrat, dirfd, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, buf, size));
#endif
    int err = proc_path(full, dirfd, path);
    if (err)
        return err;
    return result(follow ? listxattr(full, buf, size) : llistxattr(full, buf, size));
}

int
kx_remove(int dirfd, const char *path, const char *name, bool follow)
{
    char full[PROC_PATH_SIZE];

    if (is_fd_itself(path))
        return (int)result(fremovexattr(dirfd, name));
#ifdef SYS_getxattrat
    if (have_at_calls())
        return (int)result(syscall(SYS_removexattrat, dirfd, path, follow ? 0 : AT_SYMLINK_NOFOLLOW, name));
#endif
    int err = proc_path(full, dirfd, path);
    if (err)
        return err;
    return (int)result(follow ? removexattr(full, name) : lremovexattr(full, name));
}
