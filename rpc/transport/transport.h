/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* transport: sockets; bytes in, whole records out (spec: wire 1.1).
 *
 * A listener accepts connections, a dialler (dial.h) opens them; from then on there is no difference but one,
 * below. A connection reads as much as there is with one system call, cuts it into records and hands
 * each to `record`, in order, on the worker that read it. Other workers may run earlier records of the same
 * connection at the same time. What a batch of records answers is sent together with one gathered write.
 *
 * Bounds: limits.h has them all. Memory grows with the bytes that have arrived, never with what a record mark
 * promises. From a peer that has too many calls under way, or does not read its replies, nothing is read
 * until half of that is done. A connection that we opened is always read from, for its peer may wait with
 * reading our calls until its replies are taken.
 *
 * thread: functions of a connection and of a record may be called by any thread that has a reference, and
 * block on nothing, unless they say otherwise; a record is one thread's at a time. Lengths are bytes.
 */
#ifndef KILN_RPC_TRANSPORT_H
#define KILN_RPC_TRANSPORT_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "mem/iobuf.h"

#define TRANSPORT_RECORD_MAX_LOGIN (16u << 10)
#define TRANSPORT_RECORD_MAX (129u << 20) /* a WRITE of 128 MiB, which libgfapi sends, and its header */
#define TRANSPORT_IOVS 4

struct conn;
struct listener;
struct tls_config;

/* One whole record without its mark(s). The first piece holds at least TRANSPORT_HEAD_BYTES or the whole
 * record, so that headers decode without crossing a border. The receiver owns the references. */
#define TRANSPORT_HEAD_BYTES 4096
struct record {
    struct iovec iov[TRANSPORT_IOVS];
    struct iobuf *bufs[TRANSPORT_IOVS];
    int count;
    size_t bytes;
    /* The connection it came from: a reference, and the record counts as a call under way, until
     * record_release(). */
    struct conn *conn;
    bool is_waiting; /* record_waits() has been told */
    bool is_cut; /* of a connection that we opened: there was no memory for what followed the first piece */
};
/* Gives up the record's bytes and the reference to its connection, which may read on then. Once. */
void record_release(struct record *r);
/* What a call keeps of its record while it waits is so many bytes of somebody else's: `to` is the record from
 * now on, without any bytes but counted with so many. `r` has only its bytes left, for record_release(). */
void record_shrink(struct record *r, struct record *to, size_t bytes);
/* Before a call is begun that may wait for another call, as one for a lock may: from now on it is counted
 * apart. Where many wait, a small record is copied out of the receive buffer that it would keep: its bytes
 * move. False: too many wait, this one stays counted with the rest, and must be refused if it would wait
 * (limits.h). Once a record. */
bool record_waits(struct record *r);

struct transport_ops {
    /* A new connection, from a listener or a dialler, on a worker; lent. Non-zero refuses it. */
    int (*accepted)(struct conn *c, void *arg);
    /* A record, never empty; it is the receiver's, who calls record_release() when the call is done. */
    void (*record)(struct conn *c, struct record *r, void *arg);
    /* No record handler runs or will. Called once, on a worker; replies still to come will be dropped by
     * conn_send(). */
    void (*closed)(struct conn *c, void *arg);
    /* How a connection accepted by TCP is encrypted: a reference to a config, or NULL: not at all. Sets
     * *allows_plain if the peer may choose. The function may be NULL. */
    struct tls_config *(*tls)(void *arg, bool *allows_plain);
};

/* `host` NULL: all addresses, IPv4 and IPv6. Port 0: any; listener_port() tells. `ops` and `arg` are kept,
 * strings are not. The listener is the caller's, until listener_close(). NULL with -errno in *err (EADDRINUSE
 * ...). thread: any, with the workers running; the functions of one listener one at a time, and not from its
 * `accepted`. */
struct listener *listener_open_tcp(const char *host, uint16_t port, const struct transport_ops *ops,
                                   void *arg, int *err);
struct listener *listener_open_unix(const char *path, const struct transport_ops *ops, void *arg, int *err);
/* In host order; 0: a unix socket. */
uint16_t listener_port(const struct listener *l);
/* Accepts no more: who connects is refused. Open connections stay, and so does a unix socket's file. Waits
 * for `accepted` to return. */
void listener_stop(struct listener *l);
/* The same, and the file goes, unless it is another's by now; so does the listener. */
void listener_close(struct listener *l);

/* Connections are counted: transport holds one reference until `closed` has returned. One more, for somebody
 * who has one or is in a callback of the connection's; returns `c`. */
struct conn *conn_ref(struct conn *c);
/* The last one frees it; `closed` has returned by then. */
void conn_unref(struct conn *c);

/* The peer may stay for as long as it likes without a login, as it asks only for what anybody may know; all
 * other bounds of before the login hold on. */
void conn_set_guest(struct conn *c);
/* Calls fn for each guest, without a lock and with a reference held. False: no memory to list them. Any
 * thread. */
