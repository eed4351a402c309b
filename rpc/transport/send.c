/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Messages out: a queue of pieces a connection, sent by one thread at a time.
 *
 * Small heads are copied one after another into a buffer, so a batch of small replies is a single piece;
 * payloads are separate pieces, by reference. A thread that queues a message also sends, unless the thread
 * runs a batch of that connection: the end of the batch sends. A thread that finds another thread sending
 * leaves its message to that sender, which looks at the queue again before the sender stops.
 *
 * A message is queued as a whole or not at all. On a connection that we opened, small calls go out without
 * memory, too: there are some spare pieces and buffers for them.
 *
 * When the socket is full the rest waits for EPOLLOUT. TCP reports EPOLLOUT only after a sender found no
 * room, so a TCP socket has EPOLLOUT in its set from the start. A unix socket reports EPOLLOUT whenever the
 * peer has read something, so the sender asks for the event only while a message waits.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/moment.h"
#include "base/spare.h"
#include "coro/coroutine.h"
#include "mem/mem-ids.h"
#include "rpc/transport/transport-internal.h"

#define FRAME_BYTES 16384
#define FRAME_MESSAGE_MAX 4096 /* a longer head gets a separate buffer */
#define SEND_IOVS 64
#define CHUNK_COST 64
#define MESSAGE_MAX 0x7fffffffu

static struct mem_pool *chunk_pool;

/* For connections that we opened. */
#define SPARE_CHUNKS 32
static struct chunk spare_chunks[SPARE_CHUNKS];
static spare_set spare_chunks_used;

static atomic_bool is_held_back; /* see send_hold_back(); written by the thread that ends the process */

int
send_pools_init(void)
{
    return mem_pool_make(&chunk_pool, MEM_ID_CHUNK, sizeof(struct chunk), "transport_chunk");
}

/* ---- queueing -------------------------------------------------------------------------------- */

static void
queued_more_locked(struct conn *c, size_t bytes)
{
    size_t was = atomic_load_explicit(&c->queued_bytes, memory_order_relaxed);

    atomic_store_explicit(&c->queued_bytes, was + bytes, memory_order_relaxed);
}

static void
queued_less_locked(struct conn *c, size_t bytes)
{
    queued_more_locked(c, -bytes);
}

static struct chunk *
chunk_get(const struct conn *c)
{
    struct chunk *k = mem_get_t(MEM_ID_CHUNK);
    int spare = k || !c->is_dialled ? -1 : spare_take(&spare_chunks_used, SPARE_CHUNKS);

    return spare < 0 ? k : &spare_chunks[spare];
}

static void
chunk_put(struct chunk *k)
{
    iobuf_unref(k->buf);
    if (k >= spare_chunks && k < spare_chunks + SPARE_CHUNKS)
        spare_give(&spare_chunks_used, (unsigned)(k - spare_chunks));
    else
        mem_put_t(MEM_ID_CHUNK, k);
}

/* A piece at the queue's end; consumes the reference to `buf`. 0 or -ENOMEM. */
static int
queue_chunk_locked(struct conn *c, struct iobuf *buf, void *at, size_t bytes)
{
    struct chunk *k = chunk_get(c);

    if (!k) {
        iobuf_unref(buf);
        return -ENOMEM;
    }
    *k = (struct chunk){.buf = buf, .at = at, .bytes = bytes};
    if (c->tail)
        c->tail->next = k;
    else
        c->head = k;
    c->tail = k;
    queued_more_locked(c, bytes + CHUNK_COST);
    return 0;
}

/* `bytes` of room in the frame buffer, already queued; NULL: no memory. */
static char *
queue_room_locked(struct conn *c, size_t bytes)
{
    if (!c->frame || c->frame->size - c->frame_used < bytes) {
        struct iobuf *fresh = iobuf_get(FRAME_BYTES);

        if (!fresh && c->is_dialled)
            fresh = iobuf_get_spare();
        if (!fresh)
            return NULL;
        iobuf_unref(c->frame);
        c->frame = fresh;
        c->frame_used = 0;
    }
    char *at = c->frame->bytes + c->frame_used;

    if (c->tail && c->tail->buf == c->frame && c->tail->at + c->tail->bytes == at) {
        c->tail->bytes += bytes;
        queued_more_locked(c, bytes);
    } else if (queue_chunk_locked(c, iobuf_ref(c->frame), at, bytes)) {
        return NULL;
    }
    c->frame_used += bytes;
    return at;
}

