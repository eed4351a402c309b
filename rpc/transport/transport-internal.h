/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A connection's insides, which the files of the transport share.
 *
 *   listener.c  accepts
 *   admit.c     which peers may connect, and wait to log in
 *   conn.c      life and death
 *   receive.c   bytes to records
 *   send.c      messages to bytes
 *   flow.c      how much a connection may have under way
 *   tls.c       encryption and identity, between the socket and the two
 *
 * A connection has two counters. `held` keeps its memory and descriptor. `busy` counts the parties that may
 * still call a record handler: the registration with the event loop, each batch of records, a posted read.
 * When `busy` reaches 0 no handler runs or will, and `closed` is posted.
 */
#ifndef KILN_TRANSPORT_INTERNAL_H
#define KILN_TRANSPORT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "event/timer.h"
#include "event/worker.h"
#include "rpc/transport/limits.h"
#include "rpc/transport/tls.h"
#include "rpc/transport/transport.h"

struct mem_pool;

/* `reader`: flags of the thread that reads. The thread that sets READING owns all fields under "the reader's"
 * below. */
#define READER_READING 1u
#define READER_AGAIN 2u  /* an event came meanwhile: read once more */
#define READER_HANGUP 4u /* stays: a short read does not mean drained any more, the end follows */

/* A piece of the bytes to send; holds a reference to `buf`. */
struct chunk {
    struct chunk *next;
    struct iobuf *buf;
    char *at;
    size_t bytes;
};

struct conn {
    _Atomic uint64_t held; /* flow.c's, as the next four and `stalled` */
    _Atomic uint64_t waiting;
    _Atomic size_t reserved;
    atomic_uint pauses;
    atomic_uint calls_max;
    atomic_uint busy;
    const struct transport_ops *ops;
    void *arg;
    struct event_source src;
    /* NULL: the connection is plain. Set before the connection is known; the reader clears it
     * before the first record if the peer turns out to speak plain, and leaves it to conn_free(). */
    _Atomic(struct tls *) tls;
    struct tls *tls_unused;
    _Atomic(void *) user;
    atomic_bool is_trusted;
    atomic_bool is_kept; /* conn_keep() */
    _Atomic uint32_t calls_sent; /* conn_next_xid() */
    atomic_bool is_refused; /* closed by us: records that were cut are not run any more */
    bool is_tcp;
    bool is_dialled; /* opened by this side */
    bool is_tls_demanded; /* by the peer, of this plain connection; the reader's until `closed` */
    struct cds_list_head link; /* all connections, under the transport's mutex */
    /* admit.c's, under its lock */
    struct cds_list_head stranger;
    bool is_stranger, is_guest, is_counted;
    unsigned address_slot;
    uint64_t since_ns;
    _Atomic size_t login_bytes; /* the reader's buffers before the login */
    struct worker_job closed_job, read_job, flush_job;
    atomic_bool is_flush_posted;
    struct sockaddr_storage peer;

    /* the reader's */
    atomic_uint reader;
    struct iobuf *in; /* bytes [in_start, in_end) are not cut yet; NULL when idle */
    size_t in_start, in_end;
    unsigned char mark[TRANSPORT_MARK_BYTES]; /* of the next fragment, as far as it has arrived */
    unsigned mark_have;
    bool is_in_fragment, is_last_fragment;
    uint32_t fragment_left;
    unsigned fragments;      /* of the present record */
    struct record partial;   /* the present record, as far as it has arrived */
    unsigned starved;        /* how often in a row there was no memory to read into */
    bool is_skipping;        /* the rest of the present record, for lack of memory */
    struct timer patience;   /* starts the next read */
    size_t record_size_seen; /* decaying maximum: sizes the receive buffer */

    /* the queue of messages, under `lock`; no system call is made under the lock, but see send.c */
    pthread_mutex_t lock;
    atomic_bool is_dead; /* written under the lock */
    bool is_registered, is_writable_again, wants_out;
    /* written under the lock; send_writable() reads both without the lock */
    atomic_bool is_sending, is_blocked;
    struct chunk *head, *tail;
    struct moment *awaited; /* come when a piece of the queue has been sent */
    /* each chunk also counts with a fixed part, so the bytes bound the number of chunks too; written under
     * the lock */
    _Atomic size_t queued_bytes;
    _Atomic size_t credit;        /* of the bytes all connections share; written under the lock */
    struct cds_list_head stalled; /* batches that wait until the peer has read */
    /* small records of calls that wait are copied here; `apart_used` bytes are in use */
    struct iobuf *apart;
    size_t apart_used;
    struct iobuf *frame; /* small heads are written here one after another */
    size_t frame_used;

