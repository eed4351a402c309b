/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* debug/io-stats: what a brick has done: calls of each fop, bytes, sizes, and on request latencies (spec:
 * brick 10.7).
 *
 * Right below protocol/server, so it sees each client's operation once, with the time it spent parked. Its
 * volume name is the brick's. It takes no lock on the data path: counters are kept in stripes, one
 * cache-line-padded set for a few threads each, and added up when somebody asks. Counting calls and bytes is
 * always on (one uncontended add); the clock is read only while latency-measurement is on, and only then, or
 * for reads, whose size the reply tells, there is a frame.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log/dump.h"
#include "log/log.h"
#include "stack/xlator.h"

enum { STRIPES_MAX = 16, SIZE_CLASSES = 32 /* [2^i, 2^(i+1)) bytes */ };

struct ios_conf {
    bool latency_measurement, count_fop_hits;
    char *log_level;
};

typedef _Atomic uint64_t counter;

struct stripe {
    _Alignas(64) counter hits[FOP_COUNT];
    counter bytes_read, bytes_written;
    counter reads[SIZE_CLASSES], writes[SIZE_CLASSES];
};

/* Nanoseconds. */
struct latency {
    counter calls, sum, min, max; /* min: 0 before the first call */
};

struct latency_stripe {
    _Alignas(64) struct latency fops[FOP_COUNT];
};

/* xl->private */
struct ios {
    unsigned stripes;
    time_t since;
    struct stripe *counters;
    _Atomic(struct latency_stripe *) latencies; /* made when latency-measurement is first on; NULL before */
};

/* -- counting ----------------------------------------------------------------------------------------- */

/* Threads take the stripes in turn. Two that share one still count right, only not as fast. */
static unsigned
stripe_of_thread(const struct ios *ios)
{
    static atomic_uint threads;
    static _Thread_local unsigned mine;

    if (!mine)
        mine = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return mine % ios->stripes;
}

static inline void
count(counter *c, uint64_t by)
{
    atomic_fetch_add_explicit(c, by, memory_order_relaxed);
}

static unsigned
size_class(size_t bytes)
{
    unsigned c = bytes ? 63u - (unsigned)__builtin_clzll(bytes) : 0;

    return c < SIZE_CLASSES ? c : SIZE_CLASSES - 1;
}

