/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* charge: whose processor time the workers' is.
 *
 * A worker's turn (an event, or a job that others have posted, with the waiting before it and the jobs that
 * come of it) is measured once in WORKER_SAMPLE turns on average, at random, and then counted WORKER_SAMPLE
 * times: reading the clock is a system call. Whoever knows whose turn it is puts his counter of nanoseconds
 * into worker_charge; the last one gets it all. After N measured turns of much the same length the count is
 * some 1/sqrt(N) off.
 *
 * thread: a worker, for itself; the counter must be valid until the read section ends in which its handler
 * runs. NULL at the beginning of a turn that is measured. On other threads nobody looks. */
#ifndef KILN_EVENT_CHARGE_H
#define KILN_EVENT_CHARGE_H

#include <stdatomic.h>
#include <stdint.h>

enum { WORKER_SAMPLE = 16 };
extern __thread _Atomic uint64_t *worker_charge;

#endif
