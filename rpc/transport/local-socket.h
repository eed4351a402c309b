/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* local-socket: a unix socket beside each TCP listener, for clients on the same machine: a round costs two
 * thirds of a round by loopback TCP. Only Kiln's own clients look for the socket; all others see TCP alone.
 *
 * The name is abstract, so the name belongs to the network namespace, as the port does, and goes with its
 * process:
 *
 *      kiln/any:PORT or kiln/ADDRESS:PORT          the listener, as it is bound
 *      kiln/ADDRESS PORT REACHED PORT              the client, its address and the reached address,
 *                                                  as by TCP
 *
 * Any process of the namespace may take such a name, so both sides ask the kernel for the peer's user, and
 * speak with root alone. Root may write any name, and a process of root's in a container may have none of
 * root's capabilities. So the listener trusts the name only as far as TCP would let any process go: an
 * address of this machine (any other address counts as the loopback address) and a port above 1023 (the
 * listener closes a connection with a lower port). A client that wants a port below 1024, which a brick may
 * demand as a proof of privilege, goes by TCP, where the kernel asks for CAP_NET_BIND_SERVICE. The client
 * also goes by TCP where the peer is not root, where the client itself is not root, where no process
 * listens, and where the address is not an address of this machine.
 *
 * thread: any. */
#ifndef KILN_TRANSPORT_LOCAL_SOCKET_H
#define KILN_TRANSPORT_LOCAL_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>

/* A socket (not blocking, closed on exec) that has the name for a TCP socket bound to `bound`, and does not
 * listen yet. The descriptor or -errno. */
int local_socket_bind(const struct sockaddr_storage *bound);

/* A connection to the listener beside TCP's `to`. Never blocks. The descriptor or -errno: go by TCP. */
int local_socket_connect(const struct sockaddr *to, socklen_t to_bytes);

/* For a connection that a listener has accepted. `peer` and `reached` (may be NULL) get the addresses that
 * TCP would give. 0; -EPERM: the peer is not root; -EINVAL: the peer has no such name, or a port below
 * 1024. */
int local_socket_peer(int fd, struct sockaddr_storage *peer, struct sockaddr_storage *reached);

#endif
