/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/test-echo.h"

#include <arpa/inet.h>
#include <poll.h>

#include "mem/mem-pool.h"

struct echo echo;

#define KEPT_MAX 8192
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct record kept[KEPT_MAX];
static unsigned kept_count, kept_ever; /* under kept_lock, as echo.refused */

/* ---- the server ------------------------------------------------------------------------------ */

struct session {
    atomic_int running;
    atomic_bool is_closed;
};

static int
echo_accepted(struct conn *c, void *arg)
{
    ck_assert_ptr_eq(arg, &echo.accepted);
    conn_set_user(c, calloc(1, sizeof(struct session)));
    if (echo.is_trusting)
        conn_set_trusted(c);
    if (echo.is_welcoming)
        conn_set_guest(c);
    echo.accepted++;
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

unsigned
kept_now(void)
{
    pthread_mutex_lock(&kept_lock);
    unsigned n = kept_count;
    pthread_mutex_unlock(&kept_lock);
    return n;
}

unsigned
kept_so_far(void)
{
    pthread_mutex_lock(&kept_lock);
    unsigned n = kept_ever;
    pthread_mutex_unlock(&kept_lock);
    return n;
}

void
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
        } else {
            echo.refused++;
        }
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
        atomic_store(&echo.paused, conn_ref(c));
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
    echo.running++;
    s->running++;
    ck_assert(!s->is_closed);
    check_shape(r);
    memcpy(&word, r->iov[0].iov_base, r->bytes < 4 ? r->bytes : 4);
    if (word == CLOSE_ME)
        conn_close(c);
    if (word == BLOCK_ME) {
        sem_post(&echo.blocked);
        while (sem_wait(&echo.gate) && errno == EINTR)
            ;
    }
    if (is_special(c, r, word)) {
        s->running--;
        echo.running--;
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
    echo.running--;
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
    echo.closed++;
}

const struct transport_ops echo_ops = {
    .accepted = echo_accepted, .record = echo_record, .closed = echo_closed};

void
echo_start(bool trusting)
{
    int err = 0;

    echo.is_trusting = trusting;
    sem_init(&echo.gate, 0, 0);
    sem_init(&echo.blocked, 0, 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 4}), 0);
    strcpy(echo.dir, "/tmp/test-transport-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(echo.dir));
    snprintf(echo.path, sizeof echo.path, "%s/socket", echo.dir);
    echo.listener = listener_open_unix(echo.path, &echo_ops, &echo.accepted, &err);
    ck_assert_ptr_nonnull(echo.listener);
    echo.tcp_listener = listener_open_tcp("127.0.0.1", 0, &echo_ops, &echo.accepted, &err);
    ck_assert_ptr_nonnull(echo.tcp_listener);
}

/* Without this the sweeper opens files when it first runs, and takes descriptors that a test has left for the
 * listener. */
static void
sweeper_opens_nothing(void)
{
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
}

void
echo_setup(void)
{
    sweeper_opens_nothing();
    echo_start(true);
}

void
echo_setup_before_login(void)
{
    sweeper_opens_nothing();
    echo_start(false);
}

void
echo_stop(void)
{
    listener_close(echo.listener);
    listener_close(echo.tcp_listener);
    transport_close_all();
    ck_assert_int_eq(echo.accepted, echo.closed);
    workers_stop();
    ck_assert_int_ne(access(echo.path, F_OK), 0);
    rmdir(echo.dir);
    mem_pools_fini();
}

/* ---- the clients ----------------------------------------------------------------------------- */

int
dial_tcp(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

int
dial(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    if (echo.is_dialing_tcp)
        return dial_tcp(listener_port(echo.tcp_listener));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    strcpy(a.sun_path, echo.path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void
wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    ck_assert_int_eq(poll(&p, 1, 60000), 1);
}

bool
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

bool
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

void
put_mark(void *at, uint32_t mark)
{
    mark = htonl(mark);
    memcpy(at, &mark, 4);
}

char *
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

void
expect(int fd, const char *record, size_t bytes)
{
    char *got = malloc(4 + bytes);

    ck_assert(read_all(fd, got, 4 + bytes));
    ck_assert_mem_eq(got, record, 4 + bytes);
    free(got);
}

void
round_trip(int fd, uint32_t word, size_t bytes, unsigned seed)
{
    char *r = make_record(word, bytes, seed);

    ck_assert(write_all(fd, r, 4 + bytes));
    expect(fd, r, bytes);
    free(r);
}

void
expect_end(int fd)
{
    char byte;

    wait_readable(fd);
    ck_assert_int_le(read(fd, &byte, 1), 0);
    close(fd);
}

void
wait_count(atomic_int *count, int wanted)
{
    struct timespec nap = {.tv_nsec = 1000000};

    for (int i = 0; *count != wanted && i < 60000; i++)
        nanosleep(&nap, NULL);
    ck_assert_int_eq(*count, wanted);
}

int
dial_in_order(void)
{
    int before = echo.accepted, fd = dial();

    wait_count(&echo.accepted, before + 1);
    return fd;
}

void
send_many(int fd, uint32_t word, unsigned count)
{
    char *one = make_record(word, 64, 5), *all = malloc((size_t)count * 68);

    for (unsigned i = 0; i < count; i++)
        memcpy(all + (size_t)i * 68, one, 68);
    ck_assert(write_all(fd, all, (size_t)count * 68));
    free(all);
    free(one);
}

void
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
