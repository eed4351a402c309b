/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* GET /top[?ms=N][&slow=M]: the figures of `kiln top`: the rates of the following N milliseconds, without
 * N since kilnd's start, and the M slowest calls of all bricks (without M all kept calls). JSON, a brick a
 * line:
 *
 *     {"seconds", "resident_bytes", "cpu_percent", "threads",
 *      "machine": {"cpu_percent", "load_1min", "memory_available", "cpu_pressure", "memory_pressure",
 *      "io_pressure" (percent, or null)}, "pools": {"live", "hot", "cold", "bytes"},
 *      "bricks": [{"brick", "volume", "up", "ops", "p50_us", "p99_us", "read", "written" (a second), "queue",
 *      "open", "clients", "locks_held", "locks_waiting", "memory", "cpu_percent",
 *      "fops": [{"fop", "ops", "p50_us", "p99_us", "share"}],
 *      "client_list": [{"client", "peer", "received", "sent", "locks"}], "slow": [of the last ten minutes],
 *      "not_built": [{"layer", "option", "without"}, features that the volume asks for in vain]}]}
 *
 * A fop without calls in the period is left out. A new brick or client counts from its start.
 *
 * kilnd and not `kiln top` subtracts the samples, because the counts of two moments with all buckets of
 * all histograms, written as text, read again and subtracted there, took three quarters of the command's
 * time. */
#include "bricks/top-answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "bricks/brick-ops.h"
#include "bricks/figures.h"
#include "bricks/top-sample.h"
#include "daemon/http.h"
#include "event/timer.h"
#include "fs/brick-client.h"
#include "graph/graph.h"

enum { PERIOD_MS_MAX = 60000, DECIMALS = 3 };

/* ---- at the beginning ------------------------------------------------------------------------ */

static void
sample_fops(struct top_sample *s, const struct brick_figures *b, struct histogram *h)
{
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        if (!b->counts.calls[fop])
            continue;
        histogram_clear(h);
        (void)io_stats_latencies(b->stats, fop, h);
        top_sample_add_fop(s, fop, b->counts.calls[fop], h);
    }
}

static void
sample_clients(struct top_sample *s, struct graph *g)
{
    const struct brick_client *c;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link)
    {
        if (c->conn)
            top_sample_add_client(
                s, &(struct sample_client){c->id, conn_bytes_in(c->conn), conn_bytes_out(c->conn)});
    }
    pthread_mutex_unlock(&g->clients_lock);
}

static void
sample_bricks(struct top_sample *s, const struct figures *f, struct histogram *h)
{
    io_stats_gather();
    s->time_ns = clock_mono_ns();
    s->cpu_seconds = f->cpu_seconds;
    struct machine_figures m;
    figures_of_machine(&m);
    s->machine_cpu = m.cpu;
    for (unsigned n = 0; n < f->brick_count; n++) {
        const struct brick_figures *b = &f->bricks[n];
        struct sample_brick *to = top_sample_add_brick(s, b->graph->name);

        if (!to)
            return;
        to->bytes_read = b->counts.bytes_read;
        to->bytes_written = b->counts.bytes_written;
        to->cpu_ns = b->counts.cpu_ns;
        sample_fops(s, b, h);
        sample_clients(s, b->graph);
    }
}

/* False: no memory. */
static bool
read_sample(struct top_sample *s)
{
    struct figures *f = figures_take(false);
    struct histogram *h = calloc(1, sizeof *h);

    if (f && h)
        sample_bricks(s, f, h);
    s->is_short |= !f || !h;
    figures_free(f);
    free(h);
    return !s->is_short;
}

/* ---- at the end ------------------------------------------------------------------------------ */

struct fop_rates {
    enum fop fop;
    uint64_t calls, sum, quantiles[2];
};

struct top_work {
    const struct top_sample *before; /* NULL: the start */
    const struct figures *now;
    uint64_t period_ns;
    uint64_t slow_ns;              /* faster calls are left out */
    struct histogram h, all;       /* of one fop; of one brick */
    struct fop_rates fops[FOP_COUNT]; /* of one brick */
    struct io_stats_slow slow[IO_STATS_SLOW_MAX]; /* of one brick */
};

