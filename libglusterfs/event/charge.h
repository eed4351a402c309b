/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* charge: attributes the processor time of workers to counters.
 *
 * A worker's turn (an event, or a job posted by another thread, with the waiting before it and the jobs
 * that follow from it) is measured once in WORKER_SAMPLE turns on average, at random, and then counted
 * WORKER_SAMPLE times, because reading the clock is a system call. Code that knows whose turn it is stores
 * a counter of nanoseconds in worker_charge; the last counter stored gets all the time. After N measured
 * turns of similar length the relative error of the count is about 1/sqrt(N).
 *
 * thread: a worker, for itself; the counter must be valid until the end of the read section in which its
 * handler runs. worker_charge is NULL at the beginning of a measured turn. On other threads it is not
 * read. */
#ifndef KILN_EVENT_CHARGE_H
#define KILN_EVENT_CHARGE_H

#include <stdatomic.h>
#include <stdint.h>

enum { WORKER_SAMPLE = 16 };
extern __thread _Atomic uint64_t *worker_charge;

#endif
