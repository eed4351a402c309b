/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The lines of a family stand together, so the bricks are walked once for each family; those with one figure
 * a brick are rows of a table. Families named gluster_* are those that gluster-prometheus has. */
#include "glusterfsd/metrics.h"

#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/histogram.h"
#include "event/timer.h"
#include "fs/brick-client.h"
#include "glusterfsd/brick-ops.h"
#include "glusterfsd/figures.h"
#include "glusterfsd/http.h"
#include "graph/graph.h"

#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* The rest of a family's name says its unit where it has one. */
static void
family(struct http_answer *a, const char *name, const char *type, const char *help)
{
    http_printf(a, "# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

/* A label's value; what is not UTF-8 becomes '?'. */
static void
put_value(struct http_answer *a, const char *text)
{
    for (const char *s = text; *s; s++) {
        if (*s == '\n')
            http_put(a, "\\n", 2);
        else if (*s == '"' || *s == '\\')
            http_printf(a, "\\%c", *s);
        else
            http_put(a, (unsigned char)*s < 0x80 ? s : "?", 1);
    }
}

/* ---- one figure a brick ---------------------------------------------------------------------- */

struct brick_row {
    const char *name, *type, *help;
    double (*value)(const struct brick_figures *b);
};

#define ROW_FN(name, expression)                                                                             \
    static double value_##name(const struct brick_figures *b)                                                \
    {                                                                                                        \
        return (double)(expression);                                                                         \
    }
ROW_FN(up, b->is_up)
ROW_FN(bytes, b->disk.bytes)
ROW_FN(bytes_used, b->disk.bytes_used)
ROW_FN(bytes_free, b->disk.bytes_free)
ROW_FN(inodes_all, b->disk.inodes)
ROW_FN(inodes_free, b->disk.inodes_free)
ROW_FN(inodes_used, b->disk.inodes - b->disk.inodes_free)
ROW_FN(read, b->counts.bytes_read)
ROW_FN(written, b->counts.bytes_written)
ROW_FN(open, b->counts.open)
ROW_FN(clients, b->clients)
ROW_FN(running, b->running)
ROW_FN(queued, b->queued)
ROW_FN(locks_held, b->locks_held)
ROW_FN(locks_waiting, b->locks_waiting)
ROW_FN(inodes, b->inodes)
ROW_FN(memory, b->memory_bytes)
ROW_FN(cpu, (double)b->counts.cpu_ns / 1e9)

/* clang-format off */
static const struct brick_row gluster_rows[] = {
    {"gluster_brick_up", "gauge", "1: the brick's storage is healthy", value_up},
    {"gluster_brick_capacity_bytes_total", "gauge", "Size of the brick's file system", value_bytes},
    {"gluster_brick_capacity_used_bytes", "gauge", "Used of it", value_bytes_used},
    {"gluster_brick_capacity_free_bytes", "gauge", "Free of it for ordinary users", value_bytes_free},
    {"gluster_brick_inodes_total", "gauge", "Inodes of the brick's file system", value_inodes_all},
    {"gluster_brick_inodes_free", "gauge", "Free of them", value_inodes_free},
    {"gluster_brick_inodes_used", "gauge", "Used of them", value_inodes_used},
    {"gluster_volume_profile_total_reads", "gauge", "Bytes read since its attach", value_read},
    {"gluster_volume_profile_total_writes", "gauge", "Bytes written since its attach", value_written},
};

static const struct brick_row kiln_rows[] = {
    {"kiln_brick_read_bytes", "counter", "Bytes that READ has answered", value_read},
    {"kiln_brick_written_bytes", "counter", "Bytes that came with WRITE", value_written},
    {"kiln_brick_open_files", "gauge", "Files that clients have open", value_open},
    {"kiln_brick_clients", "gauge", "Clients that are logged in", value_clients},
    {"kiln_brick_calls_running", "gauge", "Calls that io-threads counts as running", value_running},
    {"kiln_brick_calls_queued", "gauge", "Calls that wait for those to end", value_queued},
    {"kiln_brick_locks_held", "gauge", "Locks of all kinds that clients hold", value_locks_held},
    {"kiln_brick_locks_waiting", "gauge", "Lock requests that wait for another lock", value_locks_waiting},
    {"kiln_brick_inodes", "gauge", "Inodes that the brick remembers", value_inodes},
    {"kiln_brick_cpu_seconds", "counter", "Processor time for its calls, from one turn in 16 of the workers", value_cpu},
    {"kiln_brick_memory_bytes", "gauge", "Pooled objects that are the brick's", value_memory},
};
/* clang-format on */

static void
put_brick(struct http_answer *a, const struct brick_figures *b)
{
    http_printf(a, "volume=\"");
    put_value(a, b->volume);
    http_printf(a, "\",brick_path=\"");
    put_value(a, b->graph->name);
    http_put(a, "\"", 1);
}

/* `host` NULL: without. The dashboards know it by two names. */
static void
put_rows(struct http_answer *a, const struct figures *f, const struct brick_row *rows, size_t count,
         const char *host)
{
    for (size_t i = 0; i < count; i++) {
        family(a, rows[i].name, rows[i].type, rows[i].help);
        for (unsigned n = 0; n < f->brick_count; n++) {
            const char *suffix = strcmp(rows[i].type, "counter") == 0 ? "_total" : "";

            http_printf(a, "%s%s{", rows[i].name, suffix);
            put_brick(a, &f->bricks[n]);
            if (host)
                http_printf(a, ",host=\"%s\",hostname=\"%s\"", host, host);
            http_printf(a, "} %.17g\n", rows[i].value(&f->bricks[n]));
        }
    }
}

/* ---- figures of each fop --------------------------------------------------------------------- */

/* Called for each fop that a brick has seen. `h`: its durations, empty if none are kept. */
typedef void (*fop_fn_t)(struct http_answer *a, const struct brick_figures *b, enum fop fop,
                         const struct histogram *h);

static void
each_fop(struct http_answer *a, const struct figures *f, fop_fn_t fn)
{
    struct histogram *h = malloc(sizeof *h);

    for (unsigned n = 0; n < f->brick_count; n++) {
        const struct brick_figures *b = &f->bricks[n];

        for (enum fop fop = FOP_null; h && fop < FOP_COUNT; fop++) {
            if (!b->counts.calls[fop])
                continue;
            memset(h, 0, sizeof *h);
            (void)io_stats_latencies(b->stats, fop, h);
            fn(a, b, fop, h);
        }
    }
    a->is_short |= !h;
    free(h);
}

static void
put_fop(struct http_answer *a, const char *name, const struct brick_figures *b, enum fop fop)
{
    http_printf(a, "%s{", name);
    put_brick(a, b);
    http_printf(a, ",fop=\"%s\"", fop_info[fop].name);
}

static void
put_calls(struct http_answer *a, const struct brick_figures *b, enum fop fop, const struct histogram *h)
{
    (void)h;
    put_fop(a, "kiln_brick_fop_calls_total", b, fop);
    http_printf(a, "} %" PRIu64 "\n", b->counts.calls[fop]);
}

/* The edges are edges of octaves: 2^11 ns to 2^35 ns, each four times the one before. */
static void
put_histogram(struct http_answer *a, const struct brick_figures *b, enum fop fop, const struct histogram *h)
{
    uint64_t seen = 0;
    unsigned bucket = 0;

    for (unsigned bit = 11; bit <= 35; bit += 2) {
        for (; histogram_bucket_start(bucket) < UINT64_C(1) << bit; bucket++)
            seen += h->buckets[bucket];
        put_fop(a, "kiln_brick_fop_duration_seconds_bucket", b, fop);
        http_printf(a, ",le=\"%.9g\"} %" PRIu64 "\n", (double)(UINT64_C(1) << bit) / 1e9, seen);
    }
    put_fop(a, "kiln_brick_fop_duration_seconds_bucket", b, fop);
    http_printf(a, ",le=\"+Inf\"} %" PRIu64 "\n", h->count);
    put_fop(a, "kiln_brick_fop_duration_seconds_count", b, fop);
    http_printf(a, "} %" PRIu64 "\n", h->count);
    put_fop(a, "kiln_brick_fop_duration_seconds_sum", b, fop);
    http_printf(a, "} %.9f\n", (double)h->sum / 1e9);
}

static void
put_quantiles(struct http_answer *a, const struct brick_figures *b, enum fop fop, const struct histogram *h)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999};

    for (size_t i = 0; h->count && i < sizeof shares / sizeof shares[0]; i++) {
        put_fop(a, "kiln_brick_fop_duration_quantile_seconds", b, fop);
        http_printf(a, ",quantile=\"%g\"} %.9f\n", shares[i], (double)histogram_quantile(h, shares[i]) / 1e9);
    }
}

