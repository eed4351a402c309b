/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on the record layer: a real connection over a socket pair, against a plain reassembly of the
 * same bytes.
 *
 * The input is a list of instructions for a peer: write bytes (in pieces that are received one by one),
 * announce and send whole records, log in. The plain reassembly computes the expected result: records, or the
 * connection's end. Records are compared by their bytes, not by their order, because two workers may run two
 * records at the same time.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "rpc/transport/transport-internal.h"

#define EXPECTED_MAX 4096
#define LAST 0x80000000u
#define FRAGMENTS_MAX 4096
#define FRAGMENTS_MAX_LOGIN 64
#define PATIENCE_NS 120000000000ll

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The records that the connection has handed out. */
static struct {
    pthread_mutex_t lock;
    uint64_t sums[EXPECTED_MAX];
    unsigned count;
    bool is_closed;
} got = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What it should hand out. */
static struct {
    uint64_t sums[EXPECTED_MAX];
    unsigned count;
    bool is_over, is_trusted; /* over: the connection must end */
    bool is_closing;          /* closing by a record; records that came with it may be handed out or not */
    unsigned char mark[4];
    unsigned mark_have, fragments;
    bool is_in_fragment, is_last;
    uint8_t first; /* the first byte of the record under way */
    uint32_t left;
    size_t bytes;
    uint64_t sum;
} want;

static int end;

static uint64_t
add(uint64_t sum, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ b[i]) * 0x100000001b3ull;
    return sum;
}

/* ---- the daemon's side ----------------------------------------------------------------------- */

static int
accepted(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
    return 0;
}

static void
answer(struct conn *c, const struct record *r, uint8_t how)
{
    char small[64] = "an answer";
    struct iobuf *buf;

    switch (how % 4) {
    case 0:
        (void)conn_send(c, small, sizeof small, NULL, NULL, 0);
        break;
    case 1:
        if ((buf = iobuf_get(r->bytes + TRANSPORT_MARK_BYTES)))
            (void)conn_send_iobuf(c, buf, r->bytes);
        break;
    case 2:
        if ((buf = iobuf_get(70000)))
            (void)conn_send(c, small, sizeof small, buf, &(struct iovec){buf->bytes, 70000}, 1);
        break;
    }
}

static void
record(struct conn *c, struct record *r, void *arg)
{
    uint64_t sum = 0;
    size_t bytes = 0;
    uint8_t first = *(uint8_t *)r->iov[0].iov_base;

    (void)arg;
    assert(r->count >= 1 && r->count <= TRANSPORT_IOVS);
    assert(r->iov[0].iov_len >= TRANSPORT_HEAD_BYTES || r->iov[0].iov_len == r->bytes);
    for (int i = 0; i < r->count; i++) {
        sum = add(sum, r->iov[i].iov_base, r->iov[i].iov_len);
        bytes += r->iov[i].iov_len;
    }
    assert(bytes == r->bytes && bytes > 0);
    if (first == 'L')
        conn_set_trusted(c);
    if (first == 'C')
        conn_close(c);
    answer(c, r, first);
    record_release(r);
    pthread_mutex_lock(&got.lock);
    assert(got.count < EXPECTED_MAX);
    got.sums[got.count++] = sum;
    pthread_mutex_unlock(&got.lock);
}

static void
closed(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
    pthread_mutex_lock(&got.lock);
    got.is_closed = true;
    pthread_mutex_unlock(&got.lock);
}

static const struct transport_ops ops = {.accepted = accepted, .record = record, .closed = closed};

static unsigned
got_count(bool *is_closed)
{
    pthread_mutex_lock(&got.lock);
    unsigned n = got.count;
    *is_closed = got.is_closed;
    pthread_mutex_unlock(&got.lock);
    return n;
}

/* ---- by the book ----------------------------------------------------------------------------- */

static void
want_fragment(void)
{
    uint32_t mark = (uint32_t)want.mark[0] << 24 | want.mark[1] << 16 | want.mark[2] << 8 | want.mark[3];
    size_t max = want.is_trusted ? TRANSPORT_RECORD_MAX : TRANSPORT_RECORD_MAX_LOGIN;

    want.mark_have = 0;
    want.is_in_fragment = true;
    want.is_last = mark & LAST;
    want.left = mark & ~LAST;
    want.is_over = want.left > max - want.bytes ||
                   ++want.fragments > (want.is_trusted ? FRAGMENTS_MAX : FRAGMENTS_MAX_LOGIN) ||
                   (want.is_last && want.bytes + want.left == 0);
}

/* Takes at most `n` bytes, up to the end of a record. How many it took. */
static size_t
want_bytes(const uint8_t *data, size_t n)
{
    size_t at = 0;

    while (at < n && !want.is_over) {
        if (!want.is_in_fragment) {
            want.mark[want.mark_have++] = data[at++];
            if (want.mark_have < 4)
                continue;
            want_fragment();
        }
        if (want.is_over)
            break;
        size_t take = n - at < want.left ? n - at : want.left;

        if (take && want.bytes == 0)
            want.first = data[at];
        want.sum = add(want.sum, data + at, take);
        want.bytes += take;
        want.left -= (uint32_t)take;
        at += take;
        if (want.left)
            break;
        want.is_in_fragment = false;
        if (want.is_last) {
            want.sums[want.count++] = want.sum;
            want.is_closing |= want.first == 'C';
            want.sum = want.bytes = want.fragments = 0;
            break;
        }
    }
    return at;
}

