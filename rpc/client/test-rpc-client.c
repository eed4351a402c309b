/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A client against a correct peer and against misbehaving peers. In every case each call has one callback. */
#include <stdio.h>

#include "data/dict.h"
#include "rpc/client/rpc-client-internal.h"
#include "rpc/client/test-client.h"

static struct rpc_client *client;
static sem_t came_up, went_down, gone, called;
static atomic_uint connects, downs, answers;
static atomic_bool holds_back; /* connected, and not up */

/* ---- the owner of the client ----------------------------------------------------------------- */

static void
owner_connected(struct rpc_client *c, void *arg)
{
    ck_assert_ptr_eq(arg, &client);
    connects++;
    if (holds_back || rpc_client_up(c))
        sem_post(&came_up);
}

static void
owner_down(struct rpc_client *c, bool was_up, void *arg)
{
    struct rpc_client_stats s;

    (void)arg;
    rpc_client_stats(c, &s);
    ck_assert_uint_eq(s.expired, 0);
    ck_assert(!rpc_client_is_up(c));
    downs += was_up;
    sem_post(&went_down);
}

static void
owner_called(struct rpc_client *c, const struct rpc_call_head *head, struct xdr *args, void *arg)
{
    (void)c;
    (void)arg;
    ck_assert_uint_eq(head->program, PEER_PROGRAM);
    ck_assert_uint_eq(head->procedure, 5);
    ck_assert_uint_eq(xdr_get_u32(args), 0x61626364);
    sem_post(&called);
}

static void
owner_gone(void *arg)
{
    ck_assert_ptr_eq(arg, &client);
    sem_post(&gone);
}

static const struct rpc_client_ops owner_ops = {
    .connected = owner_connected, .down = owner_down, .called = owner_called, .gone = owner_gone};

/* ---- fixture --------------------------------------------------------------------------------- */

static void
setup(void)
{
    sem_init(&came_up, 0, 0);
    sem_init(&went_down, 0, 0);
    sem_init(&gone, 0, 0);
    sem_init(&called, 0, 0);
    client_process_setup(NULL);
}

static void
start(struct rpc_client_options o)
{
    int err;

    o.name = "peer";
    o.where = (struct dial_target){.host = "127.0.0.1", .port = peer.port};
    o.retry_min_ms = o.retry_min_ms ? o.retry_min_ms : 1;
    o.tick_ms = 10;
    client = rpc_client_new(&o, &owner_ops, &client, &err);
    ck_assert_ptr_nonnull(client);
    rpc_client_start(client);
}

static void
finish(void)
{
    rpc_client_close(client);
    wait_on(&gone);
    client = NULL;
}

static void
teardown(void)
{
    if (client)
        finish();
    client_process_teardown();
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct ask {
    sem_t done;
    atomic_int answers;
    int err;
    size_t bytes;
    char first[8];
};

static void
ask_answered(struct rpc_reply *r, void *arg)
{
    struct ask *a = arg;

    ck_assert_int_eq(atomic_fetch_add(&a->answers, 1), 0);
    answers++;
    a->err = r->err;
    a->bytes = r->err ? 0 : xdr_left_total(&r->results);
    if (!r->err && a->bytes >= sizeof a->first)
        memcpy(a->first, r->results.at, sizeof a->first);
    sem_post(&a->done);
}

static int
ask_start(struct ask *a, enum peer_procedure procedure, const char *text, size_t bytes, unsigned timeout_s)
{
    *a = (struct ask){.err = 1};
    sem_init(&a->done, 0, 0);
    return rpc_client_call(client, &(struct rpc_call){
                                       .program = PEER_PROGRAM,
                                       .version = 1,
                                       .procedure = procedure,
                                       .args = text,
                                       .args_bytes = bytes,
                                       .timeout_s = timeout_s,
                                       .cb = ask_answered,
                                       .arg = a,
                                   });
}

static int
ask(enum peer_procedure procedure)
{
    struct ask a;
    int err = ask_start(&a, procedure, "question", 8, 0);

    if (err)
        return err;
    wait_on(&a.done);
    if (!a.err)
        ck_assert_mem_eq(a.first, "question", 8);
    return a.err;
}

static struct rpc_client_stats
stats(void)
{
    struct rpc_client_stats s;

    rpc_client_stats(client, &s);
    return s;
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(calls_are_answered)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(ask(PEER_ECHO), 0);

    static const size_t sizes[] = {0, 8, 400, 960, 1024, 4096, 5000, 300000};
    char *big = calloc(1, 300000);

    memcpy(big, "question", 8);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ask a;

        ck_assert_int_eq(ask_start(&a, PEER_ECHO, big, sizes[i], 0), 0);
        wait_on(&a.done);
        ck_assert_int_eq(a.err, 0);
        ck_assert_uint_eq(a.bytes, sizes[i]);
    }
    free(big);
    ck_assert_uint_eq(connects, 1);
}
END_TEST

