/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "event/chore.h"

/* Runs on the housekeeping thread, which must not block. */
static void
chore_due(struct timer *t)
{
    struct chore *c = caa_container_of(t, struct chore, timer);

    pthread_mutex_lock(&c->lock);
    /* is_posted is set if the chore was started again between the timer's firing and this lock */
    bool is_due = !c->is_stopped && !c->is_posted;
    c->is_waiting = false;
    c->is_posted |= is_due;
    pthread_mutex_unlock(&c->lock);
    if (is_due)
        worker_post(&c->job);
}

static void
chore_run(struct worker_job *job)
{
    struct chore *c = caa_container_of(job, struct chore, job);
    uint64_t again_ms = 0;

    worker_block_begin();
    if (!chore_is_dismissed(c))
        again_ms = c->fn(c);
    worker_block_end();

    pthread_mutex_lock(&c->lock);
    c->is_posted = false;
    again_ms = c->asked_ms ? c->asked_ms : again_ms;
    c->asked_ms = 0;
    if (again_ms > 0 && !c->is_stopped) {
        c->is_waiting = true;
        timer_start(&c->timer, again_ms);
    }
    pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->lock);
}

void
chore_init(struct chore *c, uint64_t (*fn)(struct chore *c))
{
    timer_init(&c->timer, chore_due);
    c->job.run = chore_run;
    c->fn = fn;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->idle, NULL);
    c->is_waiting = c->is_posted = false;
    c->asked_ms = 0;
    atomic_init(&c->is_stopped, false);
}

void
chore_destroy(struct chore *c)
{
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->idle);
}

static void
chore_arm(struct chore *c, uint64_t delay_ms, bool even_if_waiting)
{
    pthread_mutex_lock(&c->lock);
    if (c->is_posted) {
        c->asked_ms = delay_ms;
    } else if ((even_if_waiting || !c->is_waiting) && !c->is_stopped) {
        c->is_waiting = true;
        timer_start(&c->timer, delay_ms);
    }
    pthread_mutex_unlock(&c->lock);
}

void
chore_start(struct chore *c, uint64_t delay_ms)
{
    chore_arm(c, delay_ms, false);
}

void
chore_restart(struct chore *c, uint64_t delay_ms)
{
    chore_arm(c, delay_ms, true);
}

void
chore_dismiss(struct chore *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_stopped = true;
    pthread_mutex_unlock(&c->lock);
}

void
chore_stop(struct chore *c)
{
    chore_dismiss(c);
    timer_stop(&c->timer); /* not under the lock, which a timer that is just running needs */
    pthread_mutex_lock(&c->lock);
    while (c->is_posted)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
}
