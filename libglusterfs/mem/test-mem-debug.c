/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The checking modes, and mode off: each error that a mode promises to catch is caught, with the pool and
 * the call sites. */
#include "mem/test-refuse.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_GET_VBITS(from, to, n) 0
#endif

static char last_message[600];
static int messages;

static void
keep_message(int level, const char *text)
{
    (void)level;
    snprintf(last_message, sizeof(last_message), "%s", text);
    messages++;
}

static struct mem_pool *
pool_in(const char *mode, const char *name)
{
    ck_assert_int_eq(mem_pools_set_mode(mode), 0);
    ck_assert_int_eq(mem_pools_set_option("abort", "0"), 0);
    mem_pools_set_message_fn(keep_message);
    struct mem_pool *p = mem_pool_new_fn(100, 0, name);
    ck_assert_ptr_nonnull(p);
    return p;
}

static int64_t
live(struct mem_pool *p)
{
    struct mem_pool_stats s;

    mem_pool_stats(p, &s);
    return s.live;
}

/* The message names the pool, the error, and both call sites. */
static void
said(const char *pool, const char *what)
{
    ck_assert_msg(strstr(last_message, pool) && strstr(last_message, what), "said: %s", last_message);
    ck_assert_msg(strstr(last_message, "got at 0x") && strstr(last_message, "put at"), "said: %s",
                  last_message);
}

START_TEST(in_mode_off_objects_come_from_malloc)
{
    struct mem_pool *p = pool_in("off", "off");
    struct mem_pool *aligned =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "a", .size = 100, .align = 256});
    int owner = mem_owner_new("o");
    char *o[5] = {mem_get(p), mem_get0(p), mem_get_owner(p, (uint16_t)owner), malloc(10), mem_get0(aligned)};

    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_uint_eq((uintptr_t)o[4] % 256, 0);
    ck_assert_int_eq(live(p), 0); /* objects are not counted */
    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, NULL), 0);
    for (int i = 0; i < 4; i++)
        mem_put(o[i]); /* even memory from malloc: there is no header */
    free(o[4]);
    mem_pools_sweep_now();
    mem_pools_trim(3);
    mem_pools_check();
    mem_owner_retire((uint16_t)owner); /* and its number is free at once */
    ck_assert_int_eq(mem_owner_new("o"), owner);
    mem_pool_destroy(p);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

START_TEST(poison_finds_double_put)
{
    struct mem_pool *p = pool_in("poison", "twice");
    void *o = mem_get(p);

    mem_put(o);
    mem_put(o);
    said("twice", "double free");
    ck_assert_int_eq(live(p), 0);
}
END_TEST

START_TEST(poison_finds_overrun_at_put)
{
    struct mem_pool *p = pool_in("poison", "over");
    char *o = mem_get(p);

    if (MEM_ASAN)
        return; /* ASan stops at the write itself */
    o[100] = 1;
    mem_put(o);
    said("over", "overrun");
}
END_TEST

START_TEST(poison_finds_underrun)
{
    struct mem_pool *p = pool_in("poison", "under");
    char *o = mem_get(p);

    if (MEM_ASAN)
        return;
    o[-20] = 1; /* the zone before the header */
    mem_put(o);
    said("under", "before the object");
    o = mem_get(p);
    o[-16] ^= 1; /* the header */
    mem_put(o);
    said("under", "header overwritten");
}
END_TEST

START_TEST(poison_finds_use_after_put)
{
    struct mem_pool *p = pool_in("poison", "late");
    char *o = mem_get(p);

    if (MEM_ASAN || mem_set.valgrind)
        return; /* such tools stop at the write itself */
    mem_put(o);
    o[50] = 1;
    for (int i = 0; i < 300; i++) /* it leaves the quarantine */
        mem_put(mem_get(p));
    said("late", "use after put");
    messages = 0;
    o = mem_get(p);
    mem_put(o);
    o[3] = 1;
    mem_pools_sweep_now();
    said("late", "use after put");
}
END_TEST

START_TEST(poison_quarantines_objects)
{
    struct mem_pool *p = pool_in("poison", "quarantined");
    void *o = mem_get(p);

    mem_put(o);
    for (int i = 0; i < 250; i++) {
        void *other = mem_get(p);

        ck_assert_ptr_ne(other, o);
        mem_put(other);
    }
    ck_assert_int_eq(messages, 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

START_TEST(poison_aborts_by_default)
{
    signal(SIGABRT, last_words);
    ck_assert_int_eq(mem_pools_set_mode("poison"), 0);
    mem_pools_set_message_fn(keep_message);
    struct mem_pool *p = mem_pool_new_fn(100, 0, "abort");
    void *o = mem_get(p);

    mem_put(o);
    mem_put(o);
}
END_TEST

static void
fill(void *o)
{
    memset(o, 0x11, 100);
}

START_TEST(poison_keeps_constructed_contents)
{
    pool_in("poison", "x");
    struct mem_pool *p =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "c", .size = 100, .ctor = fill, .reset = fill});

    for (int i = 0; i < 600; i++) {
        unsigned char *o = mem_get(p);

        ck_assert_uint_eq(o[0], 0x11);
        ck_assert_uint_eq(o[99], 0x11);
        mem_put(o);
    }
    ck_assert_int_eq(messages, 0);
}
END_TEST

