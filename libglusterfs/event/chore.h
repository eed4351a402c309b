/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* chore: work that a worker repeats: a timer and the job that it posts, so the housekeeping of a brick
 * needs no thread.
 *
 * Any thread may call any of these functions, but fn may not call chore_stop() of its own chore. A chore
 * allocates nothing. */
#ifndef KILN_EVENT_CHORE_H
#define KILN_EVENT_CHORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "event/timer.h"
#include "event/worker.h"

/* Embedded in its owner; the fields are private to chore.c. */
struct chore {
    struct timer timer;
    struct worker_job job;
    uint64_t (*fn)(struct chore *c);
    pthread_mutex_t lock;       /* guards the members below; a leaf */
    pthread_cond_t idle;        /* signalled when is_posted becomes false */
    bool is_waiting, is_posted; /* the timer runs; the job waits for a worker or runs */
    /* delay of a chore_start() while the job is posted, counted from the job's end; 0: none */
    uint64_t asked_ms;
    atomic_bool is_stopped;     /* written under the lock */
};

/* `fn` does the work and may block. It returns the milliseconds until it is due again; 0: not before
 * chore_start(). */
void chore_init(struct chore *c, uint64_t (*fn)(struct chore *c));
/* Called after chore_stop(). */
void chore_destroy(struct chore *c);
/* Makes the chore due in `delay_ms`, which is not 0, unless it is waiting or stopped. While fn runs, the
 * delay counts from its end. */
void chore_start(struct chore *c, uint64_t delay_ms);
/* Like chore_start(), but also changes the time of a chore that is already waiting. */
void chore_restart(struct chore *c, uint64_t delay_ms);
/* Prevents further starts; fn may test chore_is_dismissed() to end early. */
void chore_dismiss(struct chore *c);
static inline bool
chore_is_dismissed(const struct chore *c)
{
    return atomic_load(&((struct chore *)c)->is_stopped);
}
/* Dismisses the chore and waits until its fn does not run. */
void chore_stop(struct chore *c);

#endif
