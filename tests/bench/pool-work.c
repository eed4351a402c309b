/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-work WAY CASE [SIZE]: one measurement of tests/bench/pool, one process. Prints nanoseconds an object
 * (or, for "idle-T", resident MB: at the peak, after the free, after one and two sweep periods; for "oneway",
 * MB: the largest size after a million objects, and the growth over 20 million more).
 *
 * WAY   harness  no allocator at all: what the loop itself costs
 *       malloc   malloc and free, of whatever library is preloaded; pools play no part
 *       pool     mem_get and mem_put, out of line (KILN_POOLS decides about on and off)
 *       inline   mem_get_t and mem_put_t
 *       seed     the seed's design: each thread's own list under a spinlock of its own
 */
#include "mem/mem-inline.h"
#include "mem/mem-pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the harness ------------------------------------------------------------------------------ */

enum { RING = 1024, TYPES = 5 };

struct ring {
    void *slot[RING];
    uint64_t head __attribute__((aligned(64))); /* written by the pusher */
    uint64_t pushed, tail_seen;
    uint64_t tail __attribute__((aligned(64))); /* written by the popper */
    uint64_t popped, head_seen;
};

struct flow {
    struct ring *ring[4];
    unsigned rings, batch, peer;
    int cpu;
    uint64_t count;
    void **room;
};

static pthread_barrier_t start, middle, finish;
static void *shared_slot[1024];
static int cpus; /* 1: all threads on one; 2: thread i on i % 2; 0: wherever they are put */
static size_t type_size[TYPES] = { 256, 128, 512, 96, 320 };

