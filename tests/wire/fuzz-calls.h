/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fuzz-calls: system calls that fail, for fuzz targets that are linked with --wrap of each of them. Included
 * by one source of a program. Only calls of the daemon's code fail, no calls of libraries. With 64-bit
 * offsets the names of some calls end in 64. */
#ifndef KILN_FUZZ_CALLS_H
#define KILN_FUZZ_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_openat64(int dir, const char *name, int flags, ...);
int __real_fstat64(int fd, struct stat *st);
ssize_t __real_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __real_pwrite64(int fd, const void *from, size_t n, off_t at);
ssize_t __real_write(int fd, const void *from, size_t n);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_flock(int fd, int how);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __real_renameat(int dir, const char *name, int dir2, const char *name2);
int __real_unlinkat(int dir, const char *name, int flags);
struct dirent *__real_readdir64(DIR *d);
DIR *__real_fdopendir(int fd);
FILE *__real_open_memstream(char **text, size_t *size);

int __wrap_openat64(int dir, const char *name, int flags, ...);
int __wrap_fstat64(int fd, struct stat *st);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_write(int fd, const void *from, size_t n);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_flock(int fd, int how);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_renameat(int dir, const char *name, int dir2, const char *name2);
int __wrap_unlinkat(int dir, const char *name, int flags);
struct dirent *__wrap_readdir64(DIR *d);
DIR *__wrap_fdopendir(int fd);
FILE *__wrap_open_memstream(char **text, size_t *size);

static unsigned calls_left; /* the call that makes the count 0 fails; 0: no call fails */
static int calls_error = EIO;

/* True if the call shall fail. Sets errno. */
static bool
call_fails(void)
{
    if (!calls_left || --calls_left)
        return false;
    errno = calls_error;
    return true;
}

int
__wrap_openat64(int dir, const char *name, int flags, ...)
{
    return call_fails() ? -1 : __real_openat64(dir, name, flags, 0600);
}

int
__wrap_fstat64(int fd, struct stat *st)
{
    return call_fails() ? -1 : __real_fstat64(fd, st);
}

ssize_t
__wrap_pread64(int fd, void *to, size_t n, off_t at)
{
    return call_fails() ? -1 : __real_pread64(fd, to, n, at);
}

ssize_t
__wrap_pwrite64(int fd, const void *from, size_t n, off_t at)
{
    return call_fails() ? -1 : __real_pwrite64(fd, from, n, at);
}

ssize_t
__wrap_write(int fd, const void *from, size_t n)
{
    return call_fails() ? -1 : __real_write(fd, from, n);
}

int
__wrap_fsync(int fd)
{
    return call_fails() ? -1 : __real_fsync(fd);
}

/* The descriptor has gone all the same. */
int
__wrap_close(int fd)
{
    bool fails = call_fails();
    int result = __real_close(fd);

    if (fails)
        errno = calls_error;
    return fails ? -1 : result;
}

int
__wrap_flock(int fd, int how)
{
    return call_fails() ? -1 : __real_flock(fd, how);
}

int
__wrap_mkdirat(int dir, const char *name, mode_t mode)
{
    return call_fails() ? -1 : __real_mkdirat(dir, name, mode);
}

int
__wrap_renameat(int dir, const char *name, int dir2, const char *name2)
{
    return call_fails() ? -1 : __real_renameat(dir, name, dir2, name2);
}

int
__wrap_unlinkat(int dir, const char *name, int flags)
{
    return call_fails() ? -1 : __real_unlinkat(dir, name, flags);
}

struct dirent *
__wrap_readdir64(DIR *d)
{
    return call_fails() ? NULL : __real_readdir64(d);
}

DIR *
__wrap_fdopendir(int fd)
{
    return call_fails() ? NULL : __real_fdopendir(fd);
}

FILE *
__wrap_open_memstream(char **text, size_t *size)
{
    return call_fails() ? NULL : __real_open_memstream(text, size);
}

#endif
