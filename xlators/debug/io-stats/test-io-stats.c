/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The figures of io-stats, seen in its statedump. */
#include "xlators/features/test-layers.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/histogram.h"
#include "base/ticks.h"
#include "log/dump.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

extern const struct xlator_type debug_io_stats_xlator;

static xl_verdict
answer(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret =
        stk->call.fop == FOP_readv || stk->call.fop == FOP_writev ? (int32_t)stk->call.size : 0;
    if (stk->call.fop == FOP_open)
        stk->reply.fd = fd_new(stk->call.loc.inode, NULL, O_RDWR, false);
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
setup_without_histograms(void)
{
    bench_setup(&debug_io_stats_xlator, (const char *const[]){"latency-histograms", "off", NULL}, answer);
}

static void
run(enum fop fop, size_t size, int times)
{
    for (int i = 0; i < times; i++) {
        struct bench_call *call = bench_call(fop, NULL);

        call->stk->call.size = call->stk->call.payload_bytes = size;
        ck_assert_int_eq(bench_run(call), fop == FOP_readv || fop == FOP_writev ? (int)size : 0);
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

START_TEST(calls_bytes_and_sizes_are_counted)
{
    run(FOP_lookup, 0, 7);
    run(FOP_writev, 4096, 3);
    run(FOP_writev, 1, 1);
    run(FOP_readv, 5000, 2);
    run(FOP_readv, 0, 1);
    char *out = dumped();
    expect(out, "lookup.hits=7\n");
    expect(out, "writev.hits=4\n");
    expect(out, "readv.hits=3\n");
    expect(out, "total-write=12289\n");
    expect(out, "total-read=10000\n");
    expect(out, "write-4096=3\n");
    expect(out, "write-1=1\n");
    expect(out, "read-4096=2\n");
    ck_assert_ptr_null(strstr(out, "latency"));
    ck_assert_ptr_null(strstr(out, "mkdir"));
    free(out);
}
END_TEST

START_TEST(latency_bounds_when_measured)
{
    run(FOP_lookup, 0, 5);
    char *out = dumped();
    expect(out, "lookup.hits=5\n");
    expect(out, "lookup.latency_ns=calls 5 average ");
    free(out);
}
END_TEST

/* latency-measurement (0) or count-fop-hits (1): the first members of conf. */
static void
switch_on(int which)
{
    bool *conf = bench_xl->conf, before[64];

    memcpy(before, conf, debug_io_stats_xlator.conf_size);
    conf[which] = true;
    debug_io_stats_xlator.reconfigured(bench_xl, before);
}

START_TEST(latencies_are_counted_from_the_switch_on)
{
    run(FOP_stat, 0, 2);
    switch_on(0);
    run(FOP_stat, 0, 3);
    char *out = dumped();
    expect(out, "stat.hits=5\n");
    expect(out, "stat.latency_ns=calls 3 average ");
    free(out);
}
END_TEST

/* ---- the slowest calls ----------------------------------------------------------------------- */

static const uint64_t millisecond = 1000000;

/* Runs a call that its worker held this long before the brick, and that waited this long for locks. */
static void
run_slow(enum fop fop, unsigned worker_ms, unsigned locks_ms)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->ends_for = bench_xl; /* keeps the layer from setting `began` */
    call->stk->began = ticks_now() - ticks_of_ns(locks_ms * millisecond);
    call->stk->arrived = call->stk->began - ticks_of_ns(worker_ms * millisecond);
    call->stk->waited[WAIT_LOCKS] = ticks_of_ns(locks_ms * millisecond);
    ck_assert_int_eq(bench_run(call), 0);
}

START_TEST(slow_calls_are_kept_with_their_stages)
{
    struct io_stats_slow all[IO_STATS_SLOW_MAX];

    ticks_start();
    ck_assert_uint_eq(io_stats_slowest(bench_xl, all), 0);
    run_slow(FOP_stat, 5, 3000);
    run_slow(FOP_lookup, 9000, 0);
    ck_assert_uint_eq(io_stats_slowest(bench_xl, all), 2);
    ck_assert_int_eq(all[0].fop, FOP_lookup);
    ck_assert_int_eq(all[1].fop, FOP_stat);
    ck_assert_uint_ge(all[0].total_ns, 8999 * millisecond);
    ck_assert_uint_ge(all[1].stage_ns[STAGE_LOCKS], 2999 * millisecond);
    ck_assert_uint_le(all[1].stage_ns[STAGE_LOCKS], 3001 * millisecond);
    for (int i = 0; i < 2; i++) {
        uint64_t sum = 0;

        for (int k = 0; k < STAGES; k++)
            sum += all[i].stage_ns[k];
        ck_assert_uint_le(all[i].total_ns - sum, STAGES); /* rounded */
        ck_assert(!all[i].is_sent);                       /* no connection reports here */
    }
    char *out = dumped();
    expect(out, "slow.0=fop=lookup total_us=");
    expect(out, "slow.1=fop=stat total_us=");
    free(out);
}
END_TEST

/* A client's id cannot forge further fields by any text. */
START_TEST(a_forged_id_stays_one_field)
{
    struct brick_client eve = {.uid = (char[]){"eve object=/etc\nslow.9=fop=stat,x"}};
    struct bench_call *call = bench_call(FOP_stat, NULL);

    ticks_start();
    call->stk->began = call->stk->arrived = ticks_now() - ticks_of_ns(5000 * millisecond);
    call->stk->client = &eve;
    ios_slow_look(bench_xl->private, call->stk, ticks_now());
    call->stk->client = NULL;
    bench_free(call);
    char *out = dumped();
    expect(out, " client=eve\\x20object\\x3d/etc\\x0aslow.9\\x3dfop\\x3dstat\\x2cx object=");
    free(out);
}
END_TEST

START_TEST(the_slowest_calls_are_kept)
{
    struct io_stats_slow all[IO_STATS_SLOW_MAX];

    ticks_start();
    for (unsigned i = 1; i <= 3 * IO_STATS_SLOW_MAX; i++) /* in no order */
        run_slow(FOP_stat, 10000 * (1 + i * 7 % (3 * IO_STATS_SLOW_MAX)), 0);
    ck_assert_uint_eq(io_stats_slowest(bench_xl, all), IO_STATS_SLOW_MAX);
    for (unsigned i = 0; i < IO_STATS_SLOW_MAX; i++)
        ck_assert_uint_eq((all[i].total_ns / millisecond + 5000) / 10000, 3 * IO_STATS_SLOW_MAX - i);
}
END_TEST

/* The list is full of slower calls that are too old. */
START_TEST(expired_calls_make_room)
{
    struct io_stats_slow all[IO_STATS_SLOW_MAX];
    struct ios *ios = bench_xl->private;
    struct bench_call *call = bench_call(FOP_stat, NULL);

    ticks_start();
    call->stk->began = call->stk->arrived = ticks_now() - ticks_of_ns(2000000 * millisecond);
    for (unsigned i = 0; i < IO_STATS_SLOW_MAX; i++)
        ios_slow_look(ios, call->stk, ticks_now() - ticks_of_ns(601000 * millisecond));
    run_slow(FOP_lookup, 1, 0);
    ck_assert_uint_eq(io_stats_slowest(bench_xl, all), 1);
    ck_assert_int_eq(all[0].fop, FOP_lookup);
    call->stk->began = 0;
    ck_assert_int_eq(bench_run(call), 0);
}
END_TEST

/* ---- histograms ------------------------------------------------------------------------------ */

START_TEST(durations_are_counted_for_each_fop)
{
    static struct histogram h, none;

    run(FOP_lookup, 0, 7);
    run(FOP_writev, 4096, 3);
    io_stats_gather();
    ck_assert(io_stats_latencies(bench_xl, FOP_lookup, &h));
    ck_assert_uint_eq(h.count, 7);
    ck_assert_uint_gt(h.sum, 0);
    ck_assert(io_stats_latencies(bench_xl, FOP_writev, &h)); /* is added */
    ck_assert_uint_eq(h.count, 10);
    ck_assert(!io_stats_latencies(bench_xl, FOP_mkdir, &none));
    ck_assert_uint_eq(none.count, 0);

    struct io_stats_counts counts;
    io_stats_counts(bench_xl, &counts);
    ck_assert_uint_eq(counts.calls[FOP_lookup], 7);
    ck_assert_uint_eq(counts.calls[FOP_mkdir], 0);
    ck_assert_uint_eq(counts.bytes_written, 3 * 4096);
}
END_TEST

START_TEST(histograms_can_be_off)
{
    static struct histogram h;

    run(FOP_lookup, 0, 7);
    io_stats_gather();
    ck_assert(!io_stats_latencies(bench_xl, FOP_lookup, &h));
}
END_TEST

/* CALLS is not a multiple of a ring's size, because the calls left in a ring when its thread ends must count
 * too. The counters of an octave exceed 2^16 at least once. */
enum { COUNTERS = 4, CALLS = 600001 };

static uint64_t
ticks_of(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << 32) / ticks_scale.ns_per_tick);
}

