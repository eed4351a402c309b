/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* timer: calls that are due later, run by the one housekeeping thread; long work there is posted to a worker.
 *
 * Timers are embedded in their owner: starting one allocates nothing. Fields are guarded by the timers' own
 * mutex. */
#ifndef KILN_EVENT_TIMER_H
#define KILN_EVENT_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/compiler.h> /* caa_container_of, which every fn needs */

#include "base/tree.h"

struct timer {
    struct tree_node node; /* in the tree of armed ones, if it is */
    uint64_t due_ns;       /* CLOCK_MONOTONIC; does not change while it is armed */
    /* In an RCU read section, no lock held. It may start, stop or free its own timer. */
    void (*fn)(struct timer *t);
    bool is_armed;
};

/* Once, before any other use of `t`, which its owner embeds. */
void timer_init(struct timer *t, void (*fn)(struct timer *t));
/* Due `delay_ms` from now; re-arms a timer that is armed. From any thread, also from its own fn. */
void timer_start(struct timer *t, uint64_t delay_ms);
/* After return fn does not run and will not (waits for one that does, unless called from it). True if it was
 * armed. */
bool timer_stop(struct timer *t);

/* The thread: started and stopped by workers_start()/workers_stop(). Timers started before run once it is
 * there; those still armed when it stops are disarmed. 0 or -errno. */
int timers_start(void);
void timers_stop(void);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_mono_ns(void);

#endif
