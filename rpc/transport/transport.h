/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* transport: sockets; bytes in, whole records out (spec: wire 1.1).
 *
 * A listener accepts connections; a connection reads as much as there is with one system call, cuts it into records and hands
 * each to `record`, in order, on the worker that read it. Other workers may run earlier records of the same
 * connection at the same time. What a batch of records answers is sent together with one gathered write.
 *
 * Bounds: until conn_set_trusted() a connection gets no more than 64 KiB of memory, all buffers together (one record and its
 * first piece, and 32 KiB of replies), and a record may not be longer than TRANSPORT_RECORD_MAX_LOGIN; afterwards not longer than TRANSPORT_RECORD_MAX, and memory grows with the bytes that have arrived, never
 * with what a record mark promises. A peer that does not read its replies is not read from either.
 */
#ifndef KILN_RPC_TRANSPORT_H
#define KILN_RPC_TRANSPORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "mem/iobuf.h"

#define TRANSPORT_RECORD_MAX_LOGIN (16u << 10)
#define TRANSPORT_RECORD_MAX (64u << 20)
#define TRANSPORT_IOVS 4

struct conn;
struct listener;

/* One whole record without its mark(s). The first piece holds at least TRANSPORT_HEAD_BYTES or the whole record, so that
 * headers decode without crossing a border. The receiver owns the references. */
#define TRANSPORT_HEAD_BYTES 4096
struct record {
    struct iovec iov[TRANSPORT_IOVS];
    struct iobuf *bufs[TRANSPORT_IOVS];
    int count;
    size_t bytes;
};
void record_release(struct record *r);

struct transport_ops {
    /* A new connection. Non-zero refuses it. */
    int (*accepted)(struct conn *c, void *arg);
    /* A record, never empty; its references are the receiver's. */
    void (*record)(struct conn *c, struct record *r, void *arg);
    /* No record handler runs or will. Called once, on a worker; replies still to come will be dropped by conn_send(). */
    void (*closed)(struct conn *c, void *arg);
};

/* `host` NULL: all addresses, IPv4 and IPv6. Port 0: any; listener_port() tells. NULL with -errno in *err (EADDRINUSE ...). */
struct listener *listener_open_tcp(const char *host, uint16_t port, const struct transport_ops *ops, void *arg, int *err);
struct listener *listener_open_unix(const char *path, const struct transport_ops *ops, void *arg, int *err);
uint16_t listener_port(const struct listener *l);
/* Accepts no more. Open connections stay. */
void listener_close(struct listener *l);

/* Connections are counted: transport holds one reference until `closed` has returned. */
struct conn *conn_ref(struct conn *c);
void conn_unref(struct conn *c);

/* The peer has logged in: the larger bounds hold from the next record on. */
void conn_set_trusted(struct conn *c);
bool conn_is_trusted(const struct conn *c);
/* Numbers for the calls we send on this connection: 1, 2, ... Any thread. */
uint32_t conn_next_xid(struct conn *c);
/* Whatever the receiver wants to find again; set it in `accepted` or `record`. */
void conn_set_user(struct conn *c, void *user);
void *conn_user(const struct conn *c);
const struct sockaddr_storage *conn_peer(const struct conn *c);
const struct sockaddr_storage *conn_local(const struct conn *c);

/* Queues one message: the record mark is put before it, `head` (of any size; small ones are copied together with
 * their neighbours) and then `payload`, whose bytes stay in `buf` (a reference taken over; NULL if no payload). Sent when the batch
 * ends if called from a record handler's worker during that batch, else at once. Never blocks.
 * 0, -ENOTCONN, -ENOMEM (the connection is then closed: a reply must not be lost silently). `buf` is consumed in every case. */
int conn_send(struct conn *c, const void *head, size_t head_bytes, struct iobuf *buf, const struct iovec *payload,
              int payload_count);
/* The same with the whole message in `buf` after TRANSPORT_MARK_BYTES that are left free for the mark. */
#define TRANSPORT_MARK_BYTES 4
int conn_send_iobuf(struct conn *c, struct iobuf *buf, size_t bytes);

/* Closes soon: what is queued is sent as far as there is room, both directions are shut down, records that were cut and
 * not begun are dropped, then `closed`. Any thread, also twice. */
void conn_close(struct conn *c);

/* Closes every connection and waits until `closed` has returned for each. Before workers_stop(), after the listeners were
 * closed; not from a worker. */
void transport_close_all(void);

struct transport_stats {
    uint64_t accepted, closed, records, messages, bytes_in, bytes_out, reads, writes;
};
void transport_stats(struct transport_stats *out);
/* Once, after iobuf_pools_init(). 0 or -ENOMEM. */
int transport_pools_init(void);

#endif
