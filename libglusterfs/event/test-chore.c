/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "event/chore.h"

static struct chore chore;
static sem_t entered, gate;
static atomic_int runs;
static atomic_uint again_ms;

/* Waits at the gate in each run. */
static uint64_t
work(struct chore *c)
{
    (void)c;
    atomic_fetch_add(&runs, 1);
    sem_post(&entered);
    sem_wait(&gate);
    return atomic_load(&again_ms);
}

static void
setup(void)
{
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    atomic_store(&runs, 0);
    atomic_store(&again_ms, 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 16}), 0);
    chore_init(&chore, work);
}

static void
teardown(void)
{
    chore_stop(&chore);
    chore_destroy(&chore);
    workers_stop();
}

static void
wait_for(sem_t *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    ck_assert_int_eq(sem_timedwait(s, &until), 0);
}

START_TEST(a_chore_repeats_until_it_returns_zero)
{
    atomic_store(&again_ms, 1);
    chore_start(&chore, 1);
    for (int i = 0; i < 3; i++) {
        wait_for(&entered);
        if (i == 2)
            atomic_store(&again_ms, 0);
        sem_post(&gate);
    }
    chore_stop(&chore);
    ck_assert_int_eq(atomic_load(&runs), 3);
}
END_TEST

/* The work may have read its input before the caller changed it and called chore_start(). */
START_TEST(a_start_while_the_chore_runs_is_kept)
{
    chore_start(&chore, 1);
    wait_for(&entered);
    chore_start(&chore, 1);
    chore_start(&chore, 1);
    sem_post(&gate);
    wait_for(&entered);
    sem_post(&gate);
    chore_stop(&chore);
    ck_assert_int_eq(atomic_load(&runs), 2);
}
END_TEST

START_TEST(a_stopped_chore_does_not_start)
{
    chore_start(&chore, 60000);
    chore_stop(&chore);
    chore_start(&chore, 1);
    chore_restart(&chore, 1);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    ck_assert_int_eq(atomic_load(&runs), 0);
    ck_assert(chore_is_dismissed(&chore));
}
END_TEST

START_TEST(a_restart_moves_a_waiting_chore_forward)
{
    chore_start(&chore, 600000);
    chore_start(&chore, 1); /* it already waits */
    chore_restart(&chore, 1);
    wait_for(&entered);
    sem_post(&gate);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("chore");
    TCase *c = tcase_create("chore");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_chore_repeats_until_it_returns_zero);
    tcase_add_test(c, a_start_while_the_chore_runs_is_kept);
    tcase_add_test(c, a_stopped_chore_does_not_start);
    tcase_add_test(c, a_restart_moves_a_waiting_chore_forward);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
