/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The pool under load, for any length of time. Alone it takes a second or two; tests/pool/stress runs it
 * for minutes and in all builds.
 *
 *   KILN_STRESS_SECONDS   duration of each test (default: a few rounds)
 *   KILN_POOLS            the mode (default on); the counts are compared in all modes that count */
#include "mem/test-refuse.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 256, POOLS = 6, OWNERS = 8, SLOTS = 4096 };

static struct mem_pool *pools[POOLS];
static int owners[OWNERS];
static bool counts; /* this mode counts live objects */
static uint64_t operations;

static void
setup(void)
{
    static const size_t sizes[POOLS] = { 40, 112, 200, 500, 2000, 9000 };
    const char *mode = getenv("KILN_POOLS");

    ck_assert_int_eq(mem_pools_set_mode(mode && *mode ? mode : "on"), 0);
    ck_assert_int_eq(mem_pools_set_option("abort", "1"), 0);
    ck_assert_int_eq(mem_pools_set_option("sweep", "1"), 0);
    for (unsigned i = 0; i < POOLS; i++) {
        pools[i] = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "stress", .size = sizes[i],
                                                              .id = i < 2 ? MEM_ID_TYPED_MIN + i : 0 });
        ck_assert_ptr_nonnull(pools[i]);
    }
    for (int i = 0; i < OWNERS; i++)
        ck_assert_int_gt(owners[i] = mem_owner_new("stress"), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    counts = strcmp(mem_pools_mode(), "off") != 0;
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

/* Is there another round? There is a first one, and then as many as the time allows, or `few`. */
static bool
goes_on(unsigned round, unsigned few)
{
    static time_t until;
    const char *seconds = getenv("KILN_STRESS_SECONDS");
    struct timespec now;

    if (!seconds)
        return round < few;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!round)
        until = now.tv_sec + atol(seconds);
    return !round || now.tv_sec < until;
}

static uint64_t
next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    return *x ^= *x << 17;
}

/* ---- a sweeper that never pauses ------------------------------------------------------------- */

static int sweeping;

