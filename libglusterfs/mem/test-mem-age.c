/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The ageing of unused objects: order of the sources, sweeps, trimming, caps. */
#define TEST_MEM_CLOCK
#include "mem/test-mem.h"

#include <sys/mman.h>

START_TEST(gets_prefer_cached_objects_to_new_ones)
{
    struct mem_pool *p = mem_pool_new_fn(200, 0, "order");
    void *o[400];
    unsigned m = stats(p).magazine;

    get_many(p, o, 1);
    ck_assert_uint_eq(stats(p).system_allocs, m / 2); /* half a magazine is carved */
    get_many(p, o + 1, 3 * m);
    mem_put_bulk(o, 3 * m + 1);
    ck_assert_uint_ge(stats(p).depot_hot, 1);
    uint64_t carved = stats(p).system_allocs;
    get_many(p, o, 3 * m + 1);
    ck_assert_uint_eq(stats(p).system_allocs, carved);
    ck_assert_uint_ge(stats(p).hits_depot, 1);
    mem_put_bulk(o, 3 * m + 1);
    mem_pools_sweep_now();
    get_many(p, o, 1);
    ck_assert_uint_eq(stats(p).hits_cold, 1);
    ck_assert_uint_eq(stats(p).system_allocs, carved);
    mem_put(o[0]);
}
END_TEST

/* For any number of live objects, a few puts and gets in turn do not enter the slow path. */
START_TEST(a_few_gets_and_puts_change_no_magazine)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "walk");
    unsigned m = stats(p).magazine, n = 3 * m;
    struct mem_line *l;
    void *o[400];

    ck_assert(m >= 32 && n <= 400);
    get_many(p, o, n);
    l = mem_line_of(mem_self, p->id);
    for (unsigned live = n; live > m / 2; live--) {
        unsigned changes = 0;

        while (n > live)
            mem_put(o[--n]);
        for (int turn = 0; turn < 200; turn++) {
            void **base = l->base;

            for (int i = 0; i < 6; i++) {
                if (turn % 2)
                    o[n++] = mem_get(p);
                else
                    mem_put(o[--n]);
            }
            changes += l->base != base;
        }
        ck_assert_uint_le(changes, 2);
    }
    mem_put_bulk(o, n);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

START_TEST(two_idle_sweeps_free_everything)
{
    struct mem_pool *p = mem_pool_new_fn(256, 0, "burst");
    static void *o[20000];

    get_many(p, o, 20000);
    mem_put_bulk(o, 20000);
    ck_assert_uint_gt(stats(p).bytes_resident, 5000000);
    mem_pools_sweep_now();
    ck_assert_uint_ge(stats(p).cached_hot + stats(p).cached_cold, 20000);
    ck_assert_uint_eq(stats(p).cached_hot, 0);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).cached_hot + stats(p).cached_cold, 0);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).bytes_resident, 0);
    ck_assert_uint_ge(stats(p).peak, 0);
}
END_TEST

/* hot, cold, gone: one step a sweep, and back to hot at any get and put in between. */
START_TEST(a_put_survives_one_sweep)
{
    struct mem_pool *p = mem_pool_new_fn(256, 0, "steps");
    void *o = mem_get(p);

    for (int i = 0; i < 5; i++) {
        mem_put(o);
        uint64_t hot = stats(p).cached_hot;
        ck_assert_uint_gt(hot, 0);
        mem_pools_sweep_now();
        ck_assert_uint_eq(stats(p).cached_hot, 0);
        ck_assert_uint_eq(stats(p).cached_cold, hot);
        ck_assert_ptr_eq(mem_get(p), o); /* the warmest of the cold objects */
        ck_assert_uint_eq(stats(p).cached_hot, hot - 1);
    }
    mem_put(o);
    ck_assert_uint_eq(stats(p).sweep_freed, 0);
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).cached_hot + stats(p).cached_cold, 0);
    ck_assert_uint_eq(stats(p).sweep_freed, stats(p).system_allocs);
}
END_TEST

