/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Stacks: guards, order, age, limits, threads, fork; after each test, leaked stacks are counted. */
#include "coro/stack-internal.h"
#include "base/test-child.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#define SANITIZED (MEM_ASAN || MEM_TSAN)
#define WATCHED (SANITIZED || RUNNING_ON_VALGRIND)

/* Map entries that other code may add meanwhile: the shadow of a tool comes in pieces. */
#define OTHERS (WATCHED ? 150u : 4u)

static struct stack_pool *pool;
static char last_message[300];
static int messages;

static void
keep_message(int level, const char *text)
{
    (void)level;
    snprintf(last_message, sizeof(last_message), "%s", text);
    messages++;
}

static void
pool_with(uint32_t cap, uint32_t entries, bool is_mprotect)
{
    struct stack_pool_opts o = {
        .name = "test", .cap = cap, .map_entries_max = entries, .is_mprotect = is_mprotect};

    ck_assert_int_eq(stack_pool_new(&o, &pool), 0);
}

static void
setup(void)
{
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    ck_assert_int_eq(mem_pools_set_option("abort", "0"), 0);
    mem_pools_set_message_fn(keep_message);
    pool_with(0, 0, false);
}

static void
teardown(void)
{
    if (!pool)
        return;
    stack_pool_check(pool);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}

static void
another_pool(uint32_t cap, uint32_t entries, bool is_mprotect)
{
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
    pool_with(cap, entries, is_mprotect);
}

static struct stack_pool_stats
stats(void)
{
    struct stack_pool_stats s;

    stack_pool_check(pool);
    stack_pool_stats(pool, &s);
    return s;
}

static struct stack *
take(void)
{
    struct stack *s;

    ck_assert_int_eq(stack_take(pool, &s), 0);
    return s;
}

static void
touch(struct stack *s, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++)
        s->top[-1 - (ptrdiff_t)(i * 4096)] = (char)(i + 1);
}

static struct stack **
take_many(unsigned n, unsigned pages)
{
    struct stack **s = calloc(n, sizeof(struct stack *));

    ck_assert_ptr_nonnull(s);
    for (unsigned i = 0; i < n; i++) {
        s[i] = take();
        touch(s[i], pages);
    }
    return s;
}

static void
release_many(struct stack **s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        stack_release(s[i]);
    free(s);
}

/* ---- one stack ------------------------------------------------------------------------------- */

START_TEST(the_whole_stack_is_usable)
{
    struct stack *s = take(), *t = take();

    ck_assert_uint_ge((size_t)(s->top - s->low), 60 << 10);
    ck_assert_uint_eq((uintptr_t)s->top % 64, 0);
    memset(s->low, 1, (size_t)(s->top - s->low));
    memset(t->low, 2, (size_t)(t->top - t->low));
    ck_assert_int_eq(s->low[0] + s->top[-1], 2);
    stack_release(s);
    stack_release(t);
}
END_TEST

static char *volatile expect_fault;

/* Exits with 7: the fault is at the expected address. */
static void
on_segv(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    _exit((char *)info->si_addr == expect_fault ? 7 : 8);
}

static void
write_expecting_a_fault(char *at)
{
    struct sigaction a = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };

    sigaction(SIGSEGV, &a, NULL);
    expect_fault = at;
    *(volatile char *)at = 1;
    _exit(9);
}

static int
child_status(pid_t child)
{
    int status;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void
faults_below(struct stack *s)
{
    pid_t child = test_fork();

    ck_assert_int_ge(child, 0);
    if (!child)
        write_expecting_a_fault(s->low - 1);
    ck_assert_int_eq(child_status(child), 7);
    child = test_fork();
    if (!child)
        write_expecting_a_fault(s->low - 4096);
    ck_assert_int_eq(child_status(child), 7);
}

/* _i: guards by mprotect. Checks all guards of a slab, and again after its pages were dropped. */
START_TEST(overflow_meets_the_guard)
{
    another_pool(0, 0, _i);
    struct stack **s = take_many(8, 3);

    for (unsigned i = 0; i < 8; i++)
        faults_below(s[i]);
    release_many(s, 8);
    s = take_many(1, 3);
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats().dropped, 7);
    release_many(s, 1);
    s = take_many(8, 3);
    for (unsigned i = 0; i < 8; i++)
        faults_below(s[i]);
    release_many(s, 8);
}
END_TEST