/* As `volume profile` calls it: WRITE. */
static void
put_profile(struct http_answer *a, const char *name, const struct brick_figures *b, enum fop fop,
            double value)
{
    char word[32];
    const char *from = fop == FOP_readv ? "read" : fop == FOP_writev ? "write" : fop_info[fop].name;
    size_t len = 0;

    for (; from[len] && len + 1 < sizeof word; len++)
        word[len] = (char)toupper((unsigned char)from[len]);
    word[len] = '\0';
    http_printf(a, "%s{volume=\"", name);
    put_value(a, b->volume);
    http_printf(a, "\",brick=\"");
    put_value(a, b->graph->name);
    http_printf(a, "\",fop=\"%s\"} %.17g\n", word, value);
}

#define PROFILE_FN(word, expression)                                                                         \
    static void put_profile_##word(struct http_answer *a, const struct brick_figures *b, enum fop fop,       \
                                   const struct histogram *h)                                                \
    {                                                                                                        \
        (void)h;                                                                                             \
        put_profile(a, "gluster_volume_profile_fop_" #word, b, fop, (expression));                           \
    }
PROFILE_FN(hits, (double)b->counts.calls[fop])
PROFILE_FN(avg_latency, h->count ? (double)h->sum / (double)h->count / 1e3 : 0)
PROFILE_FN(min_latency, (double)histogram_quantile(h, 0) / 1e3)
PROFILE_FN(max_latency, (double)histogram_quantile(h, 1) / 1e3)

static void
put_fops(struct http_answer *a, const struct figures *f)
{
    family(a, "gluster_volume_profile_fop_hits", "gauge", "Calls of an operation");
    each_fop(a, f, put_profile_hits);
    family(a, "gluster_volume_profile_fop_avg_latency", "gauge", "Microseconds that one took");
    each_fop(a, f, put_profile_avg_latency);
    family(a, "gluster_volume_profile_fop_min_latency", "gauge",
           "Microseconds of the shortest, 2 % at most off");
    each_fop(a, f, put_profile_min_latency);
    family(a, "gluster_volume_profile_fop_max_latency", "gauge",
           "Microseconds of the longest, 2 % at most off");
    each_fop(a, f, put_profile_max_latency);
    family(a, "kiln_brick_fop_calls", "counter", "Calls of an operation");
    each_fop(a, f, put_calls);
    family(a, "kiln_brick_fop_duration_seconds", "histogram", "How long calls took, time in queues included");
    each_fop(a, f, put_histogram);
    family(a, "kiln_brick_fop_duration_quantile_seconds", "gauge",
           "The same since the brick was attached, as quantiles, 2 % at most off");
    each_fop(a, f, put_quantiles);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void
put_pools(struct http_answer *a, const struct figures *f)
{
    family(a, "kiln_pool_objects", "gauge",
           "Objects of a memory pool: in use, cached and warm, cached and idle");
    for (unsigned i = 0; i < f->pool_count; i++) {
        const struct pool_figures *p = &f->pools[i];
        const struct {
            const char *state;
            uint64_t count;
        } states[] = {{"live", p->live}, {"hot", p->hot}, {"cold", p->cold}};

        for (size_t s = 0; s < sizeof states / sizeof states[0]; s++)
            http_printf(a, "kiln_pool_objects{pool=\"%s\",state=\"%s\"} %" PRIu64 "\n", p->name,
                        states[s].state, states[s].count);
    }
    family(a, "kiln_pool_resident_bytes", "gauge", "Memory of a pool");
    for (unsigned i = 0; i < f->pool_count; i++)
        http_printf(a, "kiln_pool_resident_bytes{pool=\"%s\"} %" PRIu64 "\n", f->pools[i].name,
                    f->pools[i].resident_bytes);
    family(a, "kiln_pool_gets", "counter", "Objects got from a pool");
    for (unsigned i = 0; i < f->pool_count; i++)
        http_printf(a, "kiln_pool_gets_total{pool=\"%s\"} %" PRIu64 "\n", f->pools[i].name, f->pools[i].gets);
    family(a, "kiln_pool_system_allocations", "counter", "Objects that a pool fetched from the system");
    for (unsigned i = 0; i < f->pool_count; i++)
        http_printf(a, "kiln_pool_system_allocations_total{pool=\"%s\"} %" PRIu64 "\n", f->pools[i].name,
                    f->pools[i].system_allocations);
}

static void
put_one(struct http_answer *a, const char *name, const char *type, const char *help, double value)
{
    family(a, name, type, help);
    http_printf(a, "%s%s %.17g\n", name, strcmp(type, "counter") == 0 ? "_total" : "", value);
}

static void
put_process(struct http_answer *a, const struct figures *f, const char *host)
{
    const struct worker_stats *w = &f->workers;
    const struct transport_stats *t = &f->transport;

    family(a, "kiln_build", "info", "Version of kilnd and the allocator beneath its pools");
    http_printf(a, "kiln_build_info{version=\"%s\",allocator=\"%s\"} 1\n", PACKAGE_VERSION, KILN_ALLOCATOR);
    family(a, "kiln_bricks", "gauge", "Bricks of the process by state");
    http_printf(a, "kiln_bricks{state=\"serving\"} %u\nkiln_bricks{state=\"attaching\"} %u\n",
                f->states.serving, f->states.attaching);
    http_printf(a, "kiln_bricks{state=\"failed\"} %u\nkiln_bricks{state=\"detaching\"} %u\n",
                f->states.failed, f->states.detaching);
    family(a, "gluster_resident_memory_bytes", "gauge", "Memory of the process that is in RAM");
    http_printf(a, "gluster_resident_memory_bytes{host=\"%s\",name=\"kilnd\"} %" PRIu64 "\n", host,
                f->memory.resident);
    family(a, "gluster_virtual_memory_bytes", "gauge", "Address space of the process");
    http_printf(a, "gluster_virtual_memory_bytes{host=\"%s\",name=\"kilnd\"} %" PRIu64 "\n", host,
                f->memory.size);
    put_one(a, "kiln_process_resident_memory_bytes", "gauge", "Memory of the process that is in RAM",
            (double)f->memory.resident);
    put_one(a, "kiln_process_cpu_seconds", "counter", "Processor time of the process, user and system",
            f->cpu_seconds);
    put_one(a, "kiln_process_start_time_seconds", "gauge", "When the process began, since 1970",
            f->start_seconds);
    put_one(a, "kiln_process_threads", "gauge", "Threads of the process", f->threads);
    family(a, "kiln_workers", "gauge", "Worker threads: those that wait for events, and in system calls");
    http_printf(a, "kiln_workers{state=\"all\"} %u\nkiln_workers{state=\"waiting\"} %u\n", w->threads,
                w->waiting);
    http_printf(a, "kiln_workers{state=\"blocked\"} %u\n", w->blocked);
    put_one(a, "kiln_worker_events", "counter", "Events that workers handled", (double)w->events);
    put_one(a, "kiln_connections", "gauge", "Connections, of clients and others",
            (double)(t->accepted - t->closed));
    put_one(a, "kiln_connections_opened", "counter", "Connections that there were", (double)t->accepted);
    put_one(a, "kiln_received_bytes", "counter", "Bytes that arrived over connections", (double)t->bytes_in);
    put_one(a, "kiln_sent_bytes", "counter", "Bytes that were sent over connections", (double)t->bytes_out);
    put_one(a, "kiln_received_records", "counter", "Calls that arrived", (double)t->records);
}

void
metrics_answer(const struct http_request *req, struct http_answer *answer)
{
    uint64_t began = clock_mono_ns();
    struct figures *f = figures_take();
    char host[256] = "";

    (void)req;
    if (!f) {
        http_fail(answer, 503, "no memory for the figures");
        return;
    }
    (void)gethostname(host, sizeof host - 1); /* "" then */
    answer->content_type = OPENMETRICS;
    put_rows(answer, f, gluster_rows, sizeof gluster_rows / sizeof gluster_rows[0], host);
    put_rows(answer, f, kiln_rows, sizeof kiln_rows / sizeof kiln_rows[0], NULL);
    put_fops(answer, f);
    put_pools(answer, f);
    put_process(answer, f, host);
    figures_free(f);
    put_one(answer, "kiln_scrape_duration_seconds", "gauge", "What this answer took",
            (double)(clock_mono_ns() - began) / 1e9);
    http_printf(answer, "# EOF\n");
}

/* ---- /top.json ------------------------------------------------------------------------------- */

static void
put_fop_json(struct http_answer *a, const struct brick_figures *b, enum fop fop, const struct histogram *h,
             bool is_first)
{
    bool needs_comma = false;

    http_printf(a, "%s\"%s\":{\"calls\":%" PRIu64 ",\"sum_ns\":%" PRIu64 ",\"buckets\":[",
                is_first ? "" : ",", fop_info[fop].name, b->counts.calls[fop], h->sum);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (!h->buckets[i])
            continue;
        http_printf(a, "%s[%u,%" PRIu64 "]", needs_comma ? "," : "", i, h->buckets[i]);
        needs_comma = true;
    }
    http_printf(a, "]}");
}

static void
put_fops_json(struct http_answer *a, const struct brick_figures *b, struct histogram *h)
{
    bool is_first = true;

    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        if (!b->counts.calls[fop])
            continue;
        memset(h, 0, sizeof *h);
        (void)io_stats_latencies(b->stats, fop, h);
        put_fop_json(a, b, fop, h, is_first);
        is_first = false;
    }
}