START_TEST(objects_used_between_sweeps_stay)
{
    struct mem_pool *p = mem_pool_new_fn(256, 0, "steady");
    void *o[100];

    for (int i = 0; i < 50; i++) {
        get_many(p, o, 100);
        mem_put_bulk(o, 100);
        mem_pools_sweep_now();
    }
    ck_assert_uint_lt(stats(p).system_allocs, 400);
}
END_TEST

/* A get takes one big object out of the cold chain and leaves the others there, so an occasional buffer
 * does not keep a magazine of them. */
START_TEST(big_objects_age_one_by_one)
{
    struct mem_pool *p = mem_pool_new_fn(16384, 0, "big");
    void *o[8];

    get_many(p, o, 8);
    mem_put_bulk(o, 8);
    mem_pools_sweep_now();
    ck_assert_uint_ge(stats(p).cached_cold, 8);
    for (int i = 0; i < 3; i++) {
        void *one = mem_get(p);

        ck_assert_ptr_nonnull(one);
        mem_put(one);
        ck_assert_uint_eq(stats(p).cached_hot, 1);
        mem_pools_sweep_now();
        ck_assert_uint_eq(stats(p).cached_cold, 1);
    }
    get_many(p, o, 2); /* the cold one and a new one */
    mem_put_bulk(o, 2);
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).cached_hot + stats(p).cached_cold, 0);
}
END_TEST

static bool
page_is_resident(void *at)
{
    unsigned char there;

    ck_assert_int_eq(mincore((void *)((uintptr_t)at & ~(uintptr_t)4095), 4096, &there), 0);
    return there & 1;
}

/* The span stays for the one live object in it, but the pages of the other slots do not. */
START_TEST(pages_beside_a_big_object_go_back)
{
    struct mem_pool *p = mem_pool_new_fn(16384, 0, "big");
    char *o[8];

    for (int i = 0; i < 8; i++) {
        o[i] = mem_get(p);
        ck_assert_ptr_nonnull(o[i]);
        memset(o[i], 1, 16384);
    }
    for (int i = 1; i < 8; i++)
        mem_put(o[i]);
    for (int i = 0; i < 3; i++)
        mem_pools_sweep_now();
    ck_assert(page_is_resident(o[0] + 8192));
    for (int i = 1; i < 8; i++)
        ck_assert(!page_is_resident(o[i] + 8192));
    for (int i = 0; i < 16384; i++)
        ck_assert_int_eq(o[0][i], 1);
    mem_put(o[0]);
}
END_TEST

/* A busy pool keeps a magazine or two more than it used, for the next burst; an idle pool keeps none. */
START_TEST(a_busy_pool_keeps_a_few_magazines_of_slack)
{
    struct mem_pool *p = mem_pool_new_fn(256, 0, "slack");
    static void *o[20000];

    get_many(p, o, 20000);
    mem_put_bulk(o, 20000);
    mem_pools_sweep_now();
    get_many(p, o, 10000);
    mem_put_bulk(o, 10000);
    mem_pools_sweep_now();
    uint64_t cached = stats(p).cached_hot + stats(p).cached_cold, m = stats(p).magazine;
    ck_assert_uint_gt(cached, 10000 + m);
    ck_assert_uint_le(cached, 10000 + 5 * m);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).cached_hot + stats(p).cached_cold, 0);
}
END_TEST

static pthread_barrier_t lying;

static void *
let_lie(void *pool)
{
    void *o[16];

    get_many(pool, o, 16);
    mem_put_bulk(o, 16);
    pthread_barrier_wait(&lying);
    pthread_barrier_wait(&lying);
    return NULL;
}

/* While one thread gets new spans, another's puts leave some spans empty: one is kept. */
START_TEST(a_busy_pool_keeps_one_empty_span)
{
    struct mem_pool *p = mem_pool_new_fn(10000, 0, "empty span");
    pthread_t other;
    void *o[60];

    pthread_barrier_init(&lying, NULL, 2);
    ck_assert_int_eq(pthread_create(&other, NULL, let_lie, p), 0);
    pthread_barrier_wait(&lying);
    for (int i = 0; i < 2; i++) {
        get_many(p, o + i * 30, 30);
        mem_pools_sweep_now();
    }
    ck_assert_uint_gt(stats(p).sweep_freed, 0);
    ck_assert_uint_eq(stats(p).spans_empty, 1);
    mem_pools_check();
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).spans_empty, 0);
    pthread_barrier_wait(&lying);
    pthread_join(other, NULL);
    mem_put_bulk(o, 60);
}
END_TEST