int
send_put_unsent(struct conn *c, const void *bytes, size_t count)
{
    struct iobuf *buf = count ? iobuf_get(count) : NULL;

    if (!buf)
        return count ? -ENOMEM : 0;
    memcpy(buf->bytes, bytes, count);
    pthread_mutex_lock(&c->lock);
    int err = queue_chunk_locked(c, buf, buf->bytes, count);

    pthread_mutex_unlock(&c->lock);
    return err;
}

static void
put_mark(char *at, size_t bytes)
{
    uint32_t mark = __builtin_bswap32((uint32_t)bytes | 0x80000000u);

    memcpy(at, &mark, sizeof mark);
}

static int
queue_head_locked(struct conn *c, const void *head, size_t head_bytes, size_t message_bytes)
{
    size_t bytes = TRANSPORT_MARK_BYTES + head_bytes;
    char *at;

    if (bytes <= FRAME_MESSAGE_MAX) {
        at = queue_room_locked(c, bytes);
    } else {
        struct iobuf *own = iobuf_get(bytes);

        at = own ? own->bytes : NULL;
        if (own && queue_chunk_locked(c, own, at, bytes))
            at = NULL;
    }
    if (!at)
        return -ENOMEM;
    put_mark(at, message_bytes);
    memcpy(at + TRANSPORT_MARK_BYTES, head, head_bytes);
    return 0;
}

static int
queue_payload_locked(struct conn *c, struct iobuf *buf, const struct iovec *payload, int count)
{
    for (int i = 0; i < count; i++) {
        if (payload[i].iov_len == 0)
            continue;
        int err = queue_chunk_locked(c, iobuf_ref(buf), payload[i].iov_base, payload[i].iov_len);

        if (err)
            return err;
    }
    return 0;
}

/* The end of the queue, to take back a message that was queued in part. No thread takes pieces from the head
 * meanwhile, because the lock is held. */
struct queue_end {
    struct chunk *tail;
    size_t tail_bytes, queued_bytes;
};

static struct queue_end
queue_end_locked(const struct conn *c)
{
    return (struct queue_end){.tail = c->tail,
                              .tail_bytes = c->tail ? c->tail->bytes : 0,
                              .queued_bytes = atomic_load_explicit(&c->queued_bytes, memory_order_relaxed)};
}

/* The message's part of the frame buffer stays unused. */
static void
take_back_locked(struct conn *c, const struct queue_end *end)
{
    struct chunk **rest = end->tail ? &end->tail->next : &c->head;

    send_free_chunks(*rest);
    *rest = NULL;
    c->tail = end->tail;
    if (c->tail)
        c->tail->bytes = end->tail_bytes;
    atomic_store_explicit(&c->queued_bytes, end->queued_bytes, memory_order_relaxed);
    if (!c->head) {
        iobuf_unref(c->frame);
        c->frame = NULL;
    }
}

static void flush_and_unlock(struct conn *c);

/* The end of both forms of conn_send(), with the lock, which is free afterwards. */
static int
queued_and_unlock(struct conn *c, int err)
{
    if (!err && receive_corked != c)
        flush_and_unlock(c);
    else
        pthread_mutex_unlock(&c->lock);
    if (err == -ENOMEM && !c->is_dialled)
        conn_kill(c);
    return err;
}

