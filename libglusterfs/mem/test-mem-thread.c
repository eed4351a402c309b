/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The pool among threads: hand-offs against a shadow model, exit, late destructors, fork, a refused
 * membarrier, one-way flows. */
#include "mem/test-refuse.h"
#include "base/test-child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct mem_pool *pool;

static void
setup(void)
{
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    ck_assert_int_eq(mem_pools_set_option("abort", "1"), 0);
}

static void
teardown(void)
{
    mem_pools_check();
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}

static struct mem_pool_stats
stats(struct mem_pool *p)
{
    struct mem_pool_stats s;

    mem_pool_stats(p, &s);
    return s;
}

/* ---- a shadow model -------------------------------------------------------------------------- */

enum { THREADS = 6, POOLS = 5, SLOTS = 512, OWNERS = 4, OPS = 15000 };

/* Every object carries its expected state, which a second holder would overwrite. */
struct tag {
    struct tag *self;
    uint32_t pool, owner;
    uint64_t check;
};

static struct mem_pool *model_pools[POOLS];
static int model_owners[OWNERS];
static struct tag *slots[SLOTS];
static int64_t shadow_live[POOLS], shadow_owner[OWNERS]; /* atomic: speed does not matter in the test */

static uint64_t
next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

static void
model_put(struct tag *t)
{
    ck_assert(t->self == t && t->check == (uintptr_t)t * 31 + t->pool);
    __atomic_fetch_sub(&shadow_live[t->pool], 1, __ATOMIC_RELAXED);
    if (t->owner)
        __atomic_fetch_sub(&shadow_owner[t->owner - 1], 1, __ATOMIC_RELAXED);
    t->self = NULL;
    mem_put(t);
}

static struct tag *
model_get(uint64_t r)
{
    uint32_t p = (uint32_t)(r % POOLS), o = (uint32_t)(r >> 8) % (OWNERS + 1);
    struct tag *t =
        o ? mem_get_owner(model_pools[p], (uint16_t)model_owners[o - 1]) : mem_get(model_pools[p]);

    ck_assert_ptr_nonnull(t);
    *t = (struct tag){ .self = t, .pool = p, .owner = o, .check = (uintptr_t)t * 31 + p };
    __atomic_fetch_add(&shadow_live[p], 1, __ATOMIC_RELAXED);
    if (o)
        __atomic_fetch_add(&shadow_owner[o - 1], 1, __ATOMIC_RELAXED);
    return t;
}

static void *
model_thread(void *arg)
{
    uint64_t x = 88172645463325252u * ((uintptr_t)arg + 1);

    for (int i = 0; i < OPS; i++) {
        uint64_t r = next_random(&x);
        struct tag *mine = r >> 60 > 5 ? model_get(r) : NULL;
        struct tag *old = __atomic_exchange_n(&slots[(r >> 20) % SLOTS], mine, __ATOMIC_ACQ_REL);

        if (old)
            model_put(old);
        if (r >> 50 == 77)
            mem_pool_idle();
        if (r >> 48 == 7777)
            mem_pools_trim((int)(r % 3) + 1);
        if (r >> 48 == 8888) { /* while others get and put: at most the existing ids */
            int64_t n = mem_owner_balance((uint16_t)model_owners[r % OWNERS], NULL);

            ck_assert_int_ge(n, 0);
            ck_assert_int_le(n, SLOTS + THREADS);
        }
    }
    return NULL;
}

static void
compare_with_model(void)
{
    for (int i = 0; i < POOLS; i++)
        ck_assert_int_eq(stats(model_pools[i]).live, shadow_live[i]);
    for (int i = 0; i < OWNERS; i++)
        ck_assert_int_eq(mem_owner_balance((uint16_t)model_owners[i], NULL), shadow_owner[i]);
    mem_pools_check();
}

