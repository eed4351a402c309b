/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Both ends are this transport: a dialler against listeners, ports that refuse, and sockets that never
 * answer. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "mem/mem-pool.h"
#include "rpc/transport/dial.h"

static struct listener *listener;
static struct dialler dialler;
static sem_t outcome_told, record_came;
static atomic_int outcomes, last_error, served_port, closed_count;
static _Atomic(struct conn *) mine;
static char dir[64], path[96];

/* ---- the server: sends what it gets ---------------------------------------------------------- */

static int
serve_accepted(struct conn *c, void *arg)
{
    const struct sockaddr_storage *peer = conn_peer(c);

    (void)arg;
    served_port = peer->ss_family == AF_INET6   ? ntohs(((const struct sockaddr_in6 *)peer)->sin6_port)
                  : peer->ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)peer)->sin_port)
                                               : 0;
    return 0;
}

static void
serve_record(struct conn *c, struct record *r, void *arg)
{
    (void)arg;
    conn_send(c, r->iov[0].iov_base, r->bytes, NULL, NULL, 0);
    record_release(r);
}

static void
serve_closed(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
}

static const struct transport_ops server_ops = {
    .accepted = serve_accepted, .record = serve_record, .closed = serve_closed};

/* ---- the client ------------------------------------------------------------------------------ */

static void
tell(int err)
{
    last_error = err;
    outcomes++;
    sem_post(&outcome_told);
}

static int
dialled(struct conn *c, void *arg)
{
    ck_assert_ptr_eq(arg, &dialler);
    atomic_store(&mine, conn_ref(c));
    tell(0);
    return 0;
}

static void
answered(struct conn *c, struct record *r, void *arg)
{
    (void)c;
    (void)arg;
    ck_assert_int_eq((int)r->bytes, 8);
    ck_assert_int_eq(memcmp(r->iov[0].iov_base, "question", 8), 0);
    record_release(r);
    sem_post(&record_came);
}

static void
client_closed(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
    closed_count++;
}

static void
dial_failed(struct dialler *d, int err)
{
    ck_assert_ptr_eq(d, &dialler);
    ck_assert_int_lt(err, 0);
    tell(err);
}

static const struct transport_ops client_ops = {
    .accepted = dialled, .record = answered, .closed = client_closed};

/* ---- fixture --------------------------------------------------------------------------------- */

static void
setup(void)
{
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3}), 0);
    snprintf(dir, sizeof dir, "/tmp/kiln-dial-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    sem_init(&outcome_told, 0, 0);
    sem_init(&record_came, 0, 0);
    dialler_init(&dialler, &client_ops, dial_failed, &dialler);
}

static void
teardown(void)
{
    if (listener)
        listener_close(listener);
    transport_close_all();
    workers_stop();
    dialler_fini(&dialler);
    struct conn *c = atomic_exchange(&mine, NULL);

    if (c)
        conn_unref(c);
    mem_pools_fini();
    rmdir(dir);
}

static uint16_t
serve_tcp(const char *host)
{
    int err = 0;

    listener = listener_open_tcp(host, 0, &server_ops, NULL, &err);
    return listener ? listener_port(listener) : 0;
}

static int
outcome(const struct dial_target *target)
{
    ck_assert_int_eq(dial_target_check(target), 0);
    dialler_start(&dialler, target);
    while (sem_wait(&outcome_told))
        ;
    return last_error;
}

/* The connection works in both directions. */
static void
converse(void)
{
    ck_assert_int_eq(conn_send(atomic_load(&mine), "question", 8, NULL, NULL, 0), 0);
    while (sem_wait(&record_came))
        ;
    ck_assert_uint_eq(conn_bytes_in(atomic_load(&mine)), 12);
}

