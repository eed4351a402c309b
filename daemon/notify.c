/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "daemon/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "event/timer.h"
#include "event/worker.h"
#include "log/log.h"

/* Written by the main thread before workers may look at these. */
static int manager = -1;       /* connected; -1: no manager */
static uint64_t watchdog_usec; /* 0: no signs of life are wanted */
static char *manager_name;     /* $NOTIFY_SOCKET */
static bool is_watched;

static void watch_due(struct timer *t);
static void watch_run(struct event_source *src, uint32_t events);
static struct timer watch;
static struct event_source beat = {.fd = -1, .fn = watch_run};

/* A manager that does not read must not hold up a daemon. A message that cannot be sent is lost, and the next
 * message makes up for the loss. */
static int
notify_send(const char *text)
{
    if (manager < 0)
        return 0;
    return send(manager, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- the manager's variables ----------------------------------------------------------------- */

static int
connect_to(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t len = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || len >= sizeof a.sun_path)
        return -EINVAL;
    memcpy(a.sun_path, name, len);
    if (name[0] == '@') /* the abstract namespace */
        a.sun_path[0] = '\0';
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (manager < 0)
        return -errno;
    if (connect(manager, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ==
        0)
        return 0;
    int err = -errno;
    close(manager);
    manager = -1;
    return err;
}

/* $WATCHDOG_USEC, if the value is meant for this process. */
static uint64_t
read_watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
        return 0;
    return strtoull(usec, NULL, 10);
}

int
notify_begin(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    int err = name && *name ? connect_to(name) : 0;

    watchdog_usec = manager >= 0 ? read_watchdog() : 0;
    manager_name = manager >= 0 ? strdup(name) : NULL;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return err;
}

void
notify_give_environment(bool gives)
{
    char usec[32];

    snprintf(usec, sizeof usec, "%ju", (uintmax_t)watchdog_usec);
    if (gives && manager_name)
        setenv("NOTIFY_SOCKET", manager_name, 1);
    else
        unsetenv("NOTIFY_SOCKET");
    if (gives && watchdog_usec)
        setenv("WATCHDOG_USEC", usec, 1);
    else
        unsetenv("WATCHDOG_USEC");
}

/* ---- signs of life --------------------------------------------------------------------------- */

static void
start_watch(void)
{
    timer_start(&watch, watchdog_usec / 3000 + 1); /* three chances */
}

static void
watch_due(struct timer *t)
{
    const uint64_t one = 1;
    ssize_t n = write(beat.fd, &one, sizeof one); /* fails after 2^64 unread beats */

    (void)t;
    (void)n;
    start_watch();
}

static void
watch_run(struct event_source *src, uint32_t events)
{
    uint64_t count;

    (void)events;
    if (read(src->fd, &count, sizeof count) != sizeof count)
        return; /* another worker has the event */
    int err = notify_send("WATCHDOG=1");
    if (err)
        log_event(LOG_WARNING, NULL, "notify-watchdog", "the service manager could not be told: %s",
                  strerror(-err));
}

static int
begin_watch(void)
{
    beat.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (beat.fd < 0)
        return -errno;
    int err = event_add(&beat, EPOLLIN);
    if (err) {
        close(beat.fd);
        return err;
    }
    timer_init(&watch, watch_due);
    start_watch();
    is_watched = true;
    return 0;
}

static void
end_watch(void)
{
    if (!is_watched)
        return;
    is_watched = false;
    timer_stop(&watch);
    event_remove(&beat);
    close(beat.fd);
}

/* ---- the states of the process --------------------------------------------------------------- */

int
notify_ready(const char *status)
{
    char text[512];
    int err = watchdog_usec ? begin_watch() : 0;

    if (err)
        return err;
    snprintf(text, sizeof text, "READY=1\nSTATUS=%s", status);
    return notify_send(text);
}

void
notify_reloading(void)
{
    char text[96];

    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%ju", (uintmax_t)(clock_mono_ns() / 1000));
    (void)notify_send(text);
}

void
notify_reloaded(void)
{
    (void)notify_send("READY=1");
}

void
notify_stopping(void)
{
    end_watch();
    (void)notify_send("STOPPING=1\nSTATUS=finishing what is running");
    if (manager >= 0)
        close(manager);
    manager = -1;
    free(manager_name);
    manager_name = NULL;
}