START_TEST(each_trim_level_frees_more)
{
    struct mem_pool *p = mem_pool_new_fn(256, 0, "trim");
    static void *o[20000];
    struct mem_process_stats s;

    get_many(p, o, 20000);
    mem_put_bulk(o, 20000);
    unsigned spans = stats(p).spans;
    uint64_t cached = stats(p).cached_hot;
    mem_pools_trim(1); /* all objects were hot: only outgrown magazines are freed */
    ck_assert_uint_eq(stats(p).cached_cold, cached);
    ck_assert_uint_eq(stats(p).spans, spans);
    ck_assert_uint_gt(mem_pools_trim(2), 5000000);
    ck_assert_uint_eq(stats(p).cached_hot + stats(p).cached_cold, 0);
    get_many(p, o, 20000);
    for (int i = 0; i < 20000; i++)
        if (i % 200)
            mem_put(o[i]);
    mem_pools_trim(2);
    size_t partial = mem_pools_trim(3); /* pages between the survivors */
    ck_assert_uint_gt(partial, 2000000);
    for (int i = 0; i < 20000; i += 200)
        mem_put(o[i]);
    get_many(p, o, 20000); /* dropped pages can be used again */
    mem_put_bulk(o, 20000);
    mem_pools_stats(&s);
    ck_assert_uint_ge(s.trims_manual, 4);
}
END_TEST

START_TEST(both_release_policies_empty_the_pool)
{
    struct mem_pool *p = mem_pool_new_fn(256, 0, "policy");
    static void *o[20000];
    static const char *const words[] = { "keep", "drop" };

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mem_pools_set_option("release", words[i]), 0);
        get_many(p, o, 20000);
        for (int k = 0; k < 20000; k++)
            memset(o[k], i, 256);
        mem_put_bulk(o, 19000);
        mem_pools_trim(2);
        mem_put_bulk(o + 19000, 1000);
        mem_pools_trim(2);
        ck_assert_uint_eq(stats(p).spans, 0);
    }
    ck_assert_int_eq(mem_pools_set_option("release", "sometimes"), -EINVAL);
}
END_TEST

START_TEST(cap_forces_demotion)
{
    struct mem_pool *p = mem_pool_new_fn(1000, 0, "capped");
    static void *o[4000];
    struct mem_process_stats s;
    /* the limit of a depot and one thread */
    size_t limit = 1000000 + 4 * stats(p).magazine * stats(p).stride;

    ck_assert_int_eq(mem_pools_set_option("cap", "1000000"), 0);
    ck_assert_int_eq(mem_pools_set_option("sweep", "0"), 0); /* only the cap can free objects */
    ck_assert_int_eq(mem_pools_init(), 0);
    get_many(p, o, 4000);
    mem_put_bulk(o, 4000);
    for (mem_pools_stats(&s); s.cached_bytes > limit; mem_pools_stats(&s))
        usleep(1000); /* or until the test's time is up */
    mem_pools_fini();
}
END_TEST

/* A thread without lines has only the depot, and its puts there count. */
START_TEST(cap_holds_for_a_detached_thread)
{
    struct mem_pool *p = mem_pool_new_fn(1000, 0, "capped");
    static void *o[4000];
    struct mem_process_stats s;
    size_t limit = 1000000 + 4 * stats(p).magazine * stats(p).stride;

    ck_assert_int_eq(mem_pools_set_option("cap", "1000000"), 0);
    ck_assert_int_eq(mem_pools_set_option("sweep", "0"), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    get_many(p, o, 4000);
    mem_pool_thread_destructor();
    mem_put_bulk(o, 4000);
    for (mem_pools_stats(&s); s.cached_bytes > limit; mem_pools_stats(&s))
        usleep(1000); /* or until the test's time is up */
    mem_pools_fini();
}
END_TEST

START_TEST(magazines_adapt)
{
    struct mem_pool *p = mem_pool_new_fn(200, 0, "adapt");
    static void *o[2000];
    unsigned m = stats(p).magazine;

    clock_gettime(CLOCK_MONOTONIC, &clock_stopped_at);
    for (int i = 0; i < 500; i++) { /* thousands of depot visits without any time passing */
        get_many(p, o, 2000);
        mem_put_bulk(o, 2000);
    }
    ck_assert_uint_eq(stats(p).magazine, MEM_CAP_MAX);
    for (int i = 0; i < 8; i++)
        mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).magazine, m);
    for (int i = 0; i < 500; i++) { /* as many, a minute apart: no reason to grow */
        clock_ahead_s += 60;
        get_many(p, o, 2000);
        mem_put_bulk(o, 2000);
    }
    clock_stopped_at.tv_sec = clock_ahead_s = 0; /* Check reads it too */
    ck_assert_uint_eq(stats(p).magazine, m);
}
END_TEST