/* The increase of a count. A smaller count than before belongs to a brick or client that began anew. */
static uint64_t
grown(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

/* `value` with some decimals. */
static void
put_real(struct http_answer *a, const char *key, double value)
{
    http_put_text(a, key);
    http_put_number(a, (uint64_t)(value * 1000 + 0.5), DECIMALS);
}

static void
put_rate(struct http_answer *a, const char *key, uint64_t count, const struct top_work *w)
{
    put_real(a, key, (double)count * 1e9 / (double)w->period_ns);
}

static void
put_integer(struct http_answer *a, const char *key, uint64_t value)
{
    http_put_text(a, key);
    http_put_number(a, value, 0);
}

static void
put_microseconds(struct http_answer *a, const char *key, uint64_t ns)
{
    http_put_text(a, key);
    http_put_number(a, ns, DECIMALS);
}

static const double shares[2] = {0.5, 0.99};

/* Fills w->fops and w->all. The number of fops. */
static unsigned
rate_fops(struct top_work *w, const struct brick_figures *b, const struct sample_brick *before)
{
    unsigned count = 0;

    histogram_clear(&w->all);
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        if (!b->counts.calls[fop])
            continue;
        const struct sample_fop *old = top_sample_fop(w->before, before, fop);
        struct fop_rates *r = &w->fops[count];

        histogram_clear(&w->h);
        (void)io_stats_latencies(b->stats, fop, &w->h);
        top_sample_subtract(w->before, old, &w->h);
        *r = (struct fop_rates){fop, grown(old ? old->calls : 0, b->counts.calls[fop]), w->h.sum, {0}};
        if (!r->calls && !w->h.count)
            continue;
        histogram_quantiles(&w->h, shares, 2, r->quantiles);
        histogram_merge(&w->all, &w->h);
        count++;
    }
    return count;
}

static void
put_fops(struct http_answer *a, const struct top_work *w, unsigned count)
{
    http_put_text(a, ",\"fops\":[");
    for (const struct fop_rates *r = w->fops; r < w->fops + count; r++) {
        http_put_text(a, r > w->fops ? ",{\"fop\":\"" : "{\"fop\":\"");
        http_put_text(a, fop_info[r->fop].name);
        put_rate(a, "\",\"ops\":", r->calls, w);
        put_microseconds(a, ",\"p50_us\":", r->quantiles[0]);
        put_microseconds(a, ",\"p99_us\":", r->quantiles[1]);
        put_real(a, ",\"share\":", w->all.sum ? 100 * (double)r->sum / (double)w->all.sum : 0);
        http_put_text(a, "}");
    }
    http_put_text(a, "]");
}

static void
put_client(struct http_answer *a, const struct brick_client *c, const struct sample_client *before,
           const struct top_work *w)
{
    char peer[128] = "";

    status_peer_text(conn_peer(c->conn), peer, sizeof peer);
    http_put_text(a, "{\"client\":");
    http_put_json_string(a, *c->process_name ? c->process_name : c->uid);
    http_put_text(a, ",\"peer\":\"");
    http_put_text(a, peer);
    put_rate(a, "\",\"received\":", grown(before ? before->received : 0, conn_bytes_in(c->conn)), w);
    put_rate(a, ",\"sent\":", grown(before ? before->sent : 0, conn_bytes_out(c->conn)), w);
    put_integer(a, ",\"locks\":", atomic_load_explicit(&c->locks, memory_order_relaxed));
    http_put_text(a, "}");
}

static void
put_clients(struct http_answer *a, struct graph *g, const struct sample_brick *before,
            const struct top_work *w)
{
    const struct brick_client *c;
    size_t n = 0;

    http_put_text(a, ",\"client_list\":[");
    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link)
    {
        if (!c->conn)
            continue;
        http_put(a, ",", n > 0);
        put_client(a, c, top_sample_client(w->before, before, c->id, n++), w);
    }
    pthread_mutex_unlock(&g->clients_lock);
    http_put_text(a, "]");
}

/* In microseconds; an unknown stage is null. */
static void
put_slow(struct http_answer *a, const struct io_stats_slow *s)
{
    http_printf(a, "{\"fop\":\"%s\",\"total_us\":%" PRIu64, fop_info[s->fop].name, s->total_ns / 1000);
    for (unsigned i = 0; i < STAGES; i++) {
        if (i == STAGE_REPLY && !s->is_sent)
            http_printf(a, ",\"%s_us\":null", io_stats_stage_names[i]);
        else
            http_printf(a, ",\"%s_us\":%" PRIu64, io_stats_stage_names[i], s->stage_ns[i] / 1000);
    }
    http_printf(a, ",\"age_s\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"errno\":%d,\"pid\":%d,\"client\":",
                s->age_ns / 1000000000, s->bytes, s->err, s->pid);
    http_put_json_string(a, s->client);
    http_put_text(a, ",\"object\":");
    http_put_json_string(a, s->object);
    http_put_text(a, "}");
}

static uint64_t
slowest_ns(const struct brick_figures *b)
{
    uint64_t all[IO_STATS_SLOW_MAX], most = 0;
    unsigned count = b->stats ? io_stats_slowest_ns(b->stats, all) : 0;

    for (unsigned i = 0; i < count; i++)
        most = all[i] > most ? all[i] : most;
    return most;
}

