/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <jansson.h>

#include "coro/pool-control.h"
#include "coro/stack-internal.h"
#include "mem/test-mem.h"

START_TEST(settings_act_at_once)
{
    struct mem_process_stats s;

    ck_assert_int_eq(pool_control_set("sweep=2s"), 0);
    ck_assert_int_eq(pool_control_set("cap=3M"), 0);
    ck_assert_int_eq(pool_control_set("release keep"), 0);
    mem_pools_stats(&s);
    ck_assert_uint_eq(s.sweep_ms, 2000);
    ck_assert_uint_eq(s.cap_bytes, 3 << 20);
    ck_assert_str_eq(s.release, "keep");
    ck_assert_int_eq(pool_control_run("set sweep 250"), 0);
    mem_pools_stats(&s);
    ck_assert_uint_eq(s.sweep_ms, 250);
    ck_assert_int_eq(pool_control_set("release=drop"), 0);
    ck_assert_int_eq(pool_control_set("stacks=keep"), 0);
    ck_assert_str_eq(stack_pools_policy(), "keep");
    ck_assert_int_eq(pool_control_set("stacks=age"), 0);
}
END_TEST

START_TEST(malformed_settings_are_refused)
{
    static const char *const bad[] = {
        "",      "sweep",  "sweep=",        "sweep=1h", "sweep=-1", "sweep=25000000000000000000s",
        "cap=M", "cap=1T", "release=often", "stacks=",  "stacks=9", "swee=1s"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(pool_control_set(bad[i]), -EINVAL);
        ck_assert_ptr_nonnull(pool_control_expected(bad[i]));
    }
    ck_assert_int_eq(pool_control_run("trim"), -EINVAL);
    ck_assert_int_eq(pool_control_run("set"), -EINVAL);
    ck_assert_int_eq(pool_control_run("clear"), -EINVAL);
}
END_TEST

static json_t *
figures(void)
{
    char *text = pool_control_json();
    json_error_t flaw;

    ck_assert_ptr_nonnull(text);
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &flaw);
    ck_assert_msg(all != NULL, "%s: %s", flaw.text, text);
    free(text);
    return all;
}

static json_t *
pool_in(json_t *all, const char *name)
{
    json_t *p;
    size_t i;

    json_array_foreach(json_object_get(all, "pools"), i, p)
        if (strcmp(json_string_value(json_object_get(p, "pool-name")), name) == 0)
            return p;
    return NULL;
}

START_TEST(figures_by_type_and_brick)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "control");
    int owner = mem_owner_new("/b, active 7/\"odd\"");
    void *o[30];

    ck_assert_int_gt(owner, 0);
    for (int i = 0; i < 30; i++)
        ck_assert_ptr_nonnull(o[i] = mem_get_owner(p, (uint16_t)owner));
    json_t *all = figures(), *one = pool_in(all, "control"),
           *brick = json_array_get(json_object_get(one, "owners"), 0);
    json_int_t stride = json_integer_value(json_object_get(one, "padded-sizeof"));

    ck_assert_int_eq(json_integer_value(json_object_get(one, "active-count")), 30);
    ck_assert_int_eq(json_integer_value(json_object_get(one, "padding-bytes")), 30 * (stride - 100));
    ck_assert_str_eq(json_string_value(json_object_get(brick, "brick")), "/b, active 7/\"odd\"");
    ck_assert_int_eq(json_integer_value(json_object_get(brick, "active")), 30);
    ck_assert_int_eq(json_integer_value(json_object_get(brick, "bytes")), 30 * stride);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(all, "process"), "stack-policy")),
                     "age");
    json_decref(all);
    for (int i = 0; i < 30; i++)
        mem_put(o[i]);
    ck_assert_uint_gt(pool_control_trim(false), 0);
    all = figures();
    ck_assert_int_eq(json_integer_value(json_object_get(pool_in(all, "control"), "bytes-resident")), 0);
    json_decref(all);
}
END_TEST

START_TEST(a_dropped_stack_has_no_pages)
{
    struct stack_pool *pool;
    struct stack_pool_stats s;
    struct stack *one;

    ck_assert_int_eq(stack_pool_new(NULL, &pool), 0);
    ck_assert_int_eq(pool_control_set("stacks=drop"), 0);
    ck_assert_int_eq(stack_take(pool, &one), 0);
    memset(one->low, 1, (size_t)(one->top - one->low));
    stack_release(one);
    stack_pool_check(pool);
    stack_pool_stats(pool, &s);
    ck_assert_uint_eq(s.live + s.cached_hot + s.cached_cold, 0);
    ck_assert_uint_eq(s.dropped, 1);
    ck_assert_int_eq(stack_take(pool, &one), 0);
    ck_assert_int_eq(*one->low, 0);
    stack_release(one);
    ck_assert_int_eq(pool_control_set("stacks=keep"), 0);
    ck_assert_int_eq(stack_take(pool, &one), 0);
    stack_release(one);
    for (int i = 0; i < 3; i++)
        mem_pools_sweep_now();
    stack_pool_stats(pool, &s);
    ck_assert_uint_eq(s.cached_hot + s.cached_cold, 1);
    ck_assert_int_eq(pool_control_set("stacks=age"), 0);
    ck_assert_uint_eq(stack_pool_destroy(pool), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("pool-control");
    TCase *t = tcase_create("control");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, settings_act_at_once);
    tcase_add_test(t, malformed_settings_are_refused);
    tcase_add_test(t, figures_by_type_and_brick);
    tcase_add_test(t, a_dropped_stack_has_no_pages);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