    /* one writer each: the reader, or the holder of the lock */
    _Atomic uint64_t records, messages, bytes_in, bytes_out, reads, writes;
};

static inline void
count_up(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* conn_is_trusted(), without a call. */
static inline bool
conn_has_login(const struct conn *c)
{
    return atomic_load_explicit(&c->is_trusted, memory_order_relaxed);
}

/* conn.c */
/* The rest of a connection that an earlier program of this process had (saved.h). */
struct conn_rest {
    const void *unread, *unsent; /* copied */
    size_t unread_bytes, unsent_bytes;
    uint32_t calls_sent;
    struct conn *conn; /* the result, paused; lent */
};
struct conn_origin {
    bool is_tcp, is_dialled;
    const struct sockaddr_storage *peer; /* NULL: as the socket says */
    struct tls_config *tls; /* of a dialled connection, lent; NULL: plain */
    struct conn_rest *rest; /* NULL: a new connection */
};
/* A new connection on `fd`, which is taken over: offered to `accepted` and registered, or closed. 0, also
 * after a refusal; -ENOMEM, -EMFILE: `accepted` was not asked. */
int conn_start(int fd, const struct conn_origin *from, const struct transport_ops *ops, void *arg);
/* No more sending or receiving: the queue is given back, `closed` follows. Any thread, also twice. */
void conn_kill(struct conn *c);
void conn_free(struct conn *c);     /* with the last reference */
bool conn_busy_get(struct conn *c); /* false: `closed` is due */
void conn_busy_put(struct conn *c);

/* Calls fn for each connection whose `closed` has not returned, under the transport's lock, which keeps the
 * descriptors open: fn closes and waits for nothing. */
void transport_each_conn(void (*fn)(struct conn *c, void *arg), void *arg);

/* listener.c */
/* Stops or restarts accepting; the sockets stay. */
void listeners_freeze(bool is_frozen);
/* Calls fn with the socket of each listener. */
void listeners_each(void (*fn)(int fd, void *arg), void *arg);

/* receive.c */
int receive_pools_init(void);
/* Before the connection is known: the bytes will be cut first. 0 or -ENOMEM. */
int receive_put_unread(struct conn *c, const void *bytes, size_t count);
void receive_event(struct conn *c, uint32_t events);
void receive_read_job(struct worker_job *job);
void receive_patience_due(struct timer *t);
/* Reading was paused and may go on. */
void receive_resume(struct conn *c);
/* Batches that flow_stall() has kept may go on. */
void receive_restart_batches(struct cds_list_head *batches);
void receive_fini(struct conn *c);
/* The connection whose batch this thread runs: its messages are sent when the batch ends. */
extern __thread struct conn *receive_corked;

/* send.c */
int send_pools_init(void);
/* Queues bytes that are messages, or begin in the middle of a message. 0 or -ENOMEM. */
int send_put_unsent(struct conn *c, const void *bytes, size_t count);
/* True: the queues of clients that have logged in are held back; false: no longer. */
void send_hold_back(bool holds);
/* Sends the queue, not empty: for send_flush(). */
void send_queue(struct conn *c);
/* Sends the queue, unless another thread is sending. Never blocks. A thread that queues a message also sends
 * the message, so an empty queue needs no lock. */
static inline void
send_flush(struct conn *c)
{
    if (atomic_load_explicit(&c->queued_bytes, memory_order_relaxed))
        send_queue(c);
}
void send_flush_job(struct worker_job *job);
/* The queue has gone, and nothing of it will be sent. */
void send_drop_moments(struct conn *c);
/* The socket has room again, and a sender waits for room or may be about to wait: for send_writable(). */
void send_resume(struct conn *c);
/* The socket has room. A TCP socket reports that with each readable event. If no thread is sending or waits
 * for room, the next sender tries the socket anyhow, so the event may be ignored. A sender sets is_sending
 * before its system call, so an event that follows this call finds is_sending or is_blocked set: is_blocked
 * is set before is_sending is cleared. */
static inline void
send_writable(struct conn *c)
{
    if (atomic_load_explicit(&c->is_sending, memory_order_acquire) ||
        atomic_load_explicit(&c->is_blocked, memory_order_relaxed))
        send_resume(c);
}
/* For conn_kill(): takes the queue, unless a sender works on the queue; the sender then gives the queue
 * back. */
struct chunk *send_take_queue_locked(struct conn *c);
void send_free_chunks(struct chunk *list);

/* admit.c */
void admit_init(void);
/* Counts a new connection. False: the connection is not let in. */
bool admit_enter(struct conn *c);
void admit_login(struct conn *c);
void admit_guest(struct conn *c); /* no stranger any more */
void admit_leave(struct conn *c);
/* The size of the connection's receive buffers before the login; 0: no buffers, or the peer has logged in.
 * The reader's. */
void admit_buffers(struct conn *c, size_t bytes);

/* flow.c */
#define FLOW_READER_WAITS (1ull << 63) /* bits of conn.held */
#define FLOW_BATCHES_WAIT (1ull << 62)
#define FLOW_WAITERS (FLOW_READER_WAITS | FLOW_BATCHES_WAIT)

#define FLOW_REFS_BITS 20
#define FLOW_REFS(word) ((unsigned)((word) & ((1u << FLOW_REFS_BITS) - 1)))
#define FLOW_BYTES(word) ((size_t)(((word) & ~FLOW_WAITERS) >> FLOW_REFS_BITS))
#define FLOW_FEW_BYTES 4096 /* below every limit on bytes */

void flow_init(struct conn *c);
/* Bytes of replies: queued, and reserved by calls under way. */
static inline size_t
flow_replies(const struct conn *c)
{
    return atomic_load(&c->reserved) + atomic_load(&c->queued_bytes);
}
/* True if calls are under way that do not wait for other calls. */
bool flow_has_calls(const struct conn *c);
/* Calls that wait for other calls, or may do so soon. */
unsigned flow_waiting_calls(const struct conn *c);
/* A whole record has been cut: a call in flight until record_release(). The reader's. */
static inline void
flow_hold_record(struct conn *c, struct record *r)
{
    r->conn = c;
    atomic_fetch_add_explicit(&c->held, (uint64_t)r->bytes << FLOW_REFS_BITS | 1, memory_order_relaxed);
}
/* The unusual cases of the next two functions. */
bool flow_pause_reader_exactly(struct conn *c);
bool flow_replies_full_exactly(struct conn *c);
/* True: too much is under way, and receive_resume() will be called when half of that is done. The
 * reader's. */
static inline bool
flow_pause_reader(struct conn *c)
{
    uint64_t held = atomic_load_explicit(&c->held, memory_order_relaxed);
    bool is_easy = !(held & FLOW_READER_WAITS) && flow_replies(c) <= FLOW_FEW_BYTES &&
                   FLOW_BYTES(held) <= FLOW_FEW_BYTES &&
                   FLOW_REFS(held) < atomic_load_explicit(&c->calls_max, memory_order_relaxed) &&
                   conn_has_login(c) && !atomic_load_explicit(&c->pauses, memory_order_relaxed);

    return !is_easy && flow_pause_reader_exactly(c);
}
/* The peer has too many replies to read: nothing more is to be run now. */
static inline bool
flow_replies_full(struct conn *c)
{
    return flow_replies(c) > FLOW_FEW_BYTES && !c->is_dialled && flow_replies_full_exactly(c);
}
/* Records that were cut wait until the peer has read its replies. */
bool flow_is_stalled(const struct conn *c);
/* Keeps the batch on the connection's list until half of them are gone. False: no need to wait (any more). */
bool flow_stall(struct conn *c, struct cds_list_head *batch);
/* Wakes the waiters that may go on: for flow_less(). */
void flow_wake(struct conn *c);
/* Calls or bytes were given back, not a mere reference, or the connection is dead: wakes the waiting reader
 * and batches. The caller keeps c. */
static inline void
flow_less(struct conn *c)
{
    if (atomic_load(&c->held) & FLOW_WAITERS)
        flow_wake(c);
}
/* Returns credit: for flow_return_credit_locked(). */
void flow_give_credit_locked(struct conn *c);
/* All replies are sent: returns their share of the bytes of all connections, unless more replies are to
 * come. */
static inline void
flow_return_credit_locked(struct conn *c)
{
    if (atomic_load_explicit(&c->credit, memory_order_relaxed))
        flow_give_credit_locked(c);
}

#endif