static void
count_latency(struct latency *l, uint64_t ns)
{
    uint64_t seen = atomic_load_explicit(&l->max, memory_order_relaxed);

    count(&l->calls, 1);
    count(&l->sum, ns);
    while (ns > seen && !atomic_compare_exchange_weak_explicit(&l->max, &seen, ns, memory_order_relaxed,
                                                               memory_order_relaxed))
        ;
    seen = atomic_load_explicit(&l->min, memory_order_relaxed);
    while ((seen == 0 || ns < seen) && !atomic_compare_exchange_weak_explicit(
                                           &l->min, &seen, ns, memory_order_relaxed, memory_order_relaxed))
        ;
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* f->local.u64[0]: when it began; 0: nobody wants to know. */
static int
ios_replied(struct frame *f, struct call_stack *stk)
{
    struct ios *ios = f->xl->private;
    unsigned i = stripe_of_thread(ios);
    uint64_t began = f->local.u64[0];
    struct latency_stripe *latencies = atomic_load_explicit(&ios->latencies, memory_order_acquire);

    if (stk->call.fop == FOP_readv && stk->reply.op_ret > 0) {
        count(&ios->counters[i].bytes_read, (uint64_t)stk->reply.op_ret);
        count(&ios->counters[i].reads[size_class((size_t)stk->reply.op_ret)], 1);
    }
    if (began && latencies)
        count_latency(&latencies[i].fops[stk->call.fop], now_ns() - began);
    return XL_PASS;
}

static int
ios_any(struct xlator *xl, struct call_stack *stk)
{
    const struct ios_conf *conf = xlator_conf(xl);
    struct ios *ios = xl->private;
    struct stripe *s = &ios->counters[stripe_of_thread(ios)];
    enum fop fop = stk->call.fop;
    struct frame *f;

    count(&s->hits[fop], 1);
    if (fop == FOP_writev) {
        count(&s->bytes_written, stk->call.payload_bytes);
        count(&s->writes[size_class(stk->call.payload_bytes)], 1);
    }
    if (!conf->latency_measurement && fop != FOP_readv)
        return XL_PASS;
    f = frame_push(stk, xl, ios_replied);
    if (!f)
        return -ENOMEM;
    f->local.u64[0] = conf->latency_measurement ? now_ns() : 0;
    return XL_PASS;
}

/* -- life --------------------------------------------------------------------------------------------- */

static void *
alloc_zeroed(size_t alignment, size_t bytes)
{
    void *p = aligned_alloc(alignment, bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

static int
make_latencies(struct ios *ios)
{
    struct latency_stripe *fresh;

    if (atomic_load(&ios->latencies))
        return 0;
    fresh = alloc_zeroed(_Alignof(struct latency_stripe), ios->stripes * sizeof *fresh);
    if (!fresh)
        return -ENOMEM;
    atomic_store_explicit(&ios->latencies, fresh, memory_order_release);
    return 0;
}

static int
ios_init(struct xlator *xl)
{
    const struct ios_conf *conf = xlator_conf(xl);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct ios *ios = calloc(1, sizeof *ios);

    if (!ios)
        return -ENOMEM;
    ios->stripes = cores < 1 ? 1 : cores < STRIPES_MAX ? (unsigned)cores : STRIPES_MAX;
    ios->since = time(NULL);
    ios->counters = alloc_zeroed(_Alignof(struct stripe), ios->stripes * sizeof *ios->counters);
    if (!ios->counters || (conf->latency_measurement && make_latencies(ios))) {
        free(ios->counters);
        free(ios);
        return -ENOMEM;
    }
    xl->private = ios;
    return 0;
}

static void
ios_fini(struct xlator *xl)
{
    struct ios *ios = xl->private;

    free(atomic_load(&ios->latencies));
    free(ios->counters);
    free(ios);
}

/* The log level is the process's, whichever brick's volfile changes it. At start the command line decides. */
static void
change_log_level(struct xlator *xl, const struct ios_conf *old, const struct ios_conf *new)
{
    enum log_level level;

    if (!new->log_level || (old->log_level && strcmp(old->log_level, new->log_level) == 0))
        return;
    if (log_level_parse(new->log_level, &level))
        log_event(LOG_WARNING, xl, "io-stats-log-level", "%s is no log level, left as it was",
                  new->log_level);
    else
        log_set_level(level);
}

static void
ios_reconfigured(struct xlator *xl, const void *old)
{
    const struct ios_conf *conf = xlator_conf(xl);

    change_log_level(xl, old, conf);
    if (conf->latency_measurement && make_latencies(xl->private))
        log_event(LOG_ERROR, xl, "io-stats-no-memory", "no memory for latencies: they are not kept");
}

/* -- telling ------------------------------------------------------------------------------------------ */

static uint64_t
total(const struct ios *ios, size_t offset)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < ios->stripes; i++)
        n += atomic_load_explicit((counter *)(void *)((char *)&ios->counters[i] + offset),
                                  memory_order_relaxed);
    return n;
}

#define TOTAL(ios, member) total(ios, offsetof(struct stripe, member))

static void
dump_latency(const struct ios *ios, enum fop fop, struct dump *dump)
{
    const struct latency_stripe *latencies =
        atomic_load_explicit(&((struct ios *)ios)->latencies, memory_order_acquire);
    uint64_t calls = 0, sum = 0, min = 0, max = 0;
    char key[64];

    for (unsigned i = 0; latencies && i < ios->stripes; i++) {
        struct latency *l = (struct latency *)&latencies[i].fops[fop];
        uint64_t low = atomic_load_explicit(&l->min, memory_order_relaxed);
        uint64_t high = atomic_load_explicit(&l->max, memory_order_relaxed);

        calls += atomic_load_explicit(&l->calls, memory_order_relaxed);
        sum += atomic_load_explicit(&l->sum, memory_order_relaxed);
        min = low && (!min || low < min) ? low : min;
        max = high > max ? high : max;
    }
    if (!calls)
        return;
    snprintf(key, sizeof key, "%s.latency_ns", fop_info[fop].name);
    dump_line(dump, key, "calls %" PRIu64 " average %" PRIu64 " min %" PRIu64 " max %" PRIu64, calls,
              sum / calls, min, max);
}

static void
dump_sizes(const struct ios *ios, const char *what, size_t offset, struct dump *dump)
{
    for (unsigned c = 0; c < SIZE_CLASSES; c++) {
        uint64_t n = total(ios, offset + c * sizeof(counter));
        char key[64];

        if (!n)
            continue;
        snprintf(key, sizeof key, "%s-%" PRIu64, what, UINT64_C(1) << c);
        dump_line(dump, key, "%" PRIu64, n);
    }
}

static void
ios_dump(struct xlator *xl, struct dump *dump)
{
    const struct ios *ios = xl->private;

    dump_line(dump, "duration", "%lld", (long long)(time(NULL) - ios->since));
    dump_line(dump, "total-read", "%" PRIu64, TOTAL(ios, bytes_read));
    dump_line(dump, "total-write", "%" PRIu64, TOTAL(ios, bytes_written));
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        uint64_t hits = total(ios, offsetof(struct stripe, hits) + fop * sizeof(counter));
        char key[64];

        if (!hits)
            continue;
        snprintf(key, sizeof key, "%s.hits", fop_info[fop].name);
        dump_line(dump, key, "%" PRIu64, hits);
        dump_latency(ios, fop, dump);
    }
    dump_sizes(ios, "read", offsetof(struct stripe, reads), dump);
    dump_sizes(ios, "write", offsetof(struct stripe, writes), dump);
}