static uint64_t
octave_count(const struct histogram *h, unsigned octave)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < HISTOGRAM_SUB; i++)
        n += h->buckets[octave * HISTOGRAM_SUB + i];
    return n;
}

static void *
count_many(void *arg)
{
    struct ios *ios = bench_xl->private;

    (void)arg;
    for (unsigned i = 0; i < CALLS; i++)
        ios_latency_note(ios, FOP_stat, ticks_of(UINT64_C(200) << (i * 7 % 30)));
    return NULL;
}

START_TEST(no_call_of_many_threads_is_lost)
{
    static struct histogram h;
    pthread_t threads[COUNTERS];
    uint64_t before = 0;

    for (unsigned i = 0; i < COUNTERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_many, NULL), 0);
    while (before < COUNTERS * CALLS / 2) {
        h = (struct histogram){0};
        io_stats_gather();
        io_stats_latencies(bench_xl, FOP_stat, &h);
        ck_assert_uint_ge(h.count, before); /* only grows */
        before = h.count;
    }
    for (unsigned i = 0; i < COUNTERS; i++)
        pthread_join(threads[i], NULL);
    h = (struct histogram){0};
    io_stats_gather();
    ck_assert(io_stats_latencies(bench_xl, FOP_stat, &h));
    ck_assert_uint_eq(h.count, COUNTERS * CALLS);
    for (unsigned octave = 0; octave < 30; octave++) {
        /* the last call of each thread is of octave 0, like the first */
        ck_assert_uint_eq(octave_count(&h, octave), COUNTERS * (CALLS / 30 + (octave == 0)));
    }
}
END_TEST

