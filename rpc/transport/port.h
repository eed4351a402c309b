/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* port: ports of TCP, and of the local sockets beside TCP sockets, whose names contain a port.
 * thread: any. */
#ifndef KILN_TRANSPORT_PORT_H
#define KILN_TRANSPORT_PORT_H

#include <stdint.h>
#include <sys/socket.h>

/* bindresvport(3)'s. */
enum { PORT_LOW_FIRST = 600, PORT_LOW_LAST = 1023, PORT_LOW_COUNT = PORT_LOW_LAST - PORT_LOW_FIRST + 1 };

/* Of an address of AF_INET or AF_INET6. */
uint16_t port_of(const struct sockaddr_storage *a);

typedef int (*port_bind_fn)(void *arg, uint16_t port);

/* Calls `bind` with one port after the other, at most `tries`, until `bind` returns other than -EADDRINUSE,
 * which is the result. The first port is random, so that a process with many connections does not ask for the
 * same used ports each time. */
int port_bind(uint16_t first, uint16_t last, unsigned tries, port_bind_fn bind, void *arg);

#endif
