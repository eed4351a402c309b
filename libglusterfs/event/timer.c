/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Timers lie in a tree in the order of their due times, and a thread sleeps until the first is due.
 * Thousands of bricks have three timers each, with periods from seconds to minutes, so a new timer's place
 * may be anywhere. The thread wakes only when a timer is due or a new timer becomes the first. */
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
    pthread_mutex_t lock; /* guards all members below and every struct timer */
    pthread_cond_t wake;  /* the first due time has changed, or is_stopping */
    pthread_cond_t done;  /* signalled when fn of `running` has returned */
    struct tree_node *armed;
    struct timer *running; /* only compared, never dereferenced: its fn may have freed it */
    pthread_t thread;
    bool is_started, is_stopping, is_initialised;
} timers = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
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
}

static struct timer *
timer_of(const struct tree_node *n)
{
    return caa_container_of(n, struct timer, node);
}

/* Orders by due time; timers due in the same nanosecond have any order. */
static int
timer_order(const struct tree_node *a, const struct tree_node *b)
{
    uint64_t x = timer_of(a)->due_ns, y = timer_of(b)->due_ns;

    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

static const struct tree_kind armed_kind = {.order = timer_order};

/* NULL: none is armed. */
static struct timer *
first_locked(void)
{
    return timers.armed ? timer_of(tree_first(timers.armed)) : NULL;
}

static void
arm_locked(struct timer *t, uint64_t due_ns)
{
    t->due_ns = due_ns;
    t->is_armed = true;
    tree_insert(&timers.armed, &t->node, &armed_kind);
}

static void
disarm_locked(struct timer *t)
{
    tree_remove(&timers.armed, &t->node, &armed_kind);
    t->is_armed = false;
}

void
timer_start(struct timer *t, uint64_t delay_ms)
{
    uint64_t due = clock_mono_ns() + delay_ms * 1000000u;

    pthread_mutex_lock(&timers.lock);
    if (t->is_armed)
        disarm_locked(t);
    arm_locked(t, due);
    if (first_locked() == t && timers.is_started)
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
            disarm_locked(t);
            was_armed = true;
        }
        if (timers.running != t || is_timer_thread)
            break;
        pthread_cond_wait(&timers.done, &timers.lock); /* then check again: fn may have re-armed the timer */
    }
    pthread_mutex_unlock(&timers.lock);
    return was_armed;
}

static void
timer_run_locked(struct timer *t)
{
    disarm_locked(t);
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
timer_wait_locked(uint64_t due_ns)
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
        struct timer *first = first_locked();

        if (!first)
            timer_wait_locked(UINT64_MAX);
        else if (first->due_ns <= clock_mono_ns())
            timer_run_locked(first);
        else
            timer_wait_locked(first->due_ns);
    }
    pthread_mutex_unlock(&timers.lock);
    rcu_unregister_thread();
    return NULL;
}

/* Makes the condition variable that sleeps by the monotonic clock; once, never destroyed. */
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
        sigdelset(&all, SIGSYS); /* else a system call that the sandbox refuses would end the process */
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
    while (timers.armed)
        disarm_locked(first_locked());
    pthread_mutex_unlock(&timers.lock);
}
