/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The memory and calls that a connection makes the process hold, and the waiters when that is too much
 * (numbers: limits.h).
 *
 *   held      one word: waiter bits (2) | bytes of records (42) | references (20); a call in flight is one
 *             reference
 *   waiting   those of the calls that wait for another call, in the same form; the limits are about
 *             held - waiting
 *   reserved  bytes of replies that calls under way will have; queued_bytes are those that wait to be sent
 *
 * Two kinds of waiters: the reader stops reading for any of the limits. Batches stop running their records
 * for too many bytes of replies only, or calls that have not begun would wait for themselves.
 *
 * No wake-up is lost: a waiter sets its bit under the connection's lock and then looks at the counters
 * again. A thread that lowers a counter sees the bit afterwards, or, for `held`, in the same atomic.
 * queued_bytes changes under the lock.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "rpc/transport/transport-internal.h"

#define OTHER_REFS 2 /* the transport's own and a session's */
#define CREDIT (1u << 20)
#define APART_MIN 16 /* so few waiting calls may each keep a receive buffer */
#define APART_BYTES 4096

struct transport_limits transport_limits = {
    .calls = 1024,
    .record_bytes = 32u << 20,
    .waiting_calls = 16384,
    .waiting_bytes = 16u << 20,
    .reply_bytes = 8u << 20,
    .reply_bytes_own = 256u << 10,
    .calls_login = 1,
    .reply_bytes_login = 8u << 10,
    .reply_bytes_all = 256u << 20,
    .login_bytes_all = 64u << 20,
    .login_ms = 30000,
};

static _Atomic size_t credit_given; /* of reply_bytes_all */

static uint64_t
flow_word(unsigned calls, size_t bytes)
{
    return (uint64_t)bytes << FLOW_REFS_BITS | calls;
}

void
flow_init(struct conn *c)
{
    atomic_init(&c->held, 1);
    c->calls_max = transport_limits.calls;
    CDS_INIT_LIST_HEAD(&c->stalled);
}

/* References that are no calls. */
static unsigned
other_refs(const struct conn *c)
{
    return OTHER_REFS + atomic_load_explicit(&c->is_kept, memory_order_relaxed);
}

bool
flow_has_calls(const struct conn *c)
{
    unsigned waiting = FLOW_REFS(atomic_load(&c->waiting));

    return FLOW_REFS(atomic_load(&c->held)) > waiting + other_refs(c);
}

unsigned
flow_waiting_calls(const struct conn *c)
{
    return FLOW_REFS(atomic_load(&c->waiting));
}

void
conn_set_calls_max(struct conn *c, unsigned calls)
{
    atomic_store_explicit(&c->calls_max, calls && calls < TRANSPORT_CALLS_MAX ? calls : TRANSPORT_CALLS_MAX,
                          memory_order_relaxed);
}

/* ---- bytes of replies ------------------------------------------------------------------------ */

static size_t
replies_max(const struct conn *c)
{
    if (!conn_has_login(c))
        return transport_limits.reply_bytes_login;
    return transport_limits.reply_bytes_own + atomic_load_explicit(&c->credit, memory_order_relaxed);
}

/* Takes credit until there is room for `bytes` in all; false: no more is left. */
static bool
credit_take_locked(struct conn *c, size_t bytes)
{
    size_t credit = atomic_load_explicit(&c->credit, memory_order_relaxed), more;

    if (transport_limits.reply_bytes_own + credit >= bytes)
        return true;
    more = (bytes - transport_limits.reply_bytes_own - credit + CREDIT - 1) / CREDIT * CREDIT;
    if (atomic_fetch_add(&credit_given, more) + more > transport_limits.reply_bytes_all) {
        atomic_fetch_sub(&credit_given, more);
        return false;
    }
    atomic_store_explicit(&c->credit, credit + more, memory_order_relaxed);
    return true;
}

void
flow_give_credit_locked(struct conn *c)
{
    size_t credit = atomic_load_explicit(&c->credit, memory_order_relaxed);

    if (atomic_load(&c->reserved))
        return;
    atomic_store_explicit(&c->credit, 0, memory_order_relaxed);
    atomic_fetch_sub(&credit_given, credit);
}