bool transport_each_guest(void (*fn)(struct conn *c, void *arg), void *arg);
/* The peer has logged in: the larger bounds hold from the next record on. For good. */
void conn_set_trusted(struct conn *c);
/* Has it? */
bool conn_is_trusted(const struct conn *c);
/* How many calls may be under way; 0 or too many: TRANSPORT_CALLS_MAX. */
void conn_set_calls_max(struct conn *c, unsigned calls);
/* The peer is gone: nothing can be answered any more. It may be so a moment later. */
bool conn_is_gone(const struct conn *c);
/* The same, for who looks often; valid as long as a reference. */
const atomic_bool *conn_gone_flag(const struct conn *c);
/* Nothing more is read until conn_resume() has been called as often. What was read already is run. */
void conn_pause(struct conn *c);
void conn_resume(struct conn *c);
/* A call about to run will be answered with about so many bytes: they count as if they were queued, until
 * conn_unreserve_reply(), to be called when the reply has been given to conn_send(). Small replies need none.
 * 0. Up to TRANSPORT_REPLY_LARGE it cannot fail; above, -ENOBUFS if the bytes all connections share do not
 * suffice. */
#define TRANSPORT_REPLY_LARGE (1u << 20)
int conn_reserve_reply(struct conn *c, size_t bytes);
void conn_unreserve_reply(struct conn *c, size_t bytes);
/* Numbers for the calls we send on this connection: 1, 2, ... */
uint32_t conn_next_xid(struct conn *c);
/* Bytes that have arrived so far: has the peer been heard of since? */
uint64_t conn_bytes_in(const struct conn *c);
uint64_t conn_bytes_out(const struct conn *c); /* those sent */
/* those that wait to be sent; a moment later there are others */
size_t conn_bytes_queued(const struct conn *c);
/* Whatever the receiver wants to find again, and owns; set it in `accepted` or `record`. One atomic pointer.
 */
void conn_set_user(struct conn *c, void *user);
void *conn_user(const struct conn *c);
/* Whom it is connected with; lent as long as a reference. */
const struct sockaddr_storage *conn_peer(const struct conn *c);
/* A number that all accepted connections of one address have, to share something out by address: an IPv6
 * address counts by its /64, few other addresses have the same number, and unix sockets have 0. */
unsigned conn_address_slot(const struct conn *c);
/* The common name of the peer's verified certificate, "" if that has none; NULL: the connection is not
 * encrypted. Lent as long as a reference. */
const char *conn_tls_name(const struct conn *c);
/* Copies why TLS ended the connection; "": it did not. */
void conn_tls_failure(struct conn *c, char *out, size_t size);
/* The address of ours that the peer has reached. 0 or -errno. From `accepted` or `record`. */
int conn_local(const struct conn *c, struct sockaddr_storage *out);

/* Queues one message: the record mark is put before it, `head` (of any size; small ones are copied together
 * with their neighbours) and then `payload`, whose bytes stay in `buf` (a reference taken over; NULL if no
 * payload). Sent when the batch ends if called from a record handler's worker during that batch, else at
 * once. Never blocks.
 * 0, -ENOTCONN, -ENOMEM (nothing of it is queued; a connection that we have accepted is then closed: a reply
 * must not be lost silently). `buf` is consumed in every case. */
int conn_send(struct conn *c, const void *head, size_t head_bytes, struct iobuf *buf,
              const struct iovec *payload, int payload_count);
/* The same with the whole message in `buf` after TRANSPORT_MARK_BYTES that are left free for the mark. */
#define TRANSPORT_MARK_BYTES 4
int conn_send_iobuf(struct conn *c, struct iobuf *buf, size_t bytes);
/* The moment comes when all has left that is queued now; never, if the connection ends before. Uses the
 * reference to it up. */
struct moment;
void conn_tell_sent(struct conn *c, struct moment *m);

/* For `record`: when its worker began to read the batch (base/ticks.h). */
extern __thread uint64_t transport_arrived;

/* Closes soon: what is queued is sent as far as there is room, both directions are shut down, records that
 * were cut and not begun are dropped, then `closed`. Any thread, also twice. */
void conn_close(struct conn *c);

/* Before a process ends: holds back all replies to clients that have logged in, and runs their requests until
 * none has arrived for some milliseconds, at most half a second. A client of two replicas in this process
 * sends a change to both at once. Without this call one replica could do and acknowledge the change while the
 * other drops it, and the death of both would leave no mark of the difference. A request whose reply is held
 * back has failed for its client, so either outcome is right. Followed by transport_close_all(), in the same
 * thread; not from a worker. */
void transport_quiesce(void);
/* Closes every connection and waits until `closed` has returned for each. Before workers_stop(), after the
 * listeners were closed; not from a worker. */
void transport_close_all(void);

struct transport_stats {
    uint64_t accepted, closed, records, messages, bytes_in, bytes_out, reads, writes;
};
/* Of all connections since the start, those that are gone too; a moment's figures. Any thread. */
void transport_stats(struct transport_stats *out);
/* How many connections may still be opened; a moment later it is another number. Any thread. */
unsigned transport_connections_left(void);
/* Once, in the main thread, after iobuf_pools_init(). 0 or -ENOMEM. */
int transport_pools_init(void);

#endif
