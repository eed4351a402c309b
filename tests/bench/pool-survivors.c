/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-survivors: of 300,000 objects one in 20 survives. Measures the memory that the freed objects still
 * take after two sweep periods, alone and beside a thread that gets and puts objects of another type without
 * a pause. Also measures two types that have bursts in turn. */
#include "pool-bench.h"

#include <stdlib.h>

enum { OBJECTS = 300000, TURNS = 6 };

static double base_mb, peak_mb;

static double
resident_mb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(f);
    return (double)pages * 4096 / 1e6 - base_mb;
}

void
survivors_peak(void)
{
    double now = resident_mb();

    if (now > peak_mb)
        peak_mb = now;
}

static void **
room_new(void)
{
    void **all = malloc(OBJECTS * sizeof *all);

    if (!all)
        exit(1);
    memset(all, 1, OBJECTS * sizeof *all); /* the harness's own memory is not counted */
    return all;
}

static void
wait_n(double n)
{
    usleep((useconds_t)(n * SWEEP_MS * 1000));
}

static int
by_number(const void *x, const void *y)
{
    uintptr_t a = *(const uintptr_t *)x, b = *(const uintptr_t *)y;

    return (a > b) - (a < b);
}

/* MB of the pages below the objects that no survivor lies in. */
static double
dead_mb(void **all)
{
    uintptr_t *page = malloc(2 * OBJECTS * sizeof *page), *live = malloc(OBJECTS / 10 * sizeof *live);
    size_t lives = 0, dead = 0;

    if (!page || !live)
        exit(1);
    for (size_t i = 0; i < OBJECTS; i++) {
        page[2 * i] = (uintptr_t)all[i] / 4096;
        page[2 * i + 1] = ((uintptr_t)all[i] + 255) / 4096;
        if (i % 20 == 0) {
            live[lives++] = page[2 * i];
            live[lives++] = page[2 * i + 1];
        }
    }
    qsort(page, 2 * OBJECTS, sizeof *page, by_number);
    qsort(live, lives, sizeof *live, by_number);
    for (size_t i = 0; i < 2 * OBJECTS; i++)
        dead += (!i || page[i] != page[i - 1]) && !bsearch(&page[i], live, lives, sizeof *live, by_number);
    free(page);
    free(live);
    return (double)dead * 4096 / 1e6;
}

static double
cpu_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The neighbour's objects in a sweep period, for each second of CPU time of its thread. */
static double
speed(struct neighbour *b, clockid_t thread)
{
    uint64_t before = __atomic_load_n(&b->objects, __ATOMIC_RELAXED);
    double from = cpu_s(thread);

    wait_n(1);
    return (double)(__atomic_load_n(&b->objects, __ATOMIC_RELAXED) - before) / (cpu_s(thread) - from);
}

/* Prints MB at the peak, after the puts and 2N later, and of pages without a survivor; the neighbour's rate:
 * million objects for each second of its CPU time, in N before the burst and in each of the two N after the
 * burst; and the milliseconds of CPU time of the sweeper in N before and in these 2N. */
void
survivors_case(const struct ways *w, bool is_busy)
{
    struct neighbour b = { 0 };
    double before = 0, first = 0, second = 0, sweep_before = 0, sweep = 0;
    void **all = room_new();
    clockid_t its;
    pthread_t t;

    base_mb = resident_mb();
    if (is_busy) {
        pthread_create(&t, NULL, w->neighbour, &b);
        pthread_getcpuclockid(t, &its);
        wait_n(1);
        sweep_before = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s(its);
        before = speed(&b, its);
        sweep_before =
            cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s(its) - sweep_before;
    }
    w->leave(0, all, OBJECTS);
    double freed = resident_mb();
    if (is_busy) {
        sweep = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s(its);
        first = speed(&b, its);
        second = speed(&b, its);
        sweep = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s(its) - sweep;
    } else {
        wait_n(2);
    }
    wait_n(0.1);
    double rest = resident_mb();
    printf("%.1f %.1f %.1f %.1f %.2f %.2f %.2f %.2f %.2f\n", peak_mb, freed, rest, dead_mb(all), before / 1e6,
           first / 1e6, second / 1e6, 1e3 * sweep_before, 1e3 * sweep);
    if (is_busy) {
        __atomic_store_n(&b.stop, 1, __ATOMIC_RELAXED);
        pthread_join(t, NULL);
    }
    w->end(0, all, OBJECTS);
    free(all);
}

/* Prints MB at the peak of the first turn and of all turns, and 2N after the last. */
void
turns_case(const struct ways *w)
{
    void **all = room_new();
    double first = 0;

    base_mb = resident_mb();
    for (int i = 0; i < TURNS; i++) {
        w->leave((unsigned)i % 2, all, OBJECTS);
        w->end((unsigned)i % 2, all, OBJECTS);
        if (i == 0)
            first = peak_mb;
        wait_n(2.1);
    }
    printf("%.1f %.1f %.1f\n", first, peak_mb, resident_mb());
    free(all);
}
