/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-work WAY CASE [SIZE]: one measurement of tests/bench/pool, one process. Timed cases print nanoseconds
 * an object. Cases of two CPUs also print the share of the CPUs that they had: a share well below 1 means
 * that another process was running, and that the figure is worth little. The heads of the functions in
 * pool-memory.c and pool-sweep.c name the figures of the other cases.
 *
 * WAY   harness   no allocator at all: the costs of the loop
 *       floor     the least work of a thread's cache, unchecked; only in the rows that pool_rows.py selects
 *       malloc    malloc and free of the preloaded library, without pools
 *       upstream  a spinlock for each thread, objects go home   } pool-old.c
 *       seed      the seed's design                             }
 *       pool      mem_get and mem_put, out of line (KILN_POOLS decides about on, off and the debug modes)
 *       owner     mem_get_owner and mem_put
 *       inline    mem_get_t and mem_put_t
 *       exact     pool, and a live count and peak shared by all threads
 *
 * POOL_CPUS=A,B     the two CPUs (0,1)
 * POOL_SCALE=X      the share of the work (1)
 */
#include "pool-bench.h"

pthread_barrier_t start, middle, finish;
void *shared_slot[1024];
int cpus, cpu_list[2] = { 0, 1 };
size_t type_size[TYPES] = { 256, 128, 512, 96, 320 };
struct mem_pool *pool[TYPES];
unsigned harness_mask;
__thread unsigned my_place;
bool fill_ring;

/* ---- the cases ------------------------------------------------------------------------------- */

static struct ring *
ring_new(void)
{
    return memset(aligned_alloc(64, sizeof(struct ring)), 0, sizeof(struct ring));
}

static bool spinning; /* the case waits for its partner by spinning: CPU time says nothing */
static double share = 1; /* of two CPUs, in a case of two CPUs, until the first of its threads ended */

struct runner {
    pthread_t thread;
    void *(*body)(void *);
    struct flow *flow;
};

static double cpu_from, wall_from;
static bool one_has_ended;

static void *
runner_main(void *arg)
{
    const struct runner *r = arg;

    r->body(r->flow);
    if (!__atomic_exchange_n(&one_has_ended, true, __ATOMIC_RELAXED))
        share = (cpu_ns() - cpu_from) / (2 * (clock_ns(CLOCK_MONOTONIC) - wall_from));
    return NULL;
}

/* Run n threads; nanoseconds of CPU, or of the wall if they spin on two CPUs. */
static double
run_threads(unsigned n, void *(**body)(void *), struct flow *flows)
{
    struct runner r[THREADS_MAX];
    clockid_t c = spinning && cpus != 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    double from;

    one_has_ended = cpus != 2 || n == 1;
    pthread_barrier_init(&start, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) {
        r[i] = (struct runner){ .body = body[i], .flow = &flows[i] };
        pthread_create(&r[i].thread, NULL, runner_main, &r[i]);
    }
    cpu_from = cpu_ns();
    wall_from = clock_ns(CLOCK_MONOTONIC);
    from = clock_ns(c); /* before the barrier: on a busy machine this thread may be the last to leave it */
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < n; i++)
        pthread_join(r[i].thread, NULL);
    return clock_ns(c) - from;
}

double
flow_case(const struct ways *w, unsigned producers, unsigned consumers, unsigned batch, uint64_t total)
{
    struct flow f[4] = { { .cpu = 0 } };
    void *(*body[4])(void *);
    struct ring *ring[2] = { ring_new(), ring_new() };
    unsigned n = 0, lanes = producers > consumers ? producers : consumers;

    spinning = true;
    total -= total % (2 * batch * 64);
    for (unsigned i = 0; i < producers; i++, n++) {
        f[n] = (struct flow){ .ring = { ring[i], ring[1] }, .rings = lanes / producers, .batch = batch,
                              .cpu = consumers > producers ? 0 : (int)i, .count = total / producers };
        body[n] = w->producer;
    }
    for (unsigned i = 0; i < consumers; i++, n++) {
        f[n] = (struct flow){.ring = {ring[i], ring[1]},
                             .rings = lanes / consumers,
                             .cpu = producers > consumers ? 1 : (int)(1 - (int)i),
                             .count = total / consumers};
        body[n] = w->consumer;
    }
    return run_threads(n, body, f) / (double)total;
}

static double
trip_case(const struct ways *w, uint64_t total)
{
    struct ring *ring[2] = { ring_new(), ring_new() };
    struct flow f[2] = { { .ring = { ring[0], ring[1] }, .cpu = 0, .count = total & ~31ull },
                         { .ring = { ring[0], ring[1] }, .cpu = 1, .count = total & ~31ull } };
    void *(*body[2])(void *) = { w->asker, w->answerer };

    spinning = true;
    return run_threads(2, body, f) / (double)total;
}

static double
fops_case(const struct ways *w, unsigned threads, unsigned peer, uint64_t total)
{
    struct ring *ring[2] = { ring_new(), ring_new() };
    struct flow f[2] = { { .ring = { ring[0], ring[1] }, .cpu = 0, .count = total, .peer = peer },
                         { .ring = { ring[1], ring[0] }, .cpu = 1, .count = total, .peer = peer } };
    void *(*body[2])(void *) = { w->fops, w->fops };

    return run_threads(threads, body, f) / (double)(total * 10 * threads);
}