START_TEST(a_call_that_exceeds_the_record_size_is_refused)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    struct ask a;

    ck_assert_int_eq(ask_start(&a, PEER_ECHO, NULL, TRANSPORT_RECORD_MAX, 0), -EMSGSIZE);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
    ck_assert_uint_eq(stats().waiting, 0);
}
END_TEST

START_TEST(refusals_by_rpc_are_errors_of_the_call)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_DENIED), -ENOTCONN);
    ck_assert_int_eq(ask(PEER_UNAVAIL), -ENOTCONN);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
    ck_assert_uint_eq(connects, 1);
}
END_TEST

START_TEST(replies_to_unknown_calls_are_dropped)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_TWICE), 0);
    ck_assert_int_eq(ask(PEER_STRANGER), 0);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
    ck_assert_uint_eq(stats().unknown_replies, 2);
    ck_assert_uint_eq(connects, 1);
}
END_TEST

/* Each of these ends the connection and fails the waiting calls; the client connects again. */
START_TEST(bad_records_end_the_connection)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    for (int p = PEER_FIRST_FATAL; p < PEER_FAULTS; p++) {
        struct ask waits;

        ck_assert_int_eq(ask_start(&waits, PEER_NEVER, NULL, 0, 0), 0);
        ck_assert_int_eq(ask((enum peer_procedure)p), -ENOTCONN);
        wait_on(&waits.done);
        ck_assert_int_eq(waits.err, -ENOTCONN);
        wait_on(&went_down);
        wait_on(&came_up);
        ck_assert_int_eq(ask(PEER_ECHO), 0);
    }
    ck_assert_uint_eq(connects, 1 + PEER_FAULTS - PEER_FIRST_FATAL);
    ck_assert_uint_eq(downs, PEER_FAULTS - PEER_FIRST_FATAL);
    ck_assert_uint_eq(stats().waiting, 0);
}
END_TEST

START_TEST(a_call_of_the_peer_reaches_its_handler)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_CALLS), 0);
    wait_on(&called);
    ck_assert_uint_eq(stats().calls_in, 1);
}
END_TEST

START_TEST(a_call_without_a_timely_reply_times_out)
{
    start((struct rpc_client_options){.call_timeout_s = 1});
    wait_on(&came_up);
    struct ask late;

    ck_assert_int_eq(ask_start(&late, PEER_LATE, NULL, 0, 0), 0);
    wait_on(&late.done);
    ck_assert_int_eq(late.err, -ETIMEDOUT);
    ck_assert_uint_eq(stats().expired, 1);
    ck_assert_int_eq(ask(PEER_ECHO), 0); /* the late reply comes just before this one's */
    ck_assert_uint_eq(stats().expired, 0);
    ck_assert_uint_eq(stats().timeouts, 1);
    ck_assert_uint_eq(stats().unknown_replies, 0);
    ck_assert_int_eq(late.answers, 1);
    ck_assert_uint_eq(connects, 1);
}
END_TEST

START_TEST(a_silent_peer_is_given_up)
{
    peer.is_deaf = true;
    start((struct rpc_client_options){.ping_timeout_s = 1});
    wait_on(&came_up);
    struct ask a;

    ck_assert_int_eq(ask_start(&a, PEER_NEVER, NULL, 0, 0), 0);
    wait_on(&a.done);
    ck_assert_int_eq(a.err, -ENOTCONN);
    ck_assert_uint_eq(stats().pings, 1);
    wait_on(&came_up);
    ck_assert_uint_eq(connects, 2);
}
END_TEST