/* Whether the peer has to read before more is answered. */
static bool
replies_full_locked(struct conn *c)
{
    size_t bytes = flow_replies(c);

    if (bytes < replies_max(c))
        return bytes >= transport_limits.reply_bytes; /* credit for a large reply is no leave for more */
    return !conn_has_login(c) || bytes >= transport_limits.reply_bytes || !credit_take_locked(c, bytes + 1);
}

bool
flow_replies_full_exactly(struct conn *c)
{
    size_t bytes = flow_replies(c);

    if (bytes < replies_max(c) && bytes < transport_limits.reply_bytes)
        return false;
    pthread_mutex_lock(&c->lock);
    bool is_full = replies_full_locked(c);

    pthread_mutex_unlock(&c->lock);
    return is_full;
}

/* True at half of the bytes that made the replies full. */
static bool
replies_drained(const struct conn *c)
{
    size_t bytes = flow_replies(c), max = replies_max(c);

    return bytes <= (max < transport_limits.reply_bytes ? max : transport_limits.reply_bytes) / 2;
}

int
conn_reserve_reply(struct conn *c, size_t bytes)
{
    int err = 0;

    if (bytes <= TRANSPORT_REPLY_LARGE) {
        atomic_fetch_add(&c->reserved, bytes);
        return 0;
    }
    pthread_mutex_lock(&c->lock);
    if (!credit_take_locked(c, flow_replies(c) + bytes))
        err = -ENOBUFS;
    else
        atomic_fetch_add(&c->reserved, bytes); /* under the lock, or the credit might be given back before */
    pthread_mutex_unlock(&c->lock);
    if (err)
        log_event(LOG_WARNING, NULL, "transport-reply-memory",
                  "no room for a reply of %zu bytes: peers do not read what all connections may hold", bytes);
    return err;
}

void
conn_unreserve_reply(struct conn *c, size_t bytes)
{
    atomic_fetch_sub(&c->reserved, bytes);
    flow_less(c);
}

/* ---- calls and records ----------------------------------------------------------------------- */

static bool
calls_reach(const struct conn *c, uint64_t held, unsigned part)
{
    uint64_t waiting = atomic_load(&c->waiting);
    unsigned max = conn_has_login(c) ? atomic_load_explicit(&c->calls_max, memory_order_relaxed)
                                      : transport_limits.calls_login;
    unsigned refs = FLOW_REFS(held), others = FLOW_REFS(waiting) + other_refs(c);
    size_t bytes = FLOW_BYTES(held), apart = FLOW_BYTES(waiting);

    max = max / part ? max / part : 1;
    return refs >= others + max || bytes >= apart + transport_limits.record_bytes / part;
}

/* For the reader. `held` is the connection's value less the references and bytes that the caller is about to
 * give back. */
static bool
must_wait_locked(struct conn *c, uint64_t held, bool waits)
{
    if (atomic_load(&c->pauses))
        return true;
    if (c->is_dialled) /* this side bounds a dialled connection's replies by its calls */
        return false;
    return waits ? !replies_drained(c) || calls_reach(c, held, 2)
                 : replies_full_locked(c) || calls_reach(c, held, 1);
}

