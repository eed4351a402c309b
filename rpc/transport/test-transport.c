/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* An echo server on this transport, and clients that use plain sockets and know nothing of it. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "event/worker.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "rpc/transport/limits.h"
#include "rpc/transport/transport.h"

#define LAST 0x80000000u
#define CLOSE_ME 0xdeadbeefu /* a record that begins so closes its connection */
#define BLOCK_ME 0xb10cb10cu /* ... blocks its worker until the gate opens */
#define DIFFER 0xd1ffe4edu   /* ... is answered by conn_send() with a payload */
#define AMPLIFY 0xa3b1f15eu  /* ... is answered with AMPLE bytes */
#define KEEP_ME 0x4ee93333u  /* ... is kept until release_kept() */
#define WAIT_ME 0x3a174444u  /* ... is kept, and said to wait for another */
#define PAUSE_ME 0x9a5e5555u /* ... is the last that is read until conn_resume() */
#define AMPLE (1u << 20)

static struct listener *listener, *tcp_listener;
static char dir[64], path[96];
static bool is_trusting, is_dialing_tcp;
static atomic_int accepted_count, closed_count, running_count;
static sem_t gate, blocked;

#define KEPT_MAX 8192
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct record kept[KEPT_MAX];
static unsigned kept_count, kept_ever, refused_count;
static _Atomic(struct conn *) paused_conn;

/* ---- the server ------------------------------------------------------------------------------ */

struct session {
    atomic_int running;
    atomic_bool is_closed;
};

static int
echo_accepted(struct conn *c, void *arg)
{
    ck_assert_ptr_eq(arg, &accepted_count);
    conn_set_user(c, calloc(1, sizeof(struct session)));
    if (is_trusting)
        conn_set_trusted(c);
    accepted_count++;
    return 0;
}

static void
check_shape(const struct record *r)
{
    size_t bytes = 0;

    ck_assert_int_ge(r->count, 1);
    ck_assert_int_le(r->count, TRANSPORT_IOVS);
    ck_assert(r->iov[0].iov_len >= TRANSPORT_HEAD_BYTES || r->iov[0].iov_len == r->bytes);
    for (int i = 0; i < r->count; i++)
        bytes += r->iov[i].iov_len;
    ck_assert_uint_eq(bytes, r->bytes);
}

static void
echo_by_reference(struct conn *c, struct record *r)
{
    size_t head = r->iov[0].iov_len < 100 ? r->iov[0].iov_len : 100;
    struct iobuf *copy = iobuf_get(r->bytes);
    size_t at = 0;

    for (int i = 0; i < r->count; i++) {
        memcpy(copy->bytes + at, r->iov[i].iov_base, r->iov[i].iov_len);
        at += r->iov[i].iov_len;
    }
    size_t half = head + (r->bytes - head) / 2;
    struct iovec payload[2] = {{copy->bytes + head, half - head}, {copy->bytes + half, r->bytes - half}};

    conn_send(c, r->iov[0].iov_base, head, copy, payload, 2);
}

static unsigned
kept_now(void)
{
    pthread_mutex_lock(&kept_lock);
    unsigned n = kept_count;
    pthread_mutex_unlock(&kept_lock);
    return n;
}

static unsigned
kept_so_far(void)
{
    pthread_mutex_lock(&kept_lock);
    unsigned n = kept_ever;
    pthread_mutex_unlock(&kept_lock);
    return n;
}

static void
release_kept(unsigned leaves)
{
    pthread_mutex_lock(&kept_lock);
    while (kept_count > leaves) {
        struct record r = kept[--kept_count];

        pthread_mutex_unlock(&kept_lock);
        record_release(&r);
        pthread_mutex_lock(&kept_lock);
    }
    pthread_mutex_unlock(&kept_lock);
}

/* True: the record is kept, or has been answered otherwise. */
static bool
is_special(struct conn *c, struct record *r, uint32_t word)
{
    struct iobuf *ample;

    switch (word) {
    case WAIT_ME:
    case KEEP_ME:
        pthread_mutex_lock(&kept_lock);
        bool is_kept = kept_count < KEPT_MAX && (word == KEEP_ME || record_waits(r));

        if (is_kept) {
            kept[kept_count++] = *r;
            kept_ever++;
        }
        else
            refused_count++;
        pthread_mutex_unlock(&kept_lock);
        return is_kept;
    case AMPLIFY:
        if (conn_reserve_reply(c, AMPLE))
            return false;
        ample = iobuf_get(AMPLE);
        memset(ample->bytes, 'a', AMPLE);
        conn_send(c, "", 0, ample, &(struct iovec){ample->bytes, AMPLE}, 1);
        conn_unreserve_reply(c, AMPLE);
        record_release(r);
        return true;
    case PAUSE_ME:
        conn_pause(c);
        atomic_store(&paused_conn, conn_ref(c));
        return false;
    default:
        return false;
    }
}

