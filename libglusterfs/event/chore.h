/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* chore: work that a worker does again and again: a timer and the job that it posts. The housekeeping of a
 * brick has no thread of its own.
 *
 * Any thread may call any of these functions, but fn may not call chore_stop() of its own chore. A chore
 * allocates nothing. */
#ifndef KILN_EVENT_CHORE_H
#define KILN_EVENT_CHORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "event/timer.h"
#include "event/worker.h"

/* Its owner embeds it; the fields are chore.c's. */
struct chore {
    struct timer timer;
    struct worker_job job;
    uint64_t (*fn)(struct chore *c);
    pthread_mutex_t lock;       /* guards what follows. A leaf */
    pthread_cond_t idle;        /* of is_posted */
    bool is_waiting, is_posted; /* the timer runs; the job waits for a worker or runs */
    uint64_t asked_ms;          /* chore_start() meanwhile: due so long after the end; 0: nobody called it */
    atomic_bool is_stopped;     /* written under the lock */
};

/* `fn` does the work and may block. It gives the milliseconds until it is due again; 0: when somebody calls
 * chore_start(). */
void chore_init(struct chore *c, uint64_t (*fn)(struct chore *c));
/* After chore_stop(). */
void chore_destroy(struct chore *c);
/* Due in `delay_ms`, which is not 0, unless it is waiting or stopped. While fn runs: so long after its
 * end. */
void chore_start(struct chore *c, uint64_t delay_ms);
/* The same for a chore that waits already, too: its time is another one now. */
void chore_restart(struct chore *c, uint64_t delay_ms);
/* The chore is not started any more, and its fn may end early when it sees this. */
void chore_dismiss(struct chore *c);
static inline bool
chore_is_dismissed(const struct chore *c)
{
    return atomic_load(&((struct chore *)c)->is_stopped);
}
/* Dismisses the chore and waits until its fn does not run. */
void chore_stop(struct chore *c);

#endif