int
conn_send(struct conn *c, const void *head, size_t head_bytes, struct iobuf *buf, const struct iovec *payload,
          int payload_count)
{
    size_t bytes = head_bytes;
    int err = -ENOTCONN;

    for (int i = 0; i < payload_count; i++)
        bytes += payload[i].iov_len;
    assert(bytes <= MESSAGE_MAX);
    assert(payload_count == 0 || buf);
    pthread_mutex_lock(&c->lock);
    if (!c->is_dead) {
        struct queue_end end = queue_end_locked(c);

        err = queue_head_locked(c, head, head_bytes, bytes);
        if (!err)
            err = queue_payload_locked(c, buf, payload, payload_count);
        if (err)
            take_back_locked(c, &end);
        else
            count_up(&c->messages, 1);
    }
    err = queued_and_unlock(c, err);
    iobuf_unref(buf);
    return err;
}

int
conn_send_iobuf(struct conn *c, struct iobuf *buf, size_t bytes)
{
    int err = -ENOTCONN;

    assert(bytes <= MESSAGE_MAX && TRANSPORT_MARK_BYTES + bytes <= buf->size);
    put_mark(buf->bytes, bytes);
    pthread_mutex_lock(&c->lock);
    if (!c->is_dead) {
        err = queue_chunk_locked(c, buf, buf->bytes, TRANSPORT_MARK_BYTES + bytes);
        buf = NULL;
        if (!err)
            count_up(&c->messages, 1);
    }
    err = queued_and_unlock(c, err);
    iobuf_unref(buf);
    return err;
}

/* ---- when something has been sent ------------------------------------------------------------ */

/* The moments that waited for this piece of the queue come. */
static void
moments_come_locked(struct conn *c, const struct chunk *sent)
{
    struct moment **at = &c->awaited, *m;

    while ((m = *at)) {
        if (m->after != sent) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        moment_comes(m);
    }
}

void
conn_tell_sent(struct conn *c, struct moment *m)
{
    pthread_mutex_lock(&c->lock);
    if (c->is_dead) {
        moment_unref(m);
    } else if (!c->head) {
        moment_comes(m);
    } else {
        m->after = c->tail;
        m->next = c->awaited;
        c->awaited = m;
    }
    pthread_mutex_unlock(&c->lock);
}

void
send_drop_moments(struct conn *c)
{
    struct moment *m;

    while ((m = c->awaited)) {
        c->awaited = m->next;
        moment_unref(m);
    }
}

void
send_hold_back(bool holds)
{
    atomic_store(&is_held_back, holds);
}

/* ---- sending --------------------------------------------------------------------------------- */

static size_t
send_gather_locked(const struct conn *c, struct iovec iov[SEND_IOVS])
{
    size_t n = 0;

    for (struct chunk *k = c->head; k && n < SEND_IOVS; k = k->next)
        iov[n++] = (struct iovec){.iov_base = k->at, .iov_len = k->bytes};
    return n;
}

/* The first `bytes` of the queue have been sent. */
static void
consume_locked(struct conn *c, size_t bytes)
{
    count_up(&c->bytes_out, bytes);
    while (bytes) {
        struct chunk *k = c->head;
        size_t n = bytes < k->bytes ? bytes : k->bytes;

        k->at += n;
        k->bytes -= n;
        queued_less_locked(c, n);
        bytes -= n;
        if (k->bytes)
            return;
        c->head = k->next;
        if (c->awaited)
            moments_come_locked(c, k);
        queued_less_locked(c, CHUNK_COST);
        chunk_put(k);
    }
    if (!c->head) { /* an idle connection keeps no buffer */
        c->tail = NULL;
        iobuf_unref(c->frame);
        c->frame = NULL;
        flow_return_credit_locked(c);
    }
}

/* Asks for EPOLLOUT, or no longer. Under the lock, so that the last decision is also the last call; rare. */
static int
change_out_locked(struct conn *c, bool wants)
{
    if (c->is_dead)
        return 0;
    c->wants_out = wants;
    return !c->is_registered ? 0 : event_modify(&c->src, EPOLLIN | EPOLLRDHUP | (wants ? EPOLLOUT : 0));
}

static inline int
want_out_locked(struct conn *c, bool wants)
{
    return c->is_tcp || c->wants_out == wants ? 0 : change_out_locked(c, wants);
}

