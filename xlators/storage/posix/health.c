/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* health: tests that the disk can still be written and read (spec: brick 11.3).
 *
 * Every health-check-interval the chore writes a time stamp to .glusterfs/health_check and reads it back. The
 * brick is reported down to its clients, once, if that fails, returns other data, takes longer than
 * health-check-timeout, or if BRICK is no longer the directory that was opened at the start (another file
 * system was mounted over it, or it was moved away). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xlators/storage/posix/posix-internal.h"

static void
health_fail(struct posix *p, const char *what, const char *why)
{
    if (atomic_exchange(&p->is_going_down, true))
        return;
    log_event(LOG_CRITICAL, p->xl, "posix-health-failed", "health-check failed, going down: %s: %s: %s",
              p->brick, what, why);
    for (size_t i = 0; i < POSIX_CHORES; i++)
        chore_dismiss(&p->chores[i]);
    xlator_tell_parent(p->xl, CHILD_DOWN);
}

static size_t
time_stamp(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    return strftime(text, size, "%Y-%m-%d %H:%M:%S +0000", &tm);
}

/* Returns 0, or -errno and the failed step in `*what`; -EUCLEAN: the data read differ. */
static int
write_and_read(int fd, const char **what)
{
    char text[64], found[64];
    size_t len = time_stamp(text, sizeof text);

    *what = "write";
    ssize_t n = pwrite(fd, text, len, 0);
    if (n < 0)
        return -errno;
    if ((size_t)n != len)
        return -ENOSPC;
    *what = "read";
    n = pread(fd, found, sizeof found, 0);
    if (n < 0)
        return -errno;
    return (size_t)n == len && memcmp(text, found, len) == 0 ? 0 : -EUCLEAN;
}

static int
check_health_file(struct posix *p, const char **what)
{
    *what = "open";
    int fd = openat(p->handles_fd, "health_check", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    int r = write_and_read(fd, what);
    close(fd);
    return r;
}

static int
check_place(struct posix *p, const char **what)
{
    struct stat opened, named;

    *what = "stat";
    if (fstat(p->brick_fd, &opened) < 0 || stat(p->brick, &named) < 0)
        return -errno;
    *what = "the path no longer leads to the brick";
    return opened.st_ino == named.st_ino && opened.st_dev == named.st_dev ? 0 : -ESTALE;
}

static uint64_t
health_chore(struct chore *c)
{
    struct posix *p = caa_container_of(c, struct posix, chores[POSIX_HEALTH]);
    const struct posix_conf *conf = posix_conf(p->xl);
    const char *what;

    if (conf->health_check_interval == 0)
        return 0;
    if (conf->health_check_timeout > 0)
        timer_start(&p->health_deadline, (uint64_t)conf->health_check_timeout * 1000);
    int r = check_health_file(p, &what);
    if (r == 0)
        r = check_place(p, &what);
    timer_stop(&p->health_deadline);
    /* A full disk, or a quota, does not mean a broken disk; the writers report it. */
    if (r < 0 && r != -EAGAIN && r != -ENOSPC && r != -EDQUOT)
        health_fail(p, what, strerror(-r));
    return (uint64_t)posix_conf(p->xl)->health_check_interval * 1000;
}

static void
health_overdue(struct timer *t)
{
    struct posix *p = caa_container_of(t, struct posix, health_deadline);

    health_fail(p, "check", "it has not ended in time");
}

void
posix_health_init(struct posix *p)
{
    timer_init(&p->health_deadline, health_overdue);
    chore_init(&p->chores[POSIX_HEALTH], health_chore);
}

void
posix_health_start(struct posix *p)
{
    int64_t interval = posix_conf(p->xl)->health_check_interval;

    if (interval > 0)
        chore_restart(&p->chores[POSIX_HEALTH], (uint64_t)interval * 1000);
}