bool
flow_pause_reader_exactly(struct conn *c)
{
    uint64_t held = atomic_load_explicit(&c->held, memory_order_relaxed);
    size_t bytes = flow_replies(c);

    if (!(held & FLOW_READER_WAITS) && !calls_reach(c, held, 1) && bytes < replies_max(c) &&
        bytes < transport_limits.reply_bytes && !atomic_load_explicit(&c->pauses, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&c->lock);
    held = atomic_fetch_or(&c->held, FLOW_READER_WAITS);
    bool pauses = !c->is_dead && must_wait_locked(c, atomic_load(&c->held), held & FLOW_READER_WAITS);

    if (!pauses)
        atomic_fetch_and(&c->held, ~FLOW_READER_WAITS);
    pthread_mutex_unlock(&c->lock);
    return pauses;
}

bool
flow_is_stalled(const struct conn *c)
{
    return atomic_load(&c->held) & FLOW_BATCHES_WAIT;
}

bool
flow_stall(struct conn *c, struct cds_list_head *batch)
{
    pthread_mutex_lock(&c->lock);
    atomic_fetch_or(&c->held, FLOW_BATCHES_WAIT);
    bool stalls = !c->is_dead && replies_full_locked(c);

    if (stalls)
        cds_list_add_tail(batch, &c->stalled);
    else if (cds_list_empty(&c->stalled))
        atomic_fetch_and(&c->held, ~FLOW_BATCHES_WAIT);
    pthread_mutex_unlock(&c->lock);
    return stalls;
}

/* Returns the bits of the waiters that may go on when the caller has given back `word`; moves the batches to
 * `batches`. */
static uint64_t
wake_locked(struct conn *c, uint64_t word, struct cds_list_head *batches)
{
    uint64_t held = atomic_load(&c->held), done = 0;

    if ((held & FLOW_READER_WAITS) && (c->is_dead || !must_wait_locked(c, held - word, true)))
        done |= FLOW_READER_WAITS;
    if ((held & FLOW_BATCHES_WAIT) && (c->is_dead || replies_drained(c))) {
        done |= FLOW_BATCHES_WAIT;
        cds_list_splice(&c->stalled, batches);
        CDS_INIT_LIST_HEAD(&c->stalled);
    }
    if (done)
        atomic_fetch_and(&c->held, ~done);
    return done;
}

/* False: no waiter was woken, and `word` has been given back. The caller has a reference, which may be part
 * of `word`. */
static bool
wake(struct conn *c, uint64_t word, bool gives_back)
{
    CDS_LIST_HEAD(batches);

    pthread_mutex_lock(&c->lock);
    uint64_t done = wake_locked(c, word, &batches);
    bool is_left = !done && gives_back && (atomic_load(&c->held) & FLOW_WAITERS);

    /* Under the lock, and not the last reference: a connection with waiters is not closed. */
    if (is_left)
        atomic_fetch_sub(&c->held, word);
    pthread_mutex_unlock(&c->lock);
    receive_restart_batches(&batches);
    if (done & FLOW_READER_WAITS)
        receive_resume(c);
    return !is_left;
}

void
flow_wake(struct conn *c)
{
    (void)wake(c, 0, false);
}

static void
give_back(struct conn *c, uint64_t word)
{
    uint64_t held = atomic_load_explicit(&c->held, memory_order_relaxed);

    for (;;) {
        if (held & FLOW_WAITERS) {
            if (!wake(c, word, true))
                return;
            held = atomic_load_explicit(&c->held, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak(&c->held, &held, held - word)) {
            assert(FLOW_REFS(held));
            if (FLOW_REFS(held) == 1)
                conn_free(c);
            return;
        }
    }
}

struct conn *
conn_ref(struct conn *c)
{
    uint64_t was = atomic_fetch_add_explicit(&c->held, 1, memory_order_relaxed);

    assert(FLOW_REFS(was) && FLOW_REFS(was) + 1 < 1u << FLOW_REFS_BITS);
    (void)was;
    return c;
}

struct conn *
conn_keep(struct conn *c)
{
    atomic_store_explicit(&c->is_kept, true, memory_order_relaxed);
    return conn_ref(c);
}

void
conn_unref(struct conn *c)
{
    give_back(c, flow_word(1, 0));
}

int
conn_enter_call(struct conn *c, size_t bytes, struct record *r)
{
    if (atomic_load_explicit(&c->is_dead, memory_order_relaxed) || !conn_busy_get(c))
        return -ENOTCONN;
    if (atomic_load(&c->pauses) || calls_reach(c, atomic_load(&c->held), 1) || flow_replies_full(c)) {
        conn_busy_put(c);
        return -EAGAIN;
    }
    *r = (struct record){.bytes = bytes};
    flow_hold_record(c, r);
    return 0;
}

void
conn_count_call(struct conn *c, size_t bytes, struct record *r)
{
    *r = (struct record){.bytes = bytes};
    flow_hold_record(c, r);
}

bool
conn_begin_call(struct conn *c)
{
    return !atomic_load_explicit(&c->is_dead, memory_order_relaxed) && conn_busy_get(c);
}

void
conn_leave_call(struct conn *c)
{
    conn_busy_put(c);
}

/* Copies the record's only piece to a buffer that holds nothing but waiting records, and gives up the
 * record's reference to the receive buffer. Without memory the piece stays where it is. */
static void
copy_apart(struct conn *c, struct record *r)
{
    if (r->count != 1 || r->bytes > APART_BYTES / 4 || r->bufs[0]->size <= APART_BYTES)
        return;
    pthread_mutex_lock(&c->lock);
    if (!c->apart || c->apart->size - c->apart_used < r->bytes) {
        iobuf_unref(c->apart);
        c->apart = iobuf_get(APART_BYTES);
        c->apart_used = 0;
    }
    if (c->apart) {
        char *to = c->apart->bytes + c->apart_used;

        memcpy(to, r->iov[0].iov_base, r->bytes);
        c->apart_used += r->bytes;
        iobuf_unref(r->bufs[0]);
        r->bufs[0] = iobuf_ref(c->apart);
        r->iov[0].iov_base = to;
    }
    pthread_mutex_unlock(&c->lock);
}

static void
waits_no_more(struct conn *c, uint64_t word)
{
    uint64_t was = atomic_fetch_sub(&c->waiting, word);

    if (FLOW_REFS(was) != APART_MIN)
        return;
    pthread_mutex_lock(&c->lock); /* few are left: a connection that has nothing to do keeps no buffer */
    iobuf_unref(c->apart);
    c->apart = NULL;
    pthread_mutex_unlock(&c->lock);
}

bool
record_waits(struct record *r)
{
    struct conn *c = r->conn;
    uint64_t one = flow_word(1, r->bytes), all = atomic_fetch_add(&c->waiting, one) + one;

    assert(!r->is_waiting);
    if (FLOW_REFS(all) > transport_limits.waiting_calls || FLOW_BYTES(all) > transport_limits.waiting_bytes) {
        atomic_fetch_sub(&c->waiting, one);
        return false;
    }
    r->is_waiting = true;
    if (FLOW_REFS(all) > APART_MIN)
        copy_apart(c, r);
    flow_less(c);
    return true;
}

/* The limits are about held - waiting. This difference stays as it is and must not look larger in between,
 * because nothing would wake a waiter that begins to wait then. */
void
record_shrink(struct record *r, struct record *to, size_t bytes)
{
    uint64_t more = flow_word(0, bytes) - flow_word(0, r->bytes);

    *to = (struct record){.bytes = r->bytes, .conn = r->conn, .is_waiting = r->is_waiting};
    r->conn = NULL;
    r->is_waiting = false;
    if (!to->conn || !to->is_waiting)
        return;
    to->bytes = bytes;
    if (bytes < r->bytes)
        atomic_fetch_add(&to->conn->held, more);
    atomic_fetch_add(&to->conn->waiting, more);
    if (bytes > r->bytes)
        atomic_fetch_add(&to->conn->held, more);
}

void
record_release(struct record *r)
{
    struct conn *c = r->conn;
    uint64_t word = flow_word(1, r->bytes);

    for (int i = 0; i < r->count; i++)
        iobuf_unref(r->bufs[i]);
    r->count = 0;
    r->bytes = 0;
    r->conn = NULL;
    if (!c)
        return;
    if (r->is_waiting)
        waits_no_more(c, word);
    r->is_waiting = false;
    give_back(c, word);
}

/* ---- a layer's wish -------------------------------------------------------------------------- */

void
conn_pause(struct conn *c)
{
    atomic_fetch_add(&c->pauses, 1);
}

void
conn_resume(struct conn *c)
{
    unsigned was = atomic_fetch_sub(&c->pauses, 1);

    assert(was);
    (void)was;
    flow_less(c);
}