/* A listening socket whose backlog is full: the kernel answers no SYN. */
static uint16_t
deaf_port(int fds[3])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fds[0], (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(fds[0], 0), 0);
    ck_assert_int_eq(getsockname(fds[0], (struct sockaddr *)&a, &size), 0);
    for (int i = 1; i < 3; i++) { /* more than fit */
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert(connect(fds[i], (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS);
    }
    return ntohs(a.sin_port);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(an_address_of_ipv4)
{
    ck_assert_int_eq(outcome(&(struct dial_target){.host = "127.0.0.1", .port = serve_tcp("127.0.0.1")}), 0);
    converse();
}
END_TEST

START_TEST(an_address_of_ipv6)
{
    uint16_t port = serve_tcp("::1");

    if (!port) {
        printf("no IPv6 here\n");
        return;
    }
    ck_assert_int_eq(outcome(&(struct dial_target){.host = "::1", .port = port}), 0);
    converse();
}
END_TEST

/* The listener has only IPv4, and the name may lead to IPv6 first. */
START_TEST(a_name)
{
    struct addrinfo *list;

    if (getaddrinfo("localhost", NULL, NULL, &list)) {
        printf("no localhost here: a bare Debian has no hosts file\n");
        return;
    }
    freeaddrinfo(list);
    ck_assert_int_eq(outcome(&(struct dial_target){.host = "localhost", .port = serve_tcp("127.0.0.1")}), 0);
    converse();
}
END_TEST

START_TEST(an_unknown_name)
{
    int err = outcome(&(struct dial_target){.host = "no-such-host.invalid", .port = 1});

    ck_assert_msg(err == -EADDRNOTAVAIL || err == -EAGAIN, "%d", err);
}
END_TEST

START_TEST(a_unix_socket)
{
    int err = 0;

    listener = listener_open_unix(path, &server_ops, NULL, &err);
    ck_assert_int_eq(outcome(&(struct dial_target){.path = path}), 0);
    converse();
}
END_TEST

START_TEST(nobody_listens)
{
    uint16_t port = serve_tcp("127.0.0.1");

    listener_close(listener);
    listener = NULL;
    ck_assert_int_eq(outcome(&(struct dial_target){.host = "127.0.0.1", .port = port}), -ECONNREFUSED);
    ck_assert_int_eq(outcome(&(struct dial_target){.path = path}), -ENOENT);
}
END_TEST

START_TEST(an_address_that_does_not_answer)
{
    int fds[3];
    uint16_t port = deaf_port(fds);

    ck_assert_int_eq(outcome(&(struct dial_target){.host = "127.0.0.1", .port = port, .timeout_ms = 50}),
                     -ETIMEDOUT);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}
END_TEST

START_TEST(cancelled_while_connecting)
{
    int fds[3];
    uint16_t port = deaf_port(fds);

    dialler_start(&dialler, &(struct dial_target){.host = "127.0.0.1", .port = port});
    dialler_cancel(&dialler);
    while (sem_wait(&outcome_told))
        ;
    ck_assert_int_eq(last_error, -ECANCELED);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}
END_TEST

/* A cancel at any moment gives one outcome, never two, never none. */
START_TEST(cancelled_at_any_moment)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "no-such-host.invalid"};
    uint16_t port = serve_tcp("127.0.0.1");
    int connected = 0;

    for (int i = 0; i < 300; i++) {
        dialler_start(&dialler, &(struct dial_target){.host = hosts[i % 3], .port = port});
        for (volatile int spin = 0; spin < i * 50; spin++)
            ;
        dialler_cancel(&dialler);
        dialler_cancel(&dialler);
        while (sem_wait(&outcome_told))
            ;
        ck_assert_int_eq(outcomes, i + 1);
        struct conn *c = atomic_exchange(&mine, NULL);

        if (c) {
            connected++;
            conn_close(c);
            conn_unref(c);
        }
    }
    dialler_cancel(&dialler); /* nothing to cancel */
    ck_assert_int_eq(outcomes, 300);
    transport_close_all();
    ck_assert_int_eq(closed_count, connected);
}
END_TEST

static bool
may_bind_low_ports(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(1021)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool may = bind(fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EADDRINUSE;

    close(fd);
    return may;
}

START_TEST(a_low_port_if_it_may)
{
    struct dial_target target = {.host = "127.0.0.1", .port = serve_tcp("127.0.0.1"), .wants_low_port = true};

    ck_assert_int_eq(outcome(&target), 0);
    converse();
    ck_assert_int_eq(served_port < 1024, may_bind_low_ports());
}
END_TEST

START_TEST(what_cannot_be_dialled)
{
    char name[DIAL_HOST_MAX + 2];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(dial_target_check(&(struct dial_target){.path = name}), -ENAMETOOLONG);
    ck_assert_int_eq(dial_target_check(&(struct dial_target){.host = name, .port = 1}), -ENAMETOOLONG);
    ck_assert_int_eq(dial_target_check(&(struct dial_target){.host = "h"}), -EINVAL);
    ck_assert_int_eq(dial_target_check(&(struct dial_target){.port = 1}), -EINVAL);
}
END_TEST

enum { ONLY_PORT = 40001 };

/* A network namespace in which the kernel chooses ONLY_PORT for each socket. */
static void
setup_one_port(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    static const char range[] = "40001 40001";

    if (geteuid() == 0) {
        ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
        close(fd);
        fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(write(fd, range, sizeof range - 1), sizeof range - 1);
        close(fd);
    }
    setup();
}

START_TEST(a_connection_of_a_socket_to_itself_is_refused)
{
    const struct dial_target target = {.host = "127.0.0.1", .port = ONLY_PORT};

    if (geteuid() != 0) {
        printf("needs a network namespace: only root can make one\n");
        return;
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(outcome(&target), -ECONNREFUSED);
    listener = listener_open_tcp("127.0.0.1", ONLY_PORT, &server_ops, NULL, &(int){0});
    ck_assert_ptr_nonnull(listener);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("dial");
    TCase *t = tcase_create("dial");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_address_of_ipv4);
    tcase_add_test(t, an_address_of_ipv6);
    tcase_add_test(t, a_name);
    tcase_add_test(t, an_unknown_name);
    tcase_add_test(t, a_unix_socket);
    tcase_add_test(t, nobody_listens);
    tcase_add_test(t, an_address_that_does_not_answer);
    tcase_add_test(t, cancelled_while_connecting);
    tcase_add_test(t, cancelled_at_any_moment);
    tcase_add_test(t, a_low_port_if_it_may);
    tcase_add_test(t, what_cannot_be_dialled);
    suite_add_tcase(s, t);
    t = tcase_create("one port");
    tcase_add_checked_fixture(t, setup_one_port, teardown);
    tcase_add_test(t, a_connection_of_a_socket_to_itself_is_refused);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
