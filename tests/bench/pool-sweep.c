/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-sweep: the time for which a sweep keeps each of 300 threads out of the thread's lines.
 *
 * The sweeper takes the times: from just before the sweeper shuts a thread out (req = LOCKED) to just after
 * the sweeper lets the thread in again (NONE, or DEMOTE, which leaves the work to the thread). The figure
 * includes the two readings of the clock and any delay of the sweeper. All threads have objects in eight
 * pools. Between two sweeps each thread gets and puts a few objects and blocks again, except the running
 * threads.
 */
#include "pool-bench.h"
#include "pool-window.h"

enum { POOLS = 8, TOUCHED = 4, PASSES_MAX = 1000 };

static struct {
    bool on;
    uint64_t opened[THREADS_MAX + 64]; /* ns, by the thread's serial number */
    uint32_t *ns;
    size_t n, max;
} window;

static struct mem_pool *eight[POOLS];
static pthread_barrier_t work, idle;
static int stop;

/* By the sweeper, under the registry's mutex. */
void
pool_window(const struct mem_thread *t, bool opens)
{
    uint64_t now;

    if (!window.on || t->serial >= THREADS_MAX + 64)
        return;
    now = (uint64_t)clock_ns(CLOCK_MONOTONIC);
    if (opens)
        window.opened[t->serial] = now;
    else if (window.n < window.max)
        window.ns[window.n++] = (uint32_t)(now - window.opened[t->serial]);
}

static void
work_a_little(void)
{
    void *p[TOUCHED];

    for (unsigned i = 0; i < POOLS; i++) {
        for (unsigned k = 0; k < TOUCHED; k++)
            touch(p[k] = mem_get(eight[i]));
        for (unsigned k = 0; k < TOUCHED; k++)
            mem_put(p[k]);
    }
}

static void *
blocked_thread(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_barrier_wait(&work);
        if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
            return NULL;
        work_a_little();
        pthread_barrier_wait(&idle);
    }
}

static void *
running_thread(void *arg)
{
    cpus = 2;
    place((int)(uintptr_t)arg);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        work_a_little();
    return NULL;
}

static int
by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void
print_windows(uint64_t pass_us)
{
    struct mem_process_stats s;
    uint64_t bypass = 0;

    if (!window.n)
        exit(1);
    mem_pools_stats(&s);
    for (unsigned i = 0; i < POOLS; i++) {
        struct mem_pool_stats p;

        mem_pool_stats(eight[i], &p);
        bypass += p.bypass;
    }
    qsort(window.ns, window.n, sizeof(window.ns[0]), by_size);
    printf("%zu %.1f %.1f %.1f %llu %llu %llu %llu\n", window.n, window.ns[window.n / 2] / 1e3,
           window.ns[window.n * 99 / 100] / 1e3, window.ns[window.n - 1] / 1e3, (unsigned long long)pass_us,
           (unsigned long long)s.membarrier_us_max, (unsigned long long)s.demote_requests,
           (unsigned long long)bypass);
}

/* Prints windows, their median, 99th of 100 and longest in us; the median pass in us; the longest membarrier
 * in us; how often the sweeper left the work to a thread, and operations that found the sweeper at work. */
void
sweep_case(unsigned running, unsigned passes)
{
    pthread_t t[THREADS_MAX];
    uint32_t pass_us[PASSES_MAX];
    unsigned blocked = THREADS_MAX - running;

    if (!passes || passes > PASSES_MAX)
        exit(2);
    mem_pools_set_option("sweep", "0"); /* at our bidding only */
    for (unsigned i = 0; i < POOLS; i++)
        eight[i] = mem_pool_new_fn(64 + 48 * i, 0, "eight");
    window.max = (size_t)passes * THREADS_MAX * 2;
    window.ns = malloc(window.max * sizeof(window.ns[0]));
    memset(window.ns, 0, window.max * sizeof(window.ns[0]));
    pthread_barrier_init(&work, NULL, blocked + 1);
    pthread_barrier_init(&idle, NULL, blocked + 1);
    for (unsigned i = 0; i < THREADS_MAX; i++)
        pthread_create(&t[i], NULL, i < running ? running_thread : blocked_thread, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < passes + 2; i++) { /* the first two touch everything for the first time */
        struct mem_process_stats s;

        pthread_barrier_wait(&work);
        pthread_barrier_wait(&idle);
        /* most threads have blocked by then; a few still run, as in any process */
        usleep(5000);
        window.on = i >= 2;
        mem_pools_sweep_now();
        window.on = false;
        mem_pools_stats(&s);
        if (i >= 2)
            pass_us[i - 2] = (uint32_t)s.sweep_last_us;
    }
    qsort(pass_us, passes, sizeof(pass_us[0]), by_size);
    print_windows(pass_us[passes / 2]);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_barrier_wait(&work);
    for (unsigned i = 0; i < THREADS_MAX; i++)
        pthread_join(t[i], NULL);
}