/* Each call counts in its exact bucket, however few calls an octave has: with octaves of 1 to 100,000 calls,
 * read again and again. */
START_TEST(buckets_are_exact)
{
    static struct histogram is, expected;
    struct ios *ios = bench_xl->private;
    unsigned seed = 1;

    for (unsigned i = 0; i < 200000; i++) {
        unsigned octave = 5 + !(i % 2) + (i % 1000 ? 0 : (i / 1000 * 7 + 11) % 24);
        uint64_t least = UINT64_C(200) << octave, ticks = ticks_of(least + (uint64_t)rand_r(&seed) % least);

        ios_latency_note(ios, FOP_stat, ticks);
        expected.sum += ticks_to_ns((int64_t)ticks);
        histogram_put(&expected, histogram_bucket(ticks_to_ns((int64_t)ticks)), 1);
        if (i % 997 && i != 199999)
            continue;
        is = (struct histogram){0};
        io_stats_gather();
        ck_assert(io_stats_latencies(bench_xl, FOP_stat, &is));
        ck_assert_mem_eq(&is, &expected, sizeof is);
    }
}
END_TEST

/* ---- profile and top ------------------------------------------------------------------------- */

static struct arena answers;

/* `input`: key, number, ..., NULL. The answer lasts until the test ends. */
static struct dict *
ask(const char *const *input)
{
    struct dict *in = dict_new(&answers), *out = dict_new(&answers);

    for (; input[0]; input += 2)
        ck_assert_int_eq(dict_set_text(in, input[0], DICT_STR, input[1], (uint32_t)strlen(input[1]) + 1), 0);
    read_section_begin();
    ck_assert_int_eq(io_stats_info(bench_xl, in, out), 0);
    read_section_end();
    return out;
}

