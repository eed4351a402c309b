/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/own-program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int
own_program(char path[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    size_t tail = sizeof deleted - 1;

    if (len < 0)
        return -errno;
    path[len] = '\0';
    if ((size_t)len > tail && strcmp(path + len - tail, deleted) == 0)
        path[(size_t)len - tail] = '\0';
    return 0;
}

int
own_program_beside(char path[PATH_MAX], const char *name)
{
    int err = own_program(path);
    char *slash = err ? NULL : strrchr(path, '/');
    size_t size = strlen(name) + 1;

    if (!slash)
        return err ? err : -ENOENT;
    if ((size_t)(slash + 1 - path) + size > PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(slash + 1, name, size);
    return 0;
}
