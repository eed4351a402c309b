/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What one connection may have under way: seen by a client, with a brick that parks inodelks and truncates until it is told. */
#include <poll.h>

#include "xlators/protocol/server/test-bench.h"

static const struct fop_call inodelk_w = {.cmd = 2, .flock = {.type = FLOCK_WRITE}, .volume = "d", .gfid = {{[15] = 3}}};

static unsigned
parked_now(void)
{
    unsigned n = 0;

    pthread_mutex_lock(&parked_lock);
    for (size_t i = 0; i < sizeof parked / sizeof parked[0]; i++)
        n += parked[i] != NULL;
    pthread_mutex_unlock(&parked_lock);
    return n;
}

static void
wait_parked(unsigned count)
{
    for (int i = 0; i < 5000 && parked_now() < count; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert_uint_eq(parked_now(), count);
}

static void
send_parking(struct peer *p, enum fop fop, const struct fop_call *call, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        send_fop(p, fop, call);
        wait_parked(i + 1);
    }
}

static void
expect_answers(struct peer *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert(receive(p));
}

START_TEST(test_waiting_calls_keep_nothing_from_being_read)
{
    setup_with("rpc.outstanding-rpc-limit", "4");
    transport_limits.waiting_calls = 12;
    struct peer *p = logged_in("one"), *other = logged_in("two");

    send_parking(p, FOP_inodelk, &inodelk_w, 12); /* three times what may be under way else */
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_inodelk, &inodelk_w, NULL), ENOLCK);
    ck_assert_int_eq(fop(p, FOP_entrylk, CALL(.gfid = gfid_no(1), .name = "x", .volume = "d"), NULL), ENOLCK);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_no(1), .name = "file"), NULL), EAGAIN);
    /* An unlock is let in: this brick knows no entrylk, and says so. */
    ck_assert_int_eq(fop(p, FOP_entrylk, CALL(.gfid = gfid_no(1), .name = "x", .volume = "d", .cmd = 1), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(other, FOP_unlink, CALL(.pargfid = gfid_no(1), .name = "file"), NULL), 0);
    let_go(FOP_inodelk, NULL, EINTR);
    expect_answers(p, 12);
    send_parking(p, FOP_inodelk, &inodelk_w, 12);
    peer_free(p);
    peer_free(other);
    teardown();
}
END_TEST

START_TEST(test_outstanding_rpc_limit)
{
    setup_with("rpc.outstanding-rpc-limit", "4");
    struct peer *p = logged_in("one"), *other = logged_in("two");

    send_parking(p, FOP_truncate, CALL(.gfid = gfid_no(3)), 4);
    for (int i = 0; i < 4; i++) {
        send_fop(p, FOP_truncate, CALL(.gfid = gfid_no(3)));
        ck_assert_int_eq(fop(other, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    ck_assert_uint_eq(parked_now(), 4);
    for (int answers = 0; answers < 8;) { /* the rest is read as soon as half of the four are done */
        let_go(FOP_truncate, NULL, EINTR);
        if (poll(&(struct pollfd){.fd = p->fd, .events = POLLIN}, 1, 10) == 1) {
            expect_answers(p, 1);
            answers++;
        }
    }
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    peer_free(p);
    peer_free(other);
    teardown();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("bounds");
    TCase *c = tcase_create("bounds");

    tcase_add_test(c, test_waiting_calls_keep_nothing_from_being_read);
    tcase_add_test(c, test_outstanding_rpc_limit);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