/* Magazines of all sizes exist while they grow: a magazine that is loaded to make room must have room. */
START_TEST(magazines_of_several_sizes_change_places)
{
    struct mem_pool *p = mem_pool_new_fn(2000, 0, "growing");
    static void *o[2000];
    unsigned n = 0, random = 1;

    clock_gettime(CLOCK_MONOTONIC, &clock_stopped_at); /* so that magazines grow all the time */
    ck_assert_uint_eq(stats(p).magazine, 8);
    for (int i = 0; i < 20000; i++) {
        unsigned target = (unsigned)rand_r(&random) % 2000;

        if (i % 2) /* a few to and fro, and then many */
            target = n < 20 ? n + 20 : n - (unsigned)rand_r(&random) % 20;
        while (n < target && n < 2000)
            o[n++] = mem_get(p);
        while (n > target)
            mem_put(o[--n]);
        struct mem_line *l = mem_line_of(mem_self, p->id);
        ck_assert(l->base <= l->top && l->top <= l->end);
        if (i % 200 == 199) /* and small again */
            mem_pools_sweep_now();
    }
    clock_stopped_at.tv_sec = 0; /* Check reads it too */
    mem_pools_check();
    mem_put_bulk(o, n);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

START_TEST(prefill_is_used)
{
    struct mem_pool *p = mem_pool_new_fn(200, 300, "prefilled");
    void *o[300];

    ck_assert_int_eq(mem_pool_prefill(p, 0), 0);
    ck_assert_uint_eq(stats(p).system_allocs, 300);
    get_many(p, o, 300);
    ck_assert_uint_eq(stats(p).system_allocs, 300);
    mem_put_bulk(o, 300);
}
END_TEST

START_TEST(destroy_waits_for_the_last_object)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "doomed");
    unsigned id = stats(p).id;
    void *o = mem_get(p);

    mem_pool_destroy(NULL);
    mem_pool_destroy(p);
    for (int i = 0; i < 4; i++)
        mem_pools_sweep_now();
    ck_assert(strstr(last_message, "doomed") && strstr(last_message, "1 objects are still live"));
    ck_assert_ptr_eq(mem_pools[id], p);
    ck_assert_ptr_null(mem_get(p));
    mem_put(o); /* late, but allowed */
    for (int i = 0; i < 4; i++)
        mem_pools_sweep_now();
    ck_assert_ptr_null(mem_pools[id]);
    p = mem_pool_new_fn(50, 0, "heir");
    ck_assert_uint_eq(stats(p).id, id);
    o = mem_get(p);
    mem_put(o);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        gets_prefer_cached_objects_to_new_ones,
        a_few_gets_and_puts_change_no_magazine,
        two_idle_sweeps_free_everything,
        a_put_survives_one_sweep,
        objects_used_between_sweeps_stay,
        big_objects_age_one_by_one,
        pages_beside_a_big_object_go_back,
        a_busy_pool_keeps_a_few_magazines_of_slack,
        a_busy_pool_keeps_one_empty_span,
        each_trim_level_frees_more,
        both_release_policies_empty_the_pool,
        cap_forces_demotion,
        cap_holds_for_a_detached_thread,
        magazines_adapt,
        magazines_of_several_sizes_change_places,
        prefill_is_used,
        destroy_waits_for_the_last_object,
    };
    Suite *s = suite_create("mem-age");
    TCase *t = tcase_create("age");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