START_TEST(locked_memory_gets_its_guards_by_mprotect)
{
    if (WATCHED || mlockall(MCL_FUTURE) != 0)
        return; /* not allowed to lock memory */
    struct stack *s = take();

    ck_assert_str_eq(stats().guard, "mprotect");
    faults_below(s);
    stack_release(s);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
    pool = NULL;
}
END_TEST

START_TEST(sizes_out_of_range_are_refused)
{
    struct stack_pool *p;
    struct stack_pool_opts o = { .bytes = 4096 };

    ck_assert_int_eq(stack_pool_new(&o, &p), -EINVAL);
    o.bytes = (size_t)17 << 20;
    ck_assert_int_eq(stack_pool_new(&o, &p), -EINVAL);
    o.bytes = (size_t)16 << 20;
    ck_assert_int_eq(stack_pool_new(&o, &p), 0);
    struct stack *s;
    ck_assert_int_eq(stack_take(p, &s), 0);
    s->low[0] = 1;
    stack_release(s);
    ck_assert_uint_eq(stack_pool_destroy(p), 0);
}
END_TEST

/* ---- order and age --------------------------------------------------------------------------- */

START_TEST(last_released_is_taken_first)
{
    struct stack *a = take(), *b = take(), *c = take();

    stack_release(a);
    stack_release(c);
    stack_release(b);
    ck_assert_ptr_eq(take(), b);
    ck_assert_ptr_eq(take(), c);
    ck_assert_ptr_eq(take(), a);
    ck_assert_uint_eq(stats().reused, 3);
    stack_release(a);
    stack_release(b);
    stack_release(c);
}
END_TEST

START_TEST(each_slab_doubles_up_to_256_stacks)
{
    static const unsigned after[][2] = {{1, 1},   {8, 1},   {9, 2},   {24, 2},  {25, 3},  {56, 3}, {57, 4},
                                        {120, 4}, {248, 5}, {504, 6}, {505, 7}, {760, 7}, {761, 8}};
    struct stack *s[761];
    unsigned n = 0;

    for (unsigned i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        while (n < after[i][0])
            s[n++] = take();
        ck_assert_uint_eq(stats().slabs, after[i][1]);
    }
    while (n)
        stack_release(s[--n]);
}
END_TEST

START_TEST(cold_ones_lose_their_pages_and_then_their_slab)
{
    struct stack **s = take_many(100, 3);

    ck_assert_uint_ge(stack_pool_resident(pool), 100 * 3 * 4096);
    release_many(s, 100);
    ck_assert_uint_eq(stats().cached_hot, 100);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats().cached_cold, 100); /* idle for less than a period */
    ck_assert_uint_ge(stack_pool_resident(pool), 100 * 3 * 4096);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats().dropped, 100);
    ck_assert_uint_eq(stack_pool_resident(pool), 0);
    ck_assert_uint_eq(stats().slabs, 4); /* the addresses are kept for another period */
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats().slabs, 0);
    ck_assert_uint_eq(stats().unmapped, 4);
    ck_assert_uint_eq(stats().stacks, 0);
}
END_TEST

/* Stacks that are used every period stay warm, stacks below them are dropped; live stacks are not touched. */
START_TEST(only_cold_stacks_are_dropped)
{
    struct stack **s = take_many(20, 3), *live = s[5];
    char *tops[3];

    s[5] = s[19];
    release_many(s, 19);
    for (int period = 0; period < 5; period++) {
        s = take_many(3, 0);
        for (int i = 0; i < 3; i++) {
            if (period)
                ck_assert_ptr_eq(s[2 - i]->top, tops[i]);
            tops[i] = s[i]->top;
        }
        release_many(s, 3);
        mem_pools_sweep_now();
    }
    ck_assert_uint_eq(stats().cached_cold, 3);
    ck_assert_uint_eq(stats().dropped, 16);
    ck_assert_uint_eq(stack_pool_resident(pool), 4 * 3 * 4096);
    ck_assert_int_eq(live->top[-1] + live->top[-4097] + live->top[-8193], 6);
    stack_release(live);
}
END_TEST

START_TEST(bare_stacks_are_used_before_new_ones_are_mapped)
{
    struct stack **s = take_many(24, 1), *one = s[23];

    release_many(s, 23);
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    s = take_many(23, 1);
    ck_assert_uint_eq(stats().slabs, 2);
    ck_assert_uint_eq(stats().reused, 0);
    release_many(s, 23);
    stack_release(one);
}
END_TEST

