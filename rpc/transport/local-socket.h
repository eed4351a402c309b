/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* local-socket: a unix socket beside each TCP listener, for clients on the same machine: a round costs two
 * thirds of one by loopback TCP. Only Kiln's own clients look for it; all others see TCP alone.
 *
 * The name is abstract, so it belongs to the network namespace, as the port does, and goes with its process:
 *
 *      kiln/any:PORT or kiln/ADDRESS:PORT          the listener, as it is bound
 *      kiln/ADDRESS PORT REACHED PORT              who connects: from where, and to where, as by TCP
 *
 * Any process of the namespace may take such a name, so both sides ask the kernel who the other is, and
 * speak with root alone. Root may write any name, and a process of root's in a container may have none of
 * root's capabilities. So the listener believes of the name only what TCP would let any process have: an
 * address of this machine (another one counts as the loopback address) and a port above 1023 (a connection
 * with another one is closed). A client that wants a port below 1024, which a brick may demand as a proof of
 * privilege, goes by TCP, where the kernel asks for CAP_NET_BIND_SERVICE. The client also goes by TCP where
 * the other is not root, where it is not root itself, where no process listens, and where the address is not
 * one of this machine's.
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

/* Of a connection that a listener has accepted. `peer` and `reached` (may be NULL) are what they are by TCP.
 * 0; -EPERM: it is not root's; -EINVAL: it has no such name, or a port below 1024. */
int local_socket_peer(int fd, struct sockaddr_storage *peer, struct sockaddr_storage *reached);

#endif
