/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* From rates to rows and lines. */
#include "cli/top.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* An answer of kilnd's, without the fields that the tested functions do not read. */
static const char answer[] =
    "{\"seconds\":2.000,\"resident_bytes\":52428800,\"cpu_percent\":25.000,\"threads\":9,"
    "\"machine\":{\"cpu_percent\":93.2,\"load_1min\":4.1,\"memory_available\":3435973836,\"cpu_"
    "pressure\":12.3,\"memory_pressure\":null,\"io_pressure\":3.0},"
    "\"pools\":{\"live\":1500,\"hot\":20,\"cold\":3,\"bytes\":1048576},\"bricks\":["
    "{\"brick\":\"/a\",\"volume\":\"v\",\"up\":true,\"ops\":101.000,\"p50_us\":98.816,\"p99_us\":98.816,"
    "\"read\":0.000,\"written\":413696.000,\"queue\":7,\"open\":4,\"clients\":1,\"locks_held\":7,"
    "\"locks_waiting\":1,\"memory\":123456,\"cpu_percent\":25.000,"
    "\"fops\":[{\"fop\":\"writev\",\"ops\":101.000,\"p50_us\":98.816,\"p99_us\":98.816,\"share\":100.000}],"
    "\"client_list\":[{\"client\":\"fuse\",\"peer\":\"192.0.2.1:1023\",\"received\":2000.000,"
    "\"sent\":200.000,\"locks\":8}],\"slow\":[{\"fop\":\"writev\",\"total_us\":5000,\"worker_us\":1,"
    "\"queue_us\":2,\"locks_us\":3,\"disk_us\":4900,\"reply_us\":null,\"age_s\":5,\"object\":\"/f\"}]},"
    "{\"brick\":\"/b\\u0001\",\"volume\":\"w\",\"up\":false,\"ops\":0.000,\"p50_us\":0.000,\"p99_us\":0.000,"
    "\"read\":1024.000,\"written\":0.000,\"queue\":0,\"open\":0,\"clients\":0,\"locks_held\":0,"
    "\"locks_waiting\":0,\"memory\":0,\"cpu_percent\":0.000,\"fops\":[],\"client_list\":[],\"slow\":[]}]}\n";

static json_t *rates;

static void
setup(void)
{
    rates = json_loads(answer, 0, NULL);
    ck_assert_ptr_nonnull(rates);
    top_name_bricks(rates);
}

static void
teardown(void)
{
    json_decref(rates);
}

static void
expect_lines(unsigned view, unsigned sorted_by, bool is_reversed, int width, const char *title,
             const char *first)
{
    json_t *rows = top_rows(&top_views[view], rates, sorted_by, is_reversed);
    char line[512];

    top_line(&top_views[view], NULL, sorted_by, width, line, sizeof line);
    ck_assert_str_eq(line, title);
    top_line(&top_views[view], json_array_get(rows, 0), sorted_by, width, line, sizeof line);
    ck_assert_str_eq(line, first);
    json_decref(rows);
}

START_TEST(bricks_in_80_columns)
{
    expect_lines(TOP_BRICKS, 1, false, 80,
                 "brick                  OPS/S    p50    p99  rd/s  wr/s queue cli  lock wait cpu%",
                 "v:a                      101   99us   99us     0  404k     7   1     7    1 25.0");
    expect_lines(TOP_BRICKS, 0, true, 80,
                 "BRICK                  ops/s    p50    p99  rd/s  wr/s queue cli  lock wait cpu%",
                 "w:b?                       0    0us    0us  1.0k     0     0   0     0    0  0.0");
}
END_TEST

START_TEST(wide_screens_have_more_columns)
{
    expect_lines(
        TOP_BRICKS, 1, false, 92,
        "brick                  OPS/S    p50    p99  rd/s  wr/s queue  open cli  lock wait   mem cpu%",
        "v:a                      101   99us   99us     0  404k     7     4   1     7    1  121k 25.0");
    expect_lines(TOP_BRICKS, 1, false, 160,
                 "brick                                     OPS/S    p50    p99  rd/s  wr/s queue  open cli  "
                 "lock wait   "
                 "mem cpu% path                                            ",
                 "v:a                                         101   99us   99us     0  404k     7     4   1  "
                 "   7    1  "
                 "121k 25.0 /a                                              ");
}
END_TEST