static void
put_client_json(struct http_answer *a, struct brick_client *c)
{
    char peer[128] = "";

    status_peer_text(conn_peer(c->conn), peer, sizeof peer);
    http_printf(a, "{\"id\":\"%" PRIu64 "\",\"name\":", c->id);
    http_put_json_string(a, *c->process_name ? c->process_name : c->uid);
    http_printf(a, ",\"peer\":\"%s\",\"received\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"locks\":%u}", peer,
                conn_bytes_in(c->conn), conn_bytes_out(c->conn),
                atomic_load_explicit(&c->locks, memory_order_relaxed));
}

static void
put_clients_json(struct http_answer *a, struct graph *g)
{
    struct brick_client *c;
    bool is_first = true;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link) {
        if (!c->conn)
            continue;
        http_put(a, ",", !is_first);
        put_client_json(a, c);
        is_first = false;
    }
    pthread_mutex_unlock(&g->clients_lock);
}

/* In microseconds; a stage that is not known is null. */
static void
put_slow_json(struct http_answer *a, const struct io_stats_slow *s)
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
    http_printf(a, ",\"object\":");
    http_put_json_string(a, s->object);
    http_put(a, "}", 1);
}

static void
put_slowest_json(struct http_answer *a, const struct brick_figures *b)
{
    struct io_stats_slow *all = b->stats ? malloc(IO_STATS_SLOW_MAX * sizeof *all) : NULL;
    unsigned count = all ? io_stats_slowest(b->stats, all) : 0;

    a->is_short |= b->stats && !all;
    for (unsigned i = 0; i < count; i++) {
        http_put(a, ",", i > 0);
        put_slow_json(a, &all[i]);
    }
    free(all);
}

