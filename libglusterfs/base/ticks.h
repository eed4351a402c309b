/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* ticks: the cheapest clock for durations: the processor's time stamp counter where the kernel's own clock is
 * that, else CLOCK_MONOTONIC in nanoseconds. Reading it is one instruction, where clock_gettime(2) is 50 or
 * more; each operation reads it twice.
 *
 * thread: any; ticks_start() once, before anybody measures (workers_start() does it). A duration across it is
 * meaningless. */
#ifndef KILN_BASE_TICKS_H
#define KILN_BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Written by ticks_start() alone. */
struct ticks_scale {
    bool is_counter;      /* the processor's; false: nanoseconds */
    uint64_t ns_per_tick; /* 32.32 */
};
extern struct ticks_scale ticks_scale;

/* Measures the counter against the kernel's clock, 5 ms; 0 where it is not used. Once counted so, again does
 * nothing. */
void ticks_start(void);

/* Now; of two such the difference means something. */
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

/* A duration in nanoseconds. Two processors' counters may differ a little: less than nothing is nothing. */
static inline uint64_t
ticks_to_ns(uint64_t ticks)
{
    if ((int64_t)ticks < 0)
        return 0;
    return (uint64_t)((unsigned __int128)ticks * ticks_scale.ns_per_tick >> 32);
}

/* The other way round; before ticks_start() a tick is taken for a nanosecond. */
static inline uint64_t
ticks_of_ns(uint64_t ns)
{
    return ticks_scale.ns_per_tick ? (uint64_t)(((unsigned __int128)ns << 32) / ticks_scale.ns_per_tick) : ns;
}

#endif
