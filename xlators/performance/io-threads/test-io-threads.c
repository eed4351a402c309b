/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The limits of io-threads above two bottom layers: a layer that keeps operations until the test releases
 * them, and a layer that several threads pass at full speed. */
#include "xlators/features/test-layers.h"

#include <unistd.h>

#include "data/dict.h"
#include "event/timer.h"

extern const struct xlator_type performance_io_threads_xlator;

enum { KEPT_MAX = 64, SHORT_WAIT_MS = 50 };

/* ---- a bottom layer that keeps operations ---------------------------------------------------- */

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t kept_changed = PTHREAD_COND_INITIALIZER;
static struct call_stack *kept[KEPT_MAX];
static unsigned kept_count;

static xl_verdict
keep(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    pthread_mutex_lock(&kept_lock);
    ck_assert_uint_lt(kept_count, KEPT_MAX);
    kept[kept_count++] = stk;
    pthread_cond_signal(&kept_changed);
    pthread_mutex_unlock(&kept_lock);
    return XL_OWNED;
}

/* Waits until `count` operations are kept, then checks that no more arrive. */
static void
expect_kept(unsigned count)
{
    struct timespec until;
    bool times_out = false;

    pthread_mutex_lock(&kept_lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    while (kept_count < count && !times_out)
        times_out = pthread_cond_timedwait(&kept_changed, &kept_lock, &until) != 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SHORT_WAIT_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    times_out = false;
    while (kept_count <= count && !times_out)
        times_out = pthread_cond_timedwait(&kept_changed, &kept_lock, &until) != 0;
    ck_assert_uint_eq(kept_count, count);
    pthread_mutex_unlock(&kept_lock);
}

/* Waits until at least one operation is kept. */
static void
wait_kept(void)
{
    pthread_mutex_lock(&kept_lock);
    while (!kept_count)
        pthread_cond_wait(&kept_changed, &kept_lock);
    pthread_mutex_unlock(&kept_lock);
}

/* Answers the oldest kept operation. Returns its fop. */
static enum fop
let_go(void)
{
    pthread_mutex_lock(&kept_lock);
    ck_assert_uint_gt(kept_count, 0);
    struct call_stack *stk = kept[0];
    memmove(kept, kept + 1, --kept_count * sizeof *kept);
    pthread_mutex_unlock(&kept_lock);

    enum fop fop = stk->call.fop;
    read_section_begin();
    call_stack_unwind(stk);
    read_section_end();
    return fop;
}

static struct call_stack *
take_kept(unsigned at)
{
    pthread_mutex_lock(&kept_lock);
    ck_assert_uint_gt(kept_count, at);
    struct call_stack *stk = kept[at];
    memmove(kept + at, kept + at + 1, (--kept_count - at) * sizeof *kept);
    pthread_mutex_unlock(&kept_lock);
    return stk;
}

/* Answers the newest kept operation. Returns its fop. */
static enum fop
let_go_last(void)
{
    struct call_stack *stk = take_kept(kept_count - 1);
    enum fop fop = stk->call.fop;

    read_section_begin();
    call_stack_unwind(stk);
    read_section_end();
    return fop;
}

/* Parks all kept operations below io-threads. */
static void
park_all(void)
{
    struct call_stack *all[KEPT_MAX];

    pthread_mutex_lock(&kept_lock);
    unsigned count = kept_count;
    memcpy(all, kept, sizeof all);
    pthread_mutex_unlock(&kept_lock);
    read_section_begin();
    for (unsigned i = 0; i < count; i++)
        call_stack_park(all[i]);
    read_section_end();
}

static void
go_on(struct call_stack *stk)
{
    read_section_begin();
    call_stack_unpark(stk);
    read_section_end();
}

static void
answer_with(struct call_stack *stk, int err)
{
    read_section_begin();
    call_stack_fail(stk, err);
    read_section_end();
}

static struct bench_call *
begin(enum fop fop, int32_t pid)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->caller.pid = pid;
    bench_wind(call);
    return call;
}

static void
end(struct bench_call **calls, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(bench_result(calls[i]), 0);
        bench_free(calls[i]);
    }
}