static double
clock_ns(clockid_t c)
{
    struct timespec ts;

    clock_gettime(c, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double
cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void
place(int n)
{
    cpu_set_t set;

    if (!cpus)
        return;
    CPU_ZERO(&set);
    CPU_SET(cpus == 1 ? 0 : n % 2, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static inline void
touch(void *p)
{
    *(volatile uint64_t *)p = 1;
}

static void
ring_flush(struct ring *r)
{
    __atomic_store_n(&r->head, r->pushed, __ATOMIC_RELEASE);
}

static bool
ring_try_push(struct ring *r, void *p)
{
    if (r->pushed - r->tail_seen == RING) {
        r->tail_seen = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
        if (r->pushed - r->tail_seen == RING) {
            ring_flush(r);
            return false;
        }
    }
    r->slot[r->pushed++ % RING] = p;
    if (r->pushed % 16 == 0)
        ring_flush(r);
    return true;
}

static void *
ring_try_pop(struct ring *r)
{
    void *p;

    if (r->popped == r->head_seen) {
        r->head_seen = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
        if (r->popped == r->head_seen) {
            __atomic_store_n(&r->tail, r->popped, __ATOMIC_RELEASE);
            return NULL;
        }
    }
    p = r->slot[r->popped++ % RING];
    if (r->popped % 16 == 0)
        __atomic_store_n(&r->tail, r->popped, __ATOMIC_RELEASE);
    return p;
}

/* On two CPUs the partner is running, unless the machine is busy with something else. */
static inline void
relax(void)
{
    static __thread unsigned spins;

    if (cpus == 1 || ++spins % 1000 == 0)
        sched_yield();
    else
        __builtin_ia32_pause();
}

static void
ring_push(struct ring *r, void *p)
{
    while (!ring_try_push(r, p))
        relax();
}

static void *
ring_pop(struct ring *r)
{
    void *p;

    while (!(p = ring_try_pop(r)))
        relax();
    return p;
}

struct ways {
    double (*lifo)(unsigned, uint64_t);
    void *(*producer)(void *);
    void *(*consumer)(void *);
    void *(*asker)(void *);
    void *(*answerer)(void *);
    void *(*fops)(void *);
    void *(*mixed)(void *);
    void *(*burst)(void *);
    double (*get0)(uint64_t);
};

/* ---- the ways --------------------------------------------------------------------------------- */

static struct mem_pool *pool[TYPES];

#define NAME(x) harness_##x
static uint64_t nothing[64];
#define GET(type) ((void *)nothing)
#define PUT(type, p) ((void)(p))
#define GET0() ((void *)nothing)
#define GET_ANY(type) GET(type)
#define PUT_ANY(type, p) PUT(type, p)
#include "pool-cases.inc"

#define NAME(x) malloc_##x
#define GET(type) malloc(type_size[type])
#define PUT(type, p) free(p)
#define GET0() calloc(1, type_size[0])
#define GET_ANY(type) GET(type)
#define PUT_ANY(type, p) PUT(type, p)
#include "pool-cases.inc"

#define NAME(x) pool_##x
#define GET(type) mem_get(pool[type])
#define PUT(type, p) mem_put(p)
#define GET0() mem_get0(pool[0])
#define GET_ANY(type) GET(type)
#define PUT_ANY(type, p) PUT(type, p)
#include "pool-cases.inc"

#define NAME(x) owner_##x
#define GET(type) mem_get_owner(pool[type], 1)
#define PUT(type, p) mem_put(p)
#define GET0() mem_get0_owner(pool[0], 1)
#define GET_ANY(type) GET(type)
#define PUT_ANY(type, p) PUT(type, p)
#include "pool-cases.inc"

#define NAME(x) inline_##x
#define GET(type) mem_get_t(MEM_ID_TYPED_MIN + (type))
#define PUT(type, p) mem_put_t(MEM_ID_TYPED_MIN + (type), p)
#define GET0() memset(mem_get_t(MEM_ID_TYPED_MIN), 0, type_size[0])
#define GET_ANY(type) GET(type)
#define PUT_ANY(type, p) PUT(type, p)
#include "pool-cases.inc"

/* The design that this one replaces: a thread's hot list is linked through the objects and guarded by the
 * thread's own spinlock; sweeping is left out, so this is its best case. */
struct seed_list {
    uint32_t lock;
    void *hot;
    uint64_t n;
} __attribute__((aligned(64)));
static __thread struct seed_list seed_lists[TYPES];

static inline void
seed_lock(struct seed_list *l)
{
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

static inline void
seed_unlock(struct seed_list *l)
{
    __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
}

static void *
seed_get(unsigned type)
{
    struct seed_list *l = &seed_lists[type];
    void **p;

    seed_lock(l);
    p = l->hot;
    if (p)
        l->hot = *p;
    seed_unlock(l);
    return p ? (void *)p : malloc(type_size[type]);
}

static void
seed_put(unsigned type, void *p)
{
    struct seed_list *l = &seed_lists[type];

    seed_lock(l);
    *(void **)p = l->hot;
    l->hot = p;
    seed_unlock(l);
}

#define NAME(x) seed_##x
#define GET(type) seed_get(type)
#define PUT(type, p) seed_put(type, p)
#define GET0() memset(seed_get(0), 0, type_size[0])
#define GET_ANY(type) GET(type)
#define PUT_ANY(type, p) PUT(type, p)
#include "pool-cases.inc"

/* ---- the cases -------------------------------------------------------------------------------- */

static struct ring *
ring_new(void)
{
    return memset(aligned_alloc(64, sizeof(struct ring)), 0, sizeof(struct ring));
}

static bool spinning; /* the case waits for its partner by spinning: CPU time says nothing */

/* Run n threads; nanoseconds of CPU, or of the wall if they spin on two CPUs. */
static double
run_threads(unsigned n, void *(**body)(void *), struct flow *flows)
{
    pthread_t t[300];
    clockid_t c = spinning && cpus != 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    double from;

    pthread_barrier_init(&start, NULL, n + 1);
    for (unsigned i = 0; i < n; i++)
        pthread_create(&t[i], NULL, body[i], &flows[i]);
    from = clock_ns(c); /* before the barrier: on a busy machine this thread may be the last to leave it */
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    return clock_ns(c) - from;
}

static double
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
        f[n] = (struct flow){ .ring = { ring[i], ring[1] }, .rings = lanes / consumers,
                              .cpu = producers > consumers ? 1 : (int)(1 - (int)i), .count = total / consumers };
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
mixed_case(const struct ways *w, unsigned threads, uint64_t each)
{
    struct flow f[300];
    void *(*body[300])(void *);

    for (unsigned i = 0; i < threads; i++) {
        f[i] = (struct flow){ .cpu = (int)i, .count = each };
        body[i] = w->mixed;
    }
    return run_threads(threads, body, f) / (double)(each * threads);
}

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

static void
idle_case(const struct ways *w, unsigned threads)
{
    enum { OBJECTS = 400000 };
    static struct flow f[300];
    pthread_t t[300];
    unsigned n = OBJECTS / threads, ms = 1000;
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
    usleep(200000);
    base = resident_mb();
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&middle);
    peak = resident_mb() - base;
    pthread_barrier_wait(&middle);
    freed = resident_mb() - base;
    usleep(ms * 1000 + 100000);
    one = resident_mb() - base;
    usleep(ms * 1000 + 100000);
    two = resident_mb() - base;
    printf("%.1f %.1f %.1f %.1f\n", peak, freed, one, two);
    pthread_barrier_wait(&finish);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
}

/* 300 blocked threads with something in 8 pools each: the longest a thread is kept out of its lines. */
static void
sweep_case(void)
{
    struct mem_process_stats s;

    idle_case(&pool_ways, 300);
    mem_pools_stats(&s);
    printf("%llu %llu\n", (unsigned long long)s.window_us_max, (unsigned long long)s.membarrier_us_max);
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

/* One thread gets, another puts: by how much the process's largest size grows over 20 million objects after
 * the first million. */
static void
oneway_case(const struct ways *w)
{
    double first;

    cpus = 2;
    flow_case(w, 1, 1, 1, 1000000);
    first = largest_mb();
    flow_case(w, 1, 1, 1, 20000000);
    printf("%.1f %.1f\n", first, largest_mb() - first);
}

static void
make_pools(void)
{
    static const char *const names[TYPES] = { "a", "b", "c", "d", "e" };

    mem_pools_set_option("sweep", "1000");
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
    if (sscanf(name, "lifo-%u", &n) == 1) {
        place(cpus = 1);
        w->lifo(n, 1000);
        return w->lifo(n, 20000000 * (uint64_t)(scale * 100) / 100 / n);
    }
    if (!strncmp(name, "get0", 4))
        return w->get0(total * 4);
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
    if (!strncmp(name, "fop", 3)) {
        cpus = 1; /* one thread: its CPU time */
        return fops_case(w, 1, 0, total / 3);
    }
    if (sscanf(name, "mixed-%u", &n) == 1 && n <= 300)
        return mixed_case(w, n, total * 4 / n);
    fprintf(stderr, "pool-work: no case %s\n", name);
    exit(2);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        const struct ways *ways;
    } all[] = { { "harness", &harness_ways }, { "malloc", &malloc_ways }, { "pool", &pool_ways },
                { "owner", &owner_ways },     { "inline", &inline_ways }, { "seed", &seed_ways } };
    double scale = getenv("POOL_SCALE") ? atof(getenv("POOL_SCALE")) : 1;
    unsigned n;

    if (argc < 3)
        return 2;
    if (argc > 3)
        type_size[0] = (size_t)atol(argv[3]);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(argv[1], all[i].name))
            continue;
        if (i >= 2 && i != 5)
            make_pools();
        if (sscanf(argv[2], "idle-%u", &n) == 1 && n && n <= 300)
            idle_case(all[i].ways, n);
        else if (!strcmp(argv[2], "sweep"))
            sweep_case();
        else if (!strcmp(argv[2], "oneway"))
            oneway_case(all[i].ways);
        else
            printf("%.3f\n", run(all[i].ways, argv[2], scale));
        return 0;
    }
    fprintf(stderr, "pool-work: no way %s\n", argv[1]);
    return 2;
}
