/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stacks-work CASE WAY [N]: a measurement of tests/bench/stacks, in a process. Prints "name value" lines: the
 * first is nanoseconds of CPU time a stack (or a switch), the further lines are counts.
 *
 * create  N stacks at once, three pages touched in each
 *           each       mmap, and mprotect for the guard, for each
 *           slab       the pool, guards by mprotect
 *           pool       the pool
 *           kept       the pool, which keeps stacks of an earlier round
 *           floor      one mapping without guards: page faults alone
 * reuse   one stack again and again
 *           keep       the pool
 *           unmap      mapped and unmapped
 *           drop       its pages dropped each time
 *           free       the same with MADV_FREE
 * spawn   a coroutine that ends at once
 *           keep       the pool
 *           off        pools off, so that the stack is mapped and unmapped
 * pair    stack_take and stack_release only
 *           1, 2       threads at once (wall time of a pair in each)
 * switch  there and back; N coroutines in turn
 *           coroutine  resume and yield
 *           raw        the bare switch
 * sweep   N idle stacks
 *           drop       their pages dropped
 *           mincore    mincore(2) on their lower part only
 *           canary     the same by reading a word of each lower part
 */
#include "coro/coroutine.h"
#include "coro/switch.h"
#include "coro/stack-internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BYTES = 64 << 10, PAGE = 4096, TOUCHED = 3, PAIRS = 2000000, REUSES = 60000, SWITCHES = 2000000 };

static struct stack_pool *pool;

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
say(const char *name, double value)
{
    printf("%s %.3f\n", name, value);
}

static void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static void
touch(char *top)
{
    for (int i = 0; i < TOUCHED; i++)
        *(volatile char *)(top - 1 - i * PAGE) = 1;
}

static void
pool_open(bool is_mprotect)
{
    /* The comparison needs 60,000 map entries and more, as each does. */
    struct stack_pool_opts o = { .name = "bench", .bytes = BYTES, .cap = 1 << 17, .map_entries_max = ~0u,
                                 .is_mprotect = is_mprotect };

    if (stack_pool_new(&o, &pool) != 0)
        fail("stack_pool_new");
}

static struct stack *
take(void)
{
    struct stack *s;

    if (stack_take(pool, &s) != 0)
        fail("stack_take");
    return s;
}

