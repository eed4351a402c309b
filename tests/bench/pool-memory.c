/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-memory: the cases of tests/bench/pool that are about memory, not time. */
#include "pool-bench.h"

#include <limits.h>

static double
resident_mb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(f);
    return (double)pages * 4096 / 1e6;
}

/* Prints MB above the idle process: at the peak of a burst, after the burst was freed, after one and two
 * sweep periods. */
void
idle_case(const struct ways *w, unsigned threads)
{
    enum { OBJECTS = 400000 };
    static struct flow f[THREADS_MAX];
    pthread_t t[THREADS_MAX];
    unsigned n = OBJECTS / threads;
    double peak, freed, one, two, base;

    for (unsigned i = 0; i < threads; i++)
        f[i] = (struct flow){ .cpu = (int)i, .count = n, .room = malloc(n * sizeof(void *)) };
    for (unsigned i = 0; i < threads; i++)
        memset(f[i].room, 1, n * sizeof(void *)); /* the harness's own memory is not counted */
    pthread_barrier_init(&start, NULL, threads + 1);
    pthread_barrier_init(&middle, NULL, threads + 1);
    pthread_barrier_init(&finish, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, w->burst, &f[i]);
    pthread_barrier_wait(&start); /* all are there, with a stack each */
    base = resident_mb();
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&middle);
    peak = resident_mb() - base;
    pthread_barrier_wait(&middle);
    freed = resident_mb() - base;
    usleep(SWEEP_MS * 1000 + 100000);
    one = resident_mb() - base;
    usleep(SWEEP_MS * 1000 + 100000);
    two = resident_mb() - base;
    printf("%.1f %.1f %.1f %.1f\n", peak, freed, one, two);
    pthread_barrier_wait(&finish);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
}

static double
largest_mb(void)
{
    char line[128];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %ld", &kib) != 1)
        ;
    if (!f || kib < 0)
        exit(1);
    fclose(f);
    return (double)kib * 1024 / 1e6;
}

/* One thread gets, another puts. Prints MB: the process's largest size after a million objects, the growth
 * over 20 million more, and the memory that the pools cache at the end. */
void
oneway_case(const struct ways *w)
{
    struct mem_process_stats s = { 0 };
    double first, last;

    cpus = 2;
    fill_ring = true;
    flow_case(w, 1, 1, 1, 1000000);
    first = largest_mb();
    flow_case(w, 1, 1, 1, 20000000);
    last = largest_mb();
    if (w->pools)
        mem_pools_stats(&s);
    printf("%.1f %.2f %.2f\n", first, last - first, (double)s.cached_bytes / 1e6);
}

/* ---- steady load ----------------------------------------------------------------------------- */

/* Periods N: without a visit to the system until the pools count as warm, waited for that at most, and
 * measured then. */
enum {
    STEADY_N_MS = 200,
    STEADY_OBJECTS = 50000,
    STEADY_QUIET = 10,
    STEADY_WARM_MAX = 50,
    STEADY_PERIODS = 10
};

static struct {
    pthread_barrier_t all_got, all_put;
    void *object[2][STEADY_OBJECTS];
    uint64_t cycle_ns;
    unsigned per_n, cycles, warm, late; /* cycles: UINT_MAX during the warm-up */
    uint64_t gets, system;              /* at the end of the warm-up */
} steady;

static void
steady_figures(uint64_t *gets, uint64_t *system)
{
    *gets = *system = 0;
    for (unsigned i = 0; i < TYPES; i++) {
        struct mem_pool_stats s;

        mem_pool_stats(pool[i], &s);
        *gets += s.gets;
        *system += s.system_allocs;
    }
}

static void
steady_until(uint64_t ns)
{
    struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
        ;
}

/* The peak of a burst is the same each time, but one thread keeps up to a spare magazine when the depot is
 * empty, and the other thread has to carve that many objects. The number depends on the positions of the
 * magazines' ends, which differ in each burst. So the pools hold enough objects for every burst only after
 * some bursts. All gets of cycle c are done. */
static void
steady_warm_up(unsigned c)
{
    static unsigned last;
    uint64_t before = steady.system;

    steady_figures(&steady.gets, &steady.system);
    if (steady.system != before)
        last = c;
    if (c - last >= STEADY_QUIET * steady.per_n || c >= STEADY_WARM_MAX * steady.per_n) {
        steady.warm = c;
        steady.cycles = c + 1 + STEADY_PERIODS * steady.per_n;
    }
}

/* True for two objects in five: a different selection in each cycle, with a random number of each type. */
static bool
steady_is_put_by_other(unsigned owner, unsigned i, unsigned cycle)
{
    uint32_t x = i * 2 + owner + cycle * 2 * STEADY_OBJECTS;

    for (int round = 0; round < 2; round++)
        x = (x ^ x >> 16) * 2246822519u;
    return (x ^ x >> 16) % 5 < 2;
}

/* In each cycle a thread gets all objects, puts some of the other thread's objects and the rest of its own,
 * and waits. */
static void *
steady_thread(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    uint64_t began, now, putting = 0;

    place((int)me);
    pthread_barrier_wait(&start);
    for (unsigned c = 0; c < steady.cycles; c++) {
        began = (uint64_t)clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < STEADY_OBJECTS; i++) {
            steady.object[me][i] = mem_get(pool[i % TYPES]);
            touch(steady.object[me][i]);
        }
        pthread_barrier_wait(&steady.all_got);
        now = (uint64_t)clock_ns(CLOCK_MONOTONIC);
        /* An object lay for N or longer, because another process had the CPU: the cycle does not show the
         * case. */
        if (me == 0 && c > steady.warm && now - putting >= (uint64_t)STEADY_N_MS * 1000000)
            steady.late++;
        putting = now;
        if (me == 0 && steady.cycles == UINT_MAX)
            steady_warm_up(c); /* the other thread reads cycles after the barrier */
        for (unsigned i = 0; i < STEADY_OBJECTS; i++)
            for (unsigned owner = 0; owner < 2; owner++)
                if ((owner ^ steady_is_put_by_other(owner, i, c)) == me)
                    mem_put(steady.object[owner][i]);
        pthread_barrier_wait(&steady.all_put);
        steady_until(began + steady.cycle_ns);
    }
    return NULL;
}

/* The same burst again and again, each cycle percent of N long. Prints gets, objects taken from the system
 * meanwhile, cycles after which an object may have lain for N or longer, and the warm-up in N.
 */
void
steady_case(unsigned percent)
{
    uint64_t gets, system;
    pthread_t t[2];
    char n[16];

    cpus = 2;
    snprintf(n, sizeof(n), "%d", STEADY_N_MS);
    mem_pools_set_option("sweep", n);
    steady.cycle_ns = (uint64_t)STEADY_N_MS * 1000000 * percent / 100;
    steady.per_n = (100 + percent - 1) / percent;
    steady.cycles = steady.warm = UINT_MAX;
    pthread_barrier_init(&start, NULL, 2);
    pthread_barrier_init(&steady.all_got, NULL, 2);
    pthread_barrier_init(&steady.all_put, NULL, 2);
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, steady_thread, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    steady_figures(&gets, &system);
    printf("%llu %llu %u %.1f\n", (unsigned long long)(gets - steady.gets),
           (unsigned long long)(system - steady.system), steady.late, (double)steady.warm * percent / 100);
}
