/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/place.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ASK_MS = 1000, PAUSE_MS = 5 };

/* Tells whether the topmost mount on this path is a mount of a volume. */
static bool
is_volume(const char *path)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    char room[8192];
    struct mntent m;
    bool is = false;

    while (f && getmntent_r(f, &m, room, sizeof room)) {
        if (strcmp(m.mnt_dir, path) == 0)
            is = strcmp(m.mnt_type, "fuse.glusterfs") == 0;
    }
    if (f)
        endmntent(f);
    return is;
}

/* Asks the mount's process, and not the kernel's cache of attributes. */
static bool
fails_with_enotconn(const char *path)
{
    struct statx st;

    return statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_MODE, &st) < 0 && errno == ENOTCONN;
}

bool
place_is_dead(const char *path)
{
    return is_volume(path) && fails_with_enotconn(path);
}

/* Waits for the child. After ASK_MS the child hangs in the mount, so the parent kills the child. */
static bool
ended_with_0(pid_t pid)
{
    int status = -1;

    for (int ms = 0; ms < ASK_MS; ms += PAUSE_MS) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    kill(pid, SIGKILL);
    return false;
}

enum place
place_look(const char *path)
{
    if (!is_volume(path))
        return PLACE_FREE;
    pid_t pid = fork();
    if (pid == 0)
        _exit(fails_with_enotconn(path) ? 0 : 1);
    return pid > 0 && ended_with_0(pid) ? PLACE_DEAD : PLACE_LIVE;
}

int
place_clear(const char *path)
{
    while (place_is_dead(path)) {
        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
            return -errno;
    }
    return 0;
}
