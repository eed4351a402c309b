/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The accounting of a pool's objects to owners: balances, the audit, the reuse of ids. Check runs each
 * test in a process of its own, so each chooses its own mode. */
#define TEST_MEM_CLOCK
#include "mem/test-mem.h"

static int audited;

static void
audit(void *arg, const char *pool, int64_t count, uint64_t bytes, const char *where)
{
    (void)where;
    ck_assert_str_eq(pool, "owned");
    ck_assert_int_eq(count, *(int *)arg);
    ck_assert_uint_eq(bytes, (uint64_t)count * 128);
    audited++;
}

START_TEST(owners_are_counted_and_audited)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "owned"), *q = mem_pool_new_fn(100, 0, "other");
    int a = mem_owner_new("a"), b = mem_owner_new("b"), three = 3;
    void *o[5];

    ck_assert_int_gt(a, 0);
    ck_assert_int_ne(a, b);
    for (int i = 0; i < 3; i++)
        o[i] = mem_get_owner(p, (uint16_t)a);
    o[3] = mem_get0_owner(q, (uint16_t)b);
    o[4] = mem_get_owner(p, 0);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, NULL), 3);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, p), 3);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, q), 0);
    ck_assert_int_eq(mem_owner_balance((uint16_t)b, NULL), 1);
    ck_assert_int_eq(mem_owner_audit((uint16_t)a, audit, &three), 3);
    ck_assert_int_eq(audited, 1);
    mem_put_bulk(o, 5);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, NULL), 0);
    ck_assert_int_eq(mem_owner_audit((uint16_t)b, audit, NULL), 0);
    o[0] = mem_get(p); /* the owner does not stay with the object */
    mem_put(o[0]);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, NULL), 0);
}
END_TEST

START_TEST(owner_ids_are_quarantined)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "owned");
    int a = mem_owner_new("a");
    void *o = mem_get_owner(p, (uint16_t)a);

    mem_owner_retire((uint16_t)a);
    for (int i = 0; i < 4; i++)
        mem_pools_sweep_now();
    ck_assert_int_ne(mem_owner_new("b"), a);
    mem_put(o);
    mem_pools_sweep_now();
    ck_assert_int_ne(mem_owner_new("c"), a);
    mem_pools_sweep_now();
    ck_assert_int_eq(mem_owner_new("d"), a);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, NULL), 0);
}
END_TEST

static void
reset(void *o)
{
    *(char *)o = 0;
}

/* Each object outside of spans has a separate count, which the put of the object finds. */
START_TEST(objects_outside_of_spans_are_counted_for_their_owner)
{
    struct mem_pool *p[] = {
        mem_pool_new_fn(1 << 20, 0, "large"),
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "direct", .size = 100, .flags = MEM_POOL_NO_POOL}),
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "reset", .size = 100, .reset = reset}),
        mem_pool_new_opts(
            &(struct mem_pool_opts){.name = "both", .size = 100, .reset = reset, .flags = MEM_POOL_NO_POOL}),
    };
    uint16_t a = (uint16_t)mem_owner_new("a");
    void *o[4], *nobodys[4];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            o[i] = mem_get_owner(p[i], a);
            nobodys[i] = mem_get_owner(p[i], 0);
            ck_assert_int_eq(mem_owner_balance(a, p[i]), 1);
            ck_assert_int_eq(stats(p[i]).live, 2);
        }
        ck_assert_int_eq(mem_owner_balance(a, NULL), 4);
        mem_pools_trim(3); /* also looks for free pages of spans, if there are any */
        mem_put_bulk(o, 4);
        mem_put_bulk(nobodys, 4);
        ck_assert_int_eq(mem_owner_balance(a, NULL), 0);
        for (int i = 0; i < 4; i++) { /* a counted object among others that find room */
            void *mixed[] = { mem_get(p[i]), mem_get_owner(p[i], a), mem_get(p[i]) };

            mem_put_bulk(mixed, 3);
            ck_assert_int_eq(mem_owner_balance(a, NULL), 0);
        }
        mem_pools_check();
    }
    mem_put(o[0]);
    ck_assert(strstr(last_message, "large") || strstr(last_message, "foreign"));
}
END_TEST

/* More owners come and go between two sweeps than there are ids. */
START_TEST(a_clean_audit_frees_the_number_at_once)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "owned");
    int one = 1;

    for (int i = 0; i < MEM_OWNERS + 100; i++) {
        int a = mem_owner_new("comes and goes");

        ck_assert_int_gt(a, 0);
        mem_put(mem_get_owner(p, (uint16_t)a));
        ck_assert_int_eq(mem_owner_audit((uint16_t)a, audit, NULL), 0);
        if (i % 64 == 0) { /* an object at its last audit counts, regardless of earlier audits */
            void *o = mem_get_owner(p, (uint16_t)a);

            ck_assert_int_eq(mem_owner_audit((uint16_t)a, audit, &one), 1);
            mem_owner_retire((uint16_t)a);
            ck_assert_int_ne(mem_owner_new("next"), a);
            mem_put(o);
        } else {
            mem_owner_retire((uint16_t)a);
        }
    }
}
END_TEST

START_TEST(as_many_owners_as_there_are_numbers)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "many");
    int a = 0;
    void *o;

    for (int i = 1; i < MEM_OWNERS; i++)
        ck_assert_int_eq(a = mem_owner_new("many"), i);
    ck_assert_int_eq(mem_owner_new("too many"), -ENOSPC);
    o = mem_get_owner(p, (uint16_t)a);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, NULL), 1);
    mem_put(o);
    ck_assert_int_eq(mem_owner_balance((uint16_t)a, NULL), 0);
    ck_assert_int_eq(mem_owner_balance(60000, NULL), 0);
    ck_assert_int_eq(mem_owner_audit(60000, audit, NULL), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        owners_are_counted_and_audited, owner_ids_are_quarantined,
        objects_outside_of_spans_are_counted_for_their_owner, a_clean_audit_frees_the_number_at_once,
        as_many_owners_as_there_are_numbers
    };
    Suite *s = suite_create("mem-owner");
    TCase *t = tcase_create("owner");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