static char where_text[600];

static void
audit(void *arg, const char *pool, int64_t count, uint64_t bytes, const char *where)
{
    (void)arg;
    (void)bytes;
    ck_assert_str_eq(pool, "leaky");
    ck_assert_int_eq(count, 2);
    snprintf(where_text, sizeof(where_text), "%s", where ? where : "nowhere");
}

START_TEST(trace_reports_the_call_site_of_a_leak)
{
    struct mem_pool *p = pool_in("trace:1", "leaky");
    int owner = mem_owner_new("leaker");
    void *o[50];

    for (int i = 0; i < 50; i++)
        o[i] = mem_get_owner(p, (uint16_t)owner);
    for (int i = 2; i < 50; i++)
        mem_put(o[i]);
    ck_assert_int_eq(mem_owner_audit((uint16_t)owner, audit, NULL), 2);
    ck_assert_msg(strstr(where_text, "test-mem-debug") || strstr(where_text, "["), "where: %s", where_text);
    mem_put(o[0]);
    mem_put(o[1]);
    mem_put(o[1]);
    said("leaky", "double free");
    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, NULL), 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

static void *
churn(void *arg)
{
    struct mem_pool *p = arg;
    void *o[300];

    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 300; i++)
            memset(o[i] = mem_get(p), i, 100);
        mem_put_bulk(o, 300);
    }
    return NULL;
}

