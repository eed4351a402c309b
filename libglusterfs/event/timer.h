/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* timer: delayed calls, run by the one housekeeping thread; long work there must be posted to a worker.
 *
 * Timers are embedded in their owner: starting one allocates nothing. Fields are guarded by the timers'
 * own mutex. */
#ifndef KILN_EVENT_TIMER_H
#define KILN_EVENT_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/compiler.h> /* caa_container_of, which every fn needs */

#include "base/tree.h"

struct timer {
    struct tree_node node; /* in the tree of armed timers, while armed */
    uint64_t due_ns;       /* CLOCK_MONOTONIC; constant while the timer is armed */
    /* Runs in an RCU read section, with no lock held. It may start, stop or free its own timer. */
    void (*fn)(struct timer *t);
    bool is_armed;
};

/* Called once, before any other use of `t`, which its owner embeds. */
void timer_init(struct timer *t, void (*fn)(struct timer *t));
/* Arms the timer for `delay_ms` from now; re-arms an armed timer. From any thread, also from its own fn. */
void timer_start(struct timer *t, uint64_t delay_ms);
/* Disarms the timer. After return fn does not run and will not (waits for a running fn, unless called from
 * it). True if the timer was armed. */
bool timer_stop(struct timer *t);

/* Start and stop the timer thread; called by workers_start() and workers_stop(). Timers started earlier
 * run once the thread exists; timers still armed when it stops are disarmed. 0 or -errno. */
int timers_start(void);
void timers_stop(void);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_mono_ns(void);

#endif
