/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "rpc/client/xid-table.h"

static struct xid_table table;

static void
setup(void)
{
    xid_table_init(&table, 128);
}

static void
teardown(void)
{
    xid_table_fini(&table);
}

static struct xid_slot *
waiting_call(uint32_t deadline, void *arg)
{
    struct xid_slot *s = xid_take(&table);

    ck_assert_ptr_nonnull(s);
    s->arg = arg;
    atomic_store(&s->deadline, deadline);
    xid_publish(s);
    return s;
}

START_TEST(a_reply_finds_its_call_once)
{
    struct xid_slot *s = waiting_call(XID_NO_DEADLINE, &table);
    uint32_t xid = s->xid;
    bool was_late;

    ck_assert_ptr_null(xid_claim(&table, xid + (1u << XID_INDEX_BITS), &was_late));
    ck_assert_ptr_null(xid_claim(&table, xid + 1, &was_late));
    ck_assert_ptr_null(xid_claim(&table, 0, &was_late));
    ck_assert_ptr_null(xid_claim(&table, UINT32_MAX, &was_late));
    ck_assert_ptr_eq(xid_claim(&table, xid, &was_late), s);
    ck_assert_ptr_null(xid_claim(&table, xid, &was_late));
    ck_assert(!was_late);
    xid_put(&table, s);
    ck_assert_ptr_eq(waiting_call(XID_NO_DEADLINE, NULL), s);
    ck_assert_uint_ne(s->xid, xid);
}
END_TEST

START_TEST(calls_are_limited)
{
    struct xid_slot *all[128];

    for (int i = 0; i < 128; i++) {
        all[i] = waiting_call(XID_NO_DEADLINE, NULL);
        ck_assert_uint_ne(all[i]->xid, 0);
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(all[i]->xid, all[j]->xid);
    }
    ck_assert_ptr_null(xid_take(&table));
    unsigned from = 0, n = 0;
    struct xid_slot *s;

    while ((s = xid_claim_any(&table, &from))) {
        xid_put(&table, s);
        n++;
    }
    ck_assert_uint_eq(n, 128);
    ck_assert_ptr_nonnull(xid_take(&table));
}
END_TEST

START_TEST(the_largest_table_finds_each_call)
{
    struct xid_table large;
    unsigned n = 0;
    bool was_late;

    xid_table_init(&large, UINT_MAX);
    for (struct xid_slot *s; (s = xid_take(&large)); n++) {
        ck_assert_uint_eq(s->index, n);
        xid_publish(s);
        ck_assert_ptr_eq(xid_claim(&large, s->xid, &was_late), s);
    }
    ck_assert_uint_eq(n, XID_CALLS_MAX);
    ck_assert(xid_is_full(&large));
    xid_table_fini(&large);
}
END_TEST

/* An expired call's xid is not given to another call before its reply has come. */
START_TEST(an_expired_call_keeps_its_number)
{
    struct xid_slot *s = waiting_call(5, &table);
    uint32_t xid = s->xid;
    struct xid_expired e;
    unsigned from = 0, waiting_count, expired_count;
    bool waiting = false, was_late;

    ck_assert(!xid_expire(&table, 4, &from, &waiting, &e));
    ck_assert(waiting);
    from = 0;
    waiting = false;
    ck_assert(xid_expire(&table, 5, &from, &waiting, &e));
    ck_assert(!xid_expire(&table, 5, &from, &waiting, &e));
    ck_assert(!waiting);
    ck_assert_ptr_eq(e.arg, &table);
    ck_assert_uint_eq(e.xid, xid);
    xid_count(&table, &waiting_count, &expired_count);
    ck_assert_uint_eq(waiting_count, 0);
    ck_assert_uint_eq(expired_count, 1);
    ck_assert_ptr_ne(xid_take(&table), s);
    ck_assert_ptr_null(xid_claim(&table, xid, &was_late));
    ck_assert(was_late);
    ck_assert_ptr_null(xid_claim(&table, xid, &was_late));
    ck_assert(!was_late);
    ck_assert_ptr_eq(xid_take(&table), s);
}
END_TEST

