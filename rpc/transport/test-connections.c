/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Connections and listeners: begin and end, and leftovers of either. */
#include <poll.h>
#include <sys/resource.h>

#include "rpc/transport/test-echo.h"
#include "rpc/transport/transport-internal.h"

START_TEST(peer_leaves_in_mid_record)
{
    char *r = make_record(0, 1 << 20, 1);

    for (unsigned i = 0; i < 30; i++) {
        int fd = dial();

        ck_assert(write_all(fd, r, i < 6 ? i : i * 30000));
        close(fd);
    }
    free(r);
    wait_count(&echo.closed, 30);
}
END_TEST

START_TEST(server_closes)
{
    for (unsigned i = 0; i < 20; i++) {
        int fd = dial();
        char *last = make_record(CLOSE_ME, 30, 0);

        round_trip(fd, 0, 30, i);
        ck_assert(write_all(fd, last, 34));
        free(last);
        expect_end(fd);
    }
    wait_count(&echo.closed, 20);
}
END_TEST

static void *
close_storm(void *arg)
{
    unsigned random = (unsigned)(size_t)arg;

    for (int round = 0; round < 6; round++) {
        int fds[25];

        for (int i = 0; i < 25; i++) {
            char *r = make_record(rand_r(&random) % 8 ? 0 : CLOSE_ME, 3000, random);

            fds[i] = dial();
            for (int k = 0; k < 3; k++)
                write_all(fds[i], r, 3004);
            free(r);
        }
        for (int i = 0; i < 25; i++) {
            char got[100];

            struct linger reset = {.l_onoff = 1};

            if (rand_r(&random) % 2)
                (void)!read(fds[i], got, sizeof got);
            if (rand_r(&random) % 4 == 0) /* TCP: a reset instead of an orderly end */
                setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            close(fds[i]);
        }
    }
    return NULL;
}

START_TEST(storm_of_connections)
{
    echo.is_dialing_tcp = _i;

    pthread_t thread[4];

    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, close_storm, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    wait_count(&echo.accepted, 600);
    wait_count(&echo.closed, 600);
}
END_TEST

START_TEST(shutdown_with_work_in_flight)
{
    int fds[10];
    char *block = make_record(BLOCK_ME, 30, 2), *half = make_record(0, 200000, 2);

    for (int i = 0; i < 10; i++) {
        fds[i] = dial();
        ck_assert(write_all(fds[i], block, 34));
        ck_assert(write_all(fds[i], half, 60000));
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(sem_wait(&echo.blocked), 0);
    for (int i = 0; i < 10; i++)
        sem_post(&echo.gate);
    echo_stop(); /* while the ten run or have half a record */
    for (int i = 0; i < 10; i++)
        close(fds[i]);
    free(block);
    free(half);
    echo_start(true);
    int fd = dial();

    round_trip(fd, 0, 100, 1);
    close(fd);
}
END_TEST

/* Before the process ends, requests that are on their way are run, and no client reads an answer. */
START_TEST(quiesce_runs_requests_and_holds_back_replies)
{
    struct pollfd readable = {.fd = dial(), .events = POLLIN};
    char *r = make_record(0, 100, 3);
    struct transport_stats before, after;

    round_trip(readable.fd, 0, 100, 1);
    transport_stats(&before);
    send_hold_back(true);
    ck_assert(write_all(readable.fd, r, 104));
    transport_quiesce();
    transport_stats(&after);
    ck_assert_uint_eq(after.records, before.records + 1);
    ck_assert_uint_eq(after.messages, before.messages + 1);
    ck_assert_int_eq(poll(&readable, 1, 0), 0);
    echo_stop();
    expect_end(readable.fd);
    echo_start(true);
    int fd = dial();

    round_trip(fd, 0, 100, 1);
    close(fd);
    free(r);
}
END_TEST

/* Waits until every worker is idle, so no worker holds a descriptor. */
static void
wait_workers_idle(void)
{
    struct timespec nap = {.tv_nsec = 1000000};
    struct worker_stats w = {0};

    for (int i = 0; i < 60000; i++) {
        worker_stats(&w);
        if (w.waiting == w.threads)
            return;
        nanosleep(&nap, NULL);
    }
    ck_abort_msg("%u of %u workers wait", w.waiting, w.threads);
}

/* The listener holds a descriptor for a moment when a connection that it asks for is not there, and when it
 * has given up its spare descriptor. */
static int
socket_when_there_is_one(void)
{
    struct timespec nap = {.tv_nsec = 1000000};
    int fd = -1;

    for (int i = 0; i < 60000 && (fd = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 && errno == EMFILE; i++)
        nanosleep(&nap, NULL);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* The listener gives up its spare descriptor to turn the client away, and works again when there are
 * descriptors. */
START_TEST(no_descriptors_left)
{
    struct rlimit files = {.rlim_cur = 200, .rlim_max = 200};
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fillers[200], count = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0), kept = dial();

    strcpy(a.sun_path, echo.path);
    round_trip(kept, 0, 30, 1);
    wait_workers_idle();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    while ((fillers[count] = dup(0)) >= 0)
        count++;
    ck_assert_int_eq(errno, EMFILE);
    log_set_level(LOG_NONE);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
        expect_end(fd);
        fd = socket_when_there_is_one();
    }
    close(fd);
    round_trip(kept, 0, 30, 2);
    while (count)
        close(fillers[--count]);
    fd = dial();
    round_trip(fd, 0, 30, 3);
    close(fd);
    close(kept);
}
END_TEST

START_TEST(stale_socket_is_replaced_and_live_one_is_not)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char other[108];
    int err, fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(other, sizeof other, "%s/other", echo.dir);
    strcpy(a.sun_path, other);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    struct listener *l = listener_open_unix(other, &echo_ops, &echo.accepted, &err);

    ck_assert_ptr_nonnull(l);
    ck_assert_ptr_null(listener_open_unix(other, &echo_ops, &echo.accepted, &err));
    ck_assert_int_eq(err, -EADDRINUSE);
    listener_close(l);
}
END_TEST

/* The socket file stays until listener_close(); the listener leaves a file in place that another process has
 * put there. */
START_TEST(socket_file_stays_until_the_listener_is_closed)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[108];
    int err, fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(name, sizeof name, "%s/kept", echo.dir);
    strcpy(a.sun_path, name);
    struct listener *l = listener_open_unix(name, &echo_ops, &echo.accepted, &err);
    ck_assert_ptr_nonnull(l);
    listener_stop(l);
    ck_assert_int_eq(access(name, F_OK), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    listener_close(l);
    ck_assert_int_eq(access(name, F_OK), -1);

    ck_assert_ptr_nonnull(l = listener_open_unix(name, &echo_ops, &echo.accepted, &err));
    ck_assert_int_eq(unlink(name), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    listener_close(l);
    ck_assert_int_eq(access(name, F_OK), 0);
    close(fd);
    ck_assert_int_eq(unlink(name), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("connections");
    TCase *c = tcase_create("after login");

    log_set_level(LOG_ERROR);
    tcase_add_checked_fixture(c, echo_setup, echo_stop);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, peer_leaves_in_mid_record);
    tcase_add_test(c, server_closes);
    tcase_add_loop_test(c, storm_of_connections, 0, 2);
    tcase_add_test(c, shutdown_with_work_in_flight);
    tcase_add_test(c, quiesce_runs_requests_and_holds_back_replies);
    tcase_add_test(c, no_descriptors_left);
    tcase_add_test(c, stale_socket_is_replaced_and_live_one_is_not);
    tcase_add_test(c, socket_file_stays_until_the_listener_is_closed);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
