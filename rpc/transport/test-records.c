/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Records: cut out of the bytes that arrive, in pieces of any size, and answered. */
#include <arpa/inet.h>

#include "rpc/transport/test-echo.h"

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
    wait_count(&echo.closed, 1);
}
END_TEST

START_TEST(tcp_and_peer_address)
{
    int err;
    struct listener *tcp = listener_open_tcp("127.0.0.1", 0, &echo_ops, &echo.accepted, &err);
    struct listener *any = listener_open_tcp(NULL, 0, &echo_ops, &echo.accepted, &err);

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
    ck_assert(write_all(fd, "\0\0\0\0\0\0\0\0", 8)); /* empty fragments, then a record that is not empty */
    round_trip(fd, 0, 20, 0);
    close(fd);
}
END_TEST

/* A reader on a separate thread, so that neither side waits for the other. */
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

    echo.is_dialing_tcp = _i % 2;
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

        for (size_t k = 5; k < bytes; k++) /* the pattern of any seed */
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
    sem_post(&echo.gate);
    expect(fd, all[1], 30);
    for (int i = 0; i < 3; i++)
        free(all[i]);
    close(fd);
}
END_TEST

/* Small records between large records are moved to a separate buffer. */
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

static Suite *
test_suite(void)
{
    Suite *s = suite_create("records");
    TCase *c = tcase_create("after login");

    log_set_level(LOG_ERROR);
    tcase_add_checked_fixture(c, echo_setup, echo_stop);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, sizes_and_both_ways_to_answer);
    tcase_add_test(c, tcp_and_peer_address);
    tcase_add_test(c, many_small_records_in_one_write);
    tcase_add_test(c, split_at_every_byte);
    tcase_add_test(c, fragments_are_joined);
    tcase_add_loop_test(c, random_portions, 0, 4);
    tcase_add_test(c, record_behind_one_that_blocks);
    tcase_add_test(c, small_between_large);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
