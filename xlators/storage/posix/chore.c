/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* chore: housekeeping of a brick: a timer that posts a job to the workers, which says when it is due again.
 */
#include "xlators/storage/posix/posix-internal.h"

static struct posix_chore *
chore_of_timer(struct timer *t)
{
    return caa_container_of(t, struct posix_chore, timer);
}

/* On the housekeeping thread, which must not block. */
static void
chore_due(struct timer *t)
{
    struct posix_chore *c = chore_of_timer(t);
    struct posix *p = c->p;

    pthread_mutex_lock(&p->chores_lock);
    /* Posted already: it was started anew between the timer's firing and this lock. */
    bool is_due = !p->chores_stop && !c->is_posted;
    c->is_waiting = false;
    c->is_posted |= is_due;
    pthread_mutex_unlock(&p->chores_lock);
    if (is_due)
        worker_post(&c->job);
}

/* On a worker. */
static void
chore_run(struct worker_job *job)
{
    struct posix_chore *c = caa_container_of(job, struct posix_chore, job);
    struct posix *p = c->p;
    uint64_t again_ms = 0;

    worker_block_begin();
    if (!atomic_load(&p->is_going_down))
        again_ms = c->fn(p);
    worker_block_end();

    pthread_mutex_lock(&p->chores_lock);
    c->is_posted = false;
    if (again_ms > 0 && !p->chores_stop) {
        c->is_waiting = true;
        timer_start(&c->timer, again_ms);
    }
    pthread_cond_broadcast(&p->chores_idle);
    pthread_mutex_unlock(&p->chores_lock);
}

void
posix_chore_init(struct posix_chore *c, struct posix *p, uint64_t (*fn)(struct posix *p))
{
    timer_init(&c->timer, chore_due);
    c->job.run = chore_run;
    c->p = p;
    c->fn = fn;
}

void
posix_chore_start(struct posix_chore *c, uint64_t delay_ms)
{
    pthread_mutex_lock(&c->p->chores_lock);
    if (!c->is_waiting && !c->is_posted && !c->p->chores_stop) {
        c->is_waiting = true;
        timer_start(&c->timer, delay_ms);
    }
    pthread_mutex_unlock(&c->p->chores_lock);
}

void
posix_chore_restart(struct posix_chore *c, uint64_t delay_ms)
{
    pthread_mutex_lock(&c->p->chores_lock);
    if (!c->is_posted && !c->p->chores_stop) {
        c->is_waiting = true;
        timer_start(&c->timer, delay_ms);
    }
    pthread_mutex_unlock(&c->p->chores_lock);
}

void
posix_chores_stop(struct posix *p)
{
    struct posix_chore *chores[] = {&p->health, &p->janitor, &p->reserve};

    pthread_mutex_lock(&p->chores_lock);
    p->chores_stop = true;
    pthread_mutex_unlock(&p->chores_lock);
    /* Not under the lock: a timer that is just running wants it. */
    for (size_t i = 0; i < sizeof chores / sizeof chores[0]; i++)
        timer_stop(&chores[i]->timer);

    pthread_mutex_lock(&p->chores_lock);
    for (size_t i = 0; i < sizeof chores / sizeof chores[0]; i++) {
        while (chores[i]->is_posted)
            pthread_cond_wait(&p->chores_idle, &p->chores_lock);
    }
    pthread_mutex_unlock(&p->chores_lock);
    timer_stop(&p->health_deadline);
}
