/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* debug/io-stats: counts the work of a brick: calls of each fop, bytes, sizes, durations (spec: brick 10.7).
 *
 * The layer sits right below protocol/server, so it sees each client's operation once, including the time in
 * which the operation was parked. Its volume name is the brick's. It takes no lock on the data path: counters
 * are kept in stripes, one cache-line-padded set for a few threads each, which are added up on reading;
 * durations are recorded as latency.c describes. Calls, bytes and durations (latency-histograms) are always
 * counted. latency-measurement, which a profile switches on, also keeps the minimum and maximum of each
 * window. The slowest calls are kept individually, with the durations of their stages: slow.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ticks.h"
#include "event/charge.h"
#include "event/timer.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* Threads take the stripes in turn. Two threads that share a stripe still count correctly, only more slowly.
 */
static inline unsigned
stripe_of_thread(const struct ios *ios)
{
    static atomic_uint threads;
    static _Thread_local unsigned mine;

    if (!mine)
        mine = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return mine & (ios->stripes - 1);
}

static inline void
counter_add(counter *c, uint64_t by)
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
count_bounds(struct latency *l, enum ios_window window, uint64_t ns)
{
    uint64_t seen = atomic_load_explicit(&l->max[window], memory_order_relaxed);

    while (ns > seen && !atomic_compare_exchange_weak_explicit(&l->max[window], &seen, ns,
                                                               memory_order_relaxed, memory_order_relaxed))
        ;
    seen = atomic_load_explicit(&l->min[window], memory_order_relaxed);
    while ((seen == 0 || ns < seen) &&
           !atomic_compare_exchange_weak_explicit(&l->min[window], &seen, ns, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

static void
count_latency(struct latency *l, uint64_t ns)
{
    counter_add(&l->calls, 1);
    counter_add(&l->sum, ns);
    for (enum ios_window w = 0; w < WINDOWS; w++)
        count_bounds(l, w, ns);
}

static void
count_opened(struct ios *ios)
{
    long now = atomic_fetch_add_explicit(&ios->open_now, 1, memory_order_relaxed) + 1;
    long most = atomic_load_explicit(&ios->open_most, memory_order_relaxed);

    while (now > most) {
        if (atomic_compare_exchange_weak_explicit(&ios->open_most, &most, now, memory_order_relaxed,
                                                  memory_order_relaxed))
            atomic_store_explicit(&ios->open_most_at, time(NULL), memory_order_relaxed);
    }
}

/* Only counted fds have a context. */
static void
ios_fd_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    (void)xl;
    (void)fd;
    atomic_fetch_sub_explicit(&((struct ios *)ctx)->open_now, 1, memory_order_relaxed);
}

/* Runs however the fd was closed: by its client, or because the client has gone. */
static void
ios_fd_closed(struct xlator *xl, struct fd *fd)
{
    struct ios *ios = xl->private;

    if (!fd->is_anonymous)
        counter_add(&ios->counters[stripe_of_thread(ios)].releases[fd->is_dir ? RELEASE_DIR : RELEASE_FILE],
                    1);
}

/* Counts the figures of the reply: the bytes of a read, a newly opened file, the duration. */
static __attribute__((noinline)) void
note_reply(struct xlator *xl, struct call_stack *stk, uint64_t ns)
{
    struct ios *ios = xl->private;
    struct stripe *s = &ios->counters[stripe_of_thread(ios)];
    const struct fop_reply *reply = &stk->reply;

    switch (stk->call.fop) {
    case FOP_readv:
        if (reply->op_ret <= 0)
            break;
        counter_add(&s->bytes_read, (uint64_t)reply->op_ret);
        counter_add(&s->reads[size_class((size_t)reply->op_ret)], 1);
        ios_inode_rate(xl, stk->call.loc.inode, RATE_READ, (uint64_t)reply->op_ret, ns);
        break;
    case FOP_writev:
        if (reply->op_ret > 0)
            ios_inode_rate(xl, stk->call.loc.inode, RATE_WRITE, (uint64_t)reply->op_ret, ns);
        break;
    case FOP_open:
    case FOP_create:
        if (reply->op_ret < 0 || !reply->fd)
            break;
        count_opened(ios);
        fd_ctx_set(reply->fd, xl, ios);
        if (stk->call.fop == FOP_open) /* stock's `top open` does not count creates */
            ios_inode_count(xl, reply->fd->inode, COUNT_OPEN);
        break;
    default:
        break;
    }
}

/* True for fops whose reply has more figures than the duration. */
static inline bool
is_reply_noted(enum fop fop)
{
    return fop == FOP_readv || fop == FOP_open || fop == FOP_create;
}

static void
note_measured(struct ios *ios, enum fop fop, uint64_t ns)
{
    struct latency_stripe *latencies = atomic_load_explicit(&ios->latencies, memory_order_acquire);

    if (latencies)
        count_latency(&latencies[stripe_of_thread(ios)].fops[fop], ns);
}

/* A profile is running. */
static __attribute__((noinline)) void
call_ends_measured(struct xlator *xl, struct call_stack *stk, uint64_t ticks)
{
    uint64_t ns = ticks_to_ns(ticks);

    if (stk->began)
        note_measured(xl->private, stk->call.fop, ns);
    note_reply(xl, stk, ns);
}

/* stk->began: ticks; 0: the duration is not needed. */
static void
ios_call_ends(struct xlator *xl, struct call_stack *stk)
{
    const struct ios_conf *conf = xlator_conf(xl);
    struct ios *ios = xl->private;
    uint64_t now = stk->began ? ticks_now() : 0, ticks = now - stk->began;

    if (!worker_charge) /* the call began on another worker */
        worker_charge = &ios->counters[stripe_of_thread(ios)].cpu_ns;
    if (stk->began && conf->latency_histograms) {
        ios_latency_note(ios, stk->call.fop, ticks);
        ios_slow_note(ios, stk, now);
    }
    if (conf->latency_measurement)
        call_ends_measured(xl, stk, ticks);
    else if (is_reply_noted(stk->call.fop))
        note_reply(xl, stk, 0);
}

/* Counts the figures of the call. Returns true if the reply has further figures. */
static bool
note_call(struct xlator *xl, struct call_stack *stk)
{
    struct ios *ios = xl->private;
    struct stripe *s = &ios->counters[stripe_of_thread(ios)];
    const struct fop_call *call = &stk->call;

    worker_charge = &s->cpu_ns;
    counter_add(&s->hits[call->fop], 1);
    if (stk->caller.pid >= 0 && !atomic_load_explicit(&ios->is_used, memory_order_relaxed))
        atomic_store_explicit(&ios->is_used, true, memory_order_relaxed);
    switch (call->fop) {
    case FOP_writev:
        counter_add(&s->bytes_written, call->payload_bytes);
        counter_add(&s->writes[size_class(call->payload_bytes)], 1);
        ios_inode_count(xl, call->loc.inode, COUNT_WRITE);
        return false;
    case FOP_readv:
        ios_inode_count(xl, call->loc.inode, COUNT_READ);
        return true;
    case FOP_opendir:
        ios_inode_count(xl, call->loc.inode, COUNT_OPENDIR);
        return false;
    case FOP_readdirp: /* but no READDIR, which stock does not count */
        ios_inode_count(xl, call->loc.inode, COUNT_READDIR);
        return false;
    case FOP_open:
    case FOP_create:
        return true;
    default:
        return false;
    }
}

static xl_verdict
ios_any(struct xlator *xl, struct call_stack *stk)
{
    const struct ios_conf *conf = xlator_conf(xl);
    bool wants_time = conf->latency_measurement || conf->latency_histograms;
    bool wants_reply = note_call(xl, stk);

    if ((wants_time || wants_reply) && !stk->ends_for) {
        stk->ends_for = xl;
        stk->began = wants_time ? ticks_now() : 0;
    }
    return XL_PASS;
}

/* ---- life ------------------------------------------------------------------------------------ */

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

/* Sets the brick's own log level. INFO is the default, which glusterd writes into every volfile, so it means
 * the level of the process: the command line sets the level of all bricks that have no other level. */
static void
set_log_level(struct xlator *xl, const struct ios_conf *conf)
{
    enum log_level level = LOG_INFO;

    if (conf->log_level && log_level_parse(conf->log_level, &level))
        log_event(LOG_WARNING, xl, "io-stats-log-level",
                  "%s is no log level: the former level stays in force", conf->log_level);
    else
        log_set_group_level(&xl->graph->log, level != LOG_INFO, level);
}

static int
ios_init(struct xlator *xl, struct reason *why)
{
    const struct ios_conf *conf = xlator_conf(xl);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct ios *ios = alloc_zeroed(_Alignof(struct ios), sizeof *ios);

    (void)why;
    if (!ios)
        return -ENOMEM;
    for (ios->stripes = 1; ios->stripes < STRIPES_MAX && (long)ios->stripes < cores; ios->stripes *= 2)
        ;
    ios->counters = alloc_zeroed(_Alignof(struct stripe), ios->stripes * sizeof *ios->counters);
    int err = ios->counters ? ios_pools_init() : -ENOMEM;

    if (!err && conf->latency_measurement)
        err = make_latencies(ios);
    if (!err)
        err = ios_latency_init(ios);
    if (err) {
        free(atomic_load(&ios->latencies));
        free(ios->counters);
        free(ios);
        return err;
    }
    ios_slow_init(ios);
    pthread_mutex_init(&ios->lock, NULL);
    for (enum ios_window w = 0; w < WINDOWS; w++)
        ios->since[w].seconds = clock_mono_ns() / 1000000000;
    xl->private = ios;
    ios->xl = xl;
    ios_stats_file_init(ios);
    set_log_level(xl, conf);
    return 0;
}

static void
ios_fini(struct xlator *xl)
{
    struct ios *ios = xl->private;

    ios_stats_file_fini(ios);
    pthread_mutex_destroy(&ios->lock);
    ios_latency_fini(ios);
    ios_slow_fini(ios);
    free(atomic_load(&ios->latencies));
    free(ios->counters);
    free(ios);
}

/* A profile shows the calls since it was started. */
static void
begin_counting(struct ios *ios)
{
    struct figures now;

    ios_figures(ios, &now);
    pthread_mutex_lock(&ios->lock);
    for (enum ios_window w = 0; w < WINDOWS; w++) {
        memcpy(ios->since[w].hits, now.hits, sizeof now.hits);
        memcpy(ios->since[w].releases, now.releases, sizeof now.releases);
    }
    pthread_mutex_unlock(&ios->lock);
}

static void
ios_reconfigured(struct xlator *xl, const void *old)
{
    const struct ios_conf *before = old, *conf = xlator_conf(xl);

    set_log_level(xl, conf);
    if (conf->count_fop_hits && !before->count_fop_hits)
        begin_counting(xl->private);
    if (conf->latency_measurement && make_latencies(xl->private))
        log_event(LOG_ERROR, xl, "io-stats-no-memory", "no memory for latencies: they are not kept");
    if (conf->ios_dump_interval != before->ios_dump_interval ||
        conf->ios_dump_format != before->ios_dump_format)
        ios_stats_file_start(xl->private);
}

/* ---- adding up ------------------------------------------------------------------------------- */

static void
counters_sum(uint64_t *to, const counter *from, size_t counter_add)
{
    for (size_t i = 0; i < counter_add; i++)
        to[i] += atomic_load_explicit((counter *)&from[i], memory_order_relaxed);
}

void
ios_figures(struct ios *ios, struct figures *out)
{
    const struct latency_stripe *latencies = atomic_load_explicit(&ios->latencies, memory_order_acquire);

    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < ios->stripes; i++) {
        const struct stripe *s = &ios->counters[i];

        counters_sum(out->hits, s->hits, FOP_COUNT);
        counters_sum(out->releases, s->releases, RELEASES);
        counters_sum(&out->bytes_read, &s->bytes_read, 1);
        counters_sum(&out->bytes_written, &s->bytes_written, 1);
        counters_sum(&out->cpu_ns, &s->cpu_ns, 1);
        counters_sum(out->reads, s->reads, SIZE_CLASSES);
        counters_sum(out->writes, s->writes, SIZE_CLASSES);
        for (enum fop fop = FOP_null; latencies && fop < FOP_COUNT; fop++) {
            counters_sum(&out->calls[fop], &latencies[i].fops[fop].calls, 1);
            counters_sum(&out->sum[fop], &latencies[i].fops[fop].sum, 1);
        }
    }
    out->seconds = clock_mono_ns() / 1000000000;
}

void
io_stats_counts(struct xlator *xl, struct io_stats_counts *out)
{
    struct ios *ios = xl->private;

    *out = (struct io_stats_counts){.open = atomic_load_explicit(&ios->open_now, memory_order_relaxed),
                                    .is_used = atomic_load_explicit(&ios->is_used, memory_order_relaxed)};
    for (unsigned i = 0; i < ios->stripes; i++) {
        const struct stripe *s = &ios->counters[i];

        counters_sum(out->calls, s->hits, FOP_COUNT);
        counters_sum(&out->bytes_read, &s->bytes_read, 1);
        counters_sum(&out->bytes_written, &s->bytes_written, 1);
        counters_sum(&out->cpu_ns, &s->cpu_ns, 1);
    }
}

void
ios_latency_bounds(const struct ios *ios, enum fop fop, enum ios_window window, uint64_t *min, uint64_t *max)
{
    const struct latency_stripe *latencies =
        atomic_load_explicit(&((struct ios *)ios)->latencies, memory_order_acquire);

    *min = *max = 0;
    for (unsigned i = 0; latencies && i < ios->stripes; i++) {
        struct latency *l = (struct latency *)&latencies[i].fops[fop];
        uint64_t low = atomic_load_explicit(&l->min[window], memory_order_relaxed);
        uint64_t high = atomic_load_explicit(&l->max[window], memory_order_relaxed);

        *min = low && (!*min || low < *min) ? low : *min;
        *max = high > *max ? high : *max;
    }
}

void
ios_window_begin(struct ios *ios, enum ios_window window)
{
    struct latency_stripe *latencies = atomic_load_explicit(&ios->latencies, memory_order_acquire);

    ios_figures(ios, &ios->since[window]);
    for (unsigned i = 0; latencies && i < ios->stripes; i++) {
        for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
            atomic_store_explicit(&latencies[i].fops[fop].min[window], 0, memory_order_relaxed);
            atomic_store_explicit(&latencies[i].fops[fop].max[window], 0, memory_order_relaxed);
        }
    }
}

