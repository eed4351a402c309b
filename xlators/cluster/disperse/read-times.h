/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* read-times: the time that the READs of each child take. A file is read from K children that answer soon.
 *
 * Each client reads a file from the K children that the gfid of the file chooses, so that each fragment is
 * in the page cache of one brick only. A spare child replaces a child that is SLOW_TIMES slower: the disk
 * of the slow brick is bad or busy, its network is far, or the brick hangs (the wait so far counts). Every
 * EXPLORE_MS one READ asks the child with the oldest answer in the place of the slowest child, so the mount
 * learns the times of spare children, and asks a child that has recovered again.
 *
 * thread: all functions from any thread. The values are guesses: each value is atomic, and no rule holds
 * between two values. Times are in nanoseconds of clock_mono_ns(). */
#ifndef KILN_DISPERSE_READ_TIMES_H
#define KILN_DISPERSE_READ_TIMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xlators/cluster/children.h"

enum { SLOW_TIMES = 4, SLOW_MIN_MS = 2, EXPLORE_MS = 1000 };

/* Of a child; zero: it was never asked. */
struct read_times {
    atomic_uint waiting;          /* READs without an answer */
    _Atomic uint64_t progress_ns; /* time of the latest answer, or of the first READ that waits */
    _Atomic uint64_t mean_ns;     /* smoothed time of a READ; falls fast and rises slowly. 0: unknown */
};

/* A READ goes to the child. */
void read_time_begin(struct read_times *t, uint64_t now_ns);
/* The READ that began at `began_ns` was answered. The time of a failed READ does not count. */
void read_time_end(struct read_times *t, uint64_t began_ns, uint64_t now_ns, bool has_failed);
/* Returns the expected time of a READ to the child; 0: unknown. */
uint64_t read_time_expected(const struct read_times *t, uint64_t now_ns);
/* Returns `chosen` with children of `spare` in the place of slow children. `*explored_ns`: the time of the
 * latest READ that asked the child with the oldest answer. */
child_set read_times_replace_slow(const struct read_times *of, child_set chosen, child_set spare,
                                  uint64_t now_ns, _Atomic uint64_t *explored_ns);

#endif
