/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Both sides of a local socket, and the peers that each side rejects: another user that has taken the
 * listener's name, or that connects. Without root all connections go by TCP. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rpc/transport/local-socket.h"
#include "base/test-child.h"

enum { PORT = 49999, NOBODY = 65534 };

static bool
is_root(void)
{
    if (geteuid() == 0)
        return true;
    printf("not root: nothing to see\n");
    return false;
}

static struct sockaddr_storage
address(const char *text, uint16_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_storage out = {0};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        memcpy(&out, &four, sizeof four);
    else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
        memcpy(&out, &six, sizeof six);
    return out;
}

static int
listen_at(const char *text)
{
    struct sockaddr_storage bound = address(text, PORT);
    int fd = local_socket_bind(&bound);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static int
connect_to(const char *text)
{
    struct sockaddr_storage to = address(text, PORT);

    return local_socket_connect((struct sockaddr *)&to,
                                to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                         : sizeof(struct sockaddr_in));
}

static int
accept_from(int listener)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};

    ck_assert_int_eq(poll(&p, 1, 20000), 1);
    int fd = accept(listener, NULL, NULL);

    ck_assert_int_ge(fd, 0);
    return fd;
}

static void
is_address(const struct sockaddr_storage *a, const char *text)
{
    char got[INET6_ADDRSTRLEN];

    inet_ntop(a->ss_family,
              a->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
                                       : (const void *)&((const struct sockaddr_in *)a)->sin_addr,
              got, sizeof got);
    ck_assert_str_eq(got, text);
}

static uint16_t
port_of(const struct sockaddr_storage *a)
{
    return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                          : ((const struct sockaddr_in *)a)->sin_port);
}

/* The server sees the same addresses as by TCP. */
static uint16_t
meets(int listener, const char *to, const char *from)
{
    struct sockaddr_storage peer, reached;
    char got[4] = "";
    int mine = connect_to(to), theirs = accept_from(listener);

    ck_assert_int_ge(mine, 0);
    ck_assert_int_eq(local_socket_peer(theirs, &peer, &reached), 0);
    is_address(&peer, from);
    is_address(&reached, to);
    ck_assert_uint_eq(port_of(&reached), PORT);
    ck_assert_int_eq(write(mine, "ask", 3), 3);
    ck_assert_int_eq(read(theirs, got, 3), 3);
    ck_assert_str_eq(got, "ask");
    close(mine);
    close(theirs);
    return port_of(&peer);
}

START_TEST(both_sides_know_each_other)
{
    if (!is_root())
        return;
    int all = listen_at("::"), one = listen_at("127.0.0.1");

    ck_assert_uint_ge(meets(one, "127.0.0.1", "127.0.0.1"), 1024);
    ck_assert_uint_ge(meets(all, "127.0.0.9", "127.0.0.1"), 1024);
    close(one);
    meets(all, "127.0.0.1", "127.0.0.1");
    close(all);
    ck_assert_int_eq(connect_to("127.0.0.1"), -ECONNREFUSED);
}
END_TEST

START_TEST(ipv6)
{
    if (!is_root())
        return;
    int all = listen_at("::"), fd = connect_to("::1");

    if (fd < 0) {
        printf("no IPv6 here\n");
    } else {
        close(accept_from(all));
        close(fd);
        meets(all, "::1", "::1");
    }
    close(all);
}
END_TEST

START_TEST(a_hundred_have_ports_of_their_own)
{
    enum { COUNT = 100 };
    struct sockaddr_storage peer;
    static unsigned char seen[1 << 16];
    int mine[COUNT], theirs[COUNT];

    if (!is_root())
        return;
    int all = listen_at("0.0.0.0");

    for (int i = 0; i < COUNT; i++) {
        mine[i] = connect_to("127.0.0.1");
        theirs[i] = accept_from(all);
        ck_assert_int_eq(local_socket_peer(theirs[i], &peer, NULL), 0);
        ck_assert_uint_eq(seen[port_of(&peer)]++, 0);
    }
    for (int i = 0; i < COUNT; i++) {
        close(mine[i]);
        close(theirs[i]);
    }
    close(all);
}
END_TEST

START_TEST(what_is_elsewhere)
{
    if (is_root())
        ck_assert_int_lt(connect_to("192.0.2.1"), 0);
    ck_assert_int_lt(connect_to("fe80::1"), 0);
}
END_TEST

START_TEST(two_cannot_have_one_name)
{
    int one = listen_at("127.0.0.1");
    struct sockaddr_storage bound = address("127.0.0.1", PORT);

    ck_assert_int_eq(local_socket_bind(&bound), -EADDRINUSE);
    close(one);
}
END_TEST

/* Runs `acts` as another user, in a separate process. */
static void
as_nobody(void (*acts)(int told), int *pid, int *told)
{
    int pipe_fd[2];

    ck_assert_int_eq(pipe(pipe_fd), 0);
    *pid = test_fork();
    if (*pid == 0) {
        close(pipe_fd[0]);
        if (setuid(NOBODY))
            _exit(1);
        acts(pipe_fd[1]);
        _exit(0);
    }
    close(pipe_fd[1]);
    *told = pipe_fd[0];
}

