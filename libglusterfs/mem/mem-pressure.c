/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-pressure: lets the kernel tell the sweeper when the system is short of memory.
 *
 * The sweeper watches the file that the service manager names (MEMORY_PRESSURE_WATCH, after writing the
 * contents of MEMORY_PRESSURE_WRITE to it), else the cgroup's memory.pressure, else /proc/pressure/memory:
 * 200 ms of stall in 2 s request level 1, continued stalls level 2. It also watches the cgroup's
 * memory.events: a new "high" or "max" requests level 2. Absent files are not watched. */
#include "base/procfs-text.h"
#include "mem/mem-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char trigger[] = "some 200000 2000000";
static uint64_t high_seen;
static uint64_t last_stall_us;

/* ---- files to watch -------------------------------------------------------------------------- */

/* Reads /proc/self/cgroup, as far as it fits; without a stream, which would allocate. */
static void
cgroup_read(char *text, size_t max)
{
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    while (fd >= 0 && (n = read(fd, text + len, max - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = 0;
    if (fd >= 0)
        close(fd);
}

/* Opens a file of this process's cgroup (v2), which lies elsewhere if v1 is mounted too. */
static int
cgroup_open(const char *file, int flags)
{
    static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    char text[2 * PATH_MAX], path[2 * PATH_MAX + 64], *next;
    int fd = -1;

    cgroup_read(text, sizeof(text));
    for (char *line = text; *line && fd < 0; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        for (int i = 0; i < 2 && fd < 0 && !strncmp(line, "0::", 3); i++) {
            snprintf(path, sizeof(path), "%s%s/%s", roots[i], line + 3, file);
            fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
        }
    }
    return fd;
}

static int
base64_value(char c)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(set, c) : NULL;

    return at ? (int)(at - set) : -1;
}

/* -1: not base64, or too long. */
static ssize_t
base64_decode(const char *text, char *out, size_t max)
{
    uint32_t bits = 0;
    int n = 0;
    size_t len = 0;

    for (; *text && *text != '='; text++) {
        int v = base64_value(*text);

        if (v < 0)
            return -1;
        bits = bits << 6 | (uint32_t)v;
        n += 6;
        if (n >= 8) {
            if (len == max)
                return -1;
            n -= 8;
            out[len++] = (char)(bits >> n);
        }
    }
    return (ssize_t)len;
}

static int
manager_open(const char *path)
{
    const char *encoded = secure_getenv("MEMORY_PRESSURE_WRITE");
    char text[256];
    ssize_t n = encoded ? base64_decode(encoded, text, sizeof(text)) : 0;
    int fd = open(path, (n > 0 ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0 && n > 0 && write(fd, text, (size_t)n) != n) {
        close(fd);
        return -1;
    }
    return fd;
}

static int
stall_open(void)
{
    const char *path = secure_getenv("MEMORY_PRESSURE_WATCH");
    int fd;

    if (path && !strcmp(path, "/dev/null"))
        return -1; /* the service manager asks not to watch */
    if (path && *path)
        return manager_open(path);
    fd = cgroup_open("memory.pressure", O_RDWR);
    if (fd < 0)
        fd = open("/proc/pressure/memory", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && write(fd, trigger, sizeof(trigger)) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Sum of the counts of "high" and "max". */
static uint64_t
events_read(int fd)
{
    struct procfs_field counts[] = { { "high", 0 }, { "max", 0 } };
    char text[512];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return high_seen;
    text[n] = 0;
    procfs_parse_fields(text, counts, 2);
    return counts[0].value + counts[1].value;
}

/* ---- in the sweeper's poll ------------------------------------------------------------------- */

/* Fills two entries: stalls, and the cgroup's events; an fd of -1 is not watched. */
int
mem_pressure_open(struct pollfd *fds, int max)
{
    assert(max >= 2);
    fds[0] = (struct pollfd){ .fd = stall_open(), .events = POLLPRI };
    fds[1] = (struct pollfd){ .fd = cgroup_open("memory.events", O_RDONLY), .events = POLLPRI };
    if (fds[1].fd >= 0)
        high_seen = events_read(fds[1].fd);
    last_stall_us = 0;
    return 2;
}

static int
stall_level(void)
{
    uint64_t now = mem_now_us();
    bool again = last_stall_us && now - last_stall_us < 5000000;

    last_stall_us = now;
    return again ? 2 : 1;
}

int
mem_pressure_level(struct pollfd *fds, int n)
{
    int level = 0;

    assert(n == 2);
    if (fds[0].fd >= 0 && fds[0].revents & (POLLERR | POLLHUP | POLLNVAL)) {
        close(fds[0].fd); /* the cgroup is gone; poll would spin */
        fds[0].fd = -1;
    } else if (fds[0].fd >= 0 && fds[0].revents & POLLPRI) {
        level = stall_level();
    }
    if (fds[1].fd >= 0 && fds[1].revents) {
        uint64_t high = events_read(fds[1].fd); /* reading also rearms the poll */

        if (high != high_seen)
            level = 2;
        high_seen = high;
    }
    return level;
}

void
mem_pressure_close(struct pollfd *fds, int n)
{
    for (int i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
}
