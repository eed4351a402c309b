/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Bytes in, whole records out.
 *
 * One worker at a time is a connection's reader. The reader receives into one buffer and cuts the buffer
 * into records, which refer to the buffer and are not copied. The reader gives up its role before it runs
 * the records, so another worker can read and run the following records while this worker is in a system
 * call.
 *
 *      in->bytes  [ record | record | record | part of a reco ]          a batch refers to the whole ones;
 *                  ^cut already               ^partial                   the next buffer starts with, or goes
 *                                                                        on with, the rest of the partial one
 *
 * The worker that read a batch runs the batch. A record that blocks must not hold up the records behind it,
 * so the worker also posts the batch as a job. Normally that job finds nothing left to do. If the worker
 * gets stuck, the watchdog gives the job to another worker, which sends the answers so far and runs the
 * remaining records (worker.h).
 *
 * A record lies in at most TRANSPORT_IOVS pieces, the first of at least TRANSPORT_HEAD_BYTES: fewer bytes at
 * a buffer's end are copied to the next buffer. Pieces grow with the bytes that have arrived, so a mark
 * alone gets no memory.
 *
 * Without memory for a buffer the reader takes a smaller buffer, then, for a connection that we opened, a
 * spare buffer of the process (iobuf_get_spare()). Without a spare buffer the reader stays the reader and
 * reads on after some milliseconds. The replies to many calls follow each other on such a connection: a
 * large reply must not hold up the others for long. After PATIENCE waits the reader drops the rest of the
 * large reply as it arrives.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/spare.h"
#include "base/ticks.h"
#include "log/log.h"
#include "mem/mem-ids.h"
#include "rpc/transport/transport-internal.h"

#define BATCH_RECORDS 32
#define TURN_BYTES (1u << 20) /* read before the reader's job is handed on */
#define BUFFER_MIN_LOGIN 4096
#define BUFFER_MIN 16384
#define BUFFER_MAX (1u << 20)
#define BUFFER_ROOM_MIN 2048 /* less room than that is not worth a system call */
#define RECORDS_A_BUFFER 8
#define BUFFER_PINNED_MAX BUFFER_MIN /* the largest buffer that a small record may hold */
#define SMALL_RECORD_MAX 1024
#define GROWTH 16 /* limit of a further piece, as a multiple of the bytes that have arrived */
#define FRAGMENTS_MAX 4096
#define FRAGMENTS_MAX_LOGIN 64
#define FRAGMENT_LAST 0x80000000u
#define STARVED_MS 20
#define PATIENCE 10

struct batch {
    struct worker_job help;
    atomic_bool is_help_posted;
    struct cds_list_head stalled; /* link: the batch waits until the peer has read (flow.c) */
    atomic_bool is_stalled;
    struct refcount refs; /* the worker that read the batch, `help` while posted, the list of the stalled */
    struct conn *c;       /* kept busy */
    uint64_t arrived;     /* ticks: before the first was read */
    unsigned count;
    atomic_uint next; /* the first record that no worker has begun */
    struct iobuf *small; /* small records that came in a large buffer; the reader's */
    size_t small_used;
    struct record records[BATCH_RECORDS];
};

enum turn {
    TURN_DRAINED, /* nothing more to read for now */
    TURN_FULL,    /* there may be more */
    TURN_PAUSED,  /* too much is under way */
    TURN_STARVED, /* no memory to read into */
    TURN_STEP,    /* a thread for handshakes is the reader for a while (tls.h) */
    TURN_DEAD,
};

__thread struct conn *receive_corked;
__thread uint64_t transport_arrived;
static struct mem_pool *batch_pool;

/* For connections that we opened. */
#define SPARE_BATCHES 16
static struct batch spare_batches[SPARE_BATCHES];
static spare_set spare_batches_used;

static void batch_run(struct batch *b);
static enum turn read_turn(struct conn *c, struct batch *b, bool *is_drained);