/* ---- the peer's side ------------------------------------------------------------------------- */

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Reads all answers, so that the daemon continues to read. */
static void
take_answers(void)
{
    char bytes[65536];

    while (recv(end, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

/* Until the daemon has taken every byte, and every record that is due, or has ended the connection. */
static void
settle(bool takes_answers)
{
    int64_t deadline = now_ns() + PATIENCE_NS;
    unsigned turns = 0;
    bool is_closed;

    for (;;) {
        int unread = 0;
        unsigned n = got_count(&is_closed);

        if (is_closed ||
            (ioctl(end, SIOCOUTQ, &unread) == 0 && unread == 0 && n >= want.count && !want.is_over &&
             !want.is_closing))
            return;
        if (takes_answers)
            take_answers();
        if (++turns > 100)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        if (now_ns() > deadline) {
            fprintf(stderr, "%u records of %u, %d bytes unread, over: %d\n", n, want.count, unread,
                    want.is_over);
            abort();
        }
        sched_yield();
    }
}

static bool
put(const uint8_t *data, size_t n)
{
    while (n) {
        ssize_t done = send(end, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        bool is_closed;

        if (done < 0) {
            got_count(&is_closed);
            if (is_closed || errno != EAGAIN)
                return false;
            take_answers();
            sched_yield();
            continue;
        }
        data += done;
        n -= (size_t)done;
    }
    return true;
}

/* Sends bytes unchanged, in pieces of `step`. The connection receives small pieces one by one. */
static void
say(const uint8_t *data, size_t n, size_t step)
{
    while (n && !want.is_over) {
        size_t piece = n < step ? n : step, took = 0;

        while (took < piece && !want.is_over)
            took += want_bytes(data + took, piece - took);
        if (want.is_over)
            took = piece;
        if (!put(data, took))
            return;
        data += took;
        n -= took;
        if (step < 4096)
            settle(true);
    }
}

/* Sends a record. Waits after a login, as peers wait for the login's answer, because other bounds hold
 * afterwards. */
static void
say_record(uint8_t first, size_t bytes, unsigned fragments, size_t step)
{
    uint8_t *all = malloc(bytes + fragments * 4 + 4), *at = all;
    size_t done = 0;

    for (unsigned i = 0; i < fragments; i++) {
        bool is_last = i == fragments - 1;
        size_t n = is_last ? bytes - done : bytes / fragments;
        uint32_t mark = (uint32_t)n | (is_last ? LAST : 0);

        for (int shift = 24; shift >= 0; shift -= 8)
            *at++ = (uint8_t)(mark >> shift);
        for (size_t k = 0; k < n; k++, done++)
            *at++ = done == 0 ? first : (uint8_t)(done * 7 + bytes);
    }
    bool logs_in = first == 'L' && bytes > 0;

    say(all, (size_t)(at - all), step);
    free(all);
    settle(true);
    if (logs_in && !want.is_over && !want.is_in_fragment)
        want.is_trusted = true;
}

/* Sends many small records in one piece. */
static void
say_burst(uint8_t first, unsigned count)
{
    uint8_t *all = malloc(count * 16u), *at = all;

    for (unsigned i = 0; i < count; i++) {
        unsigned n = 1 + (i + first) % 12;

        memcpy(at, (uint8_t[]){0x80, 0, 0, (uint8_t)n}, 4);
        memset(at + 4, (int)i, n);
        at[4] = first == 'L' ? 0 : first;
        at += 4 + n;
    }
    say(all, (size_t)(at - all), 1 << 20);
    free(all);
}

/* Runs an instruction. Returns the bytes of input used. */
static size_t
obey(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1 << 20, 4096, 1000, 3};
    static const size_t sizes[] = {1, 40, 900, 4095, 4096, 16384, 16385, 70000, 300000};
    uint8_t what = data[0], how = size > 1 ? data[1] : 0;
    size_t n = size > 2 ? (size_t)data[2] + 1 : 0;

    if (size < 3)
        return size;
    switch (what % 4) {
    case 0: /* raw bytes, a record of which may log in only by the other instructions */
        n = n < size - 3 ? n : size - 3;
        if (!memchr(data + 3, 'L', n))
            say(data + 3, n, steps[how % 4]);
        return 3 + n;
    case 1:
        say_record('L', sizes[n % 3], 1 + how % 3, steps[how / 3 % 4]);
        return 3;
    case 2:
        say_burst(how, (unsigned)n);
        return 3;
    default:
        say_record(how, sizes[n % 9], 1 + what / 4 % 60,
                   sizes[n % 9] > 20000 ? 1 << 20 : steps[how / 16 % 4]);
        return 3;
    }
}

/* Each received record must be among the sent records. */
static void
compare(void)
{
    for (unsigned i = 0; i < got.count; i++) {
        unsigned k = 0;

        while (k < want.count && want.sums[k] != got.sums[i])
            k++;
        if (k == want.count) {
            fprintf(stderr, "record %u of %u is none that was sent\n", i, got.count);
            abort();
        }
        want.sums[k] = want.sums[--want.count];
    }
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_set_level(LOG_CRITICAL);
    return mem_pools_init() || iobuf_pools_init() || transport_pools_init() ||
           workers_start(&(struct worker_options){.min = 1, .max = 4});
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];
    bool is_closed;

    memset(&want, 0, sizeof want);
    got.count = 0;
    got.is_closed = false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
        abort();
    end = pair[0];
    if (conn_start(pair[1], &(struct conn_origin){0}, &ops, NULL))
        abort();
    while (size && !want.is_over && !want.is_closing && want.count < EXPECTED_MAX - 300) {
        size_t took = obey(data, size);

        data += took;
        size -= took;
    }
    settle(true);
    bool was_over = want.is_over || want.is_closing;

    shutdown(end, SHUT_WR);
    want.is_over = true; /* from now on it has to end */
    settle(true);
    if (!was_over && got_count(&is_closed) != want.count) {
        fprintf(stderr, "%u records of %u\n", got.count, want.count);
        abort();
    }
    compare();
    close(end);
    return 0;
}
