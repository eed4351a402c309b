/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Opens `path` below the brick's folder, without following anything that leads out of the folder. Returns
 * a descriptor or -errno. */
static int
open_below(const char *brick, const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char relative[PATH_MAX];
    int dir = open(brick, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return -errno;
    int fd = snprintf(relative, sizeof relative, ".%s", path) < (int)sizeof relative
                 ? (int)syscall(SYS_openat2, dir, relative, &how, sizeof how)
                 : (errno = ENAMETOOLONG, -1);
    int err = fd < 0 ? -errno : 0;

    close(dir);
    return err ? err : fd;
}

int
brick_path_gfid(const char *brick, const char *path, struct gfid *gfid)
{
    char link[64];
    int fd = open_below(brick, path);

    if (fd < 0)
        return fd;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = getxattr(link, "trusted.gfid", gfid, sizeof *gfid);
    int err = n < 0 ? -errno : n == sizeof *gfid ? 0 : -EIO;

    close(fd);
    return err;
}
