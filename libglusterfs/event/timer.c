/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* One list, sorted by due time, one thread that sleeps until the first is due. A new timer is mostly due
 * after those that wait (periods are alike), so the place is looked for from the end. Nothing wakes the
 * thread but a timer that is due or one that becomes the first.
 */
#include "event/timer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <urcu.h>

#include "base/read-section.h"
#include "mem/mem-pool.h"

static struct {
    pthread_mutex_t lock; /* guards all below and every struct timer */
    pthread_cond_t wake;  /* the first due time has changed, or is_stopping */
    pthread_cond_t done;  /* `running` has returned */
    struct cds_list_head armed;
    struct timer *running; /* only compared: its fn may have freed it */
    pthread_t thread;
    bool is_started, is_stopping, is_initialised;
} timers = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
    .armed = CDS_LIST_HEAD_INIT(timers.armed),
};

static __thread bool is_timer_thread;

uint64_t
clock_mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void
timer_init(struct timer *t, void (*fn)(struct timer *t))
{
    *t = (struct timer){.fn = fn};
    CDS_INIT_LIST_HEAD(&t->link);
}

static void
insert_locked(struct timer *t)
{
    struct cds_list_head *at = timers.armed.prev;

    while (at != &timers.armed && cds_list_entry(at, struct timer, link)->due_ns > t->due_ns)
        at = at->prev;
    cds_list_add(&t->link, at);
    t->is_armed = true;
}

void
timer_start(struct timer *t, uint64_t delay_ms)
{
    uint64_t due = clock_mono_ns() + delay_ms * 1000000u;

    pthread_mutex_lock(&timers.lock);
    if (t->is_armed)
        cds_list_del(&t->link);
    t->due_ns = due;
    insert_locked(t);
    if (timers.armed.next == &t->link && timers.is_started)
        pthread_cond_signal(&timers.wake);
    pthread_mutex_unlock(&timers.lock);
}

bool
timer_stop(struct timer *t)
{
    bool was_armed = false;

    pthread_mutex_lock(&timers.lock);
    for (;;) {
        if (t->is_armed) {
            cds_list_del(&t->link);
            t->is_armed = false;
            was_armed = true;
        }
        if (timers.running != t || is_timer_thread)
            break;
        pthread_cond_wait(&timers.done, &timers.lock); /* then look again: fn may have re-armed it */
    }
    pthread_mutex_unlock(&timers.lock);
    return was_armed;
}

static void
run_locked(struct timer *t)
{
    cds_list_del(&t->link);
    t->is_armed = false;
    timers.running = t;
    pthread_mutex_unlock(&timers.lock);

    read_section_begin();
    t->fn(t);
    read_section_end();

    pthread_mutex_lock(&timers.lock);
    timers.running = NULL;
    pthread_cond_broadcast(&timers.done);
}

static void
wait_locked(uint64_t due_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(due_ns / 1000000000u), .tv_nsec = (long)(due_ns % 1000000000u)};

    mem_pool_idle();
    if (due_ns == UINT64_MAX)
        pthread_cond_wait(&timers.wake, &timers.lock);
    else
        pthread_cond_timedwait(&timers.wake, &timers.lock, &ts);
}

static void *
timer_main(void *arg)
{
    (void)arg;
    is_timer_thread = true;
    pthread_setname_np(pthread_self(), "kiln-timer");
    rcu_register_thread();
    pthread_mutex_lock(&timers.lock);
    while (!timers.is_stopping) {
        if (cds_list_empty(&timers.armed)) {
            wait_locked(UINT64_MAX);
            continue;
        }
        struct timer *first = cds_list_first_entry(&timers.armed, struct timer, link);

        if (first->due_ns <= clock_mono_ns())
            run_locked(first);
        else
            wait_locked(first->due_ns);
    }
    pthread_mutex_unlock(&timers.lock);
    rcu_unregister_thread();
    return NULL;
}

/* The condition variable that sleeps by the monotonic clock; made once, never destroyed. */
static int
wake_init_locked(void)
{
    pthread_condattr_t attr;

    if (timers.is_initialised)
        return 0;
    int err = pthread_condattr_init(&attr);

    if (err)
        return -err;
    err = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (!err)
        err = pthread_cond_init(&timers.wake, &attr);
    pthread_condattr_destroy(&attr);
    timers.is_initialised = !err;
    return -err;
}

int
timers_start(void)
{
    sigset_t all, before;

    pthread_mutex_lock(&timers.lock);
    assert(!timers.is_started);
    int err = wake_init_locked();

    if (!err) {
        timers.is_stopping = false;
        sigfillset(&all); /* signals are for the main thread */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        err = -pthread_create(&timers.thread, NULL, timer_main, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        timers.is_started = !err;
    }
    pthread_mutex_unlock(&timers.lock);
    return err;
}

void
timers_stop(void)
{
    pthread_mutex_lock(&timers.lock);
    if (!timers.is_started) {
        pthread_mutex_unlock(&timers.lock);
        return;
    }
    timers.is_stopping = true;
    pthread_cond_signal(&timers.wake);
    pthread_mutex_unlock(&timers.lock);
    pthread_join(timers.thread, NULL);

    pthread_mutex_lock(&timers.lock);
    timers.is_started = false;
    while (!cds_list_empty(&timers.armed)) {
        struct timer *t = cds_list_first_entry(&timers.armed, struct timer, link);

        cds_list_del(&t->link);
        t->is_armed = false;
    }
    pthread_mutex_unlock(&timers.lock);
}