static void
setup(void)
{
    kept_count = 0;
    bench_setup(&performance_io_threads_xlator,
                (const char *const[]){"thread-count", "4", "low-prio-threads", "2", NULL}, keep);
}

START_TEST(at_most_thread_count_calls_run)
{
    struct bench_call *calls[10];

    for (int i = 0; i < 10; i++)
        calls[i] = begin(FOP_lookup, 100);
    expect_kept(4);
    for (unsigned left = 10; left > 0; left--) {
        let_go();
        expect_kept(left - 1 < 4 ? left - 1 : 4);
    }
    for (int i = 0; i < 10; i++) { /* expect_kept() waited that long while the others were parked */
        uint64_t waited = ticks_to_ns(calls[i]->stk->waited[WAIT_QUEUE]);

        ck_assert(i < 4 ? waited == 0 : waited > SHORT_WAIT_MS * UINT64_C(500000));
    }
    end(calls, 10);
}
END_TEST

/* A connection is gone while the connection's calls are parked, but the client has another one: reads are not
 * executed, a change is. */
START_TEST(calls_of_a_gone_connection)
{
    struct bench_call *calls[8];
    atomic_bool is_gone = false;

    for (int i = 0; i < 8; i++) {
        calls[i] = bench_call(i % 2 ? FOP_lookup : FOP_setattr, NULL);
        calls[i]->stk->caller.pid = 100;
        calls[i]->stk->is_asker_gone = &is_gone;
        bench_wind(calls[i]);
    }
    expect_kept(4);
    is_gone = true;
    for (int i = 0; i < 6; i++) { /* four that ran already, and the two parked writes */
        wait_kept();
        let_go();
    }
    expect_kept(0);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(bench_result(calls[i]), i < 4 || i % 2 == 0 ? 0 : -ENOTCONN);
        bench_free(calls[i]);
    }
}
END_TEST

/* The client is gone while some of the client's calls run and others are parked. The parked calls are not
 * executed, because another client may have got the client's locks; nor is a later call, except a flush. */
START_TEST(calls_of_a_gone_client)
{
    struct brick_client *client = bench_client("alice"), *other = bench_client("bob");
    struct bench_call *calls[9];

    for (int i = 0; i < 8; i++) {
        calls[i] = bench_call(i % 2 ? FOP_writev : FOP_setattr, i == 7 ? other : client);
        calls[i]->stk->caller.pid = 100;
        bench_wind(calls[i]);
    }
    expect_kept(4);
    brick_client_ref(client);
    bench_client_gone(client);
    calls[8] = bench_call(FOP_unlink, client);
    bench_wind(calls[8]);
    ck_assert_int_eq(bench_result(calls[8]), -ENOTCONN);
    for (int i = 0; i < 5; i++) { /* four that ran already, and the other client's */
        wait_kept();
        let_go();
    }
    expect_kept(0);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(bench_result(calls[i]), i < 4 || i == 7 ? 0 : -ENOTCONN);
    struct bench_call *flush = bench_call(FOP_flush, client);
    bench_wind(flush);
    expect_kept(1);
    let_go();
    ck_assert_int_eq(bench_result(flush), 0);
    bench_free(flush);
    for (int i = 0; i < 9; i++)
        bench_free(calls[i]);
    brick_client_unref(client);
    bench_client_gone(other);
}
END_TEST

START_TEST(each_priority_has_its_limit)
{
    struct bench_call *calls[9];

    for (int i = 0; i < 4; i++)
        calls[i] = begin(FOP_writev, 100); /* LOW: 2 */
    expect_kept(2);
    for (int i = 4; i < 7; i++)
        calls[i] = begin(FOP_stat, -6); /* LEAST: 1 */
    expect_kept(3);
    calls[7] = begin(FOP_lookup, 100); /* HIGH: there is one place left */
    expect_kept(4);
    calls[8] = begin(FOP_lookup, -4); /* internal, but not LEAST; no place */
    expect_kept(4);
    let_go(); /* a write ends: its place goes to the parked HIGH operation */
    expect_kept(4);
    for (unsigned left = 8; left > 0; left--) {
        wait_kept();
        let_go();
    }
    end(calls, 9);
}
END_TEST

