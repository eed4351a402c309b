/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/unix-name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/transport/saved.h"

/* A socket file without a listening process was left by a process that died. (A file of another kind refuses
 * connections too.) */
static bool
is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    int fd = lstat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode)
                 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                 : -1;

    if (fd < 0)
        return false;
    bool refused = connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;

    close(fd);
    return refused;
}

static int
bind_to(int fd, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof a.sun_path)
        return -ENAMETOOLONG;
    strcpy(a.sun_path, path);
    /* Before the socket has a name, so that only the owner could ever connect: umask is 0 here. */
    if (fchmod(fd, 0600))
        return -errno;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return 0;
    if (errno != EADDRINUSE || !is_stale(&a))
        return -errno;
    if ((unlink(path) && errno != ENOENT) || bind(fd, (struct sockaddr *)&a, sizeof a))
        return -errno;
    return 0;
}

static int
inherited_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof a.sun_path)
        return -1;
    strcpy(a.sun_path, path);
    return listeners_take((struct sockaddr *)&a, sizeof a);
}

int
unix_name_bind(struct unix_name *name, const char *path)
{
    struct stat st;
    int err = 0, fd = inherited_socket(path);

    *name = (struct unix_name){0};
    if (fd < 0) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return -errno;
        err = bind_to(fd, path);
    }
    if (!err) {
        name->path = strdup(path);
        err = !name->path ? -ENOMEM : lstat(path, &st) ? -errno : 0;
        if (err)
            unlink(path);
    }
    if (err) {
        unix_name_free(name);
        close(fd);
        return err;
    }
    name->dev = st.st_dev;
    name->ino = st.st_ino;
    return fd;
}

void
unix_name_remove(const struct unix_name *name)
{
    struct stat st;

    if (name->path && lstat(name->path, &st) == 0 && st.st_dev == name->dev && st.st_ino == name->ino)
        unlink(name->path);
}

void
unix_name_free(struct unix_name *name)
{
    free(name->path);
    *name = (struct unix_name){0};
}