/* A lock request that waits: the peer lives but has nothing to send. */
START_TEST(a_peer_that_answers_pings_is_not_given_up)
{
    start((struct rpc_client_options){.ping_timeout_s = 2});
    wait_on(&came_up);
    struct ask a;

    ck_assert_int_eq(ask_start(&a, PEER_NEVER, NULL, 0, 5), 0);
    wait_on(&a.done);
    ck_assert_int_eq(a.err, -ETIMEDOUT);
    ck_assert_uint_ge(stats().pings, 4);
    ck_assert_uint_eq(connects, 1);
}
END_TEST

/* No call waits: no ping, no watch. */
START_TEST(an_idle_client_is_quiet)
{
    start((struct rpc_client_options){.ping_timeout_s = 1});
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
    for (int i = 0; i < 5000 && atomic_load(&client->is_watched); i++)
        usleep(1000);
    ck_assert(!atomic_load(&client->is_watched));
    ck_assert_uint_eq(stats().pings, 0);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
}
END_TEST

START_TEST(a_peer_that_starts_late_is_reached)
{
    uint16_t port = peer.port;

    peer_stop();
    start((struct rpc_client_options){.retry_max_ms = 20});
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(ask(PEER_ECHO), -ENOTCONN);
        usleep(10000);
    }
    peer_start(port);
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
}
END_TEST

START_TEST(calls_are_refused_before_the_handshake_is_done)
{
    holds_back = true;
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_ECHO), -ENOTCONN);
    struct ask a = {.err = 1};
    struct rpc_call call = {
        .program = PEER_PROGRAM, .version = 1, .is_handshake = true, .cb = ask_answered, .arg = &a};

    sem_init(&a.done, 0, 0);
    ck_assert_int_eq(rpc_client_call(client, &call), 0);
    wait_on(&a.done);
    ck_assert_int_eq(a.err, 0);
    ck_assert(rpc_client_up(client));
    ck_assert_int_eq(ask(PEER_ECHO), 0);
    ck_assert(!rpc_client_up(client));
}
END_TEST

START_TEST(a_drop_ends_the_calls_and_the_client_reconnects)
{
    start((struct rpc_client_options){0});
    wait_on(&came_up);
    struct ask a;

    ck_assert_int_eq(ask_start(&a, PEER_NEVER, NULL, 0, 0), 0);
    rpc_client_drop(client, "%s", "it is a test");
    rpc_client_drop(client, "%s", "said once");
    wait_on(&a.done);
    ck_assert_int_eq(a.err, -ENOTCONN);
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
    ck_assert_uint_eq(connects, 2);
}
END_TEST

START_TEST(calls_max_is_the_limit)
{
    static struct ask all[64];
    struct ask more;

    start((struct rpc_client_options){.calls_max = 64});
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_ECHO), 0); /* by now the peer has accepted the connection, and can close it */
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(ask_start(&all[i], PEER_NEVER, NULL, 0, 0), 0);
    ck_assert_int_eq(ask_start(&more, PEER_ECHO, NULL, 0, 0), -EAGAIN);
    peer_hang_up();
    for (int i = 0; i < 64; i++) {
        wait_on(&all[i].done);
        ck_assert_int_eq(all[i].err, -ENOTCONN);
    }
    wait_on(&came_up);
    ck_assert_int_eq(ask(PEER_ECHO), 0);
}
END_TEST

START_TEST(invalid_options_are_refused)
{
    int err = 0;
    struct rpc_client_options o = {.name = "none"};

    ck_assert_ptr_null(rpc_client_new(&o, &owner_ops, &client, &err));
    ck_assert_int_eq(err, -EINVAL);
}
END_TEST

/* ---- many at once ---------------------------------------------------------------------------- */

enum { THREADS = 4, CALLS_A_THREAD = 4000 };
static struct ask *crowd;
static atomic_uint refused;