START_TEST(pressure_drops_used_lower_parts)
{
    struct stack **s = take_many(8, 2);

    touch(s[2], 12);
    touch(s[6], 5);
    release_many(s, 8);
    mem_pools_trim(1);
    struct stack_pool_stats st = stats();
    ck_assert_uint_eq(st.cached_cold, 8);
    ck_assert_uint_eq(st.dropped, 0);
    ck_assert_uint_eq(st.dropped_lower, 2);
    ck_assert_uint_le(stack_pool_resident(pool), (6 * 2 + 2 * 4) * 4096);
    ck_assert_uint_ge(stack_pool_resident(pool), 8 * 2 * 4096);
    mem_pools_trim(2);
    ck_assert_uint_eq(stats().slabs, 0);
}
END_TEST

START_TEST(release_keep_keeps_the_pages)
{
    ck_assert_int_eq(mem_pools_set_option("release", "keep"), 0);
    release_many(take_many(8, 3), 8);
    for (int i = 0; i < 4; i++)
        mem_pools_sweep_now();
    ck_assert_uint_eq(stack_pool_resident(pool), 8 * 3 * 4096);
    ck_assert_int_eq(mem_pools_set_option("release", "drop"), 0);
}
END_TEST

/* The real sweeper, asleep or not, runs without a call, and falls asleep again. */
START_TEST(the_sweeper_runs_without_a_call)
{
    const struct timespec tick = { 0, 1000000 };
    time_t deadline = time(NULL) + 20;

    ck_assert_int_eq(mem_pools_set_option("sweep", "5"), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    for (int round = 0; round < 3; round++) {
        release_many(take_many(50, 3), 50);
        while (stats().slabs && time(NULL) < deadline)
            nanosleep(&tick, NULL);
        ck_assert_uint_eq(stats().slabs, 0);
    }
    mem_pools_fini();
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

static pid_t waiting;

static void *
refused_at_last(void *arg)
{
    struct stack *s;

    __atomic_store_n(&waiting, gettid(), __ATOMIC_RELEASE);
    ck_assert_int_eq(stack_take(pool, &s), -EAGAIN);
    return arg;
}

static bool
is_asleep(pid_t tid)
{
    char path[64], state = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%*d %*s %c", &state), 1);
    fclose(f);
    return state == 'S';
}

/* A thread that waits while another grows the pool may find it grown to its cap, with all stacks taken. */
START_TEST(the_last_stacks_go_to_another)
{
    struct stack *s[8];
    unsigned n = 0;
    pthread_t t;
    pid_t tid;

    do {
        s[n++] = take();
    } while (pool->nbare);
    pthread_mutex_lock(&pool->slow);
    ck_assert_int_eq(pthread_create(&t, NULL, refused_at_last, NULL), 0);
    while (!(tid = __atomic_load_n(&waiting, __ATOMIC_ACQUIRE)) || !is_asleep(tid))
        usleep(1000); /* or until the test's time is up */
    mem_lock(&pool->lock);
    pool->cap = pool->total;
    mem_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->slow);
    pthread_join(t, NULL);
    ck_assert_uint_eq(stats().refused_cap, 1);
    while (n)
        stack_release(s[--n]);
}
END_TEST

START_TEST(cap_is_hard_and_exact)
{
    another_pool(20, 0, false);
    struct stack **s = take_many(20, 1), *extra = NULL;

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(stack_take(pool, &extra), -EAGAIN);
    ck_assert_ptr_null(extra);
    ck_assert_uint_eq(stats().refused_cap, 3);
    ck_assert_uint_eq(stats().stacks, 20);
    stack_release(s[19]);
    s[19] = take();
    ck_assert_int_eq(stack_take(pool, &extra), -EAGAIN);
    release_many(s, 20);
}
END_TEST

START_TEST(stops_at_its_share_of_map_entries)
{
    uint32_t now = stack_map_entries();

    ck_assert_uint_gt(now, 10);
    another_pool(0, now + 120, true);
    struct stack *s[200];
    unsigned n = 0;
    int err;

    while (n < 200 && !(err = stack_take(pool, &s[n])))
        n++;
    ck_assert_int_eq(err, -EAGAIN);
    ck_assert_uint_ge(n, 24);
    ck_assert_uint_le(n, 60);
    ck_assert_uint_le(stack_map_entries(), now + 120 + OTHERS);
    ck_assert_uint_ge(stats().refused_maps, 1);
    while (n)
        stack_release(s[--n]);
    mem_pools_trim(2);
    ck_assert_uint_le(stack_map_entries(), now + OTHERS);
    s[0] = take();
    stack_release(s[0]);
}
END_TEST

START_TEST(thirty_thousand_stacks_are_live_at_once)
{
    const unsigned n = SANITIZED ? 3000 : 30000;
    uint32_t entries = stack_map_entries();
    struct stack **s = take_many(n, 1);
    struct stack_pool_stats st = stats();

    ck_assert_uint_eq(st.live, n);
    if (!strcmp(st.guard, "advice"))
        ck_assert_uint_le(stack_map_entries(), entries + st.slabs + OTHERS);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(s[i]->top[-1], 1);
    release_many(s, n);
    mem_pools_trim(2);
    ck_assert_uint_eq(stats().bytes_mapped, 0);
    ck_assert_uint_le(stack_map_entries(), entries + OTHERS);
}
END_TEST

/* Runs in a child, because the limit cannot be lifted. Exit status 0: success. */
static void
exhaust_address_space(void)
{
    struct rlimit limit;
    static struct stack *s[2000];
    unsigned n = 0;
    int err = 0;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)64 << 20;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(1);
    while (n < 2000 && !(err = stack_take(pool, &s[n])))
        s[n++]->top[-1] = 1;
    if (err != -ENOMEM || n < 10)
        _exit(2);
    struct stack_pool_stats full = stats();
    /* the last slabs were single stacks, so there is no stack left */
    if (full.live != n || full.stacks != n || !full.no_memory)
        _exit(3);
    stack_release(s[--n]);
    if (stack_take(pool, &s[n]) != 0 || stack_take(pool, &s[n + 1]) != -ENOMEM)
        _exit(4);
    for (n++; n;)
        stack_release(s[--n]);
    mem_pools_trim(2);
    _exit(stats().bytes_mapped || stack_pool_destroy(pool) ? 5 : 0);
}