#define ASK(...) ask((const char *const[]){__VA_ARGS__, NULL})

static int64_t
number(const struct dict *d, const char *key)
{
    const struct dict_pair *p = dict_find_text(d, key);
    int64_t value = -99;

    if (p)
        ck_assert_int_eq(dict_pair_int(p, &value), 0);
    return value;
}

static const char *
text(const struct dict *d, const char *key)
{
    const struct dict_pair *p = dict_find_text(d, key);

    return p ? dict_pair_str(p) : "";
}

START_TEST(a_profile_counts_from_its_start)
{
    run(FOP_lookup, 0, 5);
    switch_on(1);
    run(FOP_lookup, 0, 2);
    run(FOP_writev, 4096, 3);
    const struct dict *d = ASK("op", "3", "info-op", "3");
    ck_assert_int_eq(number(d, "info-op"), 3);
    ck_assert_int_eq(number(d, "cumulative"), -1);
    ck_assert_int_eq(number(d, "-1-27-hits"), 2); /* 27: LOOKUP, 13: WRITE */
    ck_assert_int_eq(number(d, "-1-13-hits"), 3);
    ck_assert_int_eq(number(d, "-1-total-write"), 12288);
    ck_assert_int_eq(number(d, "-1-write-4096"), 3);
    ck_assert_int_eq(number(d, "-1-total-read"), 0);
    ck_assert_int_ge(number(d, "-1-duration"), 0);
    ck_assert_int_eq(number(d, "interval"), -99);
    ck_assert_int_eq(number(d, "-1-14-hits"), -99);
    arena_release(&answers);
}
END_TEST

START_TEST(intervals_end_when_they_are_read)
{
    switch_on(1);
    run(FOP_lookup, 0, 2);
    ck_assert_int_eq(number(ASK("op", "3", "info-op", "2", "peek", "1"), "0-27-hits"), 2);
    run(FOP_lookup, 0, 1);
    ck_assert_int_eq(number(ASK("op", "3", "info-op", "2", "peek", "0"), "0-27-hits"), 3);
    run(FOP_lookup, 0, 4);
    const struct dict *d = ASK("op", "3", "info-op", "1");
    ck_assert_int_eq(number(d, "interval"), 1);
    ck_assert_int_eq(number(d, "1-27-hits"), 4);
    ck_assert_int_eq(number(d, "-1-27-hits"), 7);
    d = ASK("op", "3", "info-op", "4");
    ck_assert_int_eq(number(d, "stats-cleared"), 1);
    d = ASK("op", "3", "info-op", "1");
    ck_assert_int_eq(number(d, "interval"), 0);
    ck_assert_int_eq(number(d, "-1-27-hits"), -99);
    arena_release(&answers);
}
END_TEST

START_TEST(a_profile_has_the_latencies_of_its_interval)
{
    run(FOP_lookup, 0, 5);
    const struct dict *d = ASK("op", "3", "info-op", "1");
    double least = strtod(text(d, "-1-27-minlatency"), NULL),
           most = strtod(text(d, "-1-27-maxlatency"), NULL);
    double average = strtod(text(d, "-1-27-avglatency"), NULL);
    ck_assert(least > 0 && least <= average && average <= most);
    ck_assert_str_eq(text(d, "0-27-avglatency"), text(d, "-1-27-avglatency"));
    d = ASK("op", "3", "info-op", "1");
    ck_assert_str_eq(text(d, "1-27-avglatency"), "");
    arena_release(&answers);
}
END_TEST

