/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/own-host.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An address belongs to this machine if a socket can be bound to it. */
static bool
is_own(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_so = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;

    if (fd >= 0)
        close(fd);
    return is_so;
}

static bool
is_loopback_address(const struct addrinfo *a)
{
    if (a->ai_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr);
    const struct sockaddr_in *four = (const void *)a->ai_addr;
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

int
own_host_check(const char *host, bool *is_loopback, struct problem *why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *list = NULL;
    int failed = strlen(host) > 255 ? EAI_NONAME : getaddrinfo(host, NULL, &hints, &list);
    bool is_ours = false;

    if (failed) {
        problem_set(why, -EINVAL, "host %.255s cannot be resolved: %s", host, gai_strerror(failed));
        problem_expected(
            why,
            "a name or address of this machine, or a path alone: all bricks of a kilnd without a glusterd "
            "are folders of its machine");
        return why->err;
    }
    *is_loopback = true;
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        is_ours |= is_own(a);
        *is_loopback &= is_loopback_address(a);
    }
    freeaddrinfo(list);
    if (is_ours)
        return 0;
    problem_set(why, -EADDRNOTAVAIL, "host %s is another machine", host);
    problem_expected(why, "bricks of this machine: kilnd without a glusterd has no peers");
    return why->err;
}