static void *
crowd_main(void *arg)
{
    struct ask *mine = crowd + (size_t)arg * CALLS_A_THREAD;

    for (int i = 0; i < CALLS_A_THREAD; i++) {
        static const enum peer_procedure what[] = {PEER_ECHO,  PEER_NEVER, PEER_ECHO,
                                                   PEER_CALLS, PEER_ECHO,  PEER_LATE};
        int err = ask_start(&mine[i], what[i % 6], "question", 8, 1);

        if (err) {
            ck_assert_msg(err == -ENOTCONN || err == -EAGAIN, "%d", err);
            refused++;
            mine[i].answers = 1;
            usleep(100);
        }
    }
    return NULL;
}

static unsigned
unanswered(void)
{
    unsigned n = 0;

    for (int i = 0; i < THREADS * CALLS_A_THREAD; i++)
        n += crowd[i].answers == 0;
    return n;
}

static void
crowd_start(pthread_t threads[THREADS])
{
    crowd = calloc(THREADS * CALLS_A_THREAD, sizeof *crowd);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, crowd_main, (void *)i), 0);
}

/* The peer closes its connections again and again while thousands of calls are under way; some of them
 * time out. */
START_TEST(every_call_has_one_callback)
{
    pthread_t threads[THREADS];

    start((struct rpc_client_options){.ping_timeout_s = 5, .retry_max_ms = 5});
    wait_on(&came_up);
    crowd_start(threads);
    /* a busy machine may not have reconnected after each of the 40 */
    for (int i = 0; i < 40 || (connects <= 2 && i < 12000); i++) {
        usleep(5000);
        peer_hang_up();
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 60000 && unanswered(); i++) /* by a reply, a loss or a timeout */
        usleep(1000);
    ck_assert_uint_eq(unanswered(), 0);
    ck_assert_uint_gt(connects, 2);
    ck_assert_uint_eq(answers + refused, THREADS * CALLS_A_THREAD);
    finish();
    free(crowd);
}
END_TEST

/* In any state of the client, `gone` comes, and all calls have been answered. */
START_TEST(each_sent_call_gets_one_answer_when_the_client_is_closed)
{
    for (int i = 0; i < 200; i++) {
        static struct ask some[20];
        int sent[20];

        atomic_store(&peer.late_xid, 0);
        start((struct rpc_client_options){.ping_timeout_s = i % 2});
        if (i % 3)
            wait_on(&came_up);
        for (int k = 0; k < 20; k++)
            sent[k] = ask_start(&some[k], k % 3 ? PEER_ECHO : PEER_NEVER, "question", 8, 0);
        if (i % 7 == 0)
            peer_hang_up();
        for (volatile int spin = 0; spin < i * 500; spin++)
            ;
        finish();
        for (int k = 0; k < 20; k++)
            ck_assert_int_eq(some[k].answers, sent[k] == 0);
        while (sem_trywait(&came_up) == 0)
            ;
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("rpc-client");
    TCase *t = tcase_create("rpc-client");

    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, calls_are_answered);
    tcase_add_test(t, a_call_that_exceeds_the_record_size_is_refused);
    tcase_add_test(t, refusals_by_rpc_are_errors_of_the_call);
    tcase_add_test(t, replies_to_unknown_calls_are_dropped);
    tcase_add_test(t, bad_records_end_the_connection);
    tcase_add_test(t, a_call_of_the_peer_reaches_its_handler);
    tcase_add_test(t, a_call_without_a_timely_reply_times_out);
    tcase_add_test(t, a_silent_peer_is_given_up);
    tcase_add_test(t, a_peer_that_answers_pings_is_not_given_up);
    tcase_add_test(t, an_idle_client_is_quiet);
    tcase_add_test(t, a_peer_that_starts_late_is_reached);
    tcase_add_test(t, calls_are_refused_before_the_handshake_is_done);
    tcase_add_test(t, a_drop_ends_the_calls_and_the_client_reconnects);
    tcase_add_test(t, calls_max_is_the_limit);
    tcase_add_test(t, invalid_options_are_refused);
    tcase_add_test(t, every_call_has_one_callback);
    tcase_add_test(t, each_sent_call_gets_one_answer_when_the_client_is_closed);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
