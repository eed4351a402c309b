/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/ticks.h"

#include <stdio.h>
#include <string.h>

struct ticks_scale ticks_scale = {.is_counter = false, .ns_per_tick = UINT64_C(1) << 32};

#if defined(__x86_64__)
#define SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
enum { TRIES = 8, WAIT_NS = 5000000 };

/* The kernel has checked whether the counter runs evenly on all processors; a counter that the kernel does
 * not use is not trusted. */
static bool
is_counter_trusted(void)
{
    FILE *f = fopen(SOURCE, "re");
    char word[32] = "";

    if (!f)
        return false;
    bool is_read = fgets(word, sizeof word, f) != NULL;
    fclose(f);
    return is_read && strcmp(word, "tsc\n") == 0;
}

struct moment {
    uint64_t ticks, ns;
};

/* Reads both clocks at one moment: of several tries, takes the one with the shortest delay. */
static struct moment
read_clocks(void)
{
    struct moment best = {0};
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        struct timespec t;
        uint64_t before = __rdtsc();

        clock_gettime(CLOCK_MONOTONIC, &t);
        uint64_t after = __rdtsc();
        if (after - before >= shortest)
            continue;
        shortest = after - before;
        best = (struct moment){before + shortest / 2, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec};
    }
    return best;
}

void
ticks_start(void)
{
    const struct timespec wait = {.tv_nsec = WAIT_NS};

    if (ticks_scale.is_counter || !is_counter_trusted())
        return;
    struct moment begin = read_clocks();
    nanosleep(&wait, NULL); /* a signal may shorten this, which is harmless: the time is measured */
    struct moment end = read_clocks();
    if (end.ticks <= begin.ticks || end.ns <= begin.ns)
        return;
    ticks_scale.ns_per_tick = ((unsigned __int128)(end.ns - begin.ns) << 32) / (end.ticks - begin.ticks);
    ticks_scale.is_counter = true;
}
#else
void
ticks_start(void)
{
}
#endif
