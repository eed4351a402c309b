/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Bounds on the calls of one connection, seen by a client. The brick parks inodelks and truncates until the
 * test releases them. */
#include <poll.h>

#include "xlators/protocol/server/test-bench.h"

static const struct fop_call inodelk_w = {
    .cmd = 2, .flock = {.type = FLOCK_WRITE}, .volume = "d", .gfid = {{[15] = 3}}};

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
    for (int i = 0; i < 60000 && parked_now() < count; i++)
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

START_TEST(test_other_calls_are_read_while_calls_wait)
{
    setup_with("rpc.outstanding-rpc-limit", "4");
    transport_limits.waiting_calls = 12;
    struct peer *p = logged_in("one"), *other = logged_in("two");

    send_parking(p, FOP_inodelk, &inodelk_w, 12); /* three times the bound on other calls */
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_inodelk, &inodelk_w, NULL), ENOLCK);
    ck_assert_int_eq(fop(p, FOP_entrylk, CALL(.gfid = gfid_no(1), .name = "x", .volume = "d"), NULL), ENOLCK);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_no(1), .name = "file"), NULL), EAGAIN);
    /* An unlock is let in. This brick has no entrylk, so it fails with EOPNOTSUPP. */
    ck_assert_int_eq(
        fop(p, FOP_entrylk, CALL(.gfid = gfid_no(1), .name = "x", .volume = "d", .cmd = 1), NULL),
        EOPNOTSUPP);
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
    /* the remaining calls are read as soon as half of the four are done */
    for (int answers = 0; answers < 8;) {
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

/* ---- calls of connections that have ended ---------------------------------------------------- */

#define WORKERS_MAX 8 /* the bench's number of workers */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opens = PTHREAD_COND_INITIALIZER;
static bool is_gate_open; /* under gate */
static atomic_uint at_gate;

static void
wait_at_gate(struct worker_job *job)
{
    (void)job;
    atomic_fetch_add(&at_gate, 1);
    worker_block_begin();
    pthread_mutex_lock(&gate);
    while (!is_gate_open)
        pthread_cond_wait(&gate_opens, &gate);
    pthread_mutex_unlock(&gate);
    worker_block_end();
    atomic_fetch_sub(&at_gate, 1);
}

static bool
are_all_at_gate(void)
{
    return atomic_load(&at_gate) == WORKERS_MAX;
}

static bool
is_nobody_at_gate(void)
{
    return atomic_load(&at_gate) == 0;
}

/* Blocks all workers until open_gate(). */
static void
close_gate(struct worker_job jobs[WORKERS_MAX])
{
    is_gate_open = false;
    for (int i = 0; i < WORKERS_MAX; i++) {
        jobs[i].run = wait_at_gate;
        worker_post_any(&jobs[i]);
    }
    wait_until(are_all_at_gate);
}

static void
open_gate(void)
{
    pthread_mutex_lock(&gate);
    is_gate_open = true;
    pthread_cond_broadcast(&gate_opens);
    pthread_mutex_unlock(&gate);
    wait_until(is_nobody_at_gate);
}

/* The calls of a connection and its end arrive before a worker reads them: reads are not executed, changes
 * are. */
START_TEST(test_a_connection_that_is_gone_reads_nothing)
{
    struct worker_job jobs[WORKERS_MAX];

    setup_with(NULL, NULL);
    struct peer *p = logged_in("one");

    close_gate(jobs);
    for (int i = 0; i < 10; i++) {
        send_fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "file"));
        send_fop(p, FOP_mkdir, CALL(.pargfid = gfid_root, .name = "new"));
    }
    atomic_store(&lookups, 0);
    atomic_store(&changes, 0);
    peer_free(p);
    open_gate();
    wait_until(is_unpinned);
    ck_assert_uint_eq(atomic_load(&lookups), 0);
    ck_assert_uint_eq(atomic_load(&changes), 10);

    p = logged_in("two"); /* a connection that still waits gets its answers */
    close_gate(jobs);
    for (int i = 0; i < 10; i++)
        send_fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "file"));
    open_gate();
    expect_answers(p, 10);
    ck_assert_uint_eq(atomic_load(&lookups), 10);
    peer_free(p);
    teardown();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("bounds");
    TCase *c = tcase_create("bounds");

    tcase_add_test(c, test_other_calls_are_read_while_calls_wait);
    tcase_add_test(c, test_outstanding_rpc_limit);
    tcase_add_test(c, test_a_connection_that_is_gone_reads_nothing);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