static double
slots_case(void *(*way)(void *), unsigned threads, bool shared, uint64_t total)
{
    struct flow f[THREADS_MAX];
    void *(*body[THREADS_MAX])(void *);

    total -= total % threads;
    for (unsigned i = 0; i < threads; i++) {
        f[i] = (struct flow){ .cpu = (int)i, .shared = shared, .count = total / threads };
        body[i] = way;
    }
    return run_threads(threads, body, f) / (double)total;
}

static void
make_pools(void)
{
    static const char *const names[TYPES] = { "a", "b", "c", "d", "e" };
    char sweep[16];

    snprintf(sweep, sizeof(sweep), "%d", SWEEP_MS);
    mem_pools_set_option("sweep", sweep);
    for (unsigned i = 0; i < TYPES; i++)
        pool[i] = mem_pool_new_opts(&(struct mem_pool_opts){ .name = names[i], .size = type_size[i],
                                                             .id = MEM_ID_TYPED_MIN + i });
    mem_owner_new("bench");
    if (mem_pools_init() != 0)
        exit(1);
}

static double
run(const struct ways *w, const char *name, double scale)
{
    unsigned n, total = (unsigned)(2000000 * scale);

    cpus = strstr(name, "-2cpu") ? 2 : strstr(name, "-1cpu") ? 1 : 0;
    harness_mask =
        strstr(name, "fop") || strstr(name, "random") || strstr(name, "handed") || strstr(name, "replace")
            ? 255
            : 0;
    if (!strcmp(name, "bulk-64")) {
        harness_mask = 63;
        place(cpus = 1);
        w->bulk(100);
        return w->bulk((uint64_t)(20000000 * scale) / 64);
    }
    if (sscanf(name, "lifo-%u", &n) == 1) {
        place(cpus = 1);
        w->lifo(n, 1000);
        return w->lifo(n, (uint64_t)(20000000 * scale) / n);
    }
    if (!strncmp(name, "get", 3)) {
        double (*get)(uint64_t) = name[3] == '0' ? w->get0 : w->get;

        place(cpus = 1);
        get(1000);
        return get(total * 4);
    }
    if (!strncmp(name, "flow11", 6))
        return flow_case(w, 1, 1, 1, total * 2);
    if (!strncmp(name, "batch64", 7))
        return flow_case(w, 1, 1, 64, total * 2);
    if (!strncmp(name, "flow21", 6))
        return flow_case(w, 2, 1, 1, total * 2);
    if (!strncmp(name, "flow12", 6))
        return flow_case(w, 1, 2, 1, total * 2);
    if (!strncmp(name, "trip", 4))
        return trip_case(w, total);
    if (!strncmp(name, "fop-peer", 8))
        return fops_case(w, 2, 40, total / 5);
    if (sscanf(name, "fop-%u-", &n) == 1 && n <= 2)
        return fops_case(w, n, 0, total / 3);
    if (sscanf(name, "random-%u-", &n) == 1 && n <= THREADS_MAX)
        return slots_case(w->random, n, false, total * 4);
    if (sscanf(name, "handed-%u-", &n) == 1 && n <= THREADS_MAX)
        return slots_case(w->random, n, true, total * 4);
    if (sscanf(name, "replace-%u-", &n) == 1 && n <= THREADS_MAX)
        return slots_case(w->replace, n, true, total * 4);
    fprintf(stderr, "pool-work: no case %s\n", name);
    exit(2);
}

int
main(int argc, char **argv)
{
    double scale = getenv("POOL_SCALE") ? atof(getenv("POOL_SCALE")) : 1;
    const struct ways *w = argc > 2 ? ways_named(argv[1]) : NULL;
    const char *at = getenv("POOL_CPUS");
    unsigned n, m;

    if (!w || (at && sscanf(at, "%d,%d", &cpu_list[0], &cpu_list[1]) != 2)) {
        fprintf(stderr, "usage: pool-work WAY CASE [SIZE] (POOL_CPUS=A,B)\n");
        return 2;
    }
    if (argc > 3)
        type_size[0] = (size_t)atol(argv[3]);
    if (w->pools)
        make_pools();
    if (!strcmp(w->name, "upstream") && upstream_sweeper(SWEEP_MS) != 0)
        return 1;
    if (sscanf(argv[2], "idle-%u", &n) == 1 && n && n <= THREADS_MAX)
        idle_case(w, n);
    else if (sscanf(argv[2], "sweep-%u-%u", &n, &m) == 2 && n < THREADS_MAX)
        sweep_case(n, m);
    else if (sscanf(argv[2], "steady-%u", &n) == 1)
        steady_case(n);
    else if (!strcmp(argv[2], "survivors-quiet") || !strcmp(argv[2], "survivors-busy"))
        survivors_case(w, !strcmp(argv[2], "survivors-busy"));
    else if (!strcmp(argv[2], "turns"))
        turns_case(w);
    else if (!strcmp(argv[2], "oneway"))
        oneway_case(w);
    else {
        double ns = run(w, argv[2], scale);

        printf("%.3f %.3f\n", ns, share);
    }
    return 0;
}