/* ---- reporting ------------------------------------------------------------------------------- */

int64_t
ios_input(const struct dict *input, const char *key, int64_t otherwise)
{
    const struct dict_pair *p = dict_find_text(input, key);
    int64_t value;

    return p && dict_pair_int(p, &value) == 0 ? value : otherwise;
}

int
io_stats_info(struct xlator *xl, const struct dict *input, struct dict *output)
{
    switch (ios_input(input, "op", 0)) {
    case IOS_OP_START: /* the options of the new volfile start and stop a profile */
    case IOS_OP_STOP:
        return 0;
    case IOS_OP_INFO:
        return ios_profile(xl, input, output);
    case IOS_OP_TOP:
        return ios_top(xl, input, output);
    default:
        return -EINVAL;
    }
}

static void
dump_latency(const struct ios *ios, const struct figures *now, enum fop fop, struct dump *dump)
{
    uint64_t min, max;
    char key[64];

    if (!now->calls[fop])
        return;
    ios_latency_bounds(ios, fop, WINDOW_CUMULATIVE, &min, &max);
    snprintf(key, sizeof key, "%s.latency_ns", fop_info[fop].name);
    dump_line(dump, key, "calls %" PRIu64 " average %" PRIu64 " min %" PRIu64 " max %" PRIu64,
              now->calls[fop], now->sum[fop] / now->calls[fop], min, max);
}