static void
run_model(void)
{
    static const size_t sizes[POOLS] = { 40, 200, 500, 2000, 9000 };
    pthread_t t[THREADS];

    for (int i = 0; i < POOLS; i++)
        model_pools[i] = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "model", .size = sizes[i], .flags = i == 1 ? MEM_POOL_CACHE_ALIGNED : 0});
    for (int i = 0; i < OWNERS; i++)
        model_owners[i] = mem_owner_new("model");
    mem_pools_set_option("sweep", "1");
    ck_assert_int_eq(mem_pools_init(), 0);
    for (int round = 0; round < 4; round++) {
        for (uintptr_t i = 0; i < THREADS; i++)
            pthread_create(&t[i], NULL, model_thread, (void *)(i + (uintptr_t)round * 100));
        for (int i = 0; i < THREADS; i++)
            pthread_join(t[i], NULL);
        compare_with_model();
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            model_put(slots[i]);
    compare_with_model();
    for (int i = 0; i < POOLS; i++)
        ck_assert_uint_eq(stats(model_pools[i]).double_free, 0);
}

START_TEST(the_pool_agrees_with_a_model)
{
    run_model();
}
END_TEST

START_TEST(the_cooperative_pool_agrees_with_a_model)
{
    ck_assert_int_eq(mem_pools_set_option("handshake", "cooperative"), 0);
    run_model();
}
END_TEST

/* ---- the kernel refuses membarrier ----------------------------------------------------------- */

static const char *
handshake_name(void)
{
    struct mem_process_stats s;

    mem_pools_stats(&s);
    return s.handshake;
}

START_TEST(without_membarrier_the_pool_is_cooperative)
{
    refuse(SYS_membarrier, EPERM);
    run_model();
    ck_assert_str_eq(handshake_name(), "cooperative");
}
END_TEST

static void
no_message(int level, const char *text)
{
    (void)level;
    (void)text;
}

START_TEST(a_refusal_of_membarrier_makes_the_pool_cooperative)
{
    mem_pools_set_message_fn(no_message);
    pool = mem_pool_new_fn(100, 0, "later");
    mem_put(mem_get(pool));
    ck_assert_str_eq(handshake_name(), "asymmetric");
    refuse(SYS_membarrier, EPERM);
    mem_pools_sweep_now();
    ck_assert_str_eq(handshake_name(), "cooperative");
    run_model();
}
END_TEST

/* ---- threads come and go --------------------------------------------------------------------- */

static void *
leave_things_behind(void *arg)
{
    void *o[500];
    unsigned n = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < n; i++)
        o[i] = mem_get_owner(pool, 1);
    for (unsigned i = 1; i < n; i++)
        mem_put(o[i]);
    return o[0];
}

START_TEST(exit_hands_everything_over)
{
    static const unsigned sizes[] = { 1, 2, 40, 64, 65, 200, 500 };

    pool = mem_pool_new_fn(200, 0, "exit");
    ck_assert_int_eq(mem_owner_new("o"), 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pthread_t t;
        void *survivor;

        pthread_create(&t, NULL, leave_things_behind, (void *)(uintptr_t)sizes[i]);
        pthread_join(t, &survivor);
        ck_assert_int_eq(stats(pool).live, 1);
        ck_assert_int_eq(mem_owner_balance(1, pool), 1);
        mem_pools_check();
        mem_put(survivor);
        ck_assert_int_eq(mem_owner_balance(1, pool), 0);
    }
    /* the next thread used the objects that the last one left */
    ck_assert_uint_le(stats(pool).system_allocs, 600);
}
END_TEST

static pthread_barrier_t step;

static void *
exit_with_cold_magazines(void *arg)
{
    void *o[300];

    (void)arg;
    if (mem_get_bulk(pool, o, 300))
        ck_abort_msg("no memory");
    mem_put_bulk(o, 300);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step); /* swept meanwhile */
    mem_put(mem_get(pool)); /* one magazine is warm again */
    return NULL;
}

START_TEST(exit_keeps_the_cold_apart)
{
    pthread_t t;

    pool = mem_pool_new_fn(200, 0, "cold");
    pthread_barrier_init(&step, NULL, 2);
    ck_assert_int_eq(pthread_create(&t, NULL, exit_with_cold_magazines, NULL), 0);
    pthread_barrier_wait(&step);
    uint64_t all = stats(pool).cached_hot;
    ck_assert_uint_ge(all, 300);
    mem_pools_sweep_now();
    pthread_barrier_wait(&step);
    pthread_join(t, NULL);
    ck_assert_uint_gt(stats(pool).cached_hot, 0);
    ck_assert_uint_gt(stats(pool).cached_cold, 0);
    ck_assert_uint_eq(stats(pool).cached_hot + stats(pool).cached_cold, all);
    mem_pools_check();
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(pool).cached_hot, 0);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(pool).cached_cold, 0);
}
END_TEST

