/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* From two samples to rates, rows and lines. */
#include "cli/top.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/histogram.h"

/* Two bricks; between the samples, two seconds apart, /a has done 200 writes of 100 us and 2 of 5 ms, and /b
 * began anew. */
static json_t *
sample(bool is_later)
{
    char lines[64];

    snprintf(lines, sizeof lines, "7 7 1:7\n%d %d %u:%d %u:%d\n", is_later ? 302 : 100,
             is_later ? 40000000 : 10000000, histogram_bucket(100000), is_later ? 300 : 100,
             histogram_bucket(5000000), is_later ? 2 : 0);
    json_t *sample = json_pack(
        "{sI sI sI sf si s{sisisisi} s[{ss ss sb si si si si si si sI sI sI s{si} s[{ss ss "
        "ss sI sI si}]}"
        "{ss ss sb si si si si si si sI sI sI s{} s[]}]}",
        "time_ns", (json_int_t)(is_later ? 12000000000 : 10000000000), "age_ns", (json_int_t)4000000000,
        "resident_bytes", (json_int_t)50 << 20, "cpu_seconds", is_later ? 2.5 : 2.0, "threads", 9, "pools",
        "live", 1500, "hot", 20, "cold", 3, "bytes", 1 << 20, "bricks", "brick", "/a", "volume", "v", "up", 1,
        "clients", 1, "open", 4, "running", 2, "queued", 5, "locks_held", 7, "locks_waiting", 1,
        "memory_bytes", (json_int_t)123456, "bytes_read", (json_int_t)0, "bytes_written",
        (json_int_t)(is_later ? 4096 * 302 : 4096 * 100), "fops", "writev", 8,
        "client_list", "id", "3",
        "name", "fuse", "peer", "192.0.2.1:1023", "received", (json_int_t)(is_later ? 5000 : 1000), "sent",
        (json_int_t)(is_later ? 900 : 500), "locks", 8, "brick", "/b\x01", "volume", "w", "up", 0, "clients",
        0, "open", 0, "running", 0, "queued", 0, "locks_held", 0, "locks_waiting", 0, "memory_bytes",
        (json_int_t)0, "bytes_read", (json_int_t)(is_later ? 2048 : 1 << 30), "bytes_written", (json_int_t)0,
        "fops", "client_list");

    ck_assert_ptr_nonnull(sample);
    json_object_set_new(sample, "lines", json_string(lines));
    json_object_set_new(json_array_get(json_object_get(sample, "bricks"), 0), "cpu_ns",
                        json_integer(is_later ? 900000000 : 400000000));
    return sample;
}

static json_t *before, *now, *rates;

static void
setup(void)
{
    before = sample(false);
    now = sample(true);
    rates = top_rates(before, now);
    ck_assert_ptr_nonnull(rates);
}

static void
teardown(void)
{
    json_decref(before);
    json_decref(now);
    json_decref(rates);
}

static double
number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    ck_assert_msg(json_is_number(value), "%s", key);
    return json_number_value(value);
}

#define BETWEEN(value, least, most)                                                                          \
    do {                                                                                                     \
        ck_assert_double_ge((value), (least));                                                               \
        ck_assert_double_le((value), (most));                                                                \
    } while (0)

START_TEST(what_happened_between)
{
    json_t *bricks = json_object_get(rates, "bricks"), *a = json_array_get(bricks, 0);
    json_t *write = json_array_get(json_object_get(a, "fops"), 0);
    json_t *client = json_array_get(json_object_get(a, "client_list"), 0);

    ck_assert_uint_eq(json_array_size(bricks), 2);
    ck_assert_double_eq(number(rates, "seconds"), 2);
    ck_assert_double_eq(number(rates, "cpu_percent"), 25);
    ck_assert_double_eq(number(a, "ops"), 101);
    ck_assert_double_eq(number(a, "written"), 202 * 4096 / 2);
    ck_assert_double_eq(number(a, "queue"), 7);
    BETWEEN(number(a, "p50_us"), 98, 102);
    BETWEEN(number(write, "p50_us"), 98, 102);
    BETWEEN(number(write, "p99_us"), 98, 102); /* 2 of 202 are the last hundredth */
    ck_assert_double_eq(number(write, "share"), 100);
    ck_assert_double_eq(number(client, "received"), 2000);
    ck_assert_double_eq(number(client, "sent"), 200);
    ck_assert_double_eq(number(json_array_get(bricks, 1), "read"), 1024); /* it began anew */
}
END_TEST

START_TEST(since_the_start)
{
    json_t *all = top_rates(NULL, now), *a = json_array_get(json_object_get(all, "bricks"), 0);

    ck_assert_double_eq(number(all, "seconds"), 4);
    ck_assert_double_eq(number(a, "ops"), 302.0 / 4);
    json_decref(all);
}
END_TEST

START_TEST(no_sample_no_rates)
{
    json_t *nothing = json_object(), *text = json_string("x");

    ck_assert_ptr_null(top_rates(before, nothing));
    ck_assert_ptr_null(top_rates(NULL, text));
    ck_assert_ptr_null(top_rates(now, now)); /* no time has passed */
    json_decref(nothing);
    json_decref(text);
}
END_TEST

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

START_TEST(the_process)
{
    char line[256];

    top_summary(rates, line, sizeof line);
    ck_assert_str_eq(line, "2 bricks  cpu 25%  ram 50.0M  threads 9  pools 1.0M live 1.5k cached 23");
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("top");
    TCase *t = tcase_create("top");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_happened_between);
    tcase_add_test(t, since_the_start);
    tcase_add_test(t, no_sample_no_rates);
    tcase_add_test(t, bricks_in_80_columns);
    tcase_add_test(t, fops_and_clients);
    tcase_add_test(t, the_process);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