static char *
map_one(void)
{
    char *p = mmap(NULL, PAGE + BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (p == MAP_FAILED || mprotect(p, PAGE, PROT_NONE) != 0)
        fail("mmap");
    return p;
}

/* ---- create ---------------------------------------------------------------------------------- */

/* The costs of touching the pages, which every way has. */
static void
create_floor(unsigned n)
{
    const size_t slot = PAGE + BYTES;
    char *p =
        mmap(NULL, n * slot, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    double from;

    if (p == MAP_FAILED)
        fail("mmap");
    (void)madvise(p, n * slot, MADV_NOHUGEPAGE); /* as the pool does; no such kernel, no such pages */
    from = cpu_ns();
    for (unsigned i = 0; i < n; i++)
        touch(p + (i + 1) * slot);
    say("ns", (cpu_ns() - from) / n);
    say("entries", 0);
}

static void
create(const char *way, unsigned n)
{
    struct stack **s = calloc(n, sizeof(struct stack *));
    uint32_t entries = stack_map_entries();
    double from;

    memset(s, 1, n * sizeof(struct stack *)); /* its own faults come before */
    if (strcmp(way, "each"))
        pool_open(!strcmp(way, "slab"));
    if (!strcmp(way, "kept")) {
        for (unsigned i = 0; i < n; i++)
            touch((s[i] = take())->top);
        for (unsigned i = 0; i < n; i++)
            stack_release(s[i]);
    }
    from = cpu_ns();
    for (unsigned i = 0; i < n; i++)
        touch(pool ? (s[i] = take())->top : map_one() + PAGE + BYTES);
    say("ns", (cpu_ns() - from) / n);
    say("entries", (stack_map_entries() - (double)entries) / n);
    if (pool) {
        struct stack_pool_stats st;

        stack_pool_stats(pool, &st);
        say("slabs", st.slabs);
    }
}

/* ---- reuse ----------------------------------------------------------------------------------- */

static void
reuse(const char *way)
{
    unsigned n = REUSES;
    char *p = NULL;
    double from;

    if (!strcmp(way, "keep")) {
        pool_open(false);
        touch(take()->top);
        n *= 20;
    } else {
        p = map_one();
    }
    from = cpu_ns();
    for (unsigned i = 0; i < n; i++) {
        if (pool) {
            struct stack *s = take();

            touch(s->top);
            stack_release(s);
        } else if (!strcmp(way, "unmap")) {
            char *one = map_one();

            touch(one + PAGE + BYTES);
            munmap(one, PAGE + BYTES);
        } else {
            touch(p + PAGE + BYTES);
            madvise(p + PAGE, BYTES, !strcmp(way, "drop") ? MADV_DONTNEED : MADV_FREE);
        }
    }
    say("ns", (cpu_ns() - from) / n);
}

static void
end_at_once(void *arg)
{
    ++*(volatile unsigned *)arg;
}

static void
spawn(const char *way)
{
    unsigned ended = 0, n = !strcmp(way, "off") ? REUSES : REUSES * 10;
    double from;

    if (!strcmp(way, "off") && mem_pools_set_mode("off") != 0)
        exit(1);
    pool_open(false);
    from = cpu_ns();
    for (unsigned i = 0; i < n; i++) {
        struct coroutine *c;

        if (coroutine_new(pool, end_at_once, &ended, &c) != 0)
            fail("coroutine_new");
        coroutine_resume(c);
    }
    say("ns", (cpu_ns() - from) / n);
    if (ended != n)
        exit(1);
}

static void *
pairs(void *arg)
{
    for (unsigned i = 0; i < PAIRS; i++)
        stack_release(take());
    return arg;
}

static void
pair(const char *way)
{
    unsigned threads = (unsigned)atoi(way);
    pthread_t t[16];
    double from;

    pool_open(false);
    stack_release(take());
    from = clock_ns(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, pairs, NULL);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    say("ns", (clock_ns(CLOCK_MONOTONIC) - from) / PAIRS);
}

/* ---- switch ---------------------------------------------------------------------------------- */

static unsigned left;

static void
yield_on(void *arg)
{
    (void)arg;
    while (left)
        coroutine_yield();
}

static struct switch_point here, there;

static void
switch_on(void)
{
    for (;;)
        switch_stack(&there, &here);
}

static void
switches(const char *way, unsigned n)
{
    struct coroutine **c = calloc(n, sizeof(struct coroutine *));
    bool is_raw = !strcmp(way, "raw");
    struct stack *s;
    double from;

    pool_open(false);
    left = SWITCHES;
    s = take();
    switch_point_init(&there, s->low, s->top, switch_on);
    for (unsigned i = 0; i < n && !is_raw; i++)
        if (coroutine_new(pool, yield_on, NULL, &c[i]) != 0 || coroutine_resume(c[i]))
            fail("coroutine_new");
    from = cpu_ns();
    for (unsigned i = 0; left; left--) {
        if (is_raw)
            switch_stack(&here, &there);
        else
            coroutine_resume(c[i = i + 1 < n ? i + 1 : 0]);
    }
    say("ns", (cpu_ns() - from) / SWITCHES);
}

/* ---- sweep ----------------------------------------------------------------------------------- */

static void
sweep(const char *way, unsigned n)
{
    struct stack **s = calloc(n, sizeof(struct stack *));
    unsigned used = 0;
    double from;

    pool_open(false);
    for (unsigned i = 0; i < n; i++)
        touch((s[i] = take())->top);
    if (!strcmp(way, "drop")) {
        for (unsigned i = 0; i < n; i++)
            stack_release(s[i]);
        mem_pools_sweep_now();
    }
    from = cpu_ns();
    if (!strcmp(way, "drop"))
        mem_pools_sweep_now();
    for (unsigned i = 0; i < n && !strcmp(way, "mincore"); i++)
        used += stack_drop_lower(s[i]) > 0;
    for (unsigned i = 0; i < n && !strcmp(way, "canary"); i++)
        used += *(volatile char *)(s[i]->low + BYTES - STACK_UPPER - sizeof(uint64_t)) != 0;
    say("ns", (cpu_ns() - from) / n);
    say("resident", (double)stack_pool_resident(pool) / n);
    say("used", used);
}

int
main(int argc, char **argv)
{
    unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 30000;

    if (argc < 3)
        return 2;
    if (strcmp(argv[2], "off") && mem_pools_set_mode("on") != 0)
        return 1;
    if (!strcmp(argv[1], "create") && !strcmp(argv[2], "floor"))
        create_floor(n);
    else if (!strcmp(argv[1], "create"))
        create(argv[2], n);
    else if (!strcmp(argv[1], "reuse"))
        reuse(argv[2]);
    else if (!strcmp(argv[1], "spawn"))
        spawn(argv[2]);
    else if (!strcmp(argv[1], "pair"))
        pair(argv[2]);
    else if (!strcmp(argv[1], "switch"))
        switches(argv[2], n);
    else if (!strcmp(argv[1], "sweep"))
        sweep(argv[2], n);
    else
        return 2;
    return 0;
}
