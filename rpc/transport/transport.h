/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* transport: sockets; bytes in, whole records out (spec: wire 1.1).
 *
 * A listener accepts connections, and a dialler (dial.h) opens connections; both kinds then behave alike,
 * but for the reading below. A connection reads all available bytes with one system call, cuts them into
 * records and hands each record to `record`, in order, on the worker that read the bytes. Other workers may
 * run earlier records of the same connection at the same time. The transport sends all answers of a batch of
 * records together with one gathered write.
 *
 * Bounds: limits.h has them all. Memory grows with the bytes that have arrived, never with the length that a
 * record mark promises. The transport stops reading from a peer that has too many calls under way, or does
 * not read its replies, until half of that is done. The transport always reads from a connection that this
 * side opened, because the peer may not read our calls before we take its replies.
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
struct gfid;
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
    /* The connection that the record came from: a reference. The record counts as a call under way until
     * record_release(). */
    struct conn *conn;
    bool is_waiting; /* record_waits() has been told */
    bool is_cut; /* dialled connections only: no memory for the bytes behind the first piece */
};
/* Gives up the record's bytes and the reference to its connection, which may read on then. Once a record. */
void record_release(struct record *r);
/* For a waiting call that keeps only the packed form of its record, in memory that is not the record's: from
 * now on `to` is the record, without any bytes but counted with `bytes`. `r` keeps nothing but its bytes, for
 * record_release(). */
void record_shrink(struct record *r, struct record *to, size_t bytes);
/* The caller calls this before it begins a call that may wait for another call, as a call for a lock may:
 * from now on the record counts among the waiting calls. Where many calls wait, the function copies a small
 * record out of the receive buffer that the record would keep: the record's bytes move. False: too many calls
 * wait; the record stays counted with the rest, and the caller must refuse a call that would wait (limits.h).
 * Once a record. */
bool record_waits(struct record *r);

/* A call of this connection that did not come as bytes (fop-path.h): counts the call like a record of so many
 * bytes in `r`, which gets no bytes, and keeps handlers of the connection running until conn_leave_call().
 * 0; -ENOTCONN: the connection has ended; -EAGAIN: too much is under way, so the call must come as bytes. Any
 * thread. */
int conn_enter_call(struct conn *c, size_t bytes, struct record *r);
/* The handler of that call has returned; the call may go on, until record_release(). */
void conn_leave_call(struct conn *c);
/* Counts one more call, which came in the record of another call of this connection: as conn_enter_call(),
 * but beyond the limits: the reader waits until the calls are below the limits again. The caller holds the
 * other record. Any thread. */
void conn_count_call(struct conn *c, size_t bytes, struct record *r);
/* Begins a handler of a counted call; conn_leave_call() ends it. False: the connection has ended. Any
 * thread. */
bool conn_begin_call(struct conn *c);