/* As sendmsg(2); -errno instead of -1. */
static ssize_t
send_pieces(struct conn *c, struct iovec *iov, size_t count)
{
    struct tls *tls = atomic_load_explicit(&c->tls, memory_order_relaxed);
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};

    if (tls)
        return tls_send(tls, iov, count);
    ssize_t n = sendmsg(c->src.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

    return n < 0 ? -errno : n;
}

/* Sends once. True: look at the queue again. */
static bool
send_some_locked(struct conn *c, int *err)
{
    struct iovec iov[SEND_IOVS];
    size_t count = send_gather_locked(c, iov);

    c->is_writable_again = false;
    pthread_mutex_unlock(&c->lock);
    ssize_t n = send_pieces(c, iov, count);
    int failed = n < 0 ? (int)-n : 0;

    pthread_mutex_lock(&c->lock);
    count_up(&c->writes, 1);
    if (n >= 0) {
        consume_locked(c, (size_t)n);
        return true;
    }
    if (failed == EINTR)
        return true;
    if (failed == EPIPE && c->is_dialled && !atomic_load_explicit(&c->records, memory_order_relaxed)) {
        c->is_blocked = true; /* the reader takes the peer's last bytes and ends the connection */
        return false;
    }
    if (failed == EAGAIN || failed == EWOULDBLOCK) {
        if (c->is_writable_again) /* the event came before this thread was ready to wait */
            return true;
        c->is_blocked = true;
        *err = want_out_locked(c, true);
        return false;
    }
    *err = -failed;
    return false;
}

/* Encryption needs more stack than a coroutine has: a worker sends instead. */
static void
send_post_flush(struct conn *c)
{
    if (atomic_exchange(&c->is_flush_posted, true))
        return;
    if (conn_busy_get(c))
        worker_post(&c->flush_job);
    else
        atomic_store(&c->is_flush_posted, false);
}

void
send_flush_job(struct worker_job *job)
{
    struct conn *c = caa_container_of(job, struct conn, flush_job);

    atomic_store(&c->is_flush_posted, false);
    send_flush(c);
    conn_busy_put(c);
}

/* Sends the queue, unless another thread is sending. */
static void
flush_and_unlock(struct conn *c)
{
    struct chunk *left = NULL;
    int err = 0;

    bool waits =
        atomic_load_explicit(&is_held_back, memory_order_relaxed) && !c->is_dialled && conn_has_login(c);
    if (c->is_sending || c->is_blocked || !c->head || waits) {
        pthread_mutex_unlock(&c->lock);
        return;
    }
    if (atomic_load_explicit(&c->tls, memory_order_relaxed) && coroutine_self()) {
        pthread_mutex_unlock(&c->lock);
        send_post_flush(c);
        return;
    }
    atomic_store_explicit(&c->is_sending, true, memory_order_relaxed);
    while (!c->is_dead && c->head && send_some_locked(c, &err))
        ;
    /* released behind is_blocked: send_writable() */
    atomic_store_explicit(&c->is_sending, false, memory_order_release);
    if (c->is_dead)
        left = send_take_queue_locked(c);
    else if (!c->head && !err)
        err = want_out_locked(c, false);
    pthread_mutex_unlock(&c->lock);
    send_free_chunks(left);
    if (err)
        conn_kill(c);
    else
        flow_less(c);
}

void
send_queue(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    flush_and_unlock(c);
}

void
send_resume(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    bool flushes = c->is_blocked;

    c->is_blocked = false;
    c->is_writable_again = true;
    pthread_mutex_unlock(&c->lock);
    if (flushes)
        send_flush(c);
}

struct chunk *
send_take_queue_locked(struct conn *c)
{
    struct chunk *list = c->head;

    if (c->is_sending)
        return NULL;
    c->head = c->tail = NULL;
    atomic_store_explicit(&c->queued_bytes, 0, memory_order_relaxed);
    iobuf_unref(c->frame);
    c->frame = NULL;
    return list;
}

void
send_free_chunks(struct chunk *list)
{
    while (list) {
        struct chunk *next = list->next;

        chunk_put(list);
        list = next;
    }
}
