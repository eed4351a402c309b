/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln shows any answer without a crash: each list of each kind of answer holds values that no kilnd
 * sends. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "cli/kiln.h"

struct kiln_options kiln_options;

int
show_json(const json_t *answer)
{
    (void)answer;
    return KILN_DONE;
}

int
refuse(int status, const char *expected, const char *type, const char *fmt, ...)
{
    (void)expected;
    (void)type;
    (void)fmt;
    return status;
}

static int (*const shows[])(const json_t *) = {
    show_info, show_status,       show_list,        show_profile,         show_check,
    show_heal, show_heal_summary, show_split_brain, show_heal_statistics, show_options};
static const char *const lists[] = {"volumes",     "bricks", "options", "entries",
                                    "split_brain", "flaws",  "looks",   "fops"};
static const char *const odd[] = {"1", "null", "\"text\"", "[]", "{}", "[1, null, \"text\", [], {}]",
                                  "{\"a\": 1, \"replica\": 0}", "{\"replica\": -1, \"status\": \"Started\"}"};
enum { LISTS = sizeof lists / sizeof lists[0], ODD = sizeof odd / sizeof odd[0] };

/* Every list is the odd value, and stands within lists that hold every list. */
static json_t *
answer_with(const char *thing, int depth)
{
    json_t *answer = json_object();

    for (size_t i = 0; i < LISTS; i++) {
        json_t *value = json_loads(thing, JSON_DECODE_ANY, NULL);

        ck_assert_ptr_nonnull(value);
        if (depth > 0)
            value = json_pack("[oo]", value, answer_with(thing, depth - 1));
        ck_assert_int_eq(json_object_set_new(answer, lists[i], value), 0);
    }
    json_object_set_new(answer, "replica", json_integer(depth - 1));
    json_object_set_new(answer, "status", json_string("Started"));
    return answer;
}

START_TEST(anything_is_shown)
{
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
    for (size_t i = 0; i < ODD; i++) {
        for (int depth = 0; depth < 3; depth++) {
            json_t *answer = answer_with(odd[i], depth);

            for (size_t k = 0; k < sizeof shows / sizeof shows[0]; k++)
                ck_assert_int_ge(shows[k](answer), 0);
            json_decref(answer);
        }
    }
}
END_TEST

START_TEST(the_status_of_a_failed_rebalance_is_an_error)
{
    static const char *const states[] = {"running", "done", "stopped", "failed"};

    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    for (unsigned i = 0; i < 2 * sizeof states / sizeof states[0]; i++) {
        const char *state = states[i / 2];
        json_t *answer = json_pack("{ss ss ss s{si ss}}", "name", "v", "kind", i % 2 ? "drain" : "files",
                                   "state", state, "look", "failed", 3, "reason", "f: No space left");

        for (int as_json = 0; as_json < 2; as_json++) {
            kiln_options.is_json = as_json;
            ck_assert_int_eq(show_rebalance(answer), strcmp(state, "failed") ? KILN_DONE : KILN_REFUSED);
        }
        json_decref(answer);
    }
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("show");
    TCase *t = tcase_create("show");

    tcase_add_test(t, anything_is_shown);
    tcase_add_test(t, the_status_of_a_failed_rebalance_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