struct transport_ops {
    /* A new connection, from a listener or a dialler, on a worker; lent. Non-zero refuses the connection. */
    int (*accepted)(struct conn *c, void *arg);
    /* A record, never empty. The receiver owns the record and calls record_release() when the call is
     * done. */
    void (*record)(struct conn *c, struct record *r, void *arg);
    /* No record handler runs or will. Called once, on a worker; replies still to come will be dropped by
     * conn_send(). */
    void (*closed)(struct conn *c, void *arg);
    /* How a connection accepted by TCP is encrypted: a reference to a config, or NULL: not at all. Sets
     * *allows_plain if the peer may choose. The function may be NULL. */
    struct tls_config *(*tls)(void *arg, bool *allows_plain);
    /* The dialled end of this restored connection is in this process, too, and has offered a path for fops
     * (fop-path.h). False: not taken. Under the transport's lock. The function may be NULL. */
    bool (*path_offered)(struct conn *c, void *arg, const struct gfid *token);
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
/* Accepts no more: new connections are refused. Open connections stay, and so does a unix socket's file.
 * Waits for `accepted` to return. */
void listener_stop(struct listener *l);
/* As listener_stop(); also removes the unix socket's file, unless another process has replaced the file by
 * now, and frees the listener. */
void listener_close(struct listener *l);

/* Connections are counted: transport holds one reference until `closed` has returned. Takes another
 * reference; the caller must hold a reference already or run in a callback of the connection. Returns `c`. */
struct conn *conn_ref(struct conn *c);
/* As conn_ref(), for a reference that lasts as long as the connection's use and is no call; once a
 * connection. */
struct conn *conn_keep(struct conn *c);
/* The last reference frees the connection; `closed` has returned by then. */
void conn_unref(struct conn *c);

/* The peer may stay without a login and without a limit of time, because the peer asks only for public data.
 * All other bounds of the time before the login stay in force. */
void conn_set_guest(struct conn *c);
/* Calls fn for each guest, without a lock and with a reference held. False: no memory for the list of guests.
 * Any thread. */
bool transport_each_guest(void (*fn)(struct conn *c, void *arg), void *arg);
/* The peer has logged in: the larger bounds hold from the next record on. For good. */
void conn_set_trusted(struct conn *c);
/* True after conn_set_trusted(). */
bool conn_is_trusted(const struct conn *c);
/* How many calls may be under way; 0 or too many: TRANSPORT_CALLS_MAX. */
void conn_set_calls_max(struct conn *c, unsigned calls);
/* The peer is gone: no answer can reach the peer any more. A false result may be out of date a moment
 * later. */
bool conn_is_gone(const struct conn *c);
/* The flag behind conn_is_gone(), for a caller that looks often; valid as long as the caller's reference. */
const atomic_bool *conn_gone_flag(const struct conn *c);
/* The connection reads nothing more until conn_resume() has been called as often. Records that were read
 * already run. */
void conn_pause(struct conn *c);
void conn_resume(struct conn *c);
/* A call about to run will be answered with about so many bytes: they count as queued bytes until
 * conn_unreserve_reply(), which the caller calls after it has given the reply to conn_send(). Small replies
 * need no reservation. 0. Up to TRANSPORT_REPLY_LARGE the call cannot fail; above, -ENOBUFS if the bytes that
 * all connections share do not suffice. */
#define TRANSPORT_REPLY_LARGE (1u << 20)
int conn_reserve_reply(struct conn *c, size_t bytes);
void conn_unreserve_reply(struct conn *c, size_t bytes);
/* Numbers for the calls we send on this connection: 1, 2, ... */
uint32_t conn_next_xid(struct conn *c);
/* Bytes that have arrived so far; a caller compares two values to see whether the peer has sent since. */
uint64_t conn_bytes_in(const struct conn *c);
uint64_t conn_bytes_out(const struct conn *c); /* bytes sent so far */
/* bytes that wait to be sent; the number changes at any moment */
size_t conn_bytes_queued(const struct conn *c);
/* A pointer of the receiver's choice, which the receiver owns and sets in `accepted` or `record`. One atomic
 * pointer. */
void conn_set_user(struct conn *c, void *user);
void *conn_user(const struct conn *c);
/* The peer's address; lent as long as a reference. */
const struct sockaddr_storage *conn_peer(const struct conn *c);
/* "ADDRESS:PORT" of the peer, for logs. */
#define CONN_PEER_TEXT_MAX 56
void conn_peer_text(const struct conn *c, char out[CONN_PEER_TEXT_MAX]);
/* A number that all accepted connections of one address have, to share something out by address: an IPv6
 * address counts by its /64, few other addresses have the same number, and unix sockets have 0. */
unsigned conn_address_slot(const struct conn *c);
/* The common name of the peer's verified certificate, "" if the certificate has no such name; NULL: the
 * connection is not encrypted. Lent as long as a reference. */
const char *conn_tls_name(const struct conn *c);
/* Copies the reason for which TLS ended the connection; "": TLS did not end the connection. */
void conn_tls_failure(struct conn *c, char *out, size_t size);
/* Is this process at the other end of the connection, by a unix socket? */
bool conn_is_to_self(const struct conn *c);
/* The address of ours that the peer has reached. 0 or -errno. From `accepted` or `record`. */
int conn_local(const struct conn *c, struct sockaddr_storage *out);

/* Queues one message: the record mark, then `head` (of any size; small heads are copied together with
 * their neighbours), then `payload`, whose bytes stay in `buf` (a reference taken over; NULL if no
 * payload). Sent when the batch ends if called from a record handler's worker during that batch, else at
 * once. Never blocks. 0, -ENOTCONN, -ENOMEM (nothing of the message is queued; the transport then closes
 * a connection that this side has accepted, because a reply must not be lost silently). `buf` is consumed
 * in every case. */
int conn_send(struct conn *c, const void *head, size_t head_bytes, struct iobuf *buf,
              const struct iovec *payload, int payload_count);
/* As conn_send(), with the whole message in `buf` behind TRANSPORT_MARK_BYTES that are left free for the
 * mark. */
#define TRANSPORT_MARK_BYTES 4
int conn_send_iobuf(struct conn *c, struct iobuf *buf, size_t bytes);
/* The moment comes when everything that is queued now has been sent; never, if the connection ends before.
 * Consumes the caller's reference to the moment. */
struct moment;
void conn_tell_sent(struct conn *c, struct moment *m);

/* For `record`: when its worker began to read the batch (base/ticks.h). */
extern __thread uint64_t transport_arrived;

/* Closes soon: the connection sends its queue as far as there is room, shuts down both directions, drops the
 * records that were cut and not begun, then calls `closed`. Any thread, also twice. */
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
/* Of all connections since the start, including closed connections; a moment's figures. Any thread. */
void transport_stats(struct transport_stats *out);
/* How many connections may still be opened; the number changes at any moment. Any thread. */
unsigned transport_connections_left(void);
/* Once, in the main thread, after iobuf_pools_init(). 0 or -ENOMEM. */
int transport_pools_init(void);

#endif