static void
echo_record(struct conn *c, struct record *r, void *arg)
{
    struct session *s = conn_user(c);
    uint32_t word = 0;

    (void)arg;
    running_count++;
    s->running++;
    ck_assert(!s->is_closed);
    check_shape(r);
    memcpy(&word, r->iov[0].iov_base, r->bytes < 4 ? r->bytes : 4);
    if (word == CLOSE_ME)
        conn_close(c);
    if (word == BLOCK_ME) {
        sem_post(&blocked);
        while (sem_wait(&gate) && errno == EINTR)
            ;
    }
    if (is_special(c, r, word)) {
        s->running--;
        running_count--;
        return;
    }
    if (word == DIFFER) {
        echo_by_reference(c, r);
    } else {
        struct iobuf *copy = iobuf_get(TRANSPORT_MARK_BYTES + r->bytes);
        size_t at = TRANSPORT_MARK_BYTES;

        for (int i = 0; i < r->count; i++) {
            memcpy(copy->bytes + at, r->iov[i].iov_base, r->iov[i].iov_len);
            at += r->iov[i].iov_len;
        }
        if (r->bytes < 2000) {
            conn_send(c, copy->bytes + TRANSPORT_MARK_BYTES, r->bytes, NULL, NULL, 0);
            iobuf_unref(copy);
        } else {
            conn_send_iobuf(c, copy, r->bytes);
        }
    }
    record_release(r);
    s->running--;
    running_count--;
}

static void
echo_closed(struct conn *c, void *arg)
{
    struct session *s = conn_user(c);

    (void)arg;
    ck_assert_int_eq(s->running, 0);
    ck_assert(!s->is_closed);
    s->is_closed = true;
    ck_assert_int_eq(conn_send(c, "late", 4, NULL, NULL, 0), -ENOTCONN);
    free(s);
    closed_count++;
}

static const struct transport_ops echo_ops = {echo_accepted, echo_record, echo_closed};

static void
start(bool trusting)
{
    int err = 0;

    is_trusting = trusting;
    sem_init(&gate, 0, 0);
    sem_init(&blocked, 0, 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 4}), 0);
    strcpy(dir, "/tmp/test-transport-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    listener = listener_open_unix(path, &echo_ops, &accepted_count, &err);
    ck_assert_ptr_nonnull(listener);
    tcp_listener = listener_open_tcp("127.0.0.1", 0, &echo_ops, &accepted_count, &err);
    ck_assert_ptr_nonnull(tcp_listener);
}

/* Or the sweeper opens files of its own when it comes to run, and takes what a test has left for the
 * listener. */
static void
sweeper_opens_nothing(void)
{
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
}

static void
setup_trusting(void)
{
    sweeper_opens_nothing();
    start(true);
}

static void
setup_before_login(void)
{
    sweeper_opens_nothing();
    start(false);
}

static void
teardown(void)
{
    listener_close(listener);
    listener_close(tcp_listener);
    transport_close_all();
    ck_assert_int_eq(accepted_count, closed_count);
    workers_stop();
    ck_assert_int_ne(access(path, F_OK), 0);
    rmdir(dir);
    mem_pools_fini();
}

/* ---- the clients ----------------------------------------------------------------------------- */