START_TEST(high_comes_before_low)
{
    struct bench_call *calls[7];

    for (int i = 0; i < 4; i++)
        calls[i] = begin(FOP_lookup, 100);
    calls[4] = begin(FOP_writev, 100);
    calls[5] = begin(FOP_create, 100);
    calls[6] = begin(FOP_stat, 100);
    expect_kept(4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(let_go(), FOP_lookup);
        expect_kept(i < 3 ? 4 : 3);
    }
    ck_assert_int_eq(let_go(), FOP_stat);
    ck_assert_int_eq(let_go(), FOP_create);
    ck_assert_int_eq(let_go(), FOP_writev);
    end(calls, 7);
}
END_TEST

START_TEST(locks_are_not_counted)
{
    static const enum fop fops[] = {FOP_lk,       FOP_inodelk, FOP_finodelk, FOP_entrylk,
                                    FOP_fentrylk, FOP_flush,   FOP_release};
    struct bench_call *calls[11];

    for (int i = 0; i < 4; i++)
        calls[i] = begin(FOP_lookup, 100);
    for (int i = 0; i < 7; i++)
        calls[4 + i] = begin(fops[i], 100);
    expect_kept(11);
    while (kept_count)
        let_go();
    end(calls, 11);
}
END_TEST

/* An operation parked below gives up its place, and takes a place again before the operation continues. */
START_TEST(a_call_parked_below_holds_no_place)
{
    struct bench_call *calls[8];

    for (int i = 0; i < 6; i++)
        calls[i] = begin(FOP_unlink, 100);
    expect_kept(4);
    park_all();
    expect_kept(6); /* the other two came in at once */
    for (int i = 6; i < 8; i++)
        calls[i] = begin(FOP_lookup, 100);
    expect_kept(8);   /* 4 parked, 4 running */
    struct call_stack *first = take_kept(0), *second = take_kept(0), *third = take_kept(0);
    go_on(first);     /* no place: it is parked in io-threads */
    ck_assert(!bench_is_done(calls[0]));
    answer_with(second, ENOTCONN); /* answering needs no place */
    ck_assert_int_eq(bench_result(calls[1]), -ENOTCONN);
    ck_assert(!bench_is_done(calls[0]));
    ck_assert_int_eq(let_go_last(), FOP_lookup);
    /* There is no layer below the bottom, so this error shows that the call continued. */
    ck_assert_int_eq(bench_result(calls[0]), -EOPNOTSUPP);
    while (kept_count > 0)
        let_go();
    go_on(third);
    ck_assert_int_eq(bench_result(calls[2]), -EOPNOTSUPP);
    for (int i = 3; i < 8; i++)
        ck_assert_int_eq(bench_result(calls[i]), 0);
    for (int i = 0; i < 8; i++)
        bench_free(calls[i]);
}
END_TEST

START_TEST(raising_a_limit_lets_the_parked_in)
{
    struct bench_call *calls[6];
    /* conf begins with thread_count; reconfigured() sees it as another thread would publish it */
    int64_t *thread_count = bench_xl->conf;

    for (int i = 0; i < 6; i++)
        calls[i] = begin(FOP_lookup, 100);
    expect_kept(4);
    *thread_count = 6;
    performance_io_threads_xlator.reconfigured(bench_xl, NULL);
    expect_kept(6);
    while (kept_count)
        let_go();
    end(calls, 6);
}
END_TEST

START_TEST(queue_sizes_by_getxattr)
{
    struct bench_call *calls[7];
    struct bench_call *ask = bench_call(FOP_getxattr, NULL);

    for (int i = 0; i < 7; i++)
        calls[i] = begin(FOP_lookup, 100);
    expect_kept(4);
    ask->stk->call.name = "io-thread-queue-size";
    bench_wind(ask);
    ck_assert_int_eq(bench_result(ask), 0);
    ck_assert_int_eq(dict_find_text(ask->stk->reply.dict, "HIGH")->v.i, 3);
    ck_assert_int_eq(dict_find_text(ask->stk->reply.dict, "LEAST")->v.i, 0);
    bench_free(ask);
    for (int left = 7; left > 0; left--) {
        let_go();
        expect_kept(left - 1 < 4 ? (unsigned)left - 1 : 4);
    }
    end(calls, 7);
}
END_TEST

