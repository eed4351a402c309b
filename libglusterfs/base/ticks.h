/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* ticks: the cheapest clock for durations: the processor's time stamp counter where the kernel's own clock
 * uses it, else CLOCK_MONOTONIC in nanoseconds. Reading the counter is one instruction, where
 * clock_gettime(2) is 50 or more; each operation reads it twice.
 *
 * thread: any; ticks_start() once, before the first measurement (workers_start() does it). A duration that
 * spans ticks_start() is meaningless. */
#ifndef KILN_BASE_TICKS_H
#define KILN_BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Written only by ticks_start(). */
struct ticks_scale {
    bool is_counter;      /* the processor's; false: nanoseconds */
    uint64_t ns_per_tick; /* 32.32 */
};
extern struct ticks_scale ticks_scale;

/* Measures the counter against the kernel's clock, which takes 5 ms; takes no time where the counter is
 * not used. After a successful measurement further calls do nothing. */
void ticks_start(void);

/* The present time; only differences of two values are meaningful. */
static inline uint64_t
ticks_now(void)
{
#if defined(__x86_64__)
    if (ticks_scale.is_counter)
        return __rdtsc();
#endif
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Converts a duration to nanoseconds. Counters of two processors may differ a little, so a negative
 * duration is taken as 0. */
static inline uint64_t
ticks_to_ns(uint64_t ticks)
{
    if ((int64_t)ticks < 0)
        return 0;
    return (uint64_t)((unsigned __int128)ticks * ticks_scale.ns_per_tick >> 32);
}

/* Converts nanoseconds to ticks; before ticks_start() a tick is taken for a nanosecond. */
static inline uint64_t
ticks_of_ns(uint64_t ns)
{
    return ticks_scale.ns_per_tick ? (uint64_t)(((unsigned __int128)ns << 32) / ticks_scale.ns_per_tick) : ns;
}

#endif
