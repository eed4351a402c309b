/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-bench: declarations shared by the files of the program pool-work: rings between threads, their places,
 * the ways.
 *
 *   pool-work.c    the cases that take time, and main
 *   pool-ways.c    the ways to get and put objects, with the cases compiled for each way
 *   pool-old.c     the two older designs among them
 *   pool-memory.c  the cases that take memory: idle, one-way flow, steady load
 *   pool-sweep.c   the time for which a sweep keeps each of 300 threads out of the thread's lines
 */
#ifndef KILN_POOL_BENCH_H
#define KILN_POOL_BENCH_H

#include "mem/mem-inline.h"
#include "mem/mem-pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1024, TYPES = 5, THREADS_MAX = 300, SWEEP_MS = 1000 /* N */ };

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
    bool shared;
    uint64_t count;
    void **room;
};

extern pthread_barrier_t start, middle, finish;
extern void *shared_slot[1024];
extern int cpus; /* 1: all threads on the first; 2: thread i on the (i % 2)th; 0: the kernel's choice */
extern int cpu_list[2];
extern size_t type_size[TYPES];
extern struct mem_pool *pool[TYPES];
extern unsigned harness_mask; /* live objects of the case - 1, at most 255; 0 where only the ring is wanted */
extern __thread unsigned my_place;
extern bool fill_ring; /* consumers begin when the ring is full, when the number of live objects is at its
                        * maximum */

static inline double
clock_ns(clockid_t c)
{
    struct timespec ts;

    clock_gettime(c, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline double
cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void
place(int n)
{
    cpu_set_t set;

    my_place = (unsigned)n % 2;
    if (!cpus)
        return;
    CPU_ZERO(&set);
    CPU_SET(cpu_list[cpus == 1 ? 0 : n % 2], &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static inline void
touch(void *p)
{
    *(volatile uint64_t *)p = 1;
}

static inline void
ring_flush(struct ring *r)
{
    __atomic_store_n(&r->head, r->pushed, __ATOMIC_RELEASE);
}

static inline bool
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

static inline void *
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

static inline void
ring_push(struct ring *r, void *p)
{
    while (!ring_try_push(r, p))
        relax();
}

static inline void *
ring_pop(struct ring *r)
{
    void *p;

    while (!(p = ring_try_pop(r)))
        relax();
    return p;
}

/* A thread that gets and puts without a pause. */
struct neighbour {
    int stop;
    uint64_t objects;
};

/* A way to get and put objects, with the cases compiled for this way (pool-cases.inc). */
struct ways {
    const char *name;
    bool pools; /* the way needs pool[] */
    double (*lifo)(unsigned, uint64_t);
    double (*bulk)(uint64_t);
    void *(*producer)(void *);
    void *(*consumer)(void *);
    void *(*asker)(void *);
    void *(*answerer)(void *);
    void *(*fops)(void *);
    void *(*random)(void *);
    void *(*replace)(void *);
    void *(*burst)(void *);
    void (*leave)(unsigned type, void **all, unsigned n);
    void (*end)(unsigned type, void **all, unsigned n);
    void *(*neighbour)(void *);
    double (*get0)(uint64_t);
    double (*get)(uint64_t); /* the same loop without the zeroing */
};

const struct ways *ways_named(const char *name); /* pool-ways.c; NULL if there is none */

/* pool-work.c */
double flow_case(const struct ways *w, unsigned producers, unsigned consumers, unsigned batch,
                 uint64_t total);

/* pool-old.c: the designs before this one. upstream: a spinlock for each thread, 40 bytes of header, classes
 * that are powers of two, a put to the list of the thread that allocated, one shared count of live objects.
 * seed: each thread's own list, linked through the objects, under its own spinlock, nothing exchanged; never
 * swept. */
void *upstream_get(unsigned type);
void upstream_put(void *object);
int upstream_sweeper(unsigned ms); /* frees the cold objects, and makes the hot objects cold */
void *seed_get(unsigned type);
void seed_put(unsigned type, void *object);

/* pool-survivors.c; the ways call survivors_peak() at the peak of a burst */
void survivors_peak(void);
void survivors_case(const struct ways *w, bool is_busy);
void turns_case(const struct ways *w);

/* pool-memory.c, pool-sweep.c: each case prints a line */
void idle_case(const struct ways *w, unsigned threads);
void oneway_case(const struct ways *w);
void steady_case(unsigned percent);
void sweep_case(unsigned running, unsigned passes);

#endif