START_TEST(no_address_space_is_an_error_and_leaks_nothing)
{
    if (WATCHED)
        return; /* its shadow needs terabytes of addresses */
    pid_t child = test_fork();

    if (!child)
        exhaust_address_space();
    ck_assert_int_eq(child_status(child), 0);
}
END_TEST

START_TEST(failed_mapping_falls_back_to_smaller_slabs)
{
    struct stack *s = NULL;

    mem_test_fail_always = true;
    mem_test_fail_at = 1000;
    ck_assert_int_eq(stack_take(pool, &s), -ENOMEM);
    ck_assert_ptr_null(s);
    mem_test_fail_always = false;
    mem_test_fail_at = 1;
    s = take();
    ck_assert_uint_eq(stats().stacks, 4);
    mem_test_fail_at = 0;
    stack_release(s);
}
END_TEST

/* ---- misuse and the end ---------------------------------------------------------------------- */

START_TEST(double_release_is_reported)
{
    struct stack *s = take();

    stack_release(s);
    stack_release(s);
    ck_assert_int_eq(messages, 1);
    ck_assert_ptr_nonnull(strstr(last_message, "test"));
    ck_assert_ptr_nonnull(strstr(last_message, "cached"));
    ck_assert_uint_eq(stats().cached_hot, 1);
}
END_TEST