static void
dump_sizes(const uint64_t sizes[SIZE_CLASSES], const char *what, struct dump *dump)
{
    for (unsigned c = 0; c < SIZE_CLASSES; c++) {
        char key[64];

        if (!sizes[c])
            continue;
        snprintf(key, sizeof key, "%s-%" PRIu64, what, UINT64_C(1) << c);
        dump_line(dump, key, "%" PRIu64, sizes[c]);
    }
}

static void
ios_dump(struct xlator *xl, struct dump *dump)
{
    struct ios *ios = xl->private;
    struct figures now;

    ios_figures(ios, &now);
    pthread_mutex_lock(&ios->lock);
    uint64_t since = ios->since[WINDOW_CUMULATIVE].seconds;
    pthread_mutex_unlock(&ios->lock);
    dump_line(dump, "duration", "%" PRIu64, now.seconds - since);
    dump_line(dump, "total-read", "%" PRIu64, now.bytes_read);
    dump_line(dump, "total-write", "%" PRIu64, now.bytes_written);
    dump_line(dump, "cpu-ms", "%" PRIu64, now.cpu_ns / 1000000);
    dump_line(dump, "open", "%ld", atomic_load(&ios->open_now));
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        char key[64];

        if (!now.hits[fop])
            continue;
        snprintf(key, sizeof key, "%s.hits", fop_info[fop].name);
        dump_line(dump, key, "%" PRIu64, now.hits[fop]);
        dump_latency(ios, &now, fop, dump);
    }
    dump_sizes(now.reads, "read", dump);
    dump_sizes(now.writes, "write", dump);
    ios_slow_dump(xl, dump);
}

