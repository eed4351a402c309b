/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Limits (limits.h): the memory, calls and descriptors that one peer, and all peers together, can make the
 * process hold. */
#include <sys/resource.h>

#include "rpc/transport/test-echo.h"

/* ---- records --------------------------------------------------------------------------------- */

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
    expect_refused("\x88\x10\x00\x01", 4); /* 129 MiB and 1 */
    expect_refused("\x80\0\0\0", 4);       /* an empty record */
    put_mark(two, 100);
    put_mark(two + 104, LAST | TRANSPORT_RECORD_MAX); /* the sum is too long */
    expect_refused(two, sizeof two);
    int fd = dial();

    write_all(fd, marks, sizeof marks); /* fragments without end */
    expect_end(fd);
}
END_TEST

/* ---- replies --------------------------------------------------------------------------------- */

/* Requests without end from a peer that reads nothing: the server stops reading, and goes on when the peer
 * reads. */
START_TEST(peer_that_does_not_read)
{
    echo.is_dialing_tcp = _i;

    enum { BYTES = 100000 };
    char *r = make_record(0, BYTES, 3);
    int fd = dial();
    size_t sent = 0, full = 0;
    struct timespec nap = {.tv_nsec = 20000000};

    /* Until nothing has moved for 200 ms. While less has moved than the server must take, the server is only
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
    echo.is_dialing_tcp = _i;

    char *r = make_record(0, 100000, 3);

    for (int i = 0; i < 5; i++) {
        int fd = dial();

        for (int k = 0; k < 400; k++) {
            if (send(fd, r, 100004, MSG_NOSIGNAL | MSG_DONTWAIT) != 100004)
                break; /* the server has stopped reading, or has more to do */
        }
        close(fd);
    }
    wait_count(&echo.closed, 5);
    free(r);
}
END_TEST

static uint64_t
records_so_far(void)
{
    struct transport_stats stats;

    transport_stats(&stats);
    return stats.records;
}

/* Waits until the number of records has not changed for a while. Only for numbers that must not grow
 * further. */
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

/* A few hundred bytes that ask for 200 MiB: the records that the server has read wait until the peer
 * reads. */
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
    /* The answers in the socket (a few MiB), the answers that the connection may hold, and one more answer of
     * each worker. */
    ck_assert_uint_le(stats.messages, transport_limits.reply_bytes / AMPLE + 20);
    for (unsigned i = 0; i < ASKED; i++)
        ck_assert(read_all(fd, got, 4 + AMPLE));
    round_trip(fd, 0, 200, 9);
    close(fd);
    free(got);
}
END_TEST

/* The same, and the peer leaves: the server keeps no record that was not begun. */
START_TEST(peer_leaves_while_batches_wait)
{
    echo.is_dialing_tcp = _i;
    for (unsigned i = 0; i < 4; i++) {
        int fd = dial();

        send_many(fd, AMPLIFY, 100);
        records_settled(1);
        close(fd);
        wait_count(&echo.closed, (int)i + 1);
    }
}
END_TEST

/* All peers together: when their share is used up each peer still gets its own bytes. */
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

/* The server refuses a reply above a MiB when no share is left for the reply, and accepts such a reply when
 * there is a share again. */