static void
churn_in(const char *mode)
{
    struct mem_pool *p = pool_in(mode, "churn");
    pthread_t t[4];

    mem_pools_set_option("sweep", "1");
    ck_assert_int_eq(mem_pools_init(), 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, churn, p);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(live(p), 0);
    ck_assert_int_eq(messages, 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}

START_TEST(poison_among_threads)
{
    churn_in("poison");
}
END_TEST

START_TEST(trace_among_threads)
{
    churn_in("trace:10");
}
END_TEST

/* The nth allocation fails, in the modes that make more of them. */
START_TEST(poison_and_trace_survive_failed_allocations)
{
    struct mem_pool *p = pool_in(_i ? "trace:1" : "poison", "short");

    for (int64_t n = 1; n < 8; n++) {
        void *o[3];

        mem_test_fail_at = n;
        for (int i = 0; i < 3; i++)
            o[i] = mem_get(p);
        for (int i = 0; i < 3; i++)
            mem_put(o[i]);
        mem_test_fail_at = 0;
        mem_pools_trim(2);
    }
    ck_assert_int_eq(live(p), 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

static void
ignore(void *arg, const char *key, const char *value)
{
    ck_assert(key && value);
    ++*(int *)arg;
}

START_TEST(off_has_a_short_dump)
{
    struct mem_pool *p = pool_in("off", "quiet");
    int lines = 0;

    ck_assert_int_eq(mem_pool_prefill(p, 10), 0);
    mem_pools_dump(ignore, &lines);
    ck_assert_int_gt(lines, 10);
    ck_assert_int_lt(lines, 25);
}
END_TEST

START_TEST(allocations_fail_in_checking_modes)
{
    struct mem_pool *p = pool_in(_i ? "trace:1" : "poison", "none");
    void *o = mem_get(p);

    mem_test_fail_at = INT64_MAX;
    mem_test_fail_always = true;
    mem_put(o); /* no quarantine, no sample: but the object is put */
    for (int i = 0; i < 30000 && (o = mem_get(p)); i++)
        ;
    ck_assert_ptr_null(o);
    ck_assert(strstr(last_message, "none") && strstr(last_message, "out of memory"));
}
END_TEST

/* The pool adds no failure: allocations that the C library refuses are refused, and a constructor runs. */
START_TEST(in_mode_off_gets_fail_without_memory)
{
    struct mem_pool *p = pool_in("off", "poor");
    struct mem_pool *made =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "made", .size = 100, .ctor = fill});
    unsigned char *o = mem_get(made);

    ck_assert_uint_eq(o[99], 0x11);
    mem_put(o);
    mem_test_fail_at = INT64_MAX;
    mem_test_fail_always = true;
    ck_assert_ptr_null(mem_get(p));
    ck_assert_ptr_null(mem_get0(p));
    ck_assert_ptr_null(mem_get_owner(p, 1));
    mem_test_fail_at = 0;
    mem_test_fail_always = false;
    mem_put(mem_get0(p));
}
END_TEST

/* One in ten is sampled; of the others only the number is known. */
START_TEST(only_sampled_objects_have_a_backtrace)
{
    struct mem_pool *p = pool_in("trace:10", "leaky");
    uint16_t owner = (uint16_t)mem_owner_new("leaker");
    void *o[40];

    for (int i = 0; i < 40; i++)
        o[i] = mem_get_owner(p, owner);
    for (int i = 2; i < 40; i++) /* the first of all was sampled */
        mem_put(o[i]);
    ck_assert_int_eq(mem_owner_audit(owner, audit, NULL), 2);
    ck_assert_str_ne(where_text, "nowhere");
    mem_put(o[0]);
    mem_put(mem_get(p));
    o[0] = mem_get_owner(p, owner); /* not sampled */
    ck_assert_int_eq(mem_owner_audit(owner, audit, NULL), 2);
    ck_assert_str_eq(where_text, "nowhere");
    mem_put(o[0]);
    mem_put(o[1]);
    mem_pools_check();
}
END_TEST

/* Enough samples for some to share a bucket. */
START_TEST(backtraces_of_thousands_of_objects_are_found)
{
    struct mem_pool *p = pool_in("trace:1", "leaky");
    uint16_t owner = (uint16_t)mem_owner_new("leaker");
    static void *o[3000];

    for (int i = 0; i < 3000; i++)
        o[i] = mem_get_owner(p, owner);
    for (int i = 0; i < 2998; i++) /* the first in a bucket is the latest sample */
        mem_put(o[i]);
    ck_assert_int_eq(mem_owner_audit(owner, audit, NULL), 2);
    ck_assert_str_ne(where_text, "nowhere");
    mem_put_bulk(o + 2998, 2);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

/* Without memory for names, the call sites are bare addresses. */
START_TEST(without_memory_a_backtrace_has_addresses)
{
    struct mem_pool *p = pool_in("trace:1", "leaky");
    uint16_t owner = (uint16_t)mem_owner_new("leaker");
    void *o[2] = { mem_get_owner(p, owner), mem_get_owner(p, owner) };
    char where[512];

    if (tools_watch())
        return;
    ck_assert(mem_trace_oldest(owner, 32, where, sizeof(where))); /* the stack has its final size */
    take_all_memory();
    bool found = mem_trace_oldest(owner, 32, where, sizeof(where));
    give_memory_back();
    ck_assert(found);
    ck_assert_msg(!strncmp(where, "0x", 2) && !strchr(where, '('), "where: %s", where);
    mem_put_bulk(o, 2);
}
END_TEST

/* ---- under a tool; tests/pool/coverage runs these under valgrind ----------------------------- */

START_TEST(tools_choose_the_mode)
{
    const char *mode = RUNNING_ON_VALGRIND || MEM_ASAN ? "off" : "on";

    unsetenv("KILN_POOLS");
    ck_assert_str_eq(mem_pools_mode(), mode);
    struct mem_pool *p = mem_pool_new_fn(100, 0, "default");
    ck_assert_str_eq(mem_pools_mode(), mode);
    mem_put(mem_get(p));
}
END_TEST

START_TEST(tools_see_dead_objects)
{
    struct mem_pool *p = pool_in("poison", "seen");
    struct mem_pool *kept =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "kept", .size = 100, .ctor = fill});
    char bits[100];
    void *o = mem_get(p), *k = mem_get(kept);
    int alive = RUNNING_ON_VALGRIND ? 1 : 0, dead = RUNNING_ON_VALGRIND ? 3 : 0;

    (void)bits;
    ck_assert_int_eq(VALGRIND_GET_VBITS(o, bits, 100), alive);
    mem_put(o);
    mem_put(k);
    ck_assert_int_eq(VALGRIND_GET_VBITS(o, bits, 100), dead);
    /* state made by a constructor stays readable */
    ck_assert_int_eq(VALGRIND_GET_VBITS(k, bits, 100), alive);
    for (int i = 0; i < 600; i++)
        mem_put(mem_get(p));
    mem_pools_check();
    ck_assert_int_eq(messages, 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        in_mode_off_objects_come_from_malloc, poison_finds_double_put, poison_finds_overrun_at_put,
        poison_finds_underrun, poison_finds_use_after_put, poison_quarantines_objects,
        poison_keeps_constructed_contents, trace_reports_the_call_site_of_a_leak, poison_among_threads,
        trace_among_threads
    };
    Suite *s = suite_create("mem-debug");
    TCase *t = tcase_create("modes"), *w = tcase_create("watched");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    tcase_add_test(t, off_has_a_short_dump);
    tcase_add_loop_test(t, allocations_fail_in_checking_modes, 0, 2);
    tcase_add_loop_test(t, poison_and_trace_survive_failed_allocations, 0, 2);
    tcase_add_test(t, in_mode_off_gets_fail_without_memory);
    tcase_add_test(t, only_sampled_objects_have_a_backtrace);
    tcase_add_test(t, backtraces_of_thousands_of_objects_are_found);
    tcase_add_test(t, without_memory_a_backtrace_has_addresses);
    tcase_add_test_raise_signal(t, poison_aborts_by_default, SIGABRT);
    suite_add_tcase(s, t);
    tcase_set_timeout(w, 60);
    tcase_add_test(w, tools_choose_the_mode);
    tcase_add_test(w, tools_see_dead_objects);
    suite_add_tcase(s, w);
    return s;
}

#include "base/test-main.h"
