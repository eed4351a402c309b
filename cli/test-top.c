/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* From rates to rows and lines. */
#include "cli/top.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* As kilnd answers, but for what nothing of this looks at. */
static const char answer[] =
    "{\"seconds\":2.000,\"resident_bytes\":52428800,\"cpu_percent\":25.000,\"threads\":9,"
    "\"machine\":{\"cpu_percent\":93.2,\"load_1min\":4.1,\"cpu_pressure\":12.3,\"memory_pressure\":null,\"io_"
    "pressure\":3.0},"
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
    expect_lines(0, 1, false, 80,
                 "brick      OPS/S    p50    p99  rd/s  wr/s queue  open cli  lock wait   mem cpu%",
                 "/a           101   99us   99us     0  404k     7     4   1     7    1  121k 25.0");
    expect_lines(0, 0, true, 80,
                 "BRICK      ops/s    p50    p99  rd/s  wr/s queue  open cli  lock wait   mem cpu%",
                 "/b?            0    0us    0us  1.0k     0     0     0   0     0    0     0  0.0");
}
END_TEST

START_TEST(fops_and_clients)
{
    expect_lines(1, 2, false, 64,
                 "brick               fop              OPS/S     p50     p99 time%",
                 "/a                  writev             101    99us    99us 100.0");
    expect_lines(2, 3, false, 79,
                 "brick               client           from                     IN/S  out/s  lock",
                 "/a                  fuse             192.0.2.1:1023           2.0k    200     8");
}
END_TEST

START_TEST(slow_calls)
{
    expect_lines(3, 2, false, 80,
                 "what         fop        TOTAL worker  queue  locks   disk  reply ago s brick    ",
                 "/f           writev     5.0ms  1.0us  2.0us  3.0us  4.9ms    0us     5 /a       ");
}
END_TEST

START_TEST(the_process)
{
    char line[256];

    top_summary(rates, line, sizeof line);
    ck_assert_str_eq(line, "2 bricks  cpu 25%  ram 50.0M  threads 9  pools 1.0M live 1.5k cached 23  machine "
                           "93% load 4.1 wait cpu 12 io 3");
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
    tcase_add_test(t, fops_and_clients);
    tcase_add_test(t, slow_calls);
    tcase_add_test(t, the_process);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