static int
dial_tcp(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int
dial(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (is_dialing_tcp)
        return dial_tcp(listener_port(tcp_listener));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    strcpy(a.sun_path, path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void
wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    ck_assert_int_eq(poll(&p, 1, 60000), 1);
}

/* False at the end of the stream. */
static bool
read_all(int fd, void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        wait_readable(fd);
        ssize_t n = read(fd, (char *)to + at, bytes - at);

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool
write_all(int fd, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(fd, (const char *)from + at, bytes - at, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static void
put_mark(void *at, uint32_t mark)
{
    mark = htonl(mark);
    memcpy(at, &mark, 4);
}

/* A record with its mark: `word`, then bytes that follow from `seed`. To be freed. */
static char *
make_record(uint32_t word, size_t bytes, unsigned seed)
{
    char *r = malloc(4 + bytes);

    put_mark(r, LAST | (uint32_t)bytes);
    for (size_t i = 0; i < bytes; i++)
        r[4 + i] = (char)(seed + i * 7 + i / 251);
    if (word)
        memcpy(r + 4, &word, bytes < 4 ? bytes : 4);
    return r;
}

static void
expect(int fd, const char *record, size_t bytes)
{
    char *got = malloc(4 + bytes);

    ck_assert(read_all(fd, got, 4 + bytes));
    ck_assert_mem_eq(got, record, 4 + bytes);
    free(got);
}

static void
round_trip(int fd, uint32_t word, size_t bytes, unsigned seed)
{
    char *r = make_record(word, bytes, seed);

    ck_assert(write_all(fd, r, 4 + bytes));
    expect(fd, r, bytes);
    free(r);
}

static void
expect_end(int fd)
{
    char byte;

    wait_readable(fd);
    ck_assert_int_le(read(fd, &byte, 1), 0);
    close(fd);
}

static void
wait_count(atomic_int *count, int wanted)
{
    struct timespec nap = {.tv_nsec = 1000000};

    for (int i = 0; *count != wanted && i < 60000; i++)
        nanosleep(&nap, NULL);
    ck_assert_int_eq(*count, wanted);
}

static void
wait_connections_left(unsigned wanted)
{
    struct timespec nap = {.tv_nsec = 1000000};

    for (int i = 0; transport_connections_left() != wanted && i < 60000; i++)
        nanosleep(&nap, NULL);
    ck_assert_uint_eq(transport_connections_left(), wanted);
}

/* Returns when the server has it: two that merely dial one after the other may come in the other order, when
 * the kernel leaves the end of the handshakes to its threads. */
static int
dial_in_order(void)
{
    int before = accepted_count, fd = dial();

    wait_count(&accepted_count, before + 1);
    return fd;
}

/* ---- records --------------------------------------------------------------------------------- */

START_TEST(sizes_and_both_ways_to_answer)
{
    static const size_t sizes[] = {1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   100,
                                   2000,
                                   4095,
                                   4096,
                                   4097,
                                   16380,
                                   16384,
                                   65536,
                                   131072 + 200,
                                   1 << 20,
                                   (1 << 20) + 4096 - 4,
                                   (3 << 20) + 1,
                                   10 << 20,
                                   TRANSPORT_RECORD_MAX};
    int fd = dial();

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        round_trip(fd, 0, sizes[i], (unsigned)i);
        if (sizes[i] < 4 << 20)
            round_trip(fd, DIFFER, sizes[i], (unsigned)i);
    }
    close(fd);
    wait_count(&closed_count, 1);
}
END_TEST

START_TEST(tcp_and_peer_address)
{
    int err;
    struct listener *tcp = listener_open_tcp("127.0.0.1", 0, &echo_ops, &accepted_count, &err);
    struct listener *any = listener_open_tcp(NULL, 0, &echo_ops, &accepted_count, &err);

    ck_assert_ptr_nonnull(tcp);
    ck_assert_ptr_nonnull(any);
    ck_assert_ptr_null(listener_open_tcp("127.0.0.1", listener_port(tcp), &echo_ops, NULL, &err));
    ck_assert_int_eq(err, -EADDRINUSE);
    int fd = dial_tcp(listener_port(tcp)), fd2 = dial_tcp(listener_port(any));

    for (unsigned i = 0; i < 20; i++) {
        round_trip(fd, DIFFER, 300000, i);
        round_trip(fd2, 0, 100 * i + 1, i);
    }
    listener_close(tcp);
    round_trip(fd, 0, 77, 1); /* open connections stay */
    close(fd);
    close(fd2);
    listener_close(any);
}
END_TEST

START_TEST(many_small_records_in_one_write)
{
    enum { N = 1000, BYTES = 100 };
    int fd = dial();
    char *all = malloc(N * (4 + BYTES));

    for (unsigned i = 0; i < N; i++) {
        char *r = make_record(0, BYTES, i);

        memcpy(all + i * (4 + BYTES), r, 4 + BYTES);
        free(r);
    }
    ck_assert(write_all(fd, all, N * (4 + BYTES)));

    /* Batches may overtake each other: every record comes back once, in any order. */
    bool seen[256] = {false};
    int total = 0;

    for (unsigned i = 0; i < N; i++) {
        char got[4 + BYTES];

        ck_assert(read_all(fd, got, sizeof got));
        char *want = make_record(0, BYTES, (unsigned char)got[4]);

        ck_assert_mem_eq(got, want, sizeof got);
        seen[(unsigned char)got[4]] = true;
        free(want);
        total++;
    }
    for (int i = 0; i < 256; i++)
        ck_assert(seen[i]);
    ck_assert_int_eq(total, N);
    free(all);
    close(fd);
}
END_TEST

START_TEST(split_at_every_byte)
{
    enum { BYTES = 40 };
    int fd = dial();
    char *a = make_record(0, BYTES, 1), *b = make_record(0, BYTES, 2), both[2 * (4 + BYTES)];

    memcpy(both, a, 4 + BYTES);
    memcpy(both + 4 + BYTES, b, 4 + BYTES);
    for (size_t split = 1; split < sizeof both; split++) {
        struct timespec nap = {.tv_nsec = 200000};

        ck_assert(write_all(fd, both, split));
        if (split >= 4 + BYTES)
            expect(fd, a, BYTES);
        else
            nanosleep(&nap, NULL); /* most likely read in two parts; right either way */
        ck_assert(write_all(fd, both + split, sizeof both - split));
        if (split < 4 + BYTES)
            expect(fd, a, BYTES);
        expect(fd, b, BYTES);
    }
    free(a);
    free(b);
    close(fd);
}
END_TEST

static void
send_in_fragments(int fd, const char *record, size_t bytes, size_t fragment)
{
    for (size_t at = 0; at < bytes; at += fragment) {
        size_t n = bytes - at < fragment ? bytes - at : fragment;
        char mark[4];

        put_mark(mark, (uint32_t)n | (at + n == bytes ? LAST : 0));
        ck_assert(write_all(fd, mark, 4));
        ck_assert(write_all(fd, record + 4 + at, n));
    }
}

START_TEST(fragments_are_joined)
{
    static const struct {
        size_t bytes, fragment;
    } cases[] = {{10, 1}, {100, 3}, {5000, 7}, {65536, 4096}, {1 << 20, 1000}, {10 << 20, 100000}, {4000, 1}};
    int fd = dial();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *r = make_record(0, cases[i].bytes, (unsigned)i);

        send_in_fragments(fd, r, cases[i].bytes, cases[i].fragment);
        expect(fd, r, cases[i].bytes);
        free(r);
        round_trip(fd, 0, 50, (unsigned)i);
    }
    ck_assert(write_all(fd, "\0\0\0\0\0\0\0\0", 8)); /* empty ones, then one that is not */
    round_trip(fd, 0, 20, 0);
    close(fd);
}
END_TEST

/* A reader on a thread of its own, so that neither side waits for the other. */
struct storm {
    int fd;
    unsigned seed;
    size_t total;
    size_t sizes[200];
};

static void *
storm_writer(void *arg)
{
    struct storm *s = arg;
    unsigned random = s->seed;

    for (unsigned i = 0; i < 200; i++) {
        char *r = make_record(i % 3 ? 0 : DIFFER, s->sizes[i], i);

        for (size_t at = 0; at < 4 + s->sizes[i];) {
            size_t n = 1 + (size_t)rand_r(&random) % (rand_r(&random) % 4 ? 60000 : 10);

            if (n > 4 + s->sizes[i] - at)
                n = 4 + s->sizes[i] - at;
            ck_assert(write_all(s->fd, r + at, n));
            at += n;
        }
        free(r);
    }
    return NULL;
}

/* Records of random sizes in random portions; each comes back whole. */
START_TEST(random_portions)
{
    struct storm s = {.seed = (unsigned)_i + 1};
    pthread_t writer;
    size_t want = 0, got = 0;
    unsigned random = s.seed + 1000;

    is_dialing_tcp = _i % 2;
    s.fd = dial();
    for (unsigned i = 0; i < 200; i++) {
        s.sizes[i] = 4 + (size_t)rand_r(&random) % (i % 20 == 0 ? 600000 : i % 5 == 0 ? 20000 : 300);
        want += s.sizes[i];
    }
    pthread_create(&writer, NULL, storm_writer, &s);
    for (unsigned i = 0; i < 200; i++) {
        char mark[4];
        uint32_t bytes;

        ck_assert(read_all(s.fd, mark, 4));
        memcpy(&bytes, mark, 4);
        bytes = ntohl(bytes) & ~LAST;
        char *body = malloc(bytes);

        ck_assert(read_all(s.fd, body, bytes));
        bool is_whole = true;

        for (size_t k = 5; k < bytes; k++) /* the pattern, whatever its seed */
            is_whole &= (char)(body[k] - (char)(k * 7 + k / 251)) == (char)(body[4] - (char)28);
        ck_assert(is_whole);
        got += bytes;
        free(body);
    }
    ck_assert_uint_eq(got, want);
    pthread_join(writer, NULL);
    close(s.fd);
}
END_TEST

START_TEST(record_behind_one_that_blocks)
{
    int fd = dial();
    char *all[3] = {make_record(0, 30, 1), make_record(BLOCK_ME, 30, 2), make_record(0, 30, 3)},
         three[3 * 34];

    for (int i = 0; i < 3; i++)
        memcpy(three + 34 * i, all[i], 34);
    ck_assert(write_all(fd, three, sizeof three));
    expect(fd, all[0], 30);
    expect(fd, all[2], 30); /* while the second is stuck */
    round_trip(fd, 0, 30, 4);
    sem_post(&gate);
    expect(fd, all[1], 30);
    for (int i = 0; i < 3; i++)
        free(all[i]);
    close(fd);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

static void
expect_refused(const void *bytes, size_t n)
{
    int fd = dial();

    ck_assert(write_all(fd, bytes, n));
    expect_end(fd);
}

START_TEST(bounds_before_login)
{
    int fd = dial();

    round_trip(fd, 0, TRANSPORT_RECORD_MAX_LOGIN, 1);
    round_trip(fd, DIFFER, TRANSPORT_RECORD_MAX_LOGIN - 1, 1);
    char *r = make_record(0, TRANSPORT_RECORD_MAX_LOGIN, 9);

    send_in_fragments(fd, r, TRANSPORT_RECORD_MAX_LOGIN, 1000);
    expect(fd, r, TRANSPORT_RECORD_MAX_LOGIN);
    free(r);
    expect_refused("\xc0\0\0\0", 4);         /* 1 GiB */
    expect_refused("\x80\x00\x40\x01", 4);   /* 16 KiB and 1 */
    expect_refused("\x00\x00\x40\x01", 4);   /* the same, not the last fragment */
    round_trip(fd, 0, 10, 2);
    close(fd);
}
END_TEST

START_TEST(bounds_after_login)
{
    static char marks[4 * 5000], two[8 + 100];

    expect_refused("\xff\xff\xff\xff", 4);
    expect_refused("\x84\x00\x00\x01", 4); /* 64 MiB and 1 */
    expect_refused("\x80\0\0\0", 4);       /* an empty record */
    put_mark(two, 100);
    put_mark(two + 104, LAST | TRANSPORT_RECORD_MAX); /* the sum is too long */
    expect_refused(two, sizeof two);
    int fd = dial();

    write_all(fd, marks, sizeof marks); /* fragments without end */
    expect_end(fd);
}
END_TEST

START_TEST(peer_leaves_in_mid_record)
{
    char *r = make_record(0, 1 << 20, 1);

    for (unsigned i = 0; i < 30; i++) {
        int fd = dial();

        ck_assert(write_all(fd, r, i < 6 ? i : i * 30000));
        close(fd);
    }
    free(r);
    wait_count(&closed_count, 30);
}
END_TEST

START_TEST(server_closes)
{
    for (unsigned i = 0; i < 20; i++) {
        int fd = dial();
        char *last = make_record(CLOSE_ME, 30, 0);

        round_trip(fd, 0, 30, i);
        ck_assert(write_all(fd, last, 34));
        free(last);
        expect_end(fd);
    }
    wait_count(&closed_count, 20);
}
END_TEST

/* Requests without end from a peer that reads nothing: the server stops reading, and goes on when the peer
 * reads. */
START_TEST(peer_that_does_not_read)
{
    is_dialing_tcp = _i;

    enum { BYTES = 100000 };
    char *r = make_record(0, BYTES, 3);
    int fd = dial();
    size_t sent = 0, full = 0;
    struct timespec nap = {.tv_nsec = 20000000};

    /* Until nothing has moved for 200 ms; but as long as that is less than the server must take, it is only
     * slow. */
    while (full < 10 || sent <= 4u << 20) {
        size_t at = sent % (4 + BYTES);
        ssize_t n = send(fd, r + at, 4 + BYTES - at, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0) {
            sent += (size_t)n;
            full = 0;
        } else {
            full++;
            nanosleep(&nap, NULL);
        }
        ck_assert_uint_lt(sent, 64u << 20);
    }
    ck_assert_uint_gt(sent, 4u << 20);
    struct transport_stats stats;

    transport_stats(&stats);
    ck_assert_uint_le(stats.bytes_in, 20u << 20);
    for (size_t i = 0; i < sent / (4 + BYTES); i++)
        expect(fd, r, BYTES);
    size_t rest = sent % (4 + BYTES);

    if (rest) {
        ck_assert(write_all(fd, r + rest, 4 + BYTES - rest));
        expect(fd, r, BYTES);
    }
    round_trip(fd, 0, 200, 9);
    close(fd);
    free(r);
}
END_TEST

START_TEST(peer_that_does_not_read_leaves)
{
    is_dialing_tcp = _i;

    char *r = make_record(0, 100000, 3);

    for (int i = 0; i < 5; i++) {
        int fd = dial();

        for (int k = 0; k < 400; k++) {
            if (send(fd, r, 100004, MSG_NOSIGNAL | MSG_DONTWAIT) != 100004)
                break; /* the server has stopped reading, or has some more to do */
        }
        close(fd);
    }
    wait_count(&closed_count, 5);
    free(r);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

/* `count` records of 64 bytes that begin with `word`, in one write if the socket has room. */
static void
send_many(int fd, uint32_t word, unsigned count)
{
    char *one = make_record(word, 64, 5), *all = malloc((size_t)count * 68);

    for (unsigned i = 0; i < count; i++)
        memcpy(all + (size_t)i * 68, one, 68);
    ck_assert(write_all(fd, all, (size_t)count * 68));
    free(all);
    free(one);
}

static uint64_t
records_so_far(void)
{
    struct transport_stats stats;

    transport_stats(&stats);
    return stats.records;
}

/* Until it has not changed for a while; only what must not become more is asked this way. */
static uint64_t
records_settled(uint64_t at_least)
{
    struct timespec nap = {.tv_nsec = 10000000};
    uint64_t was = 0;

    for (int same = 0; same < 10 || was < at_least;) {
        uint64_t is = records_so_far();

        same = is == was ? same + 1 : 0;
        was = is;
        nanosleep(&nap, NULL);
    }
    return was;
}

/* A few hundred bytes that ask for 200 MiB: what has been read waits until the peer reads. */
START_TEST(replies_are_bounded_within_a_batch)
{
    enum { ASKED = 200 };
    struct timespec nap = {.tv_nsec = 200000000};
    struct transport_stats stats;
    char *got = malloc(4 + AMPLE);
    int fd = dial();

    send_many(fd, AMPLIFY, ASKED);
    records_settled(1);
    nanosleep(&nap, NULL);
    transport_stats(&stats);
    ck_assert_uint_ge(stats.messages, transport_limits.reply_bytes / AMPLE);
    /* What the socket took (some MiB), what the connection may hold, and one more of each worker. */
    ck_assert_uint_le(stats.messages, transport_limits.reply_bytes / AMPLE + 20);
    for (unsigned i = 0; i < ASKED; i++)
        ck_assert(read_all(fd, got, 4 + AMPLE));
    round_trip(fd, 0, 200, 9);
    close(fd);
    free(got);
}
END_TEST

/* The same, and the peer leaves: what was not begun is not kept. */
START_TEST(peer_leaves_while_batches_wait)
{
    is_dialing_tcp = _i;
    for (unsigned i = 0; i < 4; i++) {
        int fd = dial();

        send_many(fd, AMPLIFY, 100);
        records_settled(1);
        close(fd);
        wait_count(&closed_count, (int)i + 1);
    }
}
END_TEST

/* All peers together: when their share is used up each still gets its own. */
START_TEST(a_connection_goes_on_when_all_have_too_much)
{
    enum { PEERS = 6, ASKED = 40 };
    char *got = malloc(4 + AMPLE);
    int fds[PEERS];

    transport_limits.reply_bytes_all = 2u << 20;
    for (unsigned i = 0; i < PEERS; i++)
        send_many(fds[i] = dial(), AMPLIFY, ASKED);
    records_settled(PEERS);
    for (unsigned i = 0; i < PEERS; i++)
        for (unsigned k = 0; k < ASKED; k++)
            ck_assert(read_all(fds[i], got, 4 + AMPLE));
    for (unsigned i = 0; i < PEERS; i++) {
        round_trip(fds[i], 0, 200, i);
        close(fds[i]);
    }
    free(got);
}
END_TEST

/* A reply above a MiB is refused when there is no share for it, and is not when there is again. */
START_TEST(large_replies_need_their_share)
{
    int fd = dial();
    size_t large = 3u << 20;

    round_trip(fd, PAUSE_ME, 64, 1);
    struct conn *c = atomic_load(&paused_conn);

    transport_limits.reply_bytes_all = 8u << 20;
    ck_assert_int_eq(conn_reserve_reply(c, large), 0);
    ck_assert_int_eq(conn_reserve_reply(c, large), 0);
    ck_assert_int_eq(conn_reserve_reply(c, large), -ENOBUFS);
    ck_assert_int_eq(conn_reserve_reply(c, 1000), 0);
    conn_unreserve_reply(c, 1000);
    conn_unreserve_reply(c, large);
    ck_assert_int_eq(conn_reserve_reply(c, large), 0);
    conn_unreserve_reply(c, large);
    conn_unreserve_reply(c, large);
    conn_resume(c);
    conn_unref(c);
    close(fd);
}
END_TEST

START_TEST(calls_under_way_are_bounded)
{
    int fd = dial();

    send_many(fd, KEEP_ME, 3000);
    uint64_t got = records_settled(transport_limits.calls);

    ck_assert_uint_le(got, transport_limits.calls + 64);
    release_kept(transport_limits.calls - 100); /* not half of them: nothing happens */
    ck_assert_uint_eq(records_settled(got), got);
    while (records_so_far() < 3000 || kept_now())
        release_kept(0);
    round_trip(fd, 0, 200, 9);
    ck_assert_uint_eq(records_so_far(), 3001);
    close(fd);
}
END_TEST

START_TEST(one_call_at_a_time_before_login)
{
    int fd = dial();

    send_many(fd, KEEP_ME, 300);
    ck_assert_uint_le(records_settled(1), 64); /* a batch */
    while (kept_so_far() < 300 || kept_now()) /* those that were cut and not begun are not released yet */
        release_kept(0);
    round_trip(fd, 0, 200, 9);
    close(fd);
}
END_TEST

/* A record that has been cut may not have been begun yet. */
static void
wait_kept(unsigned count)
{
    while (kept_now() != count)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* What waits for another call does not keep that one from being read; too many of the kind are refused. */
START_TEST(calls_that_wait_are_counted_apart)
{
    int fd = dial();

    transport_limits.waiting_calls = 2500;
    send_many(fd, WAIT_ME, 2500);
    wait_kept(2500);
    round_trip(fd, 0, 200, 9);
    round_trip(fd, WAIT_ME, 64, 5); /* refused: here that means echoed */
    ck_assert_uint_eq(refused_count, 1);
    release_kept(0);
    send_many(fd, WAIT_ME, 10);
    wait_kept(10);
    round_trip(fd, 0, 200, 9);
    close(fd);
    release_kept(0);
}
END_TEST

START_TEST(a_paused_connection_is_not_read)
{
    int fd = dial();

    round_trip(fd, PAUSE_ME, 64, 1);
    struct conn *c = atomic_load(&paused_conn);

    conn_pause(c); /* twice */
    send_many(fd, 0, 100);
    ck_assert_uint_eq(records_settled(1), 1);
    conn_resume(c);
    ck_assert_uint_eq(records_settled(1), 1);
    conn_resume(c);
    conn_unref(c);
    ck_assert_uint_eq(records_settled(101), 101);
    close(fd);
}
END_TEST

/* Over TCP silence ends at the deadline; a connection of a unix socket may stay, and so may one that has
 * logged in. */
START_TEST(strangers_have_a_deadline)
{
    int quiet, local;

    transport_limits.login_ms = 100;
    is_dialing_tcp = false;
    local = dial();
    is_dialing_tcp = true;
    quiet = dial();
    expect_end(quiet);
    for (int i = 0; i < 50; i++)
        expect_end(dial());
    is_trusting = true;
    int member = dial();

    round_trip(member, 0, 200, 1);
    is_trusting = false;
    expect_end(dial());
    round_trip(member, 0, 200, 2);
    round_trip(local, 0, 200, 3);
    close(member);
    close(local);
}
END_TEST

/* Strangers that hold buffers: over the bound of all the oldest holder goes, whoever comes next is served. */
START_TEST(strangers_share_their_memory)
{
    enum { HOLDERS = 40 };
    char *r = make_record(0, TRANSPORT_RECORD_MAX_LOGIN, 1);
    int fds[HOLDERS];

    transport_limits.login_bytes_all = 10 * 16384;
    is_dialing_tcp = true;
    for (int i = 0; i < HOLDERS; i++) {
        struct transport_stats stats;

        fds[i] = dial();
        ck_assert(write_all(fds[i], r, 12000));
        do /* one after the other, or it is chance who is the oldest that holds some */
            transport_stats(&stats);
        while (stats.bytes_in < (uint64_t)(i + 1) * 12000);
    }
    int fd = dial();

    round_trip(fd, 0, 200, 3);
    wait_count(&closed_count, HOLDERS - 9); /* room for ten, and this one took some for a moment */
    for (int i = 0; i < HOLDERS - 9; i++)
        expect_end(fds[i]);
    round_trip(fd, 0, 200, 4);
    for (int i = HOLDERS - 9; i < HOLDERS; i++)
        close(fds[i]);
    close(fd);
    free(r);
}
END_TEST

static void
setup_few_descriptors(void)
{
    struct rlimit few = {.rlim_cur = 400, .rlim_max = 400};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    setup_before_login();
    /* on a busy machine the half minute is over before 150 have dialled */
    transport_limits.login_ms = 3600 * 1000;
    is_dialing_tcp = true;
}

/* 200 connections in all, 25 of them without a login, each address as many as are left: the clients here have
 * one address. */
START_TEST(descriptors_are_shared)
{
    int fds[150], quiet[60];

    for (int i = 0; i < 60; i++)
        quiet[i] = dial_in_order();
    wait_connections_left(175); /* the oldest 35 have gone */
    for (int i = 0; i < 35; i++)
        expect_end(quiet[i]);
    is_trusting = true;
    round_trip(fds[0] = dial(), 0, 200, 1);
    wait_connections_left(175); /* it has the place of one more without a login */
    for (int i = 1; i < 76; i++)
        round_trip(fds[i] = dial(), 0, 200, 1);
    ck_assert_uint_eq(transport_connections_left(), 100);
    for (int i = 0; i < 5; i++)
        expect_end(dial());
    close(quiet[59]);
    wait_connections_left(101);
    round_trip(fds[76] = dial(), 0, 200, 1);
    for (int i = 0; i <= 76; i++)
        close(fds[i]);
    for (int i = 35; i < 59; i++)
        close(quiet[i]);
}
END_TEST

static void *
close_storm(void *arg)
{
    unsigned random = (unsigned)(size_t)arg;

    for (int round = 0; round < 6; round++) {
        int fds[25];

        for (int i = 0; i < 25; i++) {
            char *r = make_record(rand_r(&random) % 8 ? 0 : CLOSE_ME, 3000, random);

            fds[i] = dial();
            for (int k = 0; k < 3; k++)
                write_all(fds[i], r, 3004);
            free(r);
        }
        for (int i = 0; i < 25; i++) {
            char got[100];

            struct linger reset = {.l_onoff = 1};

            if (rand_r(&random) % 2)
                (void)!read(fds[i], got, sizeof got);
            if (rand_r(&random) % 4 == 0) /* TCP: a reset instead of an orderly end */
                setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            close(fds[i]);
        }
    }
    return NULL;
}

START_TEST(storm_of_connections)
{
    is_dialing_tcp = _i;

    pthread_t thread[4];

    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, close_storm, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    wait_count(&accepted_count, 600);
    wait_count(&closed_count, 600);
}
END_TEST

START_TEST(shutdown_with_work_in_flight)
{
    int fds[10];
    char *block = make_record(BLOCK_ME, 30, 2), *half = make_record(0, 200000, 2);

    for (int i = 0; i < 10; i++) {
        fds[i] = dial();
        ck_assert(write_all(fds[i], block, 34));
        ck_assert(write_all(fds[i], half, 60000));
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(sem_wait(&blocked), 0);
    for (int i = 0; i < 10; i++)
        sem_post(&gate);
    teardown(); /* while the ten run or have half a record */
    for (int i = 0; i < 10; i++)
        close(fds[i]);
    free(block);
    free(half);
    start(true);
    int fd = dial();

    round_trip(fd, 0, 100, 1);
    close(fd);
}
END_TEST

/* Nobody holds a descriptor for a moment. */
static void
wait_workers_idle(void)
{
    struct timespec nap = {.tv_nsec = 1000000};
    struct worker_stats w = {0};

    for (int i = 0; i < 60000; i++) {
        worker_stats(&w);
        if (w.waiting == w.threads)
            return;
        nanosleep(&nap, NULL);
    }
    ck_abort_msg("%u of %u workers wait", w.waiting, w.threads);
}

/* The listener holds a descriptor for a moment when it asks for a connection that is not there, and when it
 * has given up its spare one. */
static int
socket_when_there_is_one(void)
{
    struct timespec nap = {.tv_nsec = 1000000};
    int fd = -1;

    for (int i = 0; i < 60000 && (fd = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 && errno == EMFILE; i++)
        nanosleep(&nap, NULL);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* The listener gives up its spare descriptor to turn the client away, and works again when there are some. */
START_TEST(no_descriptors_left)
{
    struct rlimit files = {.rlim_cur = 200, .rlim_max = 200};
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fillers[200], count = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0), kept = dial();

    strcpy(a.sun_path, path);
    round_trip(kept, 0, 30, 1);
    wait_workers_idle();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    while ((fillers[count] = dup(0)) >= 0)
        count++;
    ck_assert_int_eq(errno, EMFILE);
    log_set_level(LOG_NONE);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
        expect_end(fd);
        fd = socket_when_there_is_one();
    }
    close(fd);
    round_trip(kept, 0, 30, 2);
    while (count)
        close(fillers[--count]);
    fd = dial();
    round_trip(fd, 0, 30, 3);
    close(fd);
    close(kept);
}
END_TEST

/* Small records between large ones are moved to a buffer of their own. */
START_TEST(small_between_large)
{
    int fd = dial();

    for (unsigned i = 0; i < 10; i++) {
        char *large = make_record(0, 200000, i), *small = make_record(0, 300, i), *all = malloc(200004 + 304);

        memcpy(all, large, 200004);
        memcpy(all + 200004, small, 304);
        ck_assert(write_all(fd, all, 200004));
        expect(fd, large, 200000);
        ck_assert(write_all(fd, small, 304));
        expect(fd, small, 300);
        ck_assert(write_all(fd, all + 200004, 304));
        ck_assert(write_all(fd, small, 304));
        expect(fd, small, 300);
        expect(fd, small, 300);
        free(large);
        free(small);
        free(all);
    }
    close(fd);
}
END_TEST

START_TEST(stale_socket_is_replaced_and_live_one_is_not)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char other[108];
    int err, fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(other, sizeof other, "%s/other", dir);
    strcpy(a.sun_path, other);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    struct listener *l = listener_open_unix(other, &echo_ops, &accepted_count, &err);

    ck_assert_ptr_nonnull(l);
    ck_assert_ptr_null(listener_open_unix(other, &echo_ops, &accepted_count, &err));
    ck_assert_int_eq(err, -EADDRINUSE);
    listener_close(l);
}
END_TEST

/* Who looks for the process finds the name as long as it lives; a name that another process has taken is left
 * to it. */
START_TEST(socket_file_stays_until_the_listener_is_closed)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[108];
    int err, fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(name, sizeof name, "%s/kept", dir);
    strcpy(a.sun_path, name);
    struct listener *l = listener_open_unix(name, &echo_ops, &accepted_count, &err);
    ck_assert_ptr_nonnull(l);
    listener_stop(l);
    ck_assert_int_eq(access(name, F_OK), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    listener_close(l);
    ck_assert_int_eq(access(name, F_OK), -1);

    ck_assert_ptr_nonnull(l = listener_open_unix(name, &echo_ops, &accepted_count, &err));
    ck_assert_int_eq(unlink(name), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    listener_close(l);
    ck_assert_int_eq(access(name, F_OK), 0);
    close(fd);
    ck_assert_int_eq(unlink(name), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("transport");
    TCase *c = tcase_create("after login"), *before = tcase_create("before login");

    log_set_level(LOG_ERROR);
    tcase_add_checked_fixture(c, setup_trusting, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, sizes_and_both_ways_to_answer);
    tcase_add_test(c, tcp_and_peer_address);
    tcase_add_test(c, many_small_records_in_one_write);
    tcase_add_test(c, split_at_every_byte);
    tcase_add_test(c, fragments_are_joined);
    tcase_add_loop_test(c, random_portions, 0, 4);
    tcase_add_test(c, record_behind_one_that_blocks);
    tcase_add_test(c, bounds_after_login);
    tcase_add_test(c, peer_leaves_in_mid_record);
    tcase_add_test(c, server_closes);
    tcase_add_loop_test(c, peer_that_does_not_read, 0, 2);
    tcase_add_loop_test(c, peer_that_does_not_read_leaves, 0, 2);
    tcase_add_test(c, replies_are_bounded_within_a_batch);
    tcase_add_loop_test(c, peer_leaves_while_batches_wait, 0, 2);
    tcase_add_test(c, a_connection_goes_on_when_all_have_too_much);
    tcase_add_test(c, large_replies_need_their_share);
    tcase_add_test(c, calls_under_way_are_bounded);
    tcase_add_test(c, calls_that_wait_are_counted_apart);
    tcase_add_test(c, a_paused_connection_is_not_read);
    tcase_add_loop_test(c, storm_of_connections, 0, 2);
    tcase_add_test(c, shutdown_with_work_in_flight);
    tcase_add_test(c, no_descriptors_left);
    tcase_add_test(c, small_between_large);
    tcase_add_test(c, stale_socket_is_replaced_and_live_one_is_not);
    tcase_add_test(c, socket_file_stays_until_the_listener_is_closed);
    suite_add_tcase(s, c);
    tcase_add_checked_fixture(before, setup_before_login, teardown);
    tcase_set_timeout(before, 60);
    tcase_add_test(before, bounds_before_login);
    tcase_add_test(before, one_call_at_a_time_before_login);
    tcase_add_test(before, strangers_have_a_deadline);
    tcase_add_test(before, strangers_share_their_memory);

    TCase *few = tcase_create("few descriptors");

    tcase_add_checked_fixture(few, setup_few_descriptors, teardown);
    tcase_set_timeout(few, 60);
    tcase_add_test(few, descriptors_are_shared);
    suite_add_tcase(s, few);
    suite_add_tcase(s, before);
    return s;
}

#include "base/test-main.h"