/* Most bricks have none of the slowest calls: then the function looks for no names. */
static void
put_slowest(struct http_answer *a, const struct brick_figures *b, struct top_work *w)
{
    bool is_any = slowest_ns(b) >= w->slow_ns;
    unsigned count = is_any && b->stats ? io_stats_slowest(b->stats, w->slow) : 0;

    http_put_text(a, ",\"slow\":[");
    for (unsigned i = 0; i < count && w->slow[i].total_ns >= w->slow_ns; i++) {
        http_put(a, ",", i > 0);
        put_slow(a, &w->slow[i]);
    }
    http_put_text(a, "]");
}

static int
longest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

/* Sets w->slow_ns to the duration of the fastest call that is still listed. False: no memory. */
static bool
find_slow(struct top_work *w, size_t wanted)
{
    const struct figures *f = w->now;
    uint64_t *all = calloc((size_t)f->brick_count * IO_STATS_SLOW_MAX + 1, sizeof *all);
    size_t count = 0;

    if (!all)
        return false;
    for (unsigned n = 0; n < f->brick_count; n++)
        count += f->bricks[n].stats ? io_stats_slowest_ns(f->bricks[n].stats, all + count) : 0;
    qsort(all, count, sizeof *all, longest_first);
    w->slow_ns = count > wanted ? (wanted ? all[wanted - 1] : UINT64_MAX) : 0;
    free(all);
    return true;
}

static void
put_now(struct http_answer *a, const struct brick_figures *b)
{
    put_integer(a, ",\"queue\":", (uint64_t)b->running + b->queued);
    put_integer(a, ",\"open\":", b->counts.open > 0 ? (uint64_t)b->counts.open : 0);
    put_integer(a, ",\"clients\":", b->clients);
    put_integer(a, ",\"locks_held\":", b->locks_held);
    put_integer(a, ",\"locks_waiting\":", b->locks_waiting);
    put_integer(a, ",\"memory\":", b->memory_bytes);
}

static void
put_unbuilt(struct http_answer *a, const struct brick_figures *b)
{
    http_put_text(a, ",\"not_built\":[");
    for (unsigned i = 0; i < b->unbuilt_count; i++) {
        const struct unbuilt_feature *f = b->unbuilt[i];

        http_printf(a, "%s{\"layer\":\"%s\",\"option\":\"%s\",\"without\":", i ? "," : "",
                    f->layer,
                    f->option);
        http_put_json_string(a, f->without);
        http_put_text(a, "}");
    }
    http_put_text(a, "]");
}

static void
put_brick(struct http_answer *a, const struct brick_figures *b, const struct sample_brick *before,
          struct top_work *w)
{
    static const struct sample_brick none;
    const struct sample_brick *old = before ? before : &none;
    unsigned fops = rate_fops(w, b, before);
    uint64_t calls = 0, quantiles[2];

    for (unsigned i = 0; i < fops; i++)
        calls += w->fops[i].calls;
    histogram_quantiles(&w->all, shares, 2, quantiles);
    http_put_text(a, "{\"brick\":");
    http_put_json_string(a, b->graph->name);
    http_put_text(a, ",\"volume\":");
    http_put_json_string(a, b->volume);
    http_put_text(a, b->is_up ? ",\"up\":true" : ",\"up\":false");
    put_rate(a, ",\"ops\":", calls, w);
    put_microseconds(a, ",\"p50_us\":", quantiles[0]);
    put_microseconds(a, ",\"p99_us\":", quantiles[1]);
    put_rate(a, ",\"read\":", grown(old->bytes_read, b->counts.bytes_read), w);
    put_rate(a, ",\"written\":", grown(old->bytes_written, b->counts.bytes_written), w);
    put_now(a, b);
    put_real(a, ",\"cpu_percent\":",
             100 * (double)grown(old->cpu_ns, b->counts.cpu_ns) / (double)w->period_ns);
    put_fops(a, w, fops);
    put_clients(a, b->graph, before, w);
    put_slowest(a, b, w);
    put_unbuilt(a, b);
    http_put_text(a, "}");
}

static void
put_pools(struct http_answer *a, const struct figures *f)
{
    uint64_t live = 0, hot = 0, cold = 0, bytes = 0;

    for (unsigned i = 0; i < f->pool_count; i++) {
        live += f->pools[i].live;
        hot += f->pools[i].hot;
        cold += f->pools[i].cold;
        bytes += f->pools[i].resident_bytes;
    }
    put_integer(a, ",\"pools\":{\"live\":", live);
    put_integer(a, ",\"hot\":", hot);
    put_integer(a, ",\"cold\":", cold);
    put_integer(a, ",\"bytes\":", bytes);
}

static uint64_t
ticks_of(const struct procfs_cpu *c, bool is_busy)
{
    uint64_t busy = c->user + c->nice + c->system + c->irq + c->softirq + c->steal;

    return is_busy ? busy : busy + c->idle + c->iowait;
}

