/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What io-stats counts, seen in its statedump. */
#include "xlators/features/test-layers.h"

#include "log/dump.h"

extern const struct xlator_type debug_io_stats_xlator;

static int
answer(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = stk->call.fop == FOP_readv ? (int32_t)stk->call.size : 0;
    return XL_DONE;
}

static void
setup(void)
{
    bench_setup(&debug_io_stats_xlator,
                (const char *const[]){"latency-measurement", "off", "unique-id", "/b", NULL}, answer);
}

static void
setup_latency(void)
{
    bench_setup(&debug_io_stats_xlator, (const char *const[]){"latency-measurement", "on", NULL}, answer);
}

static void
run(enum fop fop, size_t size, int times)
{
    for (int i = 0; i < times; i++) {
        struct bench_call *call = bench_call(fop, NULL);

        call->stk->call.size = call->stk->call.payload_bytes = size;
        ck_assert_int_eq(bench_run(call), fop == FOP_readv ? (int)size : 0);
    }
}

static char *
dumped(void)
{
    char *text = NULL;
    size_t n = 0;
    struct dump dump = {.file = open_memstream(&text, &n)};

    ck_assert_ptr_nonnull(dump.file);
    debug_io_stats_xlator.dump(bench_xl, &dump);
    fclose(dump.file);
    return text;
}

static void
expect(const char *text, const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "no %s in:\n%s", line, text);
}

START_TEST(calls_bytes_and_sizes)
{
    run(FOP_lookup, 0, 7);
    run(FOP_writev, 4096, 3);
    run(FOP_writev, 1, 1);
    run(FOP_readv, 5000, 2);
    run(FOP_readv, 0, 1);
    char *text = dumped();
    expect(text, "lookup.hits=7\n");
    expect(text, "writev.hits=4\n");
    expect(text, "readv.hits=3\n");
    expect(text, "total-write=12289\n");
    expect(text, "total-read=10000\n");
    expect(text, "write-4096=3\n");
    expect(text, "write-1=1\n");
    expect(text, "read-4096=2\n");
    ck_assert_ptr_null(strstr(text, "latency"));
    ck_assert_ptr_null(strstr(text, "mkdir"));
    free(text);
}
END_TEST

START_TEST(latencies_when_asked_for)
{
    run(FOP_lookup, 0, 5);
    char *text = dumped();
    expect(text, "lookup.hits=5\n");
    expect(text, "lookup.latency_ns=calls 5 average ");
    free(text);
}
END_TEST

START_TEST(latencies_switched_on_while_running)
{
    bool *latency_measurement = bench_xl->conf; /* conf's first member */

    run(FOP_stat, 0, 2);
    *latency_measurement = true;
    debug_io_stats_xlator.reconfigured(bench_xl, bench_xl->conf);
    run(FOP_stat, 0, 3);
    char *text = dumped();
    expect(text, "stat.hits=5\n");
    expect(text, "stat.latency_ns=calls 3 average ");
    free(text);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("io-stats");
    TCase *off = tcase_create("off"), *on = tcase_create("on");

    tcase_add_checked_fixture(off, setup, bench_teardown);
    tcase_add_test(off, calls_bytes_and_sizes);
    tcase_add_test(off, latencies_switched_on_while_running);
    suite_add_tcase(s, off);
    tcase_add_checked_fixture(on, setup_latency, bench_teardown);
    tcase_add_test(on, latencies_when_asked_for);
    suite_add_tcase(s, on);
    return s;
}

#include "base/test-main.h"