int
receive_pools_init(void)
{
    return mem_pool_make(&batch_pool, MEM_ID_BATCH, sizeof(struct batch), "transport_batch");
}

int
receive_put_unread(struct conn *c, const void *bytes, size_t count)
{
    if (!count)
        return 0;
    c->in = iobuf_get(count);
    if (!c->in)
        return -ENOMEM;
    memcpy(c->in->bytes, bytes, count);
    c->in_start = 0;
    c->in_end = count;
    return 0;
}

void
receive_fini(struct conn *c)
{
    record_release(&c->partial);
    iobuf_unref(c->in);
    c->in = NULL;
    admit_buffers(c, 0);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static bool
reader_acquire(struct conn *c, unsigned flags)
{
    unsigned was = atomic_load_explicit(&c->reader, memory_order_relaxed), is;

    do {
        is = was | flags | (was & READER_READING ? READER_AGAIN : READER_READING);
    } while (!atomic_compare_exchange_weak_explicit(&c->reader, &was, is, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return !(was & READER_READING);
}

/* False: an event came meanwhile, and the caller, still the reader, has to read once more. */
static bool
reader_release(struct conn *c)
{
    unsigned was = atomic_load_explicit(&c->reader, memory_order_relaxed), is;

    do {
        is = was & ~(was & READER_AGAIN ? READER_AGAIN : READER_READING);
    } while (!atomic_compare_exchange_weak_explicit(&c->reader, &was, is, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return !(was & READER_AGAIN);
}

static struct batch *
batch_get(const struct conn *c)
{
    struct batch *b = mem_get_t(MEM_ID_BATCH);
    int spare = b || !c->is_dialled ? -1 : spare_take(&spare_batches_used, SPARE_BATCHES);

    return spare < 0 ? b : &spare_batches[spare];
}

static void
batch_put(struct batch *b)
{
    if (b >= spare_batches && b < spare_batches + SPARE_BATCHES)
        spare_give(&spare_batches_used, (unsigned)(b - spare_batches));
    else
        mem_put_t(MEM_ID_BATCH, b);
}

static struct batch *
batch_new(struct conn *c)
{
    struct batch *b = batch_get(c);

    if (!b)
        return NULL;
    refcount_init(&b->refs, 1);
    b->c = c;
    b->arrived = ticks_now();
    b->count = 0;
    b->small = NULL;
    atomic_init(&b->next, 0);
    atomic_init(&b->is_help_posted, false);
    atomic_init(&b->is_stalled, false);
    atomic_fetch_add(&c->busy, 1); /* the caller keeps the connection busy too: not 0 before */
    return b;
}

/* The caller is the reader and stays the reader until the timer's job reads on. */
static void
wait_for_memory(struct conn *c)
{
    if (c->starved++ == 0)
        log_event(LOG_WARNING, NULL, "transport-starved",
                  "no memory to read into: a connection waits until there is some");
    atomic_fetch_add(&c->busy, 1);
    timer_start(&c->patience, STARVED_MS);
}

void
receive_patience_due(struct timer *t)
{
    worker_post_any(&caa_container_of(t, struct conn, patience)->read_job);
}

/* The caller is the reader and keeps the connection busy. */
static void
read_and_run(struct conn *c)
{
    struct batch *b = batch_new(c);
    enum turn turn;

    if (!b) {
        wait_for_memory(c);
        return;
    }
    for (;;) {
        bool is_drained = false;

        turn = read_turn(c, b, &is_drained);
        if (turn == TURN_FULL || turn == TURN_STARVED || turn == TURN_STEP || turn == TURN_DEAD ||
            reader_release(c))
            break;
    }
    /* A full turn: the worker that takes the job is the reader from now on. A dead connection has no reader
     * any more. */
    if (turn == TURN_FULL) {
        atomic_fetch_add(&c->busy, 1);
        worker_post_any(&c->read_job);
    } else if (turn == TURN_STARVED) {
        wait_for_memory(c);
    } else if (turn == TURN_STEP) {
        atomic_fetch_add(&c->busy, 1);
        tls_hand_over(atomic_load(&c->tls));
    } else if (turn == TURN_DEAD) {
        conn_kill(c);
    }
    iobuf_unref(b->small);
    batch_run(b);
}

void
receive_event(struct conn *c, uint32_t events)
{
    if (reader_acquire(c, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? READER_HANGUP : 0))
        read_and_run(c);
}

void
receive_read_job(struct worker_job *job)
{
    struct conn *c = caa_container_of(job, struct conn, read_job);

    read_and_run(c);
    conn_busy_put(c);
}

void
receive_resume(struct conn *c)
{
    if (!conn_busy_get(c))
        return;
    if (reader_acquire(c, 0))
        worker_post_any(&c->read_job);
    else
        conn_busy_put(c);
}

/* ---- running --------------------------------------------------------------------------------- */

static void
batch_unref(struct batch *b)
{
    if (!refcount_put(&b->refs))
        return;
    conn_busy_put(b->c);
    batch_put(b);
}

static void
batch_post_help(struct batch *b)
{
    if (atomic_exchange(&b->is_help_posted, true))
        return;
    refcount_get(&b->refs);
    worker_post(&b->help);
}

/* True: the peer does not read its answers, so the remaining records wait. The function first sends the
 * answers of this batch, because these may be all the answers that the connection owes. */
static bool
batch_stalls(struct batch *b)
{
    if (!flow_replies_full(b->c))
        return false;
    send_flush(b->c);
    if (atomic_exchange(&b->is_stalled, true)) /* another worker has stalled the batch */
        return true;
    refcount_get(&b->refs);
    if (flow_stall(b->c, &b->stalled))
        return true;
    atomic_store(&b->is_stalled, false);
    refcount_put(&b->refs); /* never the last */
    batch_post_help(b);     /* the job may have come and gone meanwhile */
    return false;
}

void
receive_restart_batches(struct cds_list_head *batches)
{
    struct batch *b, *next;

    cds_list_for_each_entry_safe(b, next, batches, stalled)
    {
        /* before the flag is looked at: a running job sees one of the two */
        atomic_store(&b->is_stalled, false);
        if (atomic_exchange(&b->is_help_posted, true))
            batch_unref(b);
        else
            worker_post_any(&b->help); /* with the list's reference */
    }
}

/* Runs the records that no worker has begun, then sends their answers. The answer of the last record takes
 * the waiting answers along, in one visit of the connection's lock. */
static void
batch_work(struct batch *b)
{
    struct conn *c = b->c, *outer = receive_corked;
    unsigned i;

    receive_corked = c;
    transport_arrived = b->arrived;
    while (atomic_load_explicit(&b->next, memory_order_relaxed) < b->count && !batch_stalls(b) &&
           (i = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed)) < b->count) {
        if (i + 1 == b->count)
            receive_corked = outer;
        if (atomic_load_explicit(&c->is_refused, memory_order_relaxed))
            record_release(&b->records[i]);
        else
            c->ops->record(c, &b->records[i], c->arg);
    }
    receive_corked = outer;
    send_flush(c);
}

static void
batch_help_job(struct worker_job *job)
{
    struct batch *b = caa_container_of(job, struct batch, help);

    atomic_store(&b->is_help_posted, false);
    send_flush(b->c); /* the answers of a worker that got stuck */
    if (!atomic_load(&b->is_stalled) && atomic_load_explicit(&b->next, memory_order_relaxed) < b->count) {
        batch_post_help(b); /* for the case that this worker gets stuck as well */
        batch_work(b);
    }
    batch_unref(b);
}

static void
batch_run(struct batch *b)
{
    b->help.run = batch_help_job;
    if (b->count > 1)
        batch_post_help(b);
    if (b->count)
        batch_work(b);
    batch_unref(b);
}

/* ---- cutting --------------------------------------------------------------------------------- */

static size_t
record_max(const struct conn *c)
{
    return conn_has_login(c) ? TRANSPORT_RECORD_MAX : TRANSPORT_RECORD_MAX_LOGIN;
}

static unsigned
fragments_max(const struct conn *c)
{
    return conn_has_login(c) ? FRAGMENTS_MAX : FRAGMENTS_MAX_LOGIN;
}

/* Collects the mark, which may arrive in parts. True when the mark is whole. */
static bool
take_mark(struct conn *c)
{
    while (c->mark_have < TRANSPORT_MARK_BYTES && c->in_start < c->in_end)
        c->mark[c->mark_have++] = (unsigned char)c->in->bytes[c->in_start++];
    return c->mark_have == TRANSPORT_MARK_BYTES;
}

/* The bytes are no mark: the peer has TLS and this side has not, or the other way round. */
static int
refuse_other_kind(struct conn *c)
{
    char peer[CONN_PEER_TEXT_MAX];

    conn_peer_text(c, peer);
    c->is_tls_demanded = c->is_dialled;
    if (c->is_dialled) {
        log_event(LOG_WARNING, NULL, "tls-demanded",
                  "connection to %s failed: the peer demands TLS, and this side speaks without (client.ssl "
                  "or management TLS is off)",
                  peer);
        return -EPROTO;
    }
    tls_send_refusal(c->src.fd);
    log_event(LOG_WARNING, NULL, "tls-not-here",
              "connection from %s failed: the peer speaks TLS, and no brick of this port does (server.ssl is "
              "off)",
              peer);
    return -EPROTO;
}

static int
begin_fragment(struct conn *c)
{
    uint32_t mark;

    if (c->is_dialled ? tls_is_alert(c->mark) : tls_is_hello(c->mark))
        return refuse_other_kind(c);
    memcpy(&mark, c->mark, sizeof mark);
    mark = __builtin_bswap32(mark);
    c->mark_have = 0;
    c->is_in_fragment = true;
    c->is_last_fragment = mark & FRAGMENT_LAST;
    c->fragment_left = mark & ~FRAGMENT_LAST;
    c->fragments++;
    if (c->fragment_left > record_max(c) - c->partial.bytes) {
        log_event(LOG_WARNING, NULL, "transport-record-too-long",
                  "a peer announced a record of %zu bytes where %zu are allowed; connection closed",
                  c->partial.bytes + c->fragment_left, record_max(c));
        return -EMSGSIZE;
    }
    if (c->fragments > fragments_max(c) ||
        (c->is_last_fragment && c->partial.bytes + c->fragment_left == 0)) {
        log_event(LOG_WARNING, NULL, "transport-bad-fragments",
                  "a peer sent %s; connection closed",
                  c->fragments > fragments_max(c) ? "a record in too many fragments" : "an empty record");
        return -EPROTO;
    }
    return 0;
}

/* Takes the arrived bytes of the present fragment into the record. If fragments of a record lie in the same
 * buffer, the function moves them together over the marks between them (stock never sends more than one
 * fragment). */
static void
take_fragment(struct conn *c)
{
    struct record *r = &c->partial;
    size_t n = c->in_end - c->in_start;
    char *from = c->in->bytes + c->in_start;

    if (n > c->fragment_left)
        n = c->fragment_left;
    if (n == 0)
        return;
    if (r->count && r->bufs[r->count - 1] == c->in) {
        struct iovec *last = &r->iov[r->count - 1];
        char *to = (char *)last->iov_base + last->iov_len;

        if (to != from)
            memmove(to, from, n);
        last->iov_len += n;
    } else {
        assert(r->count < TRANSPORT_IOVS);
        r->bufs[r->count] = iobuf_ref(c->in);
        r->iov[r->count++] = (struct iovec){.iov_base = from, .iov_len = n};
    }
    r->bytes += n;
    c->in_start += n;
    c->fragment_left -= (uint32_t)n;
}

/* A request for a lock may wait for long and, between large writes, would keep a megabyte: so a small record
 * is copied out of a large buffer. Without memory the record stays where it is. */
static void
move_small_record(struct conn *c, struct batch *b)
{
    struct record *r = &c->partial;

    if (r->count != 1 || r->bytes > SMALL_RECORD_MAX || c->in->size <= BUFFER_PINNED_MAX)
        return;
    if (!b->small || b->small->size - b->small_used < r->bytes) {
        struct iobuf *fresh = iobuf_get(BUFFER_MIN);

        if (!fresh)
            return;
        iobuf_unref(b->small);
        b->small = fresh;
        b->small_used = 0;
    }
    char *to = b->small->bytes + b->small_used;

    memcpy(to, r->iov[0].iov_base, r->bytes);
    b->small_used += r->bytes;
    iobuf_unref(r->bufs[0]);
    r->bufs[0] = iobuf_ref(b->small);
    r->iov[0].iov_base = to;
}

static void
finish_record(struct conn *c, struct batch *b)
{
    size_t bytes = c->partial.bytes;

    move_small_record(c, b);

    if (bytes >= c->record_size_seen)
        c->record_size_seen = bytes;
    else
        c->record_size_seen -= (c->record_size_seen - bytes) / 8;
    flow_hold_record(c, &c->partial);
    b->records[b->count++] = c->partial;
    c->partial.conn = NULL;
    c->partial.count = 0;
    c->partial.bytes = 0;
    c->partial.is_cut = false;
    c->fragments = 0;
    count_up(&c->records, 1);
}

/* Cuts the received bytes until they are used up or the batch is full. 0 or -errno (close). */
static int
cut(struct conn *c, struct batch *b)
{
    while (c->in_start < c->in_end && b->count < BATCH_RECORDS) {
        if (!c->is_in_fragment) {
            if (!take_mark(c))
                break;
            int err = begin_fragment(c);

            if (err)
                return err;
        }
        take_fragment(c);
        if (c->fragment_left == 0) {
            c->is_in_fragment = false;
            if (c->is_last_fragment)
                finish_record(c, b);
        }
    }
    return 0;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Room for several records of the kind that came lately. */
static size_t
usual_buffer(const struct conn *c)
{
    size_t size = BUFFER_MIN;

    if (!atomic_load_explicit(&c->is_trusted, memory_order_relaxed))
        return BUFFER_MIN_LOGIN;
    while (size < BUFFER_MAX && size < c->record_size_seen * RECORDS_A_BUFFER)
        size *= 4;
    return min_size(size, BUFFER_MAX);
}

/* Upper bound of the bytes of the present record that have not arrived, with marks if more fragments may
 * follow. */
static size_t
record_left(const struct conn *c)
{
    if (c->is_in_fragment && c->is_last_fragment)
        return c->fragment_left;
    return record_max(c) - min_size(c->partial.bytes, record_max(c)) +
           fragments_max(c) * TRANSPORT_MARK_BYTES;
}

/* How much is to be taken along from the present record's last piece to the next buffer: a head that is too
 * short to be a piece of its own; or the last of all pieces, which gets too small only if a record began
 * before the login and goes on after it, or has many tiny fragments. */
static size_t
bytes_to_move(const struct conn *c)
{
    const struct record *r = &c->partial;

    if (r->count && (r->bytes < TRANSPORT_HEAD_BYTES || r->count == TRANSPORT_IOVS))
        return r->iov[r->count - 1].iov_len;
    return 0;
}

static size_t
next_buffer_size(const struct conn *c, size_t moved)
{
    const struct record *r = &c->partial;
    size_t size = usual_buffer(c);

    if (r->count == 0)
        return size;
    size_t left = record_left(c), may = r->bytes * GROWTH;

    if (!conn_has_login(c)) /* the whole record; make_room() gives marks back */
        return TRANSPORT_RECORD_MAX_LOGIN;
    if (r->count >= TRANSPORT_IOVS - 1) /* the last piece takes all; unwritten pages cost nothing */
        return moved + (left > size ? left : size);
    left = min_size(left, may);
    return moved + (left > size ? left : size);
}

/* A smaller buffer than is usual; but the last piece of a record has to take all that is left. */
static struct iobuf *
scarce_buffer(const struct conn *c, size_t moved, size_t wanted)
{
    bool is_last = c->partial.count && c->partial.count >= TRANSPORT_IOVS - 1;
    size_t least = is_last ? moved + record_left(c) : moved + BUFFER_ROOM_MIN;
    struct iobuf *b = NULL;

    if (!conn_has_login(c) && !c->is_dialled)
        return NULL;
    for (size_t size = wanted / 4; !b && size >= BUFFER_MIN && size >= least; size /= 4)
        b = iobuf_get(size);
    return b || !c->is_dialled || least > IOBUF_SPARE_BYTES ? b : iobuf_get_spare();
}

/* Everything in the present buffer has been cut. 0 or -ENOMEM. */
static int
next_buffer(struct conn *c)
{
    struct record *r = &c->partial;
    size_t moved = bytes_to_move(c), size = next_buffer_size(c, moved);
    struct iobuf *fresh = iobuf_get(size);

    if (fresh)
        c->starved = 0;
    else
        fresh = scarce_buffer(c, moved, size);
    if (!fresh)
        return -ENOMEM;
    if (moved) {
        memcpy(fresh->bytes, r->iov[r->count - 1].iov_base, moved);
        iobuf_unref(r->bufs[r->count - 1]);
        r->bufs[r->count - 1] = iobuf_ref(fresh);
        r->iov[r->count - 1].iov_base = fresh->bytes;
    }
    iobuf_unref(c->in);
    c->in = fresh;
    c->in_start = c->in_end = moved;
    if (!conn_has_login(c))
        admit_buffers(c, fresh->size + (r->count > 1 || (r->count && !moved) ? r->bytes : 0));
    else if (c->login_bytes)
        admit_buffers(c, 0);
    return 0;
}

static int
make_room(struct conn *c)
{
    const struct record *r = &c->partial;

    assert(c->in_start == c->in_end);
    /* The marks of fragments that have been put together are room again. */
    if (r->count && r->bufs[r->count - 1] == c->in)
        c->in_start = c->in_end =
            (size_t)((char *)r->iov[r->count - 1].iov_base - c->in->bytes) + r->iov[r->count - 1].iov_len;
    size_t room = c->in ? c->in->size - c->in_end : 0;
    bool ends_here = c->is_in_fragment && c->is_last_fragment && c->fragment_left <= room;

    return room >= BUFFER_ROOM_MIN || (room && ends_here) ? 0 : next_buffer(c);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* One system call, or more with TLS. Positive: bytes; 0: the peer has closed; -errno. */
static ssize_t
receive_bytes(struct conn *c, void *to, size_t room, bool *is_short)
{
    struct tls *tls = atomic_load_explicit(&c->tls, memory_order_relaxed);
    ssize_t n;

    if (tls)
        return tls_receive(tls, to, room, is_short);
    do {
        n = recv(c->src.fd, to, room, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    *is_short = (size_t)n < room;
    return n;
}

/* As receive_bytes(), into the buffer. */
static ssize_t
receive(struct conn *c, bool *is_short)
{
    ssize_t n = receive_bytes(c, c->in->bytes + c->in_end, c->in->size - c->in_end, is_short);

    if (n < 0)
        return n;
    c->in_end += (size_t)n;
    count_up(&c->reads, 1);
    count_up(&c->bytes_in, (uint64_t)n);
    return n;
}

/* Without memory for the rest of the present record. True: that is dropped. A record for which a spare buffer
 * is enough waits for one. */
static bool
begin_skipping(struct conn *c)
{
    struct record *r = &c->partial;
    bool is_in_last = c->is_in_fragment && c->is_last_fragment;

    if (!c->is_dialled || c->starved < PATIENCE || !is_in_last || r->bytes < TRANSPORT_HEAD_BYTES ||
        r->bytes + c->fragment_left <= IOBUF_SPARE_BYTES - BUFFER_ROOM_MIN)
        return false;
    while (r->count > 1)
        iobuf_unref(r->bufs[--r->count]);
    r->bytes = r->iov[0].iov_len;
    r->is_cut = c->is_skipping = true;
    log_event(LOG_WARNING, NULL, "transport-record-dropped",
              "no memory for the whole of a record of a peer's: the rest is dropped");
    return true;
}

/* As receive(), but drops the bytes. */
static ssize_t
skip(struct conn *c, struct batch *b, bool *is_short)
{
    char nowhere[16384];
    ssize_t n = receive_bytes(c, nowhere, min_size(c->fragment_left, sizeof nowhere), is_short);

    if (n < 0)
        return n;
    count_up(&c->reads, 1);
    count_up(&c->bytes_in, (uint64_t)n);
    c->fragment_left -= (uint32_t)n;
    if (c->fragment_left == 0) {
        c->is_in_fragment = c->is_skipping = false;
        finish_record(c, b);
    }
    return n;
}

/* TURN_FULL: the caller reads on; else the turn ends. */
static enum turn
receive_advance_tls(struct conn *c, struct tls *tls)
{
    switch (tls_advance(tls)) {
    case TLS_GO:
        return TURN_FULL;
    case TLS_PLAIN:
        c->tls_unused = tls;
        atomic_store(&c->tls, NULL);
        return TURN_FULL;
    case TLS_STEP:
        admit_buffers(c, TLS_SHAKING_BYTES);
        return TURN_STEP;
    case TLS_WAIT:
        return TURN_DRAINED;
    default:
        return TURN_DEAD;
    }
}

/* Reads and cuts until there is nothing more, or enough for a turn. A short read has drained the socket
 * (epoll(7)), except when the peer has hung up: then the end is still to be read, and no event will tell. */
static enum turn
read_turn(struct conn *c, struct batch *b, bool *is_drained)
{
    struct tls *tls = atomic_load_explicit(&c->tls, memory_order_relaxed);

    if (tls && !c->is_dead) {
        enum turn turn = receive_advance_tls(c, tls);

        if (turn != TURN_FULL)
            return turn;
    }
    for (size_t turn_bytes = 0;;) {
        if (c->is_dead)
            return TURN_DEAD;
        /* The bytes of a turn's last read are cut without another look at the limits. */
        if ((!*is_drained || !turn_bytes) && flow_pause_reader(c))
            return TURN_PAUSED;
        if (c->in && cut(c, b))
            return TURN_DEAD;
        if (b->count == BATCH_RECORDS || (b->count && turn_bytes >= TURN_BYTES))
            return TURN_FULL;
        if (*is_drained && !(atomic_load_explicit(&c->reader, memory_order_relaxed) & READER_HANGUP))
            break;
        if (!c->is_skipping && make_room(c) && !begin_skipping(c))
            return TURN_STARVED;
        ssize_t n = c->is_skipping ? skip(c, b, is_drained) : receive(c, is_drained);

        if (n == -EAGAIN)
            break;
        if (n <= 0)
            return TURN_DEAD;
        turn_bytes += (size_t)n;
    }
    if (!c->partial.count) { /* an idle connection keeps no buffer */
        iobuf_unref(c->in);
        c->in = NULL;
        c->in_start = c->in_end = 0;
        if (c->login_bytes)
            admit_buffers(c, 0);
    }
    return TURN_DRAINED;
}