START_TEST(large_replies_need_their_share)
{
    int fd = dial();
    size_t large = 3u << 20;

    round_trip(fd, PAUSE_ME, 64, 1);
    struct conn *c = atomic_load(&echo.paused);

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

/* ---- calls ----------------------------------------------------------------------------------- */

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
    while (kept_so_far() < 300 || kept_now()) /* records that were cut and not begun are not kept yet */
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

/* The server reads the call that others wait for; too many waiting calls are refused. */
START_TEST(calls_that_wait_are_counted_apart)
{
    int fd = dial();

    transport_limits.waiting_calls = 2500;
    send_many(fd, WAIT_ME, 2500);
    wait_kept(2500);
    round_trip(fd, 0, 200, 9);
    round_trip(fd, WAIT_ME, 64, 5); /* refused: here that means echoed */
    ck_assert_uint_eq(echo.refused, 1);
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
    struct conn *c = atomic_load(&echo.paused);

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

/* ---- connections ----------------------------------------------------------------------------- */

/* A silent TCP connection ends at the deadline; a connection of a unix socket may stay, and so may a
 * connection that has logged in. */
START_TEST(strangers_have_a_deadline)
{
    int quiet, local;

    transport_limits.login_ms = 100;
    echo.is_dialing_tcp = false;
    local = dial();
    echo.is_dialing_tcp = true;
    quiet = dial();
    expect_end(quiet);
    for (int i = 0; i < 50; i++)
        expect_end(dial());
    transport_limits.login_ms = 3600 * 1000; /* on a busy machine a login may take long */
    echo.is_trusting = true;
    int member = dial();

    round_trip(member, 0, 200, 1);
    echo.is_trusting = false;
    transport_limits.login_ms = 100;
    expect_end(dial());
    round_trip(member, 0, 200, 2);
    round_trip(local, 0, 200, 3);
    close(member);
    close(local);
}
END_TEST

/* Strangers that hold buffers: over the bound of all, the oldest holder is closed, and the next peer is
 * served. */
START_TEST(strangers_share_their_memory)
{
    enum { HOLDERS = 40 };
    char *r = make_record(0, TRANSPORT_RECORD_MAX_LOGIN, 1);
    int fds[HOLDERS];

    transport_limits.login_bytes_all = 10 * 16384;
    echo.is_dialing_tcp = true;
    for (int i = 0; i < HOLDERS; i++) {
        struct transport_stats stats;

        fds[i] = dial();
        ck_assert(write_all(fds[i], r, 12000));
        do /* in turn, or chance decides which holder is the oldest */
            transport_stats(&stats);
        while (stats.bytes_in < (uint64_t)(i + 1) * 12000);
    }
    int fd = dial();

    round_trip(fd, 0, 200, 3);
    wait_count(&echo.closed, HOLDERS - 9); /* room for ten; `fd` took room for a moment */
    for (int i = 0; i < HOLDERS - 9; i++)
        expect_end(fds[i]);
    round_trip(fd, 0, 200, 4);
    for (int i = HOLDERS - 9; i < HOLDERS; i++)
        close(fds[i]);
    close(fd);
    free(r);
}
END_TEST

/* Guests stay, with the limits of strangers; of the peers that hold buffers, guests are closed before
 * strangers. */
START_TEST(guests_stay_and_get_nothing_more)
{
    char *r = make_record(0, TRANSPORT_RECORD_MAX_LOGIN + 4, 1);
    struct transport_stats stats;

    transport_limits.login_ms = 3600 * 1000; /* on a busy machine a welcome may take long */
    echo.is_dialing_tcp = echo.is_welcoming = true;
    int guest = dial(), other = dial(), holder = dial();

    round_trip(guest, 0, 200, 1);
    round_trip(other, 0, 200, 1);
    round_trip(holder, 0, 200, 1);
    echo.is_welcoming = false;
    transport_limits.login_ms = 1;
    expect_end(dial());
    round_trip(guest, 0, 200, 2);
    round_trip(guest, 0, TRANSPORT_RECORD_MAX_LOGIN, 3);
    ck_assert(write_all(other, r, 4 + TRANSPORT_RECORD_MAX_LOGIN));
    expect_end(other);
    free(r);

    transport_limits.login_ms = 3600 * 1000;
    transport_limits.login_bytes_all = 2 * 16384;
    transport_stats(&stats);
    uint64_t before = stats.bytes_in;
    r = make_record(0, TRANSPORT_RECORD_MAX_LOGIN, 1);
    int strangers[2] = {dial(), dial()};
    ck_assert(write_all(strangers[0], r, 12000));
    do
        transport_stats(&stats);
    while (stats.bytes_in < before + 12000);
    ck_assert(write_all(holder, r, 12000));
    do
        transport_stats(&stats);
    while (stats.bytes_in < before + 24000);
    ck_assert(write_all(strangers[1], r, 12000));
    expect_end(holder);
    do /* the peer sees the end before the buffer is given back; two others have ended above */
        transport_stats(&stats);
    while (stats.closed < 3);
    ck_assert(write_all(strangers[0], r + 12000, 4 + TRANSPORT_RECORD_MAX_LOGIN - 12000));
    expect(strangers[0], r, TRANSPORT_RECORD_MAX_LOGIN);
    round_trip(guest, 0, 200, 4);
    close(strangers[0]);
    close(strangers[1]);
    close(guest);
    free(r);
}
END_TEST

static void
setup_few_descriptors(void)
{
    struct rlimit few = {.rlim_cur = 400, .rlim_max = 400};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    echo_setup_before_login();
    /* on a busy machine half a minute is too short for 150 dials */
    transport_limits.login_ms = 3600 * 1000;
    echo.is_dialing_tcp = true;
}

static void
wait_connections_left(unsigned wanted)
{
    struct timespec nap = {.tv_nsec = 1000000};

    for (int i = 0; transport_connections_left() != wanted && i < 60000; i++)
        nanosleep(&nap, NULL);
    ck_assert_uint_eq(transport_connections_left(), wanted);
}

/* 200 connections in all, at most 25 without a login, and each address as many as are left: the clients here
 * share an address. */
START_TEST(descriptors_are_shared)
{
    int fds[150], quiet[60];

    for (int i = 0; i < 60; i++)
        quiet[i] = dial_in_order();
    wait_connections_left(175); /* the oldest 35 have gone */
    for (int i = 0; i < 35; i++)
        expect_end(quiet[i]);
    echo.is_trusting = true;
    round_trip(fds[0] = dial(), 0, 200, 1);
    wait_connections_left(175); /* the login took the place of another stranger */
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

static Suite *
test_suite(void)
{
    Suite *s = suite_create("limits");
    TCase *c = tcase_create("after login");
    TCase *before = tcase_create("before login");
    TCase *few = tcase_create("few descriptors");

    log_set_level(LOG_ERROR);
    tcase_add_checked_fixture(c, echo_setup, echo_stop);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, bounds_after_login);
    tcase_add_loop_test(c, peer_that_does_not_read, 0, 2);
    tcase_add_loop_test(c, peer_that_does_not_read_leaves, 0, 2);
    tcase_add_test(c, replies_are_bounded_within_a_batch);
    tcase_add_loop_test(c, peer_leaves_while_batches_wait, 0, 2);
    tcase_add_test(c, a_connection_goes_on_when_all_have_too_much);
    tcase_add_test(c, large_replies_need_their_share);
    tcase_add_test(c, calls_under_way_are_bounded);
    tcase_add_test(c, calls_that_wait_are_counted_apart);
    tcase_add_test(c, a_paused_connection_is_not_read);
    suite_add_tcase(s, c);
    tcase_add_checked_fixture(before, echo_setup_before_login, echo_stop);
    tcase_set_timeout(before, 60);
    tcase_add_test(before, bounds_before_login);
    tcase_add_test(before, one_call_at_a_time_before_login);
    tcase_add_test(before, strangers_have_a_deadline);
    tcase_add_test(before, strangers_share_their_memory);
    tcase_add_test(before, guests_stay_and_get_nothing_more);
    suite_add_tcase(s, before);
    tcase_add_checked_fixture(few, setup_few_descriptors, echo_stop);
    tcase_set_timeout(few, 60);
    tcase_add_test(few, descriptors_are_shared);
    suite_add_tcase(s, few);
    return s;
}

#include "base/test-main.h"