static void
use(enum fop fop, struct inode *inode, int times)
{
    for (int i = 0; i < times; i++) {
        struct bench_call *call = bench_call(fop, NULL);

        call->stk->call.loc.inode = inode_ref(inode);
        call->stk->call.size = call->stk->call.payload_bytes = 1 << 20;
        ck_assert_int_ge(bench_run(call), 0);
    }
}

START_TEST(the_most_used_files_are_listed_first)
{
    struct inode *a = bench_inode("a", 1, S_IFREG), *b = bench_inode("b", 2, S_IFREG),
                 *c = bench_inode("c", 3, S_IFREG);

    use(FOP_writev, a, 2);
    use(FOP_writev, b, 7);
    use(FOP_writev, c, 5);
    use(FOP_open, c, 3);
    const struct dict *d = ASK("op", "4", "top-op", "3", "list-cnt", "2");
    ck_assert_int_eq(number(d, "top-op"), 3);
    ck_assert_int_eq(number(d, "members"), 2);
    ck_assert_str_eq(text(d, "filename-1"), "/b");
    ck_assert_int_eq(number(d, "value-1"), 7);
    ck_assert_str_eq(text(d, "filename-2"), "/c");
    ck_assert_int_eq(number(d, "value-2"), 5);
    d = ASK("op", "4", "top-op", "1");
    ck_assert_int_eq(number(d, "members"), 1);
    ck_assert_int_eq(number(d, "value-1"), 3);
    ck_assert_int_eq(number(d, "current-open"), 0);
    ck_assert_int_eq(number(d, "max-open"), 1);
    ck_assert_str_ne(text(d, "max-openfd-time"), "N/A");
    d = ASK("op", "4", "top-op", "0", "clear-stats", "1");
    ck_assert_int_eq(number(d, "top-op"), 0);
    ck_assert_int_eq(number(d, "stats-cleared"), 1);
    ck_assert_int_eq(number(ASK("op", "4", "top-op", "3"), "members"), 0);
    d = ASK("op", "4", "top-op", "1");
    ck_assert_int_eq(number(d, "max-open"), 0);
    ck_assert_str_eq(text(d, "max-openfd-time"), "N/A");
    d = ASK("op", "3", "info-op", "3");
    ck_assert_int_eq(number(d, "-1-42-hits"), 3); /* RELEASE */
    ck_assert_int_eq(number(d, "-1-43-hits"), -99);
    arena_release(&answers);
    inode_unref(a);
    inode_unref(b);
    inode_unref(c);
}
END_TEST

START_TEST(the_files_with_the_best_throughput_are_listed)
{
    struct inode *a = bench_inode("a", 1, S_IFREG);

    use(FOP_writev, a, 3);
    use(FOP_readv, a, 3);
    for (const char *const *op = (const char *const[]){"6", "7", NULL}; *op; op++) {
        const struct dict *d = ASK("op", "4", "top-op", *op);
        ck_assert_int_eq(number(d, "members"), 1);
        ck_assert_str_eq(text(d, "filename-1"), "/a");
        ck_assert_int_gt(number(d, "value-1"), 0);
        ck_assert_int_le(llabs(number(d, "time-sec-1") - time(NULL)), 60);
        ck_assert_int_lt(number(d, "time-usec-1"), 1000000);
    }
    arena_release(&answers);
    inode_unref(a);
}
END_TEST

