/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* local-socket: a unix socket beside each TCP listener, for clients on the same machine: a round costs two
 * thirds of one by loopback TCP. Only Kiln's own clients look for it; all others see TCP alone.
 *
 * The name is abstract, so it belongs to the network namespace, as the port does, and goes with its process:
 *
 *      kiln/any:PORT or kiln/ADDRESS:PORT          the listener, as it is bound
 *      kiln/ADDRESS PORT REACHED PORT              who connects: from where, and to where, as by TCP
 *
 * Anybody of the namespace may take such a name, so both sides ask the kernel who the other is, and speak
 * with root alone; root may send from any address of its machine anyway. The client goes by TCP where the
 * other is not root, where it is not root itself, where nobody listens, and where the address is not one of
 * this machine's. What the server knows of such a client, its address and its port, is as it is by TCP.
 *
 * thread: any. */
#ifndef KILN_TRANSPORT_LOCAL_SOCKET_H
#define KILN_TRANSPORT_LOCAL_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>

/* A socket (not blocking, closed on exec) that has the name for a TCP socket bound to `bound`, and does not
 * listen yet. The descriptor or -errno. */
int local_socket_bind(const struct sockaddr_storage *bound);

/* A connection to who listens beside TCP's `to`. Never blocks. The descriptor or -errno: go by TCP. */
int local_socket_connect(const struct sockaddr *to, socklen_t to_bytes, bool wants_low_port);

/* Of a connection that a listener has accepted. `peer` and `reached` (may be NULL) are what they are by TCP.
 * 0, -EPERM: it is not root's. -EINVAL: it has no such name. */
int local_socket_peer(int fd, struct sockaddr_storage *peer, struct sockaddr_storage *reached);

#endif