/* Returns the answer to kiln.client-call-age in milliseconds, or -errno. */
static int64_t
client_call_age(void)
{
    struct bench_call *ask = bench_call(FOP_getxattr, NULL);
    int64_t age = 0;

    ask->stk->call.name = "kiln.client-call-age";
    ask->stk->caller.pid = -6;
    bench_wind(ask);
    int ret = bench_result(ask);

    ck_assert(ret < 0 || !dict_get_int(ask->stk->reply.dict, DICT_KEY_CLIENT_CALL_AGE, &age));
    bench_free(ask);
    return ret < 0 ? ret : age;
}

static void
run_as(int32_t pid, enum fop fop)
{
    struct bench_call *call = begin(fop, pid);

    let_go();
    end(&call, 1);
}

START_TEST(the_age_of_the_latest_call_of_a_client)
{
    enum { PAUSE_MS = 30 };

    run_as(-6, FOP_lookup);
    ck_assert_int_eq(client_call_age(), -ENODATA);
    run_as(100, FOP_lookup);
    ck_assert_int_ge(client_call_age(), 0);
    usleep(PAUSE_MS * 1000);
    /* a healer does not count, nor do calls that distribute makes on its own */
    run_as(-6, FOP_lookup);
    run_as(-4, FOP_lookup);
    run_as(100, FOP_statfs);
    ck_assert_int_ge(client_call_age(), PAUSE_MS - 1);
    uint64_t before = clock_mono_ns();
    run_as(-4, FOP_writev);
    ck_assert_int_le(client_call_age(), (int64_t)((clock_mono_ns() - before) / 1000000));
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

enum { THREADS = 6, CALLS = 20000 };

static atomic_int inside, most;

static xl_verdict
pass_through(struct xlator *xl, struct call_stack *stk)
{
    int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);

    (void)xl;
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    if (stk->call.size % 64 == 0)
        sched_yield();
    atomic_fetch_sub(&inside, 1);
    return XL_DONE;
}

static void
setup_busy(void)
{
    bench_setup(&performance_io_threads_xlator,
                (const char *const[]){"thread-count", "2", "least-prio-threads", "1", NULL}, pass_through);
}

static void *
wind_many(void *arg)
{
    static const enum fop fops[] = {FOP_lookup, FOP_create, FOP_writev};

    (void)arg;
    rcu_register_thread();
    for (unsigned i = 0; i < CALLS; i++) {
        struct bench_call *call = bench_call(fops[i % 3], NULL);

        call->stk->call.size = i;
        call->stk->caller.pid = i % 5 ? 100 : -6;
        ck_assert_int_eq(bench_run(call), 0);
    }
    rcu_unregister_thread();
    return NULL;
}

START_TEST(no_wake_up_is_lost)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wind_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&inside), 0);
    ck_assert_int_le(atomic_load(&most), 2);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("io-threads");
    TCase *limits = tcase_create("limits"), *busy = tcase_create("busy");

    tcase_add_checked_fixture(limits, setup, bench_teardown);
    tcase_add_test(limits, at_most_thread_count_calls_run);
    tcase_add_test(limits, each_priority_has_its_limit);
    tcase_add_test(limits, calls_of_a_gone_connection);
    tcase_add_test(limits, calls_of_a_gone_client);
    tcase_add_test(limits, high_comes_before_low);
    tcase_add_test(limits, locks_are_not_counted);
    tcase_add_test(limits, a_call_parked_below_holds_no_place);
    tcase_add_test(limits, raising_a_limit_lets_the_parked_in);
    tcase_add_test(limits, queue_sizes_by_getxattr);
    tcase_add_test(limits, the_age_of_the_latest_call_of_a_client);
    suite_add_tcase(s, limits);
    tcase_add_checked_fixture(busy, setup_busy, bench_teardown);
    tcase_set_timeout(busy, 60);
    tcase_add_test(busy, no_wake_up_is_lost);
    suite_add_tcase(s, busy);
    return s;
}

#include "base/test-main.h"