static void
put_brick_json(struct http_answer *a, const struct brick_figures *b, struct histogram *h)
{
    http_printf(a, "{\"brick\":");
    http_put_json_string(a, b->graph->name);
    http_printf(a, ",\"volume\":");
    http_put_json_string(a, b->volume);
    http_printf(a,
                ",\"up\":%s,\"clients\":%u,\"open\":%ld,\"running\":%u,\"queued\":%u,\"locks_held\":%u,"
                "\"locks_waiting\":%u,\"memory_bytes\":%" PRIu64 ",\"bytes_read\":%" PRIu64
                ",\"bytes_written\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"fops\":{",
                b->is_up ? "true" : "false", b->clients, b->counts.open, b->running, b->queued, b->locks_held,
                b->locks_waiting, b->memory_bytes, b->counts.bytes_read, b->counts.bytes_written,
                b->counts.cpu_ns);
    put_fops_json(a, b, h);
    http_printf(a, "},\"client_list\":[");
    put_clients_json(a, b->graph);
    http_printf(a, "],\"slow\":[");
    put_slowest_json(a, b);
    http_printf(a, "]}");
}

static void
put_all_json(struct http_answer *a, const struct figures *f, struct histogram *h)
{
    uint64_t live = 0, hot = 0, cold = 0, bytes = 0;

    for (unsigned i = 0; i < f->pool_count; i++) {
        live += f->pools[i].live;
        hot += f->pools[i].hot;
        cold += f->pools[i].cold;
        bytes += f->pools[i].resident_bytes;
    }
    http_printf(a,
                "{\"time_ns\":%" PRIu64 ",\"age_ns\":%.0f,\"resident_bytes\":%" PRIu64
                ",\"cpu_seconds\":%.3f,\"threads\":%u,"
                "\"pools\":{\"live\":%" PRIu64 ",\"hot\":%" PRIu64 ",\"cold\":%" PRIu64 ",\"bytes\":%" PRIu64
                "},\"bricks\":[",
                clock_mono_ns(), f->age_seconds * 1e9, f->memory.resident, f->cpu_seconds, f->threads, live,
                hot, cold, bytes);
    for (unsigned i = 0; i < f->brick_count; i++) {
        if (i)
            http_put(a, ",", 1);
        put_brick_json(a, &f->bricks[i], h);
    }
    http_printf(a, "]}\n");
}

void
top_answer(const struct http_request *req, struct http_answer *answer)
{
    struct figures *f = figures_take();
    struct histogram *h = malloc(sizeof *h);

    (void)req;
    if (f && h) {
        answer->content_type = "application/json";
        put_all_json(answer, f, h);
    } else {
        http_fail(answer, 503, "no memory for the figures");
    }
    figures_free(f);
    free(h);
}
