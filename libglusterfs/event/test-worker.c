/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "event/charge.h"
#include "event/timer.h"
#include "event/worker.h"

#define JOBS 100

static sem_t done, gate, entered;

static void
setup(void)
{
    sem_init(&done, 0, 0);
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 16}), 0);
}

static void
teardown(void)
{
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

struct numbered_job {
    struct worker_job job;
    int number;
    pthread_t thread;
};

static struct numbered_job jobs[JOBS];
static atomic_int next_number;
static atomic_bool is_in_handler;

static void
ordered_run(struct worker_job *job)
{
    struct numbered_job *j = caa_container_of(job, struct numbered_job, job);

    ck_assert(!is_in_handler); /* not from inside worker_post() */
    ck_assert_int_eq(j->number, next_number++);
    j->thread = pthread_self();
    if (j->number == JOBS - 1)
        sem_post(&done);
}

static void
post_all_run(struct worker_job *job)
{
    struct numbered_job *j = caa_container_of(job, struct numbered_job, job);

    j->thread = pthread_self();
    is_in_handler = true;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct numbered_job){.job.run = ordered_run, .number = i};
        worker_post(&jobs[i].job);
    }
    is_in_handler = false;
}

START_TEST(posted_by_a_worker_runs_there_in_order)
{
    struct numbered_job first = {.job.run = post_all_run};

    next_number = 0;
    worker_post(&first.job);
    wait_for(&done);
    ck_assert(pthread_equal(jobs[0].thread, first.thread));
}
END_TEST

static atomic_int count;

static void
count_run(struct worker_job *job)
{
    (void)job;
    if (++count == 4 * JOBS)
        sem_post(&done);
}

static void *
post_many(void *arg)
{
    struct worker_job *mine = arg;

    for (int i = 0; i < JOBS; i++) {
        mine[i].run = count_run;
        worker_post(&mine[i]);
    }
    return NULL;
}

START_TEST(posted_by_other_threads_runs_once_each)
{
    static struct worker_job mine[4][JOBS];
    pthread_t thread[4];

    count = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, post_many, mine[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    wait_for(&done);
    ck_assert_int_eq(count, 4 * JOBS);
}
END_TEST

static void
blocking_run(struct worker_job *job)
{
    (void)job;
    sem_post(&entered);
    worker_block_begin();
    wait_for(&gate);
    worker_block_end();
    sem_post(&done);
}

static void
done_run(struct worker_job *job)
{
    (void)job;
    sem_post(&done);
}

START_TEST(pool_grows_while_workers_block)
{
    struct worker_job blocking[6], quick = {.run = done_run};
    struct worker_stats stats;

    for (int i = 0; i < 6; i++) {
        blocking[i].run = blocking_run;
        worker_post(&blocking[i]);
    }
    for (int i = 0; i < 6; i++)
        wait_for(&entered); /* two workers at first: four more were added */
    worker_post(&quick);
    wait_for(&done);
    do { /* a job announces its entry before worker_block_begin() */
        sched_yield();
        worker_stats(&stats);
    } while (stats.blocked < 6);
    ck_assert_uint_ge(stats.threads, 7);
    ck_assert_uint_le(stats.threads, 16);
    ck_assert_uint_eq(stats.blocked, 6);
    ck_assert_uint_ge(stats.grown, 5);
    for (int i = 0; i < 6; i++)
        sem_post(&gate);
    for (int i = 0; i < 6; i++)
        wait_for(&done);
}
END_TEST

/* Shorter than a tick. */
static void
napping_run(struct worker_job *job)
{
    (void)job;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    sem_post(&done);
}

/* The third of two workers leaves although three are woken again and again. */
START_TEST(surplus_workers_end_under_a_small_load)
{
    struct worker_job blocking[6], napping[3];
    struct timespec nap = {.tv_nsec = 20000000};
    struct worker_stats stats;

    workers_stop();
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 16, .idle_ms = 400}), 0);
    for (int i = 0; i < 6; i++) {
        blocking[i].run = blocking_run;
        worker_post(&blocking[i]);
    }
    for (int i = 0; i < 6; i++)
        wait_for(&entered);
    for (int i = 0; i < 6; i++)
        sem_post(&gate);
    for (int i = 0; i < 6; i++)
        wait_for(&done);
    do { /* or until the test's time is up */
        for (int i = 0; i < 3; i++) {
            napping[i].run = napping_run;
            worker_post(&napping[i]);
        }
        for (int i = 0; i < 3; i++)
            wait_for(&done);
        nanosleep(&nap, NULL);
        worker_stats(&stats);
    } while (stats.threads > 2);
    ck_assert_uint_ge(stats.shrunk, 4);
}
END_TEST

