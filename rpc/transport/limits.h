/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* limits: the bounds of the memory, calls and descriptors that one peer, and all peers together, may make
 * this process hold. Every bound of the transport stands here.
 *
 *   of one connection, logged in         number          option                       when it is reached
 *   calls that run or are parked         1,024           rpc.outstanding-rpc-limit    nothing is read until
 *                                                                                     half are done
 *   bytes of their records               32 MiB          -                            the same
 *   calls that wait for another call     16,384, 16 MiB  -                            ENOLCK, EAGAIN;
 *                                                                                     reading goes on
 *   bytes of replies, queued or to come  8 MiB           -                            reading stops, and
 *                                                                                     read records wait
 *   ... of its own, without credit       256 KiB         -                            the rest comes from
 *                                                                                     all peers' budget
 *   one record                           129 MiB         -                            closed
 *   before the login
 *   calls                                1               -                            reading stops until
 *                                                                                     the answer
 *   one record                           16 KiB          -                            closed
 *   bytes of replies                     8 KiB           -                            reading stops
 *   all memory of a connection           64 KiB          -                            follows from these
 *                                                                                     three
 *   time                                 30 s            transport.login-timeout      closed (unix sockets
 *                                                                                     have no limit)
 *   memory of all connections            64 MiB          -                            the oldest that holds
 *                                                                                     some is closed
 *   number of them                       1/16 of files   -                            the oldest is closed
 *   TLS handshakes of one address that   256             -                            closed
 *   wait for a thread
 *   of a guest, which has got a volfile: the same but time and number; its connection counts for its address
 *   of all peers
 *   bytes of replies                     256 MiB         transport.reply-memory       each connection has
 *                                                                                     its 256 KiB
 *   descriptors ("files": RLIMIT_NOFILE)
 *   connections                          1/2 of files    -                            closed at accept
 *   ... of one address                   as many as left -                            closed at accept
 *   ... of one brick                     as many as left -                            the login is answered
 *                                                                                     EAGAIN
 *   files open for clients               3/8 of files    -                            ENFILE
 *   ... of one brick, of one client      as many as left -                            EMFILE (left for its
 *                                                                                     brick's others)
 *   the remaining 1/8                    the daemon's own: accept, logs, statedumps, health checks, files
 *                                        open for one call
 *
 * A call that waits counts with the bytes of its record until the call is parked, and then with the bytes of
 * its packed form (stack/call-pack.h): 512 for a lock.
 *
 * A call that waits for another call (for a lock that another client holds, or a removal that a lock holds
 * back) may wait for hours, and the next record of the same connection may end the wait. So waiting calls are
 * counted apart: however many calls wait, the connection reads the unlock behind them. Calls of the other
 * kind never wait for a call that has not been read, and end without further records.
 *
 * Credit: the budget of all peers is one atomic that no small call touches. A connection takes credit in
 * pieces of 1 MiB when the replies that it owes exceed its own 256 KiB, and gives all credit back when its
 * queue is empty. When nothing is left, a connection goes on with its own 256 KiB (at least one reply at a
 * time), so no connection waits for another connection's peer to read.
 *
 * Members of struct transport_limits may be changed before the first listener is opened.
 */
#ifndef KILN_TRANSPORT_LIMITS_H
#define KILN_TRANSPORT_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct transport_limits {
    /* of one connection */
    unsigned calls; /* conn_set_calls_max() may say otherwise */
    size_t record_bytes;
    unsigned waiting_calls;
    size_t waiting_bytes;
    size_t reply_bytes;
    size_t reply_bytes_own;
    unsigned calls_login;
    size_t reply_bytes_login;
    /* of all */
    size_t reply_bytes_all;
    size_t login_bytes_all;
    unsigned login_ms;
};
extern struct transport_limits transport_limits;

#define TRANSPORT_CALLS_MAX 65536u /* the highest value of `calls` */

#endif