static void *
sweep_all_the_time(void *arg)
{
    const struct timespec pause = { .tv_nsec = 300000 };

    (void)arg;
    while (__atomic_load_n(&sweeping, __ATOMIC_RELAXED)) {
        mem_pools_sweep_now();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* ---- tagged objects -------------------------------------------------------------------------- */

/* Every object carries its expected state, which a second holder would overwrite. */
struct tag {
    struct tag *self;
    uint32_t pool, owner;
    uint64_t check;
};

static struct tag *slots[SLOTS];
static int64_t shadow_live[POOLS], shadow_owner[OWNERS], shadow_peak; /* atomic */
static unsigned ops_each;

static void
note_peak(int64_t live)
{
    int64_t peak = __atomic_load_n(&shadow_peak, __ATOMIC_RELAXED);

    while (live > peak &&
           !__atomic_compare_exchange_n(&shadow_peak, &peak, live, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void
tag_put(struct tag *t)
{
    uint32_t p = t->pool, o = t->owner;

    if (t->self != t || t->check != (uintptr_t)t * 31 + p || p >= POOLS || o > OWNERS)
        ck_abort_msg("object %p of pool %u is not as it was left", (void *)t, p);
    t->self = NULL;
    if (p < 2)
        mem_put_t(MEM_ID_TYPED_MIN + p, t);
    else
        mem_put(t);
    __atomic_fetch_sub(&shadow_live[p], 1, __ATOMIC_RELAXED);
    if (o)
        __atomic_fetch_sub(&shadow_owner[o - 1], 1, __ATOMIC_RELAXED);
}

static struct tag *
tag_get(uint64_t r)
{
    uint32_t p = (uint32_t)(r % POOLS), o = (uint32_t)(r >> 8) % (2 * OWNERS);
    struct tag *t;

    o = o >= OWNERS ? 0 : o + 1;
    int64_t live = __atomic_add_fetch(&shadow_live[p], 1, __ATOMIC_RELAXED);
    if (p == 2)
        note_peak(live);
    t = o                    ? mem_get_owner(pools[p], (uint16_t)owners[o - 1])
        : p < 2              ? mem_get_t(MEM_ID_TYPED_MIN + p)
        : r & (1u << 20)     ? mem_get0(pools[p])
                             : mem_get(pools[p]);
    if (!t)
        ck_abort_msg("no object of pool %u", p);
    *t = (struct tag){ .self = t, .pool = p, .owner = o, .check = (uintptr_t)t * 31 + p };
    if (o)
        __atomic_fetch_add(&shadow_owner[o - 1], 1, __ATOMIC_RELAXED);
    return t;
}

static void *
storm(void *arg)
{
    uint64_t x = 88172645463325252u * ((uintptr_t)arg + 1);

    for (unsigned i = 0; i < ops_each; i++) {
        uint64_t r = next_random(&x);
        struct tag *mine = r >> 60 > 5 ? tag_get(r) : NULL;
        struct tag *old = __atomic_exchange_n(&slots[(r >> 24) % SLOTS], mine, __ATOMIC_ACQ_REL);

        if (old)
            tag_put(old);
        if (r >> 50 == 77)
            mem_pool_idle();
        if (r >> 46 == 7777)
            mem_pools_trim((int)(r % 3) + 1);
        if (r >> 46 == 7778)
            mem_pool_thread_destructor();
    }
    __atomic_fetch_add(&operations, ops_each, __ATOMIC_RELAXED);
    return NULL;
}

static void
run_threads(void *(*fn)(void *), unsigned n, uintptr_t seed)
{
    static pthread_t t[THREADS_MAX];

    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, fn, (void *)(seed + i)), 0);
    for (unsigned i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static void
compare_with_model(void)
{
    mem_pools_check();
    if (!counts)
        return;
    for (int i = 0; i < POOLS; i++) {
        ck_assert_int_eq(stats(pools[i]).live, shadow_live[i]);
        ck_assert_uint_eq(stats(pools[i]).double_free + stats(pools[i]).wrong_pool, 0);
    }
    for (int i = 0; i < OWNERS; i++)
        ck_assert_int_eq(mem_owner_balance((uint16_t)owners[i], NULL), shadow_owner[i]);
}

START_TEST(no_object_is_given_to_two_threads)
{
    static const unsigned threads[] = { 8, 64, 256, 16 };
    pthread_t sweeper;

    sweeping = 1;
    ck_assert_int_eq(pthread_create(&sweeper, NULL, sweep_all_the_time, NULL), 0);
    for (unsigned round = 0; goes_on(round, 4); round++) {
        unsigned n = threads[round % 4];

        ops_each = (getenv("KILN_STRESS_SECONDS") ? 800000u : 160000u) / n;
        run_threads(storm, n, (uintptr_t)round * 1000);
        compare_with_model();
    }
    __atomic_store_n(&sweeping, 0, __ATOMIC_RELAXED);
    pthread_join(sweeper, NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            tag_put(slots[i]);
    compare_with_model();
    printf("%llu operations on tagged objects\n", (unsigned long long)operations);
}
END_TEST

/* ---- the bound ------------------------------------------------------------------------------- */

/* Cached and live objects together never exceed the peak of the last two periods plus four magazines a
 * thread. The test defines the period: it sweeps by hand, between storms that peak at different heights. */
START_TEST(cached_and_live_stay_below_the_bound)
{
    enum { N = 12 };
    int64_t last_peak = 0;
    uint64_t x = 4711;

    if (strcmp(mem_pools_mode(), "on"))
        return;
    mem_pools_fini();
    for (unsigned round = 0; goes_on(round, 30); round++) {
        unsigned clear = (unsigned)(next_random(&x) % SLOTS), m = 0;

        shadow_peak = shadow_live[2];
        ops_each = (unsigned)(next_random(&x) % 3000);
        run_threads(storm, N, (uintptr_t)round * 100);
        for (unsigned i = 0; i < clear; i++) {
            if (slots[i])
                tag_put(slots[i]);
            slots[i] = NULL;
        }
        int64_t peak = shadow_peak;
        mem_pools_sweep_now();
        struct mem_pool_stats s = stats(pools[2]);
        m = s.magazine > m ? s.magazine : m;
        int64_t held = s.live + (int64_t)(s.cached_hot + s.cached_cold);
        ck_assert_int_le(held, (peak > last_peak ? peak : last_peak) + N * 4 * (int64_t)MEM_CAP_MAX);
        ck_assert_int_eq(s.live, shadow_live[2]);
        last_peak = peak;
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            tag_put(slots[i]);
    for (int i = 0; i < 2; i++)
        mem_pools_sweep_now();
    ck_assert_uint_eq(stats(pools[2]).cached_hot + stats(pools[2]).cached_cold, 0);
}
END_TEST

/* ---- one way --------------------------------------------------------------------------------- */

enum { LANE = 256, BATCH = 100000 };
static void *lane[LANE];

static void *
consumer(void *arg)
{
    unsigned n = *(unsigned *)arg;

    for (unsigned i = 0; i < n; i++) {
        void *o;

        while (!(o = __atomic_exchange_n(&lane[i % LANE], NULL, __ATOMIC_ACQ_REL)))
            sched_yield();
        mem_put(o);
    }
    return NULL;
}

static size_t
resident(void)
{
    unsigned long total = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    ck_assert(f && fscanf(f, "%lu %lu", &total, &pages) == 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* One thread gets and another puts: the process does not grow, after an hour as after a moment. */
START_TEST(a_one_way_flow_has_no_slope)
{
    unsigned n = tools_watch() ? BATCH / 20 : BATCH;
    size_t first = 0, last = 0;

    for (unsigned round = 0; goes_on(round, 5); round++) {
        pthread_t t;

        ck_assert_int_eq(pthread_create(&t, NULL, consumer, &n), 0);
        for (unsigned i = 0; i < n; i++) {
            void *o = mem_get(pools[2]), *none = NULL;

            while (!__atomic_compare_exchange_n(&lane[i % LANE], &none, o, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_RELAXED)) {
                none = NULL;
                sched_yield();
            }
        }
        pthread_join(t, NULL);
        last = resident();
        if (round == 2) /* everything is warm */
            first = last;
        if (counts)
            ck_assert_int_eq(stats(pools[2]).live, 0);
        __atomic_fetch_add(&operations, n, __ATOMIC_RELAXED);
    }
    printf("%llu objects one way, %zu KiB resident, then %zu\n", (unsigned long long)operations, first >> 10,
           last >> 10);
    if (first && !tools_watch())
        ck_assert_uint_le(last, first + (1 << 20));
}
END_TEST

/* ---- bricks come and go ---------------------------------------------------------------------- */

enum { SERVERS = 4, HELD = 40 };
static pthread_barrier_t turn; /* all begin a round, all end it */
static uint32_t brick;         /* the owner that is served in this round; 0: no more rounds */

static void *
serve(void *arg)
{
    void *o[HELD];

    (void)arg;
    for (;;) {
        pthread_barrier_wait(&turn);
        uint16_t b = (uint16_t)brick;
        for (int round = 0; b && round < 3; round++) {
            for (int i = 0; i < HELD; i++)
                if (!(o[i] =
                          i % 2 ? mem_get0_owner(pools[i % POOLS], b) : mem_get_owner(pools[i % POOLS], b)))
                    ck_abort_msg("no object");
            mem_put_bulk(o, HELD);
        }
        pthread_barrier_wait(&turn);
        if (!b)
            return NULL;
    }
}

/* While a brick is served, the previous brick is detached and the next brick is attached. */
START_TEST(owners_made_and_retired_in_a_loop_are_counted_exactly)
{
    pthread_t t[SERVERS];
    void *left[4] = { NULL };
    int before = 0, highest = 0;
    unsigned round;

    pthread_barrier_init(&turn, NULL, SERVERS + 1);
    for (int i = 0; i < SERVERS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, serve, NULL), 0);
    for (round = 0; goes_on(round, tools_watch() ? 100 : 1000); round++) {
        int now = mem_owner_new("brick");
        bool leaks = round % 16 == 1; /* one in sixteen leaks an object */

        ck_assert_int_gt(now, 0);
        ck_assert_int_eq(mem_owner_balance((uint16_t)now, NULL), 0); /* for any earlier owner of the id */
        highest = now > highest ? now : highest;
        brick = (uint32_t)now;
        pthread_barrier_wait(&turn);
        if (before) {
            for (int i = 0; leaks && i < 4; i++)
                left[i] = mem_get_owner(pools[i], (uint16_t)before);
            ck_assert_int_eq(mem_owner_balance((uint16_t)before, NULL), leaks && counts ? 4 : 0);
            mem_owner_retire((uint16_t)before);
            if (leaks) {
                mem_pools_sweep_now();
                mem_put_bulk(left, 4);
            }
        }
        pthread_barrier_wait(&turn);
        before = now;
    }
    brick = 0;
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    for (int i = 0; i < SERVERS; i++)
        pthread_join(t[i], NULL);
    printf("%u bricks came and went, by %d numbers\n", round, highest);
    for (int i = 1; i <= highest; i++)
        ck_assert_int_eq(mem_owner_balance((uint16_t)i, NULL), 0);
    for (int i = 0; counts && i < POOLS; i++)
        ck_assert_int_eq(stats(pools[i]).live, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        no_object_is_given_to_two_threads, cached_and_live_stay_below_the_bound,
        a_one_way_flow_has_no_slope, owners_made_and_retired_in_a_loop_are_counted_exactly
    };
    Suite *s = suite_create("mem-stress");
    TCase *t = tcase_create("stress");
    const char *seconds = getenv("KILN_STRESS_SECONDS");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 300 + (seconds ? 2.0 * atol(seconds) : 0));
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