START_TEST(destroy_counts_live_stacks_and_waits_for_them)
{
    struct stack **s = take_many(30, 1), *first = s[0], *last = s[29];
    unsigned char in_memory;
    char *page = (char *)((uintptr_t)(first->top - 1) & ~(uintptr_t)4095);

    memmove(s, s + 1, 28 * sizeof(*s));
    release_many(s, 28);
    ck_assert_uint_eq(stack_pool_destroy(pool), 2);
    pool = NULL;
    ck_assert_int_eq(first->top[-1] + last->top[-1], 2);
    stack_release(last);
    ck_assert_int_eq(mincore(page, 4096, &in_memory), 0);
    stack_release(first);
    ck_assert_int_eq(mincore(page, 4096, &in_memory), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(stack_pool_destroy(NULL), 0);
}
END_TEST

static void
count_key(void *arg, const char *key, const char *value)
{
    char (*found)[32] = arg;

    if (!strcmp(key, "live") || !strcmp(key, "bytes-resident"))
        snprintf(found[key[0] == 'b'], 32, "%s", value);
}

START_TEST(dump_lists_the_statistics)
{
    struct stack *s = take();
    char found[2][32] = { "", "" };

    touch(s, 2);
    stack_pools_dump(count_key, found);
    ck_assert_str_eq(found[0], "1");
    ck_assert_int_ge(atoi(found[1]), 2 * 4096);
    stack_release(s);
}
END_TEST

/* ---- threads and fork ------------------------------------------------------------------------ */

enum { SLOTS = 64, THREADS = 6, TURNS = SANITIZED ? 3000 : 20000 };

static struct stack *slots[SLOTS];
static int storm_over;
static pthread_t helper;

/* Each stack carries its own address at its top while it is in a slot; a thread that finds another value
 * there was given a stack that is already in use, or that was dropped while live. */
static void *
exchange(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < TURNS; i++) {
        struct stack *mine = NULL, *theirs;

        seed = seed * 1103515245 + 12345;
        if (seed >> 16 & 3 && stack_take(pool, &mine) == 0) {
            ((struct stack **)(void *)mine->top)[-1] = mine;
            if (!(seed >> 20 & 15))
                mine->top[-20000] = 1;
        }
        theirs = __atomic_exchange_n(&slots[(seed >> 8) % SLOTS], mine, __ATOMIC_ACQ_REL);
        if (!theirs)
            continue;
        if (((struct stack **)(void *)theirs->top)[-1] != theirs)
            return (void *)1;
        ((struct stack **)(void *)theirs->top)[-1] = NULL;
        stack_release(theirs);
    }
    return NULL;
}

static void *
sweep_on(void *arg)
{
    const struct timespec pause = { 0, 300000 };

    (void)arg;
    for (int i = 0; !__atomic_load_n(&storm_over, __ATOMIC_RELAXED); i++) {
        if (i % 4)
            mem_pools_sweep_now();
        else
            mem_pools_trim(1 + i / 4 % 2);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

START_TEST(threads_exchange_stacks_in_a_storm)
{
    pthread_t thread[THREADS];
    void *bad;

    another_pool(_i ? 40 : 0, 0, false); /* once with a cap that is reached */
    ck_assert_int_eq(pthread_create(&helper, NULL, sweep_on, NULL), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, exchange, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &bad);
        ck_assert_ptr_null(bad);
    }
    __atomic_store_n(&storm_over, 1, __ATOMIC_RELAXED);
    pthread_join(helper, NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            stack_release(slots[i]);
    ck_assert_uint_eq(stats().live, 0);
}
END_TEST

/* All stacks of the cap are available, even while the sweeper works on some: each of two threads needs 8
 * of 16. */
static void *
need_eight(void *arg)
{
    struct stack *s[8];

    (void)arg;
    for (int i = 0; i < TURNS / 4; i++) {
        for (int n = 0; n < 8; n++)
            if (stack_take(pool, &s[n]) != 0)
                return (void *)1;
        for (int n = 0; n < 8; n++)
            stack_release(s[n]);
    }
    return NULL;
}

START_TEST(a_sweep_causes_no_refusal)
{
    pthread_t thread;
    void *bad;

    another_pool(16, 0, false);
    ck_assert_int_eq(pthread_create(&helper, NULL, sweep_on, NULL), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, need_eight, NULL), 0);
    ck_assert_ptr_null(need_eight(NULL));
    pthread_join(thread, &bad);
    ck_assert_ptr_null(bad);
    __atomic_store_n(&storm_over, 1, __ATOMIC_RELAXED);
    pthread_join(helper, NULL);
}
END_TEST

static void
use_in_child(struct stack *live)
{
    struct stack *s[50];

    if (live->top[-1] != 1)
        _exit(1);
    for (int i = 0; i < 50; i++) {
        if (stack_take(pool, &s[i]) != 0)
            _exit(2);
        touch(s[i], 3);
    }
    for (int i = 0; i < 50; i++)
        stack_release(s[i]);
    live->top[-1] = 5;
    stack_release(live);
    mem_pools_trim(2);
    stack_pool_check(pool);
    if (stack_take(pool, &s[0]) != 0)
        _exit(3);
    write_expecting_a_fault(s[0]->low - 1);
}

START_TEST(a_child_of_fork_uses_the_pool)
{
    pthread_t thread[2];
    struct stack *live = take();
    void *bad;

    touch(live, 1);
    ck_assert_int_eq(pthread_create(&helper, NULL, sweep_on, NULL), 0);
    for (uintptr_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, exchange, (void *)(i + 1)), 0);
    for (int i = 0; i < 10; i++) {
        pid_t child = test_fork();

        ck_assert_int_ge(child, 0);
        if (!child)
            use_in_child(live);
        ck_assert_int_eq(child_status(child), 7);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], &bad);
        ck_assert_ptr_null(bad);
    }
    __atomic_store_n(&storm_over, 1, __ATOMIC_RELAXED);
    pthread_join(helper, NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            stack_release(slots[i]);
    ck_assert_int_eq(live->top[-1], 1);
    stack_release(live);
}
END_TEST