static void
put_pressure(struct http_answer *a, const char *key, int64_t hundredths)
{
    if (hundredths < 0)
        http_printf(a, "%snull", key);
    else
        put_real(a, key, (double)hundredths / 100);
}

/* The figures of the whole machine, since the sample or since its boot. */
static void
put_machine(struct http_answer *a, const struct top_work *w)
{
    static const struct procfs_cpu none;
    const struct procfs_cpu *old = w->before ? &w->before->machine_cpu : &none;
    struct machine_figures m;

    figures_of_machine(&m);
    uint64_t all = grown(ticks_of(old, false), ticks_of(&m.cpu, false));
    uint64_t busy = grown(ticks_of(old, true), ticks_of(&m.cpu, true));

    put_real(a, ",\"machine\":{\"cpu_percent\":", all ? 100 * (double)busy / (double)all : 0);
    put_real(a, ",\"load_1min\":", (double)m.load_1min / 100);
    put_integer(a, ",\"memory_available\":", m.memory_available);
    put_pressure(a, ",\"cpu_pressure\":", m.cpu_pressure);
    put_pressure(a, ",\"memory_pressure\":", m.memory_pressure);
    put_pressure(a, ",\"io_pressure\":", m.io_pressure);
    http_put_text(a, "}");
}

static void
put_all(struct http_answer *a, struct top_work *w)
{
    const struct figures *f = w->now;
    double cpu = f->cpu_seconds - (w->before ? w->before->cpu_seconds : 0);

    put_real(a, "{\"seconds\":", (double)w->period_ns / 1e9);
    put_integer(a, ",\"resident_bytes\":", f->memory.resident);
    put_real(a, ",\"cpu_percent\":", 100 * cpu * 1e9 / (double)w->period_ns);
    put_integer(a, ",\"threads\":", f->threads);
    put_machine(a, w);
    put_pools(a, f);
    http_put_text(a, "},\"bricks\":[");
    for (unsigned n = 0; n < f->brick_count; n++) {
        http_put_text(a, n ? ",\n" : "\n");
        put_brick(a, &f->bricks[n], top_sample_brick(w->before, f->bricks[n].graph->name, n), w);
    }
    http_put_text(a, "]}\n");
}

/* False: no memory. */
static bool
answer_since(const struct top_sample *before, struct http_answer *a, size_t slow)
{
    static _Atomic size_t usual; /* bytes of the last answer */
    struct figures *f = figures_take(true);
    struct top_work *w = f ? calloc(1, sizeof *w) : NULL;
    bool is_well = w;

    if (w) {
        io_stats_gather();
        w->before = before;
        w->now = f;
        w->period_ns = before ? clock_mono_ns() - before->time_ns : (uint64_t)(f->age_seconds * 1e9);
        w->period_ns += !w->period_ns;
        is_well = find_slow(w, slow);
    }
    if (is_well) {
        a->content_type = "application/json";
        http_reserve(a, usual + usual / 16);
        put_all(a, w);
        usual = a->size;
    }
    figures_free(f);
    free(w);
    return is_well;
}

/* -1: no number, or too large a number; `none` without the key. */
static long
query_number(const struct http_request *req, const char *key, long none, long most)
{
    const char *text = http_query(req, key);

    if (!text)
        return none;
    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 9)
        return -1;
    long number = strtol(text, NULL, 10);
    return number > most ? -1 : number;
}

void
top_answer(const struct http_request *req, struct http_answer *answer)
{
    struct top_sample before = {0};
    long ms = query_number(req, "ms", 0, PERIOD_MS_MAX),
         slow = query_number(req, "slow", INT32_MAX, INT32_MAX);
    bool is_well = true;

    if (ms < 0 || slow < 0) {
        http_fail(answer, 400, "ms is 0 to %d, slow a number", PERIOD_MS_MAX);
        return;
    }
    if (ms)
        is_well = read_sample(&before);
    if (is_well && ms && !http_pause((unsigned)ms)) {
        http_fail(answer, 503, "kilnd ends");
        top_sample_free(&before);
        return;
    }
    is_well = is_well && answer_since(ms ? &before : NULL, answer, (size_t)slow);
    if (!is_well)
        http_fail(answer, 503, "no memory for the figures");
    top_sample_free(&before);
}

char *
top_text(unsigned ms, size_t slow)
{
    struct http_answer answer = {0};
    struct top_sample before = {0};
    bool is_well = (!ms || (read_sample(&before) && http_pause(ms))) &&
                   answer_since(ms ? &before : NULL, &answer, slow);

    top_sample_free(&before);
    http_put(&answer, "", 1);
    if (is_well && !answer.is_short)
        return answer.bytes;
    free(answer.bytes);
    return NULL;
}