static const struct option ios_options[] = {
    OPT_BOOL(struct ios_conf, latency_measurement, "latency-measurement", "off"),
    OPT_BOOL(struct ios_conf, count_fop_hits, "count-fop-hits",
             "off"), /* what a profile shows; they are always counted */
    OPT_STR(struct ios_conf, log_level, "log-level", NULL),
    OPT_IGNORED("unique-id"), /* the volume's name says it too */
    OPT_IGNORED("volume-id"), /* read by the graph */
    OPT_IGNORED("threads"),   /* workers are the process's */
    OPT_IGNORED("global-threading"),
    OPT_IGNORED("brick-threads"),
    OPT_IGNORED("dump-fd-stats"), /* needs per-file lists, which are not kept */
    OPT_IGNORED("sys-log-level"), /* no syslog */
    OPT_IGNORED("logger"),
    OPT_IGNORED("log-format"),
    OPT_IGNORED("log-buf-size"), /* lines are written at once */
    OPT_IGNORED("log-flush-timeout"),
    OPT_IGNORED("ios-dump-interval"), /* dumps to a file by time: statedump has the figures */
    OPT_IGNORED("ios-dump-format"),
    OPT_IGNORED("ios-sample-interval"),
    OPT_IGNORED("ios-sample-buf-size"),
    OPT_IGNORED("ios-dnscache-ttl-sec"),
    OPT_END,
};

const struct xlator_type debug_io_stats_xlator;
const struct xlator_type debug_io_stats_xlator = {
    .name = "debug/io-stats",
    .options = ios_options,
    .conf_size = sizeof(struct ios_conf),
    .ops = &(const struct xlator_ops){.any = ios_any},
    .init = ios_init,
    .fini = ios_fini,
    .reconfigured = ios_reconfigured,
    .dump = ios_dump,
};