START_TEST(volumes_are_the_sums_of_their_bricks)
{
    expect_lines(TOP_VOLUMES, 2, false, 80,
                 "volume               bricks  OPS/S    p99  rd/s  wr/s queue cli  lock wait  cpu%",
                 "v                         1    101   99us     0  404k     7   1     7    1  25.0");
}
END_TEST

START_TEST(the_sum_of_all_is_a_row)
{
    char line[256];
    json_t *rows = top_rows(&top_views[TOP_BRICKS], rates, 1, false);
    json_t *sum = top_sum(&top_views[TOP_BRICKS], rows);

    top_line(&top_views[TOP_BRICKS], sum, 1, 80, line, sizeof line);
    ck_assert_str_eq(line,
                     "all 2 bricks             101   99us   99us  1.0k  404k     7   1     7    1 25.0");
    json_decref(sum);
    ck_assert_ptr_null(top_sum(&top_views[TOP_FOPS], rows));
    rows = top_filter(rows, "w:");
    ck_assert_uint_eq(json_array_size(rows), 1);
    ck_assert_ptr_null(top_sum(&top_views[TOP_BRICKS], rows)); /* one row is its own sum */
    rows = top_filter(rows, "");
    ck_assert_uint_eq(json_array_size(rows), 1);
    json_decref(rows);
}
END_TEST

START_TEST(names_tell_bricks_of_a_volume_apart)
{
    static const struct {
        const char *brick, *volume, *name;
    } bricks[] = {{"/srv/b1/data", "web", "web:b1/data"},
                  {"/srv/b2/data", "web", "web:b2/data"},
                  {"/srv/b1/data2", "mail", "mail:data2"},
                  {"/x", "", "x"},
                  {"/a/b", "", "b"}};
    json_t *list = json_array(), *answered = json_pack("{so}", "bricks", list);

    for (size_t i = 0; i < sizeof bricks / sizeof bricks[0]; i++)
        json_array_append_new(list,
                              json_pack("{ss ss}", "brick", bricks[i].brick, "volume", bricks[i].volume));
    top_name_bricks(answered);
    for (size_t i = 0; i < sizeof bricks / sizeof bricks[0]; i++)
        ck_assert_str_eq(json_string_value(json_object_get(json_array_get(list, i), "name")), bricks[i].name);
    json_decref(answered);
}
END_TEST

START_TEST(long_names_keep_volume_and_end)
{
    json_t *row =
        json_pack("{ss ss}", "name", "quickstart-of-a-volume:a/very/long/way/to/the/brick1", "brick", "");
    char line[256];

    top_line(&top_views[TOP_BRICKS], row, 1, 80, line, sizeof line);
    line[21] = '\0';
    ck_assert_str_eq(line, "quickstart/the/brick1");
    json_decref(row);
}
END_TEST

START_TEST(fops_and_clients)
{
    expect_lines(TOP_FOPS, 2, false, 66,
                 "brick                 fop              OPS/S     p50     p99 time%",
                 "v:a                   writev             101    99us    99us 100.0");
    expect_lines(TOP_CLIENTS, 3, false, 80,
                 "brick                client           from                     IN/S  out/s  lock",
                 "v:a                  fuse             192.0.2.1:1023           2.0k    200     8");
}
END_TEST

START_TEST(slow_calls)
{
    expect_lines(TOP_SLOW, 2, false, 80,
                 "what            fop        TOTAL  queue  locks   disk ago s brick               ",
                 "/f              writev     5.0ms  2.0us  3.0us  4.9ms     5 v:a                 ");
}
END_TEST

START_TEST(the_process)
{
    char line[256];

    top_summary(rates, line, sizeof line);
    ck_assert_str_eq(line, "2 bricks  cpu 25%  ram 50.0M  threads 9  machine 93% load 4.1 wait cpu 12 io 3 "
                           "free 3.2G  pools 1.0M live 1.5k cached 23");
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("top");
    TCase *t = tcase_create("top");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, bricks_in_80_columns);
    tcase_add_test(t, wide_screens_have_more_columns);
    tcase_add_test(t, volumes_are_the_sums_of_their_bricks);
    tcase_add_test(t, the_sum_of_all_is_a_row);
    tcase_add_test(t, names_tell_bricks_of_a_volume_apart);
    tcase_add_test(t, long_names_keep_volume_and_end);
    tcase_add_test(t, fops_and_clients);
    tcase_add_test(t, slow_calls);
    tcase_add_test(t, the_process);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