/* Ticks wrap: a deadline beyond that is still in the future. */
START_TEST(a_deadline_holds_when_the_ticks_wrap)
{
    struct xid_expired e;
    unsigned from = 0;
    bool waiting = false;

    waiting_call(3, NULL);
    ck_assert(!xid_expire(&table, UINT32_MAX - 3, &from, &waiting, &e));
    from = 0;
    ck_assert(xid_expire(&table, 4, &from, &waiting, &e));
}
END_TEST

/* The connection is lost: waiting calls fail, expired slots are freed. */
START_TEST(waiting_and_expired_calls_can_be_claimed_at_the_end)
{
    struct xid_expired e;
    unsigned from = 0, waiting_count, expired_count;
    bool waiting = false;

    waiting_call(1, NULL);
    struct xid_slot *s = waiting_call(XID_NO_DEADLINE, NULL);

    ck_assert(xid_expire(&table, 2, &from, &waiting, &e));
    from = 0;
    ck_assert_ptr_eq(xid_claim_any(&table, &from), s);
    ck_assert_ptr_null(xid_claim_any(&table, &from));
    xid_put(&table, s);
    xid_count(&table, &waiting_count, &expired_count);
    ck_assert_uint_eq(waiting_count + expired_count, 0);
}
END_TEST

/* ---- all at the same time -------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000, CALLS = 256 };
static _Atomic uint32_t published[CALLS];
static atomic_uint claims, expiries;
static atomic_bool is_over;

static void *
callers(void *arg)
{
    unsigned seed = (unsigned)(size_t)arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct xid_slot *s = xid_take(&table);

        if (!s) /* all slots are taken: let a claimer run */
            continue;
        atomic_store(&s->deadline, rand_r(&seed) % 4 ? XID_NO_DEADLINE : 1);
        uint32_t xid = s->xid;

        xid_publish(s);
        uint32_t other = atomic_exchange(&published[rand_r(&seed) % CALLS], xid);
        bool was_late;

        s = xid_claim(&table, other, &was_late);
        if (s) {
            claims++;
            xid_put(&table, s);
        }
    }
    return NULL;
}

static void *
expirer(void *arg)
{
    while (!is_over) {
        struct xid_expired e;
        unsigned from = 0;
        bool waiting;

        while (xid_expire(&table, 2, &from, &waiting, &e))
            expiries++;
        struct xid_slot *s = xid_claim_any(&table, &from);

        ck_assert_ptr_null(s); /* from is at the end */
    }
    return arg;
}

static void *
sweeper(void *arg)
{
    while (!is_over) {
        unsigned from = 0;
        struct xid_slot *s;

        while ((s = xid_claim_any(&table, &from))) {
            claims++;
            xid_put(&table, s);
        }
    }
    return arg;
}

START_TEST(every_call_is_claimed_once)
{
    pthread_t threads[THREADS], others[2];
    struct xid_slot *s;
    unsigned from = 0, n = 0;

    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, callers, (void *)(i + 1));
    pthread_create(&others[0], NULL, expirer, NULL);
    pthread_create(&others[1], NULL, sweeper, NULL);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    is_over = true;
    pthread_join(others[0], NULL);
    pthread_join(others[1], NULL);
    while ((s = xid_claim_any(&table, &from)))
        xid_put(&table, s);
    while (xid_take(&table)) /* every slot is back in the list, once */
        n++;
    ck_assert_uint_eq(n, atomic_load(&table.made));
    ck_assert_uint_gt(claims, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("xid-table");
    TCase *t = tcase_create("xid-table");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_reply_finds_its_call_once);
    tcase_add_test(t, calls_are_limited);
    tcase_add_test(t, the_largest_table_finds_each_call);
    tcase_add_test(t, an_expired_call_keeps_its_number);
    tcase_add_test(t, a_deadline_holds_when_the_ticks_wrap);
    tcase_add_test(t, waiting_and_expired_calls_can_be_claimed_at_the_end);
    tcase_add_test(t, every_call_is_claimed_once);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
