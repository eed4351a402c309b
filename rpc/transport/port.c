/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/random.h>

uint16_t
port_of(const struct sockaddr_storage *a)
{
    return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                          : ((const struct sockaddr_in *)a)->sin_port);
}

int
port_bind(uint16_t first, uint16_t last, unsigned tries, port_bind_fn bind, void *arg)
{
    unsigned count = last - first + 1u;
    uint16_t start = 0;
    int err = -EADDRINUSE;

    if (getrandom(&start, sizeof start, GRND_NONBLOCK) != sizeof start)
        start = 0;
    for (unsigned i = 0; i < tries && err == -EADDRINUSE; i++)
        err = bind(arg, (uint16_t)(first + (start + i) % count));
    return err;
}
