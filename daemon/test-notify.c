/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A service manager hears that the daemon is ready, and signs of life only while workers get events. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/notify.h"
#include "event/worker.h"

enum { WORKERS = 2 };

/* A manager, at a name of the abstract namespace. */
static int
listen_as(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(a.sun_path + 1, name + 1, strlen(name) - 1);
    ck_assert_int_eq(
        bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
        0);
    return fd;
}

/* The next message; false: no message within this time. */
static bool
hear(int fd, char *text, size_t size, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    text[0] = '\0';
    if (poll(&p, 1, timeout_ms) != 1)
        return false;
    ssize_t n = recv(fd, text, size - 1, 0);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    return true;
}

static void
expect(int fd, const char *wanted)
{
    char text[600];

    do
        ck_assert_msg(hear(fd, text, sizeof text, 60000), "%s was not heard", wanted);
    while (strcmp(text, wanted) != 0);
}

static pthread_mutex_t in_the_way = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_wait;

static void
get_stuck(struct worker_job *job)
{
    (void)job;
    pthread_barrier_wait(&all_wait);
    pthread_mutex_lock(&in_the_way);
    pthread_mutex_unlock(&in_the_way);
}

/* All workers hang in a lock: no sign of life comes until the lock is free. */
static void
stop_all_workers(int fd)
{
    static struct worker_job jobs[WORKERS];
    char text[600];

    pthread_barrier_init(&all_wait, NULL, WORKERS + 1);
    pthread_mutex_lock(&in_the_way);
    for (unsigned i = 0; i < WORKERS; i++) {
        jobs[i].run = get_stuck;
        worker_post_any(&jobs[i]);
    }
    pthread_barrier_wait(&all_wait);
    while (hear(fd, text, sizeof text, 0))
        ck_assert_str_eq(text, "WATCHDOG=1"); /* from before */
    ck_assert(!hear(fd, text, sizeof text, 1000));
    pthread_mutex_unlock(&in_the_way);
    expect(fd, "WATCHDOG=1");
}

START_TEST(a_manager_hears_how_it_goes)
{
    char name[64], usec[] = "150000";

    snprintf(name, sizeof name, "@kiln-test-notify-%ld", (long)getpid());
    int fd = listen_as(name);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", usec, 1);
    ck_assert_int_eq(notify_begin(), 0);
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = WORKERS, .max = WORKERS}), 0);
    ck_assert_int_eq(notify_ready("serving 4 bricks"), 0);
    expect(fd, "READY=1\nSTATUS=serving 4 bricks");
    expect(fd, "WATCHDOG=1");
    stop_all_workers(fd);
    notify_reloading();
    notify_reloaded();
    expect(fd, "READY=1");
    notify_stopping();
    expect(fd, "STOPPING=1\nSTATUS=finishing what is running");
    workers_stop();
    close(fd);
}
END_TEST

/* WATCHDOG_PID names another process, which sends the signs. */
START_TEST(what_is_not_meant_for_it_is_not_heard)
{
    char name[64], text[600];

    snprintf(name, sizeof name, "@kiln-test-notify-%ld", (long)getpid());
    int fd = listen_as(name);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "30000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_int_eq(notify_begin(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = WORKERS, .max = WORKERS}), 0);
    ck_assert_int_eq(notify_ready("so"), 0);
    expect(fd, "READY=1\nSTATUS=so");
    ck_assert(!hear(fd, text, sizeof text, 300));
    notify_stopping();
    workers_stop();
    close(fd);
}
END_TEST

START_TEST(a_manager_that_is_not_there_is_an_error)
{
    setenv("NOTIFY_SOCKET", "relative/path", 1);
    ck_assert_int_eq(notify_begin(), -EINVAL);
    setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
    ck_assert_int_eq(notify_begin(), -ENOENT);
    ck_assert_int_eq(notify_ready("to nobody"), 0);
    notify_stopping();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("notify");
    TCase *tc = tcase_create("notify");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_manager_hears_how_it_goes);
    tcase_add_test(tc, what_is_not_meant_for_it_is_not_heard);
    tcase_add_test(tc, a_manager_that_is_not_there_is_an_error);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
