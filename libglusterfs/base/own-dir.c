/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/own-dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int
claim_dir(int fd, mode_t mode)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != geteuid())
        return -EPERM;
    return (st.st_mode & 07777) != mode && fchmod(fd, mode) < 0 ? -errno : 0;
}

int
own_dir_open(const char *path, mode_t mode)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 ? -errno : claim_dir(fd, mode);

    if (err && fd >= 0)
        close(fd);
    return err ? err : fd;
}