/* The memory of this process according to the kernel, in bytes. */
static size_t
resident(void)
{
    unsigned long total = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    ck_assert(f && fscanf(f, "%lu %lu", &total, &pages) == 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

START_TEST(ten_thousand_short_threads_leak_no_memory)
{
    struct mem_process_stats s;
    size_t pooled = 0, process = 0;

    pool = mem_pool_new_fn(200, 0, "short");
    ck_assert_int_eq(mem_owner_new("o"), 1);
    for (int i = 0; i < 10000; i++) {
        pthread_t t;
        void *survivor;

        ck_assert_int_eq(pthread_create(&t, NULL, leave_things_behind, (void *)(uintptr_t)(1 + i % 100)), 0);
        pthread_join(t, &survivor);
        mem_put(survivor);
        mem_pools_stats(&s);
        if (i == 5000) {
            pooled = s.resident_bytes;
            process = resident();
        }
    }
    ck_assert_uint_le(s.resident_bytes, pooled + (128 << 10));
    if (!tools_watch()) /* such tools remember every thread */
        ck_assert_uint_le(resident(), process + (512 << 10));
    ck_assert_int_eq(stats(pool).live, 0);
    ck_assert_uint_le(s.threads, 1);
}
END_TEST

static pthread_key_t late_key;

static void
late_destructor(void *o)
{
    static __thread int rounds;

    mem_put(o);
    if (++rounds < 3)
        pthread_setspecific(late_key, mem_get(pool));
}

static void *
thread_with_destructor(void *arg)
{
    (void)arg;
    mem_put(mem_get(pool));
    pthread_setspecific(late_key, mem_get(pool));
    return NULL;
}

START_TEST(destructors_after_ours_may_put_and_get)
{
    pool = mem_pool_new_fn(200, 0, "late");
    mem_put(mem_get(pool)); /* this test's key exists first, so its destructor runs first */
    ck_assert_int_eq(pthread_key_create(&late_key, late_destructor), 0);
    for (int i = 0; i < 100; i++) {
        pthread_t t;

        pthread_create(&t, NULL, thread_with_destructor, NULL);
        pthread_join(t, NULL);
    }
    ck_assert_int_eq(stats(pool).live, 0);
    ck_assert_uint_ge(stats(pool).gets, 301);
    ck_assert_uint_ge(stats(pool).bypass, 100);
}
END_TEST

START_TEST(a_detached_thread_goes_on)
{
    pool = mem_pool_new_fn(200, 0, "detached");
    void *o = mem_get(pool);

    mem_pool_thread_destructor();
    mem_pool_thread_destructor();
    mem_put(o);
    for (int i = 0; i < 100; i++)
        mem_put(mem_get(pool));
    ck_assert_int_eq(stats(pool).live, 0);
    ck_assert_uint_eq(stats(pool).gets, 101);
}
END_TEST

/* ---- flows ----------------------------------------------------------------------------------- */

enum { FLOW = 400000, LANE = 256 };
static void *lane[LANE];

static void *
flow_consumer(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < FLOW; i++) {
        void *o;

        while (!(o = __atomic_exchange_n(&lane[i % LANE], NULL, __ATOMIC_ACQ_REL)))
            sched_yield();
        mem_put(o);
    }
    return NULL;
}

START_TEST(a_one_way_flow_does_not_grow)
{
    pthread_t t;

    pool = mem_pool_new_fn(200, 0, "flow");
    pthread_create(&t, NULL, flow_consumer, NULL);
    for (unsigned i = 0; i < FLOW; i++) {
        void *o = mem_get(pool), *none = NULL;

        while (!__atomic_compare_exchange_n(&lane[i % LANE], &none, o, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED)) {
            none = NULL;
            sched_yield();
        }
    }
    /* peak live plus 4 M for each of two threads */
    ck_assert_uint_le(stats(pool).system_allocs, LANE + 2 * 4 * 256);
    pthread_join(t, NULL);
    ck_assert_int_eq(stats(pool).live, 0);
}
END_TEST

static void *
burst_then_block(void *arg)
{
    void *o[1000];

    (void)arg;
    for (int i = 0; i < 1000; i++)
        o[i] = mem_get(pool);
    mem_put_bulk(o, 1000);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return NULL;
}

/* Blocked threads give back all cached objects, without being woken. */
START_TEST(blocked_threads_are_emptied)
{
    pthread_t t[40];

    pool = mem_pool_new_fn(256, 0, "blocked");
    pthread_barrier_init(&step, NULL, 41);
    for (int i = 0; i < 40; i++)
        pthread_create(&t[i], NULL, burst_then_block, NULL);
    pthread_barrier_wait(&step);
    for (int i = 0; i < 3; i++)
        mem_pools_sweep_now();
    ck_assert_uint_eq(stats(pool).cached_hot + stats(pool).cached_cold, 0);
    ck_assert_uint_eq(stats(pool).bytes_resident, 0);
    pthread_barrier_wait(&step);
    for (int i = 0; i < 40; i++)
        pthread_join(t[i], NULL);
}
END_TEST

/* ---- fork and exit --------------------------------------------------------------------------- */

static int storm_over, storming;

static void *
storm(void *arg)
{
    void *o[100];

    (void)arg;
    __atomic_fetch_add(&storming, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&storm_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 100; i++)
            o[i] = mem_get(pool);
        mem_put_bulk(o, 100);
    }
    return NULL;
}

