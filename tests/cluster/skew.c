/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A library for LD_PRELOAD that moves the wall clock of a process by KILN_SKEW seconds. The monotonic clock
 * stays, as on a machine with a wrong date. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    const char *skew = getenv("KILN_SKEW");
    int result = (int)syscall(SYS_clock_gettime, clock, t);

    if (!result && skew && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += atol(skew);
    return result;
}

time_t
time(time_t *to)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (to)
        *to = t.tv_sec;
    return t.tv_sec;
}

int
gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    to->tv_sec = t.tv_sec;
    to->tv_usec = t.tv_nsec / 1000;
    return 0;
}