/* ---- pools off ------------------------------------------------------------------------------- */

START_TEST(with_pools_off_a_released_stack_is_gone)
{
    unsigned char in_memory;

    if (mem_pools_set_mode("off") != 0)
        return; /* CK_FORK=no: an earlier test has fixed the mode */
    pool_with(3, 0, false);
    struct stack *a = take(), *b = take(), *c = take(), *d;
    char *page = (char *)((uintptr_t)(a->top - 1) & ~(uintptr_t)4095);

    ck_assert_int_eq(stack_take(pool, &d), -EAGAIN);
    ck_assert_int_eq(mincore(page, 4096, &in_memory), 0);
    stack_release(a);
    ck_assert_int_eq(mincore(page, 4096, &in_memory), -1);
    ck_assert_uint_eq(stats().slabs, 2);
    faults_below(c);
    stack_release(b);
    ck_assert_uint_eq(stack_pool_destroy(pool), 1);
    stack_release(c);
}
END_TEST

static TCase *
test_case(Suite *s, const char *name, bool is_pooled)
{
    TCase *t = tcase_create(name);

    if (is_pooled)
        tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return t;
}

static Suite *
test_suite(void)
{
    Suite *s = suite_create("stack-pool");
    TCase *t = test_case(s, "a stack", true);

    tcase_add_test(t, the_whole_stack_is_usable);
    tcase_add_loop_test(t, overflow_meets_the_guard, 0, 2);
    tcase_add_test(t, locked_memory_gets_its_guards_by_mprotect);
    tcase_add_test(t, sizes_out_of_range_are_refused);
    t = test_case(s, "age", true);
    tcase_add_test(t, last_released_is_taken_first);
    tcase_add_test(t, each_slab_doubles_up_to_256_stacks);
    tcase_add_test(t, cold_ones_lose_their_pages_and_then_their_slab);
    tcase_add_test(t, only_cold_stacks_are_dropped);
    tcase_add_test(t, bare_stacks_are_used_before_new_ones_are_mapped);
    tcase_add_test(t, pressure_drops_used_lower_parts);
    tcase_add_test(t, release_keep_keeps_the_pages);
    tcase_add_test(t, the_sweeper_runs_without_a_call);
    t = test_case(s, "limits", true);
    tcase_add_test(t, cap_is_hard_and_exact);
    tcase_add_test(t, the_last_stacks_go_to_another);
    tcase_add_test(t, stops_at_its_share_of_map_entries);
    tcase_add_test(t, thirty_thousand_stacks_are_live_at_once);
    tcase_add_test(t, no_address_space_is_an_error_and_leaks_nothing);
    tcase_add_test(t, failed_mapping_falls_back_to_smaller_slabs);
    t = test_case(s, "misuse and the end", true);
    tcase_add_test(t, double_release_is_reported);
    tcase_add_test(t, destroy_counts_live_stacks_and_waits_for_them);
    tcase_add_test(t, dump_lists_the_statistics);
    t = test_case(s, "threads and fork", true);
    tcase_add_loop_test(t, threads_exchange_stacks_in_a_storm, 0, 2);
    tcase_add_test(t, a_sweep_causes_no_refusal);
    tcase_add_test(t, a_child_of_fork_uses_the_pool);
    t = test_case(s, "off", false);
    tcase_add_test(t, with_pools_off_a_released_stack_is_gone);
    return s;
}

#include "base/test-main.h"