static int
child(void)
{
    void *o[1000];

    for (int i = 0; i < 1000; i++)
        if (!(o[i] = mem_get_owner(pool, 1)))
            return 1;
    mem_put_bulk(o, 1000);
    if (mem_owner_balance(1, NULL) != 0)
        return 2;
    mem_pools_sweep_now();
    if (MEM_TSAN)
        return 0; /* TSan allows no threads in a child */
    if (mem_pools_init() != 0)
        return 3;
    for (int i = 0; i < 1000; i++)
        mem_put(mem_get(pool));
    mem_pools_fini();
    return 0;
}

START_TEST(fork_in_a_storm)
{
    pthread_t t[4];

    /* No other thread may use ASan's malloc when a process forks: not the sweeper as it looks for
     * pressure, */
    if (MEM_ASAN)
        ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    pool = mem_pool_new_fn(200, 0, "fork");
    ck_assert_int_eq(mem_owner_new("o"), 1);
    mem_pools_set_option("sweep", "1");
    if (MEM_ASAN) { /* nor a thread that needs a mapping: mappings are made before, and kept; */
        void *o[1000];

        mem_pools_set_option("release", "keep");
        ck_assert_int_eq(mem_get_bulk(pool, o, 1000), 0);
        mem_put_bulk(o, 1000);
    }
    ck_assert_int_eq(mem_pools_init(), 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, storm, NULL);
    while (__atomic_load_n(&storming, __ATOMIC_RELAXED) < 4 || !MEM_READ(mem_figures.sweeps))
        usleep(1000); /* nor ASan itself, as it starts a thread */
    mem_put(mem_get(pool)); /* the thread that forks keeps its lines in the child */
    for (int i = 0; i < 50; i++) {
        int status;
        pid_t pid = test_fork();

        if (!pid) {
            if (MEM_ASAN) /* at exit its leak checker would look for threads that only the parent has */
                _exit(child());
            exit(child());
        }
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", (unsigned)status);
    }
    __atomic_store_n(&storm_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}
END_TEST

START_TEST(a_process_may_exit_while_threads_use_the_pool)
{
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t pid = test_fork();

        if (!pid) {
            pthread_t t[4];

            mem_pools_set_option("sweep", "1");
            pool = mem_pool_new_fn(200, 0, "exit");
            mem_pools_init();
            for (int k = 0; k < 4; k++)
                pthread_create(&t[k], NULL, storm, NULL);
            usleep(5000);
            exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", (unsigned)status);
    }
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        the_pool_agrees_with_a_model, the_cooperative_pool_agrees_with_a_model,
        without_membarrier_the_pool_is_cooperative, a_refusal_of_membarrier_makes_the_pool_cooperative,
        exit_hands_everything_over, exit_keeps_the_cold_apart, ten_thousand_short_threads_leak_no_memory,
        destructors_after_ours_may_put_and_get, a_detached_thread_goes_on, a_one_way_flow_does_not_grow,
        blocked_threads_are_emptied, fork_in_a_storm, a_process_may_exit_while_threads_use_the_pool
    };
    Suite *s = suite_create("mem-thread");
    TCase *t = tcase_create("threads");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
