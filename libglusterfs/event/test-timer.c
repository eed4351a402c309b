/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "event/timer.h"

struct probe {
    struct timer timer;
    int number;
    atomic_int runs;
};

static sem_t ran, may_go_on;
static atomic_int order[8], order_count;

static void
setup(void)
{
    ck_assert_int_eq(timers_start(), 0);
    sem_init(&ran, 0, 0);
    sem_init(&may_go_on, 0, 0);
    order_count = 0;
}

static void
teardown(void)
{
    timers_stop();
}

static void
wait_for(sem_t *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    ck_assert_int_eq(sem_timedwait(s, &until), 0);
}

static void
note_fn(struct timer *t)
{
    struct probe *p = caa_container_of(t, struct probe, timer);

    p->runs++;
    order[order_count++] = p->number;
    sem_post(&ran);
}

static void
forget_runs(void)
{
    order_count = 0;
    while (sem_trywait(&ran) == 0)
        ;
}

START_TEST(runs_in_order_of_due_time)
{
    struct probe p[4];
    static const int delay[] = {80, 20, 60, 40};
    uint64_t begin;

    for (int i = 0; i < 4; i++) {
        p[i] = (struct probe){.number = delay[i]};
        timer_init(&p[i].timer, note_fn);
    }
    for (;;) {
        begin = clock_mono_ns();
        for (int i = 0; i < 4; i++)
            timer_start(&p[i].timer, (uint64_t)delay[i]);
        if (clock_mono_ns() - begin < 20u * 1000000u)
            break;
        /* A busy machine delayed this thread, so the order of due times has changed: try again. */
        for (int i = 0; i < 4; i++)
            timer_stop(&p[i].timer);
        forget_runs();
    }
    for (int i = 0; i < 4; i++)
        wait_for(&ran);
    ck_assert_uint_ge(clock_mono_ns() - begin, 80u * 1000000u);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(order[i], 20 * (i + 1));
}
END_TEST

START_TEST(a_second_start_moves_the_timer)
{
    struct probe late = {.number = 1}, other = {.number = 2};

    timer_init(&late.timer, note_fn);
    timer_init(&other.timer, note_fn);
    timer_start(&late.timer, 3600 * 1000);
    timer_start(&other.timer, 1800 * 1000);
    timer_start(&late.timer, 1);
    wait_for(&ran);
    ck_assert_int_eq(order[0], 1);
    ck_assert(!timer_stop(&late.timer));
    ck_assert(timer_stop(&other.timer));
    ck_assert_int_eq(late.runs, 1);
}
END_TEST

START_TEST(stop_disarms)
{
    struct probe never = {.number = 1}, other = {.number = 2};

    timer_init(&never.timer, note_fn);
    timer_init(&other.timer, note_fn);
    ck_assert(!timer_stop(&never.timer));
    uint64_t delay = 5;

    /* On a busy machine the timer may have run before it could be stopped: then there was nothing to
     * disarm. */
    for (;; delay *= 2) {
        timer_start(&never.timer, delay);
        if (timer_stop(&never.timer))
            break;
        wait_for(&ran);
    }
    ck_assert(!timer_stop(&never.timer));
    never.runs = 0;
    timer_start(&other.timer, 3 * delay);
    wait_for(&ran);
    ck_assert_int_eq(never.runs, 0);
}
END_TEST

static atomic_bool has_left;

static void
slow_fn(struct timer *t)
{
    timer_start(t, 3600 * 1000); /* armed again while it runs */
    sem_post(&ran);
    wait_for(&may_go_on);
    has_left = true;
}

static void *
release_later(void *arg)
{
    struct timespec nap = {.tv_nsec = 30000000};

    (void)arg;
    nanosleep(&nap, NULL);
    sem_post(&may_go_on);
    return NULL;
}

START_TEST(stop_waits_for_a_running_timer)
{
    struct timer t;
    pthread_t thread;

    has_left = false;
    timer_init(&t, slow_fn);
    timer_start(&t, 0);
    wait_for(&ran);
    pthread_create(&thread, NULL, release_later, NULL);
    ck_assert(timer_stop(&t)); /* it had re-armed itself */
    ck_assert(has_left);
    ck_assert(!t.is_armed);
    pthread_join(thread, NULL);
}
END_TEST

static void
thrice_fn(struct timer *t)
{
    struct probe *p = caa_container_of(t, struct probe, timer);

    if (++p->runs < 3) {
        timer_start(t, 1);
        return;
    }
    timer_start(t, 0);
    ck_assert(timer_stop(t)); /* from its own fn: does not wait for itself */
    free(p);                  /* and may be freed */
    sem_post(&ran);
}

START_TEST(own_fn_may_start_stop_and_free)
{
    struct probe *p = calloc(1, sizeof *p);

    timer_init(&p->timer, thrice_fn);
    timer_start(&p->timer, 0);
    wait_for(&ran);
}
END_TEST

START_TEST(timers_stop_disarms_all)
{
    struct probe p = {.number = 1};

    timer_init(&p.timer, note_fn);
    timer_start(&p.timer, 3600 * 1000);
    timers_stop();
    ck_assert(!p.timer.is_armed);
    timer_start(&p.timer, 0); /* waits for the next start */
    ck_assert_int_eq(timers_start(), 0);
    wait_for(&ran);
}
END_TEST

enum { MANY = 1 << 14 };

static uint64_t due[MANY]; /* of the timers that have run */
static unsigned due_count; /* used by the timer thread until all have run */

static void
note_due(struct timer *t)
{
    due[due_count++] = t->due_ns;
    sem_post(&ran);
}

/* Arms short and long timers in turn, some twice, so that each has its place somewhere in the middle. */
START_TEST(many_timers_run_in_order)
{
    struct timer *t = calloc(2 * MANY, sizeof *t);

    ck_assert_ptr_nonnull(t);
    due_count = 0;
    timers_stop(); /* timers that are armed now run after the next start, in order */
    for (unsigned i = 0; i < 2 * MANY; i++) {
        timer_init(&t[i], note_due);
        timer_start(&t[i], i % 2 ? 3600 * 1000 + i : (i * 7919u) % 100);
    }
    for (unsigned i = 0; i < 2 * MANY; i += 6)
        timer_start(&t[i], i % 100);
    ck_assert_int_eq(timers_start(), 0);
    for (unsigned i = 0; i < MANY; i++)
        wait_for(&ran);
    for (unsigned i = 0; i < 2 * MANY; i++)
        ck_assert(timer_stop(&t[i]) == (i % 2 == 1));
    ck_assert_uint_eq(due_count, MANY);
    for (unsigned i = 1; i < MANY; i++)
        ck_assert_uint_le(due[i - 1], due[i]);
    free(t);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("timer");
    TCase *c = tcase_create("timer");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, runs_in_order_of_due_time);
    tcase_add_test(c, a_second_start_moves_the_timer);
    tcase_add_test(c, stop_disarms);
    tcase_add_test(c, stop_waits_for_a_running_timer);
    tcase_add_test(c, own_fn_may_start_stop_and_free);
    tcase_add_test(c, timers_stop_disarms_all);
    tcase_add_test(c, many_timers_run_in_order);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