static void
squat(int told)
{
    struct sockaddr_storage bound = address("0.0.0.0", PORT);
    int fd = local_socket_bind(&bound);

    if (fd < 0 || listen(fd, 8) || write(told, "x", 1) != 1)
        _exit(1);
    pause();
}

START_TEST(a_name_that_another_user_has_taken)
{
    int pid, told;
    char x;

    if (!is_root())
        return;
    as_nobody(squat, &pid, &told);
    ck_assert_int_eq(read(told, &x, 1), 1);
    ck_assert_int_eq(connect_to("127.0.0.1"), -EPERM);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(told);
}
END_TEST

static void
intrude(int told)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (connect_to("127.0.0.1") != -EPERM) /* the client does not even try */
        _exit(1);
    memcpy(un.sun_path + 1, "kiln/any:49999", 14);
    if (connect(fd, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + 15) ||
        write(told, "x", 1) != 1)
        _exit(1);
    pause();
}

START_TEST(another_user_who_connects)
{
    struct sockaddr_storage peer;
    int pid, told;
    char x;

    if (!is_root())
        return;
    int all = listen_at("::");

    as_nobody(intrude, &pid, &told);
    ck_assert_int_eq(read(told, &x, 1), 1);
    int theirs = accept_from(all);

    ck_assert_int_eq(local_socket_peer(theirs, &peer, NULL), -EPERM);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(theirs);
    close(told);
    close(all);
}
END_TEST

/* Root connects to 49999 with this name. The listener's reading of the name: 0 or -errno, and the address. */
static int
named(int listener, const char *name, struct sockaddr_storage *peer)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX}, to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    memcpy(un.sun_path + 1, name, strlen(name));
    memcpy(to.sun_path + 1, "kiln/any:49999", 14);
    if (*name)
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&un,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
                         0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 15), 0);
    int theirs = accept_from(listener), err = local_socket_peer(theirs, peer, NULL);

    close(theirs);
    close(fd);
    return err;
}

/* Names that root has bound, and that are no client's names. A port below 1024 is a proof of privilege, and
 * the name proves nothing. */
START_TEST(names_that_say_nothing)
{
    static const char *const names[] = {
        "",
        "kiln/",
        "kiln/a b",
        "kiln/127.0.0.1 40000 127.0.0.1",
        "other",
        "kiln/127.0.0.1 40000 127.0.0.1 49999 more",
        "kiln/x 40000 127.0.0.1 49999",
        "kiln/127.0.0.1 40000 x 49999",
        "kiln/127.0.0.1 1023 127.0.0.1 49999",
        "kiln/127.0.0.1 0 127.0.0.1 49999",
        "kiln/127.0.0.1 65537 127.0.0.1 49999",
    };
    struct sockaddr_storage peer;

    if (!is_root())
        return;
    int all = listen_at("::");

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_int_eq(named(all, names[i], &peer), -EINVAL);
    close(all);
}
END_TEST

/* Any process of root's may write such addresses, with and without root's capabilities. */
START_TEST(addresses_of_other_machines_count_as_loopback)
{
    static const struct {
        const char *said, *believed;
    } addresses[] = {
        {"203.0.113.7", "127.0.0.1"}, {"127.0.0.1", "127.0.0.1"},   {"127.0.0.77", "127.0.0.77"},
        {"0.0.0.0", "127.0.0.1"},     {"224.0.0.1", "127.0.0.1"},   {"255.255.255.255", "127.0.0.1"},
        {"2001:db8::7", "::1"},       {"fe80::1", "::1"},           {"::", "::1"},
        {"::1", "::1"},               {"::ffff:203.0.113.7", "::1"},
    };
    struct sockaddr_storage peer;
    char name[107];

    if (!is_root())
        return;
    int all = listen_at("::");

    for (unsigned i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        snprintf(name, sizeof name, "kiln/%s 40000 127.0.0.1 49999", addresses[i].said);
        ck_assert_int_eq(named(all, name, &peer), 0);
        is_address(&peer, addresses[i].believed);
        ck_assert_uint_eq(port_of(&peer), 40000);
    }
    close(all);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("local-socket");
    TCase *t = tcase_create("local-socket");

    tcase_add_test(t, both_sides_know_each_other);
    tcase_add_test(t, ipv6);
    tcase_add_test(t, a_hundred_have_ports_of_their_own);
    tcase_add_test(t, what_is_elsewhere);
    tcase_add_test(t, two_cannot_have_one_name);
    tcase_add_test(t, a_name_that_another_user_has_taken);
    tcase_add_test(t, another_user_who_connects);
    tcase_add_test(t, names_that_say_nothing);
    tcase_add_test(t, addresses_of_other_machines_count_as_loopback);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