static struct worker_job behind = {.run = done_run};

static void
post_and_block_run(struct worker_job *job)
{
    worker_post(&behind);
    blocking_run(job);
}

START_TEST(job_behind_a_stuck_worker_is_rescued)
{
    struct worker_job stuck = {.run = post_and_block_run};

    worker_post(&stuck);
    wait_for(&entered);
    wait_for(&done); /* `behind`, by another worker: the gate is still closed */
    sem_post(&gate);
    wait_for(&done);
}
END_TEST

START_TEST(growth_ends_at_max)
{
    struct worker_job blocking[40];
    struct worker_stats stats;

    for (int i = 0; i < 40; i++) {
        blocking[i].run = blocking_run;
        worker_post(&blocking[i]);
    }
    for (int i = 0; i < 16; i++)
        wait_for(&entered);
    worker_stats(&stats);
    ck_assert_uint_eq(stats.threads, 16);
    for (int i = 0; i < 40; i++)
        sem_post(&gate);
    for (int i = 0; i < 40; i++)
        wait_for(&done);
}
END_TEST

struct pipe_source {
    struct event_source src;
    int write_fd;
    atomic_int bytes, calls;
    atomic_bool is_gone;
};

static void
pipe_event(struct event_source *src, uint32_t events)
{
    struct pipe_source *p = caa_container_of(src, struct pipe_source, src);
    char buf[16];
    ssize_t n;

    ck_assert(!p->is_gone);
    p->calls++;
    if (!(events & EPOLLIN))
        return;
    while ((n = read(src->fd, buf, sizeof buf)) > 0) {
        p->bytes += (int)n;
        for (ssize_t i = 0; i < n; i++)
            sem_post(&done);
    }
}

static void
pipe_gone(struct event_source *src)
{
    struct pipe_source *p = caa_container_of(src, struct pipe_source, src);

    p->is_gone = true;
    close(src->fd);
    close(p->write_fd);
    sem_post(&entered);
}

static void
pipe_open(struct pipe_source *p, void (*gone)(struct event_source *))
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    *p = (struct pipe_source){.src = {.fd = fds[0], .fn = pipe_event, .gone = gone}, .write_fd = fds[1]};
    ck_assert_int_eq(event_add(&p->src, EPOLLIN), 0);
}

START_TEST(events_reach_the_handler)
{
    struct pipe_source p;

    pipe_open(&p, NULL);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(write(p.write_fd, "x", 1), 1);
        wait_for(&done);
    }
    ck_assert_int_eq(p.bytes, 50);
    ck_assert_int_eq(write(p.write_fd, "y", 1), 1);
    wait_for(&done);
    event_remove(&p.src);
    int calls = p.calls;

    ck_assert_int_eq(write(p.write_fd, "z", 1), 1);
    ck_assert_int_eq(p.calls, calls);
    close(p.src.fd);
    close(p.write_fd);
}
END_TEST

/* Removes a source while handlers run on other workers: `gone` comes after the last of them, and the same
 * number can be used again at once. ASan and TSan check this. */
START_TEST(a_source_with_pending_events_is_removed)
{
    for (int round = 0; round < 200; round++) {
        struct pipe_source *p = malloc(sizeof *p);

        pipe_open(p, pipe_gone);
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(write(p->write_fd, "x", 1), 1);
        event_remove(&p->src);
        wait_for(&entered);
        free(p);
    }
}
END_TEST

