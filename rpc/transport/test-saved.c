/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Saves connections and restores them on a second descriptor of the same socket, as after exec(2). The first
 * connection stays frozen and stands for the program that has gone. */
#include "rpc/transport/saved.h"

#include <fcntl.h>

#include "rpc/transport/test-echo.h"
#include "rpc/transport/transport-internal.h"

#define BIG 200000

static unsigned parked;

static unsigned
count_parked(void)
{
    return parked;
}

static void
note_conn(struct conn *c, void *arg)
{
    *(struct conn **)arg = c;
}

/* The connection that was accepted last. */
static struct conn *
last_conn(void)
{
    struct conn *c = NULL;

    transport_each_conn(note_conn, &c);
    ck_assert_ptr_nonnull(c);
    return c;
}

/* Freezes, saves the only connection, and restores it. `calls`: records that the new one receives first. */
static struct conn *
succeed(const void *calls, size_t bytes)
{
    struct parcel p = {0};

    ck_assert_int_eq(transport_freeze(10000, count_parked), 0);
    struct conn *old = last_conn();

    ck_assert(conn_can_be_saved(old));
    conn_save(old, calls, bytes, &p);
    ck_assert(!p.is_broken);
    uint32_t fd = (uint32_t)fcntl(old->src.fd, F_DUPFD_CLOEXEC, 0);

    memcpy(p.bytes, &fd, sizeof fd);
    pthread_mutex_lock(&old->lock); /* exec leaves nothing that would send the queue a second time */
    struct chunk *queue = send_take_queue_locked(old);
    pthread_mutex_unlock(&old->lock);
    send_free_chunks(queue);
    struct conn *c = conn_restore(&p, &echo_ops, &echo.accepted);

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(p.at, p.used);
    parcel_free(&p);
    listeners_freeze(false); /* for the end of the test */
    conn_unref(c);           /* the connection is open, so transport holds another reference */
    return c;
}

static uint64_t
bytes_in(void)
{
    struct transport_stats s;

    transport_stats(&s);
    return s.bytes_in;
}

static void
wait_bytes_in(uint64_t bytes)
{
    while (bytes_in() < bytes)
        usleep(1000);
}

START_TEST(half_a_record_goes_on)
{
    char *big = make_record(0, BIG, 1), *call = make_record(0, 300, 2), got[304];
    int fd = dial();
    size_t half = (size_t)_i;

    round_trip(fd, 0, 100, 1);
    uint64_t before = bytes_in();

    ck_assert(write_all(fd, big, half));
    wait_bytes_in(before + half);
    struct conn *c = succeed(call, 304);
    conn_start_restored(c);
    ck_assert(read_all(fd, got, sizeof got)); /* the call of the old program, before everything else */
    ck_assert_mem_eq(got, call, sizeof got);
    ck_assert(write_all(fd, big + half, BIG + 4 - half));
    expect(fd, big, BIG);
    round_trip(fd, 0, 100, 3);
    close(fd);
    free(big);
    free(call);
}
END_TEST

START_TEST(unsent_replies_arrive_once)
{
    enum { COUNT = 5 };
    char *record = make_record(AMPLIFY, 100, 1), *again = malloc(AMPLE + 4);
    int fd = dial(), room = 4096;

    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    round_trip(fd, 0, 100, 1);
    for (int i = 0; i < COUNT; i++)
        ck_assert(write_all(fd, record, 104));
    struct conn *old = last_conn();
    while (!conn_bytes_queued(old))
        usleep(1000);
    conn_start_restored(succeed(NULL, 0));
    for (int i = 0; i < COUNT; i++)
        ck_assert(read_all(fd, again, AMPLE + 4));
    round_trip(fd, 0, 100, 2); /* nothing is left over */
    close(fd);
    free(record);
    free(again);
}
END_TEST

static void
note_stalled(struct conn *c, void *arg)
{
    *(bool *)arg |= flow_is_stalled(c);
}

static bool
is_any_stalled(void)
{
    bool is_stalled = false;

    transport_each_conn(note_stalled, &is_stalled);
    return is_stalled;
}