/* A test of the disk, in a folder that stands in for the brick's. */
static const struct dict *
measure(const char *top_op, const char *block, const char *count)
{
    const char *const input[] = {"op", "4", "top-op", top_op, "blk-size", block, "blk-cnt", count, NULL};
    struct dict *in = dict_new(&answers), *out = dict_new(&answers);

    for (size_t i = 0; input[i]; i += 2)
        ck_assert_int_eq(
            dict_set_text(in, input[i], DICT_STR, input[i + 1], (uint32_t)strlen(input[i + 1]) + 1), 0);
    if (!io_stats_wants_throughput(bench_xl, in))
        return NULL;
    ck_assert_int_eq(io_stats_throughput(bench_xl, in, out), 0);
    return out;
}

START_TEST(the_disk_is_measured)
{
    char dir[] = "/tmp/kiln-io-stats-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(dir));
    bench_graph.name = dir;
    for (const char *const *op = (const char *const[]){"6", "7", NULL}; *op; op++) {
        /* blocks that are not a whole number of chunks */
        const struct dict *d = measure(*op, "3000000", "2");
        ck_assert(strtod(text(d, "throughput"), NULL) > 0);
        ck_assert(strtod(text(d, "time"), NULL) > 0);
        /* bytes per microsecond: all requested bytes */
        ck_assert(fabs(strtod(text(d, "throughput"), NULL) * strtod(text(d, "time"), NULL) - 6e6) < 6e4);
    }
    ck_assert_int_eq(rmdir(dir), 0); /* the test left nothing in it */
    arena_release(&answers);
}
END_TEST

START_TEST(only_valid_throughput_tests_run)
{
    bench_graph.name = (char *)"/nowhere";
    ck_assert_ptr_null(dict_find_text(measure("7", "4096", "2"), "throughput")); /* logged, but no error */
    ck_assert_ptr_null(measure("3", "4096", "2"));
    ck_assert_ptr_null(measure("7", "0", "2"));
    ck_assert_ptr_null(measure("7", "-1", "2"));
    ck_assert_ptr_null(measure("7", "4096", "0"));
    ck_assert_ptr_null(measure("7", "1073741825", "10"));
    ck_assert_ptr_null(measure("7", "9223372036854775807", "9223372036854775807"));
    arena_release(&answers);
}
END_TEST

START_TEST(other_operations_are_refused)
{
    struct dict *in = dict_new(&answers);

    ck_assert_int_eq(io_stats_info(bench_xl, in, dict_new(&answers)), -EINVAL);
    arena_release(&answers);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("io-stats");
    TCase *off = tcase_create("off"), *on = tcase_create("on"), *without = tcase_create("without");

    tcase_add_checked_fixture(off, setup, bench_teardown);
    tcase_add_test(off, calls_bytes_and_sizes_are_counted);
    tcase_add_test(off, latencies_are_counted_from_the_switch_on);
    tcase_add_test(off, slow_calls_are_kept_with_their_stages);
    tcase_add_test(off, a_forged_id_stays_one_field);
    tcase_add_test(off, the_slowest_calls_are_kept);
    tcase_add_test(off, expired_calls_make_room);
    tcase_add_test(off, a_profile_counts_from_its_start);
    tcase_add_test(off, intervals_end_when_they_are_read);
    tcase_add_test(off, the_most_used_files_are_listed_first);
    tcase_add_test(off, other_operations_are_refused);
    tcase_add_test(off, durations_are_counted_for_each_fop);
    tcase_add_test(off, no_call_of_many_threads_is_lost);
    tcase_add_test(off, buckets_are_exact);
    suite_add_tcase(s, off);
    tcase_add_checked_fixture(on, setup_latency, bench_teardown);
    tcase_add_test(on, latency_bounds_when_measured);
    tcase_add_test(on, a_profile_has_the_latencies_of_its_interval);
    tcase_add_test(on, the_files_with_the_best_throughput_are_listed);
    tcase_add_test(off, the_disk_is_measured);
    tcase_add_test(off, only_valid_throughput_tests_run);
    suite_add_tcase(s, on);
    tcase_add_checked_fixture(without, setup_without_histograms, bench_teardown);
    tcase_add_test(without, histograms_can_be_off);
    suite_add_tcase(s, without);
    return s;
}

#include "base/test-main.h"