static const char *const dump_formats[] = {"json", "text", "dict", "samples", NULL}; /* IOS_FORMAT_* */

static const struct option ios_options[] = {
    OPT_BOOL(struct ios_conf, latency_measurement, "latency-measurement", "off"),
    OPT_BOOL(struct ios_conf, count_fop_hits, "count-fop-hits",
             "off"), /* only tells whether a profile is on; hits are always counted */
    OPT_BOOL(struct ios_conf, latency_histograms, "latency-histograms", "on"),
    OPT_STR(struct ios_conf, log_level, "log-level", NULL),
    OPT_IGNORED("unique-id"), /* the volume's name says it too */
    OPT_IGNORED("volume-id"), /* storage's option counts */
    OPT_IGNORED("threads"),   /* worker threads belong to the process */
    OPT_IGNORED("global-threading"),
    OPT_IGNORED("brick-threads"),
    OPT_IGNORED("dump-fd-stats"), /* would need per-file lists, which are not kept */
    OPT_IGNORED("sys-log-level"), /* no syslog */
    OPT_IGNORED("logger"),
    OPT_IGNORED("log-format"),
    OPT_IGNORED("log-buf-size"), /* lines are written at once */
    OPT_IGNORED("log-flush-timeout"),
    OPT_INT(struct ios_conf, ios_dump_interval, "ios-dump-interval", "0", 0, 3600),
    OPT_ENUM(struct ios_conf, ios_dump_format, "ios-dump-format", "json", dump_formats),
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
    .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD),
    .init = ios_init,
    .fini = ios_fini,
    .reconfigured = ios_reconfigured,
    .inode_forget = ios_inode_forget,
    .fd_release = ios_fd_release,
    .fd_closed = ios_fd_closed,
    .call_ends = ios_call_ends,
    .dump = ios_dump,
};
