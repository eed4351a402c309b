/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The sum of the usage of bricks, and rows that travel between hosts as JSON. */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "volumes/quota-rows.h"

static const struct gfid folder = {{7}};

static void
add_usage(struct quota_rows *r, const struct gfid *ns, int64_t limit, int64_t used, unsigned set)
{
    const struct simple_quota_usage u = {.ns = *ns, .limit = limit, .used = used};

    quota_rows_add(r, &u, 1, set, QUOTA_ROW_FAR);
}

int
simple_quota_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct gfid));
}

START_TEST(the_fullest_replica_of_each_set_counts)
{
    struct quota_rows r = {0};
    struct quota_table t;

    add_usage(&r, &gfid_root, 100, 10, 0);
    add_usage(&r, &folder, 50, 5, 1);
    add_usage(&r, &gfid_root, 100, 12, 0);
    add_usage(&r, &gfid_root, 100, 7, 1);
    ck_assert_int_eq(quota_rows_sum(&r, 2, &t), 0);
    ck_assert(t.is_whole);
    ck_assert_uint_eq(t.count, 2);
    ck_assert(gfid_is_root(&t.rows[0].ns));
    ck_assert_int_eq(t.rows[0].used, 19);
    ck_assert_int_eq(t.rows[1].limit, 50);
    free(t.rows);
    quota_rows_end(&r);
}
END_TEST

START_TEST(a_set_without_an_answer_leaves_the_sum_open)
{
    struct quota_rows r = {0};
    struct quota_table t;

    add_usage(&r, &gfid_root, 100, 10, 0);
    ck_assert_int_eq(quota_rows_sum(&r, 2, &t), 0);
    ck_assert(!t.is_whole);
    free(t.rows);
    quota_rows_end(&r);
}
END_TEST

START_TEST(rows_come_back_from_their_json)
{
    struct quota_rows r = {0}, back = {0};
    struct quota_table t;

    add_usage(&r, &gfid_root, 100, 10, 0);
    add_usage(&r, &folder, 50, 5, 3);
    json_t *json = quota_rows_to_json(&r);
    quota_rows_add_json(&back, json, 4);
    ck_assert_uint_eq(back.count, 2);
    ck_assert(back.sets[0] && back.sets[3] && !back.sets[1]);
    ck_assert_int_eq(quota_rows_sum(&back, 4, &t), 0);
    ck_assert_int_eq(t.rows[0].used, 10);
    ck_assert_int_eq(t.rows[0].limit, 100);
    ck_assert(gfid_equal(&t.rows[1].ns, &folder));
    free(t.rows);
    json_decref(json);
    quota_rows_end(&r);
    quota_rows_end(&back);
}
END_TEST

START_TEST(rows_that_make_no_sense_are_skipped)
{
    static const char *const bad[] = {
        "[]",
        "{\"sets\": 3, \"rows\": {}}",
        "{\"sets\": [-1, 4, 1000000000000, \"0\", null]}",
        "{\"rows\": [null, 7, [], [\"nonsense\", 0, 1, 1, false]]}",
        "{\"rows\": [[\"00000000-0000-0000-0000-000000000001\", 4, 1, 1, false],"
        " [\"00000000-0000-0000-0000-000000000001\", -1, 1, 1, false],"
        " [\"00000000-0000-0000-0000-000000000001\", 0, -5, 1, false]]}",
    };
    struct quota_rows r = {0};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *json = json_loads(bad[i], 0, NULL);

        ck_assert_ptr_nonnull(json);
        quota_rows_add_json(&r, json, 4);
        json_decref(json);
    }
    quota_rows_add_json(&r, NULL, 4);
    ck_assert_uint_eq(r.count, 0);
    for (unsigned i = 0; i < VOLUME_BRICKS_MAX; i++)
        ck_assert(!r.sets[i]);
    quota_rows_end(&r);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("quota-rows");
    TCase *c = tcase_create("quota-rows");

    tcase_add_test(c, the_fullest_replica_of_each_set_counts);
    tcase_add_test(c, a_set_without_an_answer_leaves_the_sum_open);
    tcase_add_test(c, rows_come_back_from_their_json);
    tcase_add_test(c, rows_that_make_no_sense_are_skipped);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
