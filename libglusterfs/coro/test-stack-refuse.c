/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Stacks when the system refuses memory, guards, advice, or information about the process. No stack is
 * leaked. */
#define TEST_MEM_CLOCK
#include "mem/test-mem.h"

#include "coro/stack-internal.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { GUARD_INSTALL = 102 }; /* MADV_GUARD_INSTALL, which headers before Linux 6.13 don't have */

static struct stack_pool *pool;

static void
pool_of(uint32_t map_entries_max)
{
    ck_assert_int_eq(
        stack_pool_new(&(struct stack_pool_opts){.name = "refused", .map_entries_max = map_entries_max},
                       &pool),
        0);
}

static struct stack *
take(void)
{
    struct stack *s = NULL;

    ck_assert_int_eq(stack_take(pool, &s), 0);
    memset(s->low, 1, (size_t)(s->top - s->low));
    return s;
}

static void
refused_and_nothing_mapped(int error)
{
    struct stack_pool_stats st;
    struct stack *s = NULL;

    ck_assert_int_eq(stack_take(pool, &s), error);
    ck_assert_ptr_null(s);
    stack_pool_check(pool);
    stack_pool_stats(pool, &st);
    ck_assert_uint_eq(st.stacks, 0);
    ck_assert_uint_eq(st.bytes_mapped, 0);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}

START_TEST(without_heap_no_pool_is_made)
{
    struct stack_pool *p = NULL;

    if (tools_watch())
        return;
    take_all_memory();
    int err = stack_pool_new(NULL, &p);
    give_memory_back();
    ck_assert_int_eq(err, -ENOMEM);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(without_a_mapping_no_stack_is_taken)
{
    if (tools_watch())
        return;
    pool_of(0);
    refuse(SYS_mmap, ENOMEM);
    refused_and_nothing_mapped(-ENOMEM);
}
END_TEST

START_TEST(without_memory_for_guards_no_stack_is_taken)
{
    pool_of(0);
    refuse_when(SYS_madvise, 2, GUARD_INSTALL, ENOMEM);
    refused_and_nothing_mapped(-ENOMEM);
}
END_TEST

/* An old kernel has no guard advice. Whether guards by mprotect fail too is independent of that. */
START_TEST(without_any_guards_no_stack_is_taken)
{
    if (tools_watch())
        return;
    pool_of(0);
    refuse_when(SYS_madvise, 2, GUARD_INSTALL, EINVAL);
    struct stack *s = take();
    stack_release(s);
    mem_pools_trim(2);
    refuse(SYS_mprotect, ENOMEM);
    refused_and_nothing_mapped(-ENOMEM);
}
END_TEST

/* Other mappings are counted again before a refusal, unless that has just been done. */
START_TEST(map_entries_are_counted_again_after_a_second)
{
    struct stack *s = NULL;

    pool_of(1); /* less than the process itself has */
    clock_gettime(CLOCK_MONOTONIC, &clock_stopped_at);
    ck_assert_int_eq(stack_take(pool, &s), -EAGAIN);
    uint64_t counted = pool->counted_us;
    ck_assert_int_eq(stack_take(pool, &s), -EAGAIN);
    ck_assert_uint_eq(pool->counted_us, counted);
    clock_ahead_s = 1;
    ck_assert_int_eq(stack_take(pool, &s), -EAGAIN);
    clock_ahead_s = clock_stopped_at.tv_sec = 0; /* Check reads it too */
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

START_TEST(the_default_limit_holds_if_the_memory_map_is_unreadable)
{
    struct rlimit was, none = { 0 };

    ck_assert_uint_gt(stack_map_entries(), 5);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    none.rlim_max = was.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint32_t entries = stack_map_entries(), limit = stack_map_limit();
    pool_of(0);
    struct stack *s = take(); /* there are no descriptors, but there is memory */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_uint_eq(entries, 0);
    ck_assert_uint_eq(limit, 65530);
    stack_release(s);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

START_TEST(if_mincore_fails_no_lower_part_is_dropped)
{
    struct stack_pool_stats st;

    pool_of(0);
    struct stack *s = take();
    refuse(SYS_mincore, EAGAIN);
    ck_assert_uint_eq(stack_pool_resident(pool), 0);
    stack_release(s);
    mem_pools_trim(1); /* queries which lower parts were used */
    stack_pool_stats(pool, &st);
    ck_assert_uint_eq(st.dropped_lower, 0);
    mem_pools_trim(2);
    stack_pool_stats(pool, &st);
    ck_assert_uint_eq(st.slabs, 0);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

START_TEST(kept_stacks_do_not_keep_the_sweeper_awake)
{
    ck_assert_int_eq(mem_pools_set_option("release", "keep"), 0);
    pool_of(0);
    stack_release(take());
    ck_assert(mem_followers->quiet());
    ck_assert_int_eq(mem_pools_set_option("release", "drop"), 0);
    ck_assert(!mem_followers->quiet());
    mem_pools_trim(2);
    ck_assert(mem_followers->quiet());
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

START_TEST(a_destroyed_pool_waits_for_all_stacks)
{
    pool_of(0);
    struct stack *s[3] = { take(), take(), take() };
    ck_assert_uint_eq(stack_pool_destroy(pool), 3);
    for (int i = 0; i < 3; i++) { /* of one slab, which is unmapped with the last */
        memset(s[i]->low, 2, 100);
        stack_release(s[i]);
    }
}
END_TEST

static void
off_setup(void)
{
    ck_assert_int_eq(mem_pools_set_mode("off"), 0);
}

START_TEST(resident_memory_is_known_with_pools_off)
{
    pool_of(0);
    struct stack *s = take(), *t = take();

    ck_assert_uint_ge(stack_pool_resident(pool), 100 << 10);
    stack_release(s);
    stack_release(t);
    ck_assert_uint_eq(stack_pool_resident(pool), 0);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

START_TEST(a_bad_pointer_is_not_released)
{
    pool_of(0);
    struct stack *s = take();
    typeof(s->state) was = s->state;

    s->state = 77; /* overwritten */
    stack_release(s);
    ck_assert_int_eq(messages, 1);
    ck_assert(strstr(last_message, "refused") && strstr(last_message, "none of ours"));
    s->state = was;
    stack_release(s);
    ck_assert_int_eq(messages, 1);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

START_TEST(a_bad_release_aborts_if_configured)
{
    ck_assert_int_eq(mem_pools_set_option("abort", "1"), 0);
    pool_of(0);
    struct stack *s = take();
    signal(SIGABRT, last_words);
    stack_release(s);
    stack_release(s);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        without_heap_no_pool_is_made, without_a_mapping_no_stack_is_taken,
        without_memory_for_guards_no_stack_is_taken, without_any_guards_no_stack_is_taken,
        map_entries_are_counted_again_after_a_second,
        the_default_limit_holds_if_the_memory_map_is_unreadable, if_mincore_fails_no_lower_part_is_dropped,
        kept_stacks_do_not_keep_the_sweeper_awake, a_destroyed_pool_waits_for_all_stacks,
        a_bad_pointer_is_not_released
    };
    Suite *s = suite_create("stack-refuse");
    TCase *t = tcase_create("refused"), *off = tcase_create("off");

    tcase_add_checked_fixture(t, setup, NULL);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    tcase_add_test_raise_signal(t, a_bad_release_aborts_if_configured, SIGABRT);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(off, off_setup, NULL);
    tcase_add_test(off, resident_memory_is_known_with_pools_off);
    suite_add_tcase(s, off);
    return s;
}

#include "base/test-main.h"