/* The records behind full replies can neither run nor be saved. */
START_TEST(a_peer_that_reads_nothing_is_cut_off)
{
    enum { COUNT = 40 };
    char *record = make_record(AMPLIFY, 100, 1);
    int fd = dial(), other = dial();

    round_trip(other, 0, 100, 1);
    for (int i = 0; i < COUNT; i++)
        ck_assert(write_all(fd, record, 104));
    while (!is_any_stalled())
        usleep(1000);
    ck_assert_int_eq(transport_freeze(2000, count_parked), 0);
    ck_assert_int_eq(atomic_load(&echo.closed), 1);
    transport_thaw();
    round_trip(other, 0, 100, 2);
    close(fd);
    close(other);
    free(record);
}
END_TEST

START_TEST(a_running_call_is_not_cut)
{
    char *block = make_record(BLOCK_ME, 30, 2);
    int fd = dial();

    ck_assert(write_all(fd, block, 34));
    ck_assert_int_eq(sem_wait(&echo.blocked), 0);
    ck_assert_int_eq(transport_freeze(50, count_parked), -EBUSY);
    sem_post(&echo.gate);
    expect(fd, block, 30);
    round_trip(fd, 0, 100, 1); /* accepted and read again */
    int other = dial();

    round_trip(other, 0, 100, 1);
    close(other);
    close(fd);
    free(block);
}
END_TEST

START_TEST(waiting_calls_must_be_parked)
{
    char *waiting = make_record(WAIT_ME, 30, 2);
    int fd = dial();

    ck_assert(write_all(fd, waiting, 34));
    while (kept_now() < 1)
        usleep(1000);
    parked = 0; /* the call is still on its way to the layer that parks it */
    ck_assert_int_eq(transport_freeze(50, count_parked), -EBUSY);
    parked = 1;
    ck_assert_int_eq(transport_freeze(10000, count_parked), 0);
    transport_thaw();
    release_kept(0);
    round_trip(fd, 0, 100, 1);
    close(fd);
    free(waiting);
}
END_TEST

START_TEST(a_parcel_without_its_socket_makes_no_connection)
{
    struct parcel p = {0};
    int fd = dial(), file = open("/dev/null", O_RDONLY | O_CLOEXEC);

    round_trip(fd, 0, 100, 1);
    ck_assert_int_eq(transport_freeze(10000, count_parked), 0);
    conn_save(last_conn(), NULL, 0, &p);
    for (size_t bytes = 0; bytes < p.used; bytes++) {
        struct parcel cut = {.bytes = p.bytes, .used = bytes, .room = bytes};

        ck_assert_ptr_null(conn_restore(&cut, &echo_ops, &echo.accepted));
    }
    memcpy(p.bytes, &file, sizeof file);
    ck_assert_ptr_null(conn_restore(&p, &echo_ops, &echo.accepted));
    transport_thaw();
    round_trip(fd, 0, 100, 2);
    parcel_free(&p);
    close(file);
    close(fd);
}
END_TEST

START_TEST(a_listener_is_found_by_its_address_only)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX}, other = own;
    struct parcel p = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(own.sun_path, sizeof own.sun_path, "%.90s/own", echo.dir);
    snprintf(other.sun_path, sizeof other.sun_path, "%.90s/owner", echo.dir);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    parcel_put_u32(&p, 1);
    parcel_put_u32(&p, (uint32_t)fd);
    listeners_restore(&p);
    ck_assert_int_eq(listeners_take((struct sockaddr *)&other, sizeof other), -1);
    ck_assert_int_eq(listeners_take((struct sockaddr *)&own, sizeof own), fd);
    ck_assert_int_eq(listeners_take((struct sockaddr *)&own, sizeof own), -1);
    listeners_drop_rest();
    unlink(own.sun_path);
    close(fd);
    parcel_free(&p);
}
END_TEST

static Suite *
test_suite(void)
{
    static const int halves[] = {0, 3, 4, 5, 4000, 100000};
    Suite *s = suite_create("saved connections");
    TCase *t = tcase_create("saved");

    tcase_add_checked_fixture(t, echo_setup, echo_stop);
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
        tcase_add_loop_test(t, half_a_record_goes_on, halves[i], halves[i] + 1);
    tcase_add_test(t, unsent_replies_arrive_once);
    tcase_add_test(t, a_peer_that_reads_nothing_is_cut_off);
    tcase_add_test(t, a_running_call_is_not_cut);
    tcase_add_test(t, waiting_calls_must_be_parked);
    tcase_add_test(t, a_parcel_without_its_socket_makes_no_connection);
    tcase_add_test(t, a_listener_is_found_by_its_address_only);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
