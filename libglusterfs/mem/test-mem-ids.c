/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The pools of fixed ids: each exists once, under its own number, and the inline forms do the same as the
 * calls, in each mode. A mode is chosen once a process, so each test runs in a process of its own. */
#include "mem/mem-ids.h"

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/dict.h"
#include "fs/inode.h"
#include "mem/arena.h"
#include "mem/iobuf.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/transport.h"
#include "stack/call-stack.h"

static const char *const modes[] = {"on", "off", "poison", "trace:1"};
enum { MODES = sizeof modes / sizeof modes[0], BYTES = 100 };
#define ID_FREE MEM_ID_TYPED_MAX /* not one of Kiln's, and neither is the one below */

_Static_assert(MEM_ID_END < ID_FREE, "the tests want two ids that nobody uses");

static struct mem_pool *
pool_in(const char *mode)
{
    struct mem_pool *p = NULL;

    ck_assert_int_eq(mem_pools_set_mode(mode), 0);
    ck_assert_int_eq(mem_pool_make(&p, ID_FREE, BYTES, "of a test"), 0);
    return p;
}

static int64_t
live(struct mem_pool *p)
{
    struct mem_pool_stats s;

    mem_pool_stats(p, &s);
    return s.live;
}

static bool
is_counting(void)
{
    return strcmp(mem_pools_mode(), "off") != 0;
}

START_TEST(each_id_has_its_pool)
{
    ck_assert_int_eq(mem_pools_set_mode(modes[_i]), 0);
    for (int again = 0; again < 2; again++) /* the second call has nothing to do, and does not fail */
        ck_assert_int_eq(arena_pools_init() | iobuf_pools_init() | dict_pools_init() | stack_pools_init() |
                             fs_pools_init() | transport_pools_init() | rpc_server_pools_init(),
                         0);
    for (unsigned id = MEM_ID_TYPED_MIN; id < MEM_ID_END; id++) {
        void *o = mem_get_t(id);

        ck_assert_msg(o != NULL, "nobody made the pool of id %u", id);
        mem_put_t(id, o);
    }
    ck_assert_ptr_null(
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "x", .size = 8, .id = MEM_ID_FRAME}));
}
END_TEST

START_TEST(an_id_is_taken_once)
{
    struct mem_pool *p = pool_in("on"), *same = p, *other = NULL;

    ck_assert_int_eq(mem_pool_make(&same, ID_FREE, BYTES, "of a test"), 0);
    ck_assert_ptr_eq(same, p);
    ck_assert_int_eq(mem_pool_make(&other, ID_FREE, BYTES, "another"), -EEXIST);
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(inline_and_other_calls_can_be_mixed)
{
    struct mem_pool *p = pool_in(modes[_i]);
    char *o[4] = {mem_get_t(ID_FREE), mem_get(p), mem_get_t(ID_FREE), mem_get0(p)};

    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(o[i]);
        memset(o[i], i, BYTES);
    }
    ck_assert_int_eq(live(p), is_counting() ? 4 : 0);
    mem_put_t(ID_FREE, o[0]);
    mem_put_t(ID_FREE, o[1]);
    mem_put(o[2]);
    mem_put_t(ID_FREE, o[3]);
    mem_put_t(ID_FREE, NULL);
    ck_assert_int_eq(live(p), 0);
}
END_TEST

/* Puts from a thread that got none of the objects. */
static void *
put_elsewhere(void *object)
{
    mem_put_t(ID_FREE, object);
    return NULL;
}

START_TEST(an_inline_put_lowers_the_owners_count)
{
    struct mem_pool *p = pool_in(modes[_i]);
    int owner = mem_owner_new("brick");
    void *o[3];
    pthread_t thread;

    for (int i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(o[i] = mem_get_owner(p, (uint16_t)owner));
    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, p), is_counting() ? 3 : 0);
    mem_put_t(ID_FREE, o[0]);
    ck_assert_int_eq(pthread_create(&thread, NULL, put_elsewhere, o[1]), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, p), is_counting() ? 1 : 0);
    mem_put_t(ID_FREE, o[2]);
    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, p), 0);
    ck_assert_int_eq(live(p), 0);
    void *plain = mem_get_t(ID_FREE); /* the owner does not stay with the object */

    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, p), 0);
    mem_put_t(ID_FREE, plain);
}
END_TEST

/* A dentry, for example, that is put as one of the other size: found by the state word, and put into its
 * own pool. */
START_TEST(an_inline_put_under_a_wrong_id_goes_home)
{
    struct mem_pool *p = pool_in(modes[_i]), *q = NULL;

    ck_assert_int_eq(mem_pool_make(&q, ID_FREE - 1, BYTES * 2, "the neighbour"), 0);
    mem_put_t(ID_FREE - 1, mem_get_t(ID_FREE - 1));
    mem_put_t(ID_FREE - 1, mem_get_t(ID_FREE));
    ck_assert_int_eq(live(p), 0);
    ck_assert_int_eq(live(q), 0);
    if (strcmp(modes[_i], "on") == 0) {
        void *small = mem_get_t(ID_FREE), *large = mem_get_t(ID_FREE - 1);

        ck_assert_ptr_ne(small, large);
        mem_pools_check();
        mem_put_t(ID_FREE, small);
        mem_put_t(ID_FREE - 1, large);
    }
}
END_TEST

/* A fixed id can be used like a new id when its pool is gone, even on threads that have used the id
 * before. */
START_TEST(an_id_is_free_again_after_the_end_of_its_pool)
{
    struct mem_pool *p = pool_in(modes[_i]);
    char *o = mem_get_t(ID_FREE);

    mem_put_t(ID_FREE, o);
    mem_pool_destroy(p);
    p = NULL;
    if (is_counting()) {
        ck_assert_int_eq(mem_pool_make(&p, ID_FREE, BYTES, "too early"), -EEXIST);
        for (int i = 0; i < 4; i++)
            mem_pools_sweep_now();
    }
    ck_assert_int_eq(mem_pool_make(&p, ID_FREE, BYTES * 3, "the next one"), 0);
    ck_assert_ptr_nonnull(o = mem_get_t(ID_FREE));
    memset(o, 1, BYTES * 3);
    ck_assert_int_eq(live(p), is_counting() ? 1 : 0);
    mem_put_t(ID_FREE, o);
    ck_assert_int_eq(live(p), 0);
    mem_pools_check();
}
END_TEST

START_TEST(an_inline_get_without_a_pool_is_refused)
{
    pool_in("on");
    errno = 0;
    ck_assert_ptr_null(mem_get_t(ID_FREE - 1));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("mem-ids");
    TCase *t = tcase_create("fixed ids");

    suite_add_tcase(s, t);
    tcase_add_loop_test(t, each_id_has_its_pool, 0, MODES);
    tcase_add_test(t, an_id_is_taken_once);
    tcase_add_loop_test(t, inline_and_other_calls_can_be_mixed, 0, MODES);
    tcase_add_loop_test(t, an_inline_put_lowers_the_owners_count, 0, MODES);
    tcase_add_loop_test(t, an_inline_put_under_a_wrong_id_goes_home, 0, MODES);
    tcase_add_loop_test(t, an_id_is_free_again_after_the_end_of_its_pool, 0, MODES);
    tcase_add_test(t, an_inline_get_without_a_pool_is_refused);
    return s;
}

#include "base/test-main.h"