START_TEST(modify_reports_what_is_ready)
{
    struct pipe_source p;

    pipe_open(&p, NULL);
    ck_assert_int_eq(event_modify(&p.src, 0), 0);
    ck_assert_int_eq(write(p.write_fd, "x", 1), 1);
    ck_assert_int_eq(event_modify(&p.src, EPOLLIN), 0);
    wait_for(&done);
    event_remove(&p.src);
    ck_assert_int_eq(event_modify(&p.src, EPOLLIN), -ENOENT);
    close(p.src.fd);
    close(p.write_fd);
}
END_TEST

START_TEST(start_and_stop_in_a_loop)
{
    for (int round = 0; round < 30; round++) {
        static struct worker_job mine[JOBS];

        count = 3 * JOBS;
        post_many(mine);
        workers_stop(); /* runs the posted jobs */
        ck_assert_int_eq(count, 4 * JOBS);
        wait_for(&done);
        ck_assert_int_eq(workers_start(&(struct worker_options){.min = 1 + (unsigned)round % 4}), 0);
    }
}
END_TEST

START_TEST(idle_pool_sleeps)
{
    struct timespec nap = {.tv_nsec = 200000000}, begin, end;
    struct worker_job quick = {.run = done_run};
    long used_us = LONG_MAX;

    worker_post(&quick);
    wait_for(&done);
    /* The watchdog ticks a while longer; on a busy machine that takes long. A pool that never sleeps fails
     * here. */
    for (int tries = 0; used_us >= 2000 && tries < 50; tries++) {
        nanosleep(&nap, NULL);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        nanosleep(&nap, NULL);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        used_us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
    }
    ck_assert_int_lt(used_us, 2000);
}
END_TEST

/* ---- processor time -------------------------------------------------------------------------- */

enum { TURNS = 3000 };

static uint64_t
cpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static _Atomic uint64_t charged[2], spent[2];

struct burning_job {
    struct worker_job job;
    int whose; /* -1: no counter */
};

static void
burning_run(struct worker_job *job)
{
    struct burning_job *j = caa_container_of(job, struct burning_job, job);
    uint64_t began = cpu_now(), burn = j->whose == 0 ? 30000 : 90000, took = 0;

    while (took < burn)
        took = cpu_now() - began;
    if (j->whose >= 0) {
        worker_charge = &charged[j->whose];
        atomic_fetch_add(&spent[j->whose], took);
    }
    sem_post(&done);
}

START_TEST(processor_time_is_shared_out)
{
    static struct burning_job all[TURNS];

    for (int i = 0; i < TURNS; i++) {
        all[i] = (struct burning_job){.job.run = burning_run, .whose = i % 3 - 1};
        worker_post_any(&all[i].job);
    }
    for (int i = 0; i < TURNS; i++)
        wait_for(&done);
    workers_stop(); /* the last turn has ended */
    for (int i = 0; i < 2; i++) {
        double share = (double)charged[i] / (double)spent[i];

        /* some 62 measured turns each: 7 deviations, and the cost of a turn besides the burning */
        ck_assert_msg(share > 0.4 && share < 2.5, "%d: %.2f of the time", i, share);
    }
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 16}), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("worker");
    TCase *c = tcase_create("worker");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 30);
    tcase_add_test(c, posted_by_a_worker_runs_there_in_order);
    tcase_add_test(c, posted_by_other_threads_runs_once_each);
    tcase_add_test(c, pool_grows_while_workers_block);
    tcase_add_test(c, surplus_workers_end_under_a_small_load);
    tcase_add_test(c, job_behind_a_stuck_worker_is_rescued);
    tcase_add_test(c, growth_ends_at_max);
    tcase_add_test(c, events_reach_the_handler);
    tcase_add_test(c, a_source_with_pending_events_is_removed);
    tcase_add_test(c, modify_reports_what_is_ready);
    tcase_add_test(c, start_and_stop_in_a_loop);
    tcase_add_test(c, idle_pool_sleeps);
    tcase_add_test(c, processor_time_is_shared_out);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
