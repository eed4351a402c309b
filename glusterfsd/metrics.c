/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The lines of a family stand together, so each family walks all bricks; families with one figure a brick are
 * rows of a table. Values that many lines need are made once, in the sheet: labels and figures of bricks, and
 * the quantiles and buckets of the histogram of each of their fops. 80 busy bricks are 30,000 lines, 4 MB. An
 * answer of more than WHOLE_BYTES is written from the sheet in pieces while it is sent, and the bricks have
 * long been unpinned. Families named gluster_* are families of gluster-prometheus. */
#include "glusterfsd/metrics.h"

#include <config.h>

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/histogram.h"
#include "bricks/figures.h"
#include "daemon/http.h"
#include "daemon/sandbox.h"
#include "event/timer.h"
#include "graph/graph.h"
#include "volumes/quota.h"
#include "volumes/volumes.h"

static const char openmetrics[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";
static const char prometheus[] = "text/plain; version=0.0.4; charset=utf-8";

/* The older format has no type info, and gives a counter the name of its samples. Its checker (promtool)
 * wants "_total" for counters alone and labels "quantile" for summaries alone, so other names of
 * gluster-prometheus, and quantiles, have no type there. */
static void
put_older_family(struct http_answer *a, const char *name, const char *type, const char *help)
{
    size_t len = strlen(name), total = strlen("_total");
    bool is_total = len > total && strcmp(name + len - total, "_total") == 0;
    const char *suffix = strcmp(type, "counter") == 0 ? "_total" : strcmp(type, "info") == 0 ? "_info" : "";

    if (strcmp(type, "info") == 0)
        type = "gauge";
    else if (strcmp(type, "gauge") == 0 && (is_total || strstr(name, "_quantile_")))
        type = "untyped";
    http_printf(a, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix, type);
}

/* The end of a family's name is its unit, if the family has a unit. */
static void
family(struct http_answer *a, const char *name, const char *type, const char *help)
{
    if (a->content_type == openmetrics)
        http_printf(a, "# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
    else
        put_older_family(a, name, type, help);
}

/* A label's value; a byte that is not UTF-8 becomes '?'. */
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

/* As "%.17g" does. */
static void
put_double(struct http_answer *a, double value)
{
    if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value)
        http_put_number(a, (uint64_t)value, 0);
    else
        http_printf(a, "%.17g", value);
}

/* ---- values for many lines ------------------------------------------------------------------- */

/* The edges of kiln_brick_fop_duration_seconds are edges of octaves: 2^11 ns to 2^35 ns, each four times the
 * edge before. */
enum { EDGES = 13, EDGE_FIRST = 11, EDGE_STEP = 2 };
#define QUANTILES 4
static const double shares[] = {0, 0.5, 0.9, 0.99, 0.999, 1}; /* all but the outer ones are lines */

/* A fop that a brick has seen. */
struct fop_row {
    unsigned brick;
    enum fop fop;
    uint64_t calls, count, sum; /* count and sum are the histogram's */
    uint64_t below[EDGES], quantiles[QUANTILES + 2];
};

/* Labels of all bricks, one behind the other. */
struct labels {
    struct http_answer text;
    size_t *at; /* by brick, and one more: their end */
};

/* Where the answer stands. */
struct place {
    unsigned part; /* enum part */
    unsigned item; /* of the part: a brick, or a fop_row */
};

struct sheet {
    struct figures *f;
    struct labels labels;       /* volume="V",brick_path="P" */
    struct labels profile;      /* volume="V",brick="P" */
    struct fop_row *rows;
    unsigned row_count, room;
    char fops[FOP_COUNT][32];   /* as `volume profile` calls them: WRITE */
    char host[256];
    uint64_t began;
    struct place place;
};

static void
name_fops(struct sheet *s)
{
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        const char *from = fop == FOP_readv ? "read" : fop == FOP_writev ? "write" : fop_info[fop].name;

        for (size_t i = 0; from[i] && i + 1 < sizeof s->fops[0]; i++)
            s->fops[fop][i] = (char)toupper((unsigned char)from[i]);
    }
}

/* False: no memory. */
static bool
make_labels(const struct sheet *s, struct labels *l, const char *brick_key)
{
    l->at = calloc(s->f->brick_count + 1, sizeof *l->at);
    for (unsigned n = 0; l->at && n < s->f->brick_count; n++) {
        http_put_text(&l->text, "volume=\"");
        put_value(&l->text, s->f->bricks[n].volume);
        http_put_text(&l->text, brick_key);
        put_value(&l->text, s->f->bricks[n].graph->name);
        http_put_text(&l->text, "\"");
        l->at[n + 1] = l->text.size;
    }
    return l->at && !l->text.is_short;
}

static bool
add_row(struct sheet *s, unsigned brick, enum fop fop, const struct histogram *h)
{
    uint64_t below[HISTOGRAM_OCTAVES];

    if (s->row_count == s->room) {
        unsigned more = s->room ? 2 * s->room : 64;
        struct fop_row *grown = reallocarray(s->rows, more, sizeof *grown);

        if (!grown)
            return false;
        s->rows = grown;
        s->room = more;
    }
    struct fop_row *r = &s->rows[s->row_count++];
    *r = (struct fop_row){.brick = brick, .fop = fop, .calls = s->f->bricks[brick].counts.calls[fop],
                          .count = h->count, .sum = h->sum};
    histogram_below(h, below);
    for (unsigned i = 0; i < EDGES; i++)
        r->below[i] = below[EDGE_FIRST + i * EDGE_STEP - 8];
    histogram_quantiles(h, shares, QUANTILES + 2, r->quantiles);
    return true;
}

static bool
add_rows(struct sheet *s)
{
    struct histogram *h = calloc(1, sizeof *h);
    bool is_well = h;

    io_stats_gather();
    for (unsigned n = 0; n < s->f->brick_count; n++) {
        const struct brick_figures *b = &s->f->bricks[n];

        for (enum fop fop = FOP_null; is_well && fop < FOP_COUNT; fop++) {
            if (!b->counts.calls[fop] || !b->counts.is_used)
                continue;
            histogram_clear(h);
            (void)io_stats_latencies(b->stats, fop, h);
            is_well = add_row(s, n, fop, h);
        }
    }
    free(h);
    return is_well;
}

static void
sheet_free(struct sheet *s)
{
    if (!s)
        return;
    free(s->labels.text.bytes);
    free(s->labels.at);
    free(s->profile.text.bytes);
    free(s->profile.at);
    free(s->rows);
    figures_free(s->f);
    free(s);
}

/* NULL: no memory. */
static struct sheet *
sheet_new(void)
{
    struct sheet *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->began = clock_mono_ns();
    s->f = figures_take(true);
    name_fops(s);
    (void)gethostname(s->host, sizeof s->host - 1); /* "" then */
    if (s->f && make_labels(s, &s->labels, "\",brick_path=\"") &&
        make_labels(s, &s->profile, "\",brick=\"") && add_rows(s)) {
        figures_unpin(s->f);
        return s;
    }
    sheet_free(s);
    return NULL;
}

static size_t
sheet_bytes(const struct sheet *s)
{
    return sizeof *s + s->room * sizeof *s->rows + s->labels.text.room + s->profile.text.room +
           s->f->brick_count * (sizeof *s->f->bricks + 2 * sizeof *s->labels.at);
}

static void
put_labels(struct http_answer *a, const struct labels *l, unsigned brick)
{
    http_put(a, l->text.bytes + l->at[brick], l->at[brick + 1] - l->at[brick]);
}

/* ---- one figure a brick ---------------------------------------------------------------------- */

struct brick_row {
    const char *name, *type, *help;
    double (*value)(const struct brick_figures *b);
    enum { ALWAYS, ONCE_USED, WITH_INDEX, ONCE_A_DISK } when; /* bricks with a line */
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
ROW_FN(heal_pending, b->heal_pending)

static bool
has_row(const struct brick_row *row, const struct brick_figures *b)
{
    return row->when == ALWAYS || (row->when == ONCE_USED && b->counts.is_used) ||
           (row->when == WITH_INDEX && b->heal_pending >= !b->counts.is_used) ||
           (row->when == ONCE_A_DISK && b->is_first_on_disk);
}

/* clang-format off */
static const struct brick_row gluster_rows[] = {
    {"gluster_brick_up", "gauge", "1: the brick's storage is healthy", value_up, ALWAYS},
    {"gluster_brick_capacity_bytes_total", "gauge", "Size of the brick's file system", value_bytes, ONCE_USED},
    {"gluster_brick_capacity_used_bytes", "gauge", "Used of it", value_bytes_used, ONCE_USED},
    {"gluster_brick_capacity_free_bytes", "gauge", "Free of it for ordinary users", value_bytes_free, ONCE_USED},
    {"gluster_brick_inodes_total", "gauge", "Inodes of the brick's file system", value_inodes_all, ONCE_USED},
    {"gluster_brick_inodes_free", "gauge", "Free of them", value_inodes_free, ONCE_USED},
    {"gluster_brick_inodes_used", "gauge", "Used of them", value_inodes_used, ONCE_USED},
    {"gluster_volume_profile_total_reads", "gauge", "Bytes read since its attach", value_read, ONCE_USED},
    {"gluster_volume_profile_total_writes", "gauge", "Bytes written since its attach", value_written, ONCE_USED},
};

static const struct brick_row kiln_rows[] = {
    {"kiln_filesystem_size_bytes", "gauge", "Size of a file system with bricks; the labels are of the first brick on it", value_bytes, ONCE_A_DISK},
    {"kiln_filesystem_used_bytes", "gauge", "Used of it", value_bytes_used, ONCE_A_DISK},
    {"kiln_filesystem_free_bytes", "gauge", "Free of it for ordinary users", value_bytes_free, ONCE_A_DISK},
    {"kiln_filesystem_inodes", "gauge", "Inodes of it", value_inodes_all, ONCE_A_DISK},
    {"kiln_filesystem_inodes_free", "gauge", "Free of them", value_inodes_free, ONCE_A_DISK},
    {"kiln_brick_read_bytes", "counter", "Bytes that READ has answered", value_read, ONCE_USED},
    {"kiln_brick_written_bytes", "counter", "Bytes that came with WRITE", value_written, ONCE_USED},
    {"kiln_brick_open_files", "gauge", "Files that clients have open", value_open, ONCE_USED},
    {"kiln_brick_clients", "gauge", "Clients that are logged in", value_clients, ALWAYS},
    {"kiln_brick_calls_running", "gauge", "Calls that io-threads counts as running", value_running, ONCE_USED},
    {"kiln_brick_calls_queued", "gauge", "Calls that wait for those to end", value_queued, ONCE_USED},
    {"kiln_brick_locks_held", "gauge", "Locks of all kinds that clients hold", value_locks_held, ONCE_USED},
    {"kiln_brick_locks_waiting", "gauge", "Lock requests that wait for another lock", value_locks_waiting, ONCE_USED},
    {"kiln_brick_inodes", "gauge", "Inodes that the brick remembers", value_inodes, ONCE_USED},
    {"kiln_brick_cpu_seconds", "counter", "Processor time for its calls, from one turn in 16 of the workers", value_cpu, ONCE_USED},
    {"kiln_brick_memory_bytes", "gauge", "Pooled objects that are the brick's", value_memory, ONCE_USED},
    {"kiln_brick_heal_pending", "gauge", "Objects that other bricks have to be healed from this one", value_heal_pending, WITH_INDEX},
};
/* clang-format on */

/* `host` NULL: without. The dashboards know the host by two names. */
static void
put_row(struct http_answer *a, const struct sheet *s, const struct brick_row *row, unsigned brick,
        const char *host)
{
    if (!has_row(row, &s->f->bricks[brick]))
        return;
    http_put_text(a, row->name);
    http_put_text(a, row->type[0] == 'c' ? "_total{" : "{"); /* a counter */
    put_labels(a, &s->labels, brick);
    if (host) {
        http_put_text(a, ",host=\"");
        http_put_text(a, host);
        http_put_text(a, "\",hostname=\"");
        http_put_text(a, host);
        http_put_text(a, "\"");
    }
    http_put_text(a, "} ");
    put_double(a, row->value(&s->f->bricks[brick]));
    http_put_text(a, "\n");
}

/* A line for each feature: none for most bricks. */
static void
put_unbuilt(struct http_answer *a, const struct sheet *s, unsigned brick)
{
    const struct brick_figures *b = &s->f->bricks[brick];

    for (unsigned i = 0; i < b->unbuilt_count; i++) {
        http_put_text(a, "kiln_brick_unbuilt_feature{");
        put_labels(a, &s->labels, brick);
        http_printf(a, ",layer=\"%s\",option=\"%s\"} 1\n", b->unbuilt[i]->layer, b->unbuilt[i]->option);
    }
}

/* ---- figures of each fop --------------------------------------------------------------------- */

/* NAME{LABELS,fop="F" */
static void
put_fop(struct http_answer *a, const char *name, const struct sheet *s, const struct fop_row *r)
{
    http_put_text(a, name);
    http_put_text(a, "{");
    put_labels(a, &s->labels, r->brick);
    http_put_text(a, ",fop=\"");
    http_put_text(a, fop_info[r->fop].name);
    http_put_text(a, "\"");
}

static void
end_line(struct http_answer *a, uint64_t number, unsigned decimals)
{
    http_put(a, "} ", 2);
    http_put_number(a, number, decimals);
    http_put(a, "\n", 1);
}

static void
put_calls(struct http_answer *a, const struct sheet *s, const struct fop_row *r)
{
    put_fop(a, "kiln_brick_fop_calls_total", s, r);
    end_line(a, r->calls, 0);
}

static const char *const edges[EDGES + 1] = {
    ",le=\"2.048e-06\"",   ",le=\"8.192e-06\"",   ",le=\"3.2768e-05\"",  ",le=\"0.000131072\"",
    ",le=\"0.000524288\"", ",le=\"0.002097152\"", ",le=\"0.008388608\"", ",le=\"0.033554432\"",
    ",le=\"0.134217728\"", ",le=\"0.536870912\"", ",le=\"2.14748365\"",  ",le=\"8.58993459\"",
    ",le=\"34.3597384\"",  ",le=\"+Inf\""};
static_assert(EDGE_FIRST == 11 && EDGE_STEP == 2, "edges[N] is 2^(11 + 2N) ns");

static void
put_histogram(struct http_answer *a, const struct sheet *s, const struct fop_row *r)
{
    size_t from = a->size;

    put_fop(a, "kiln_brick_fop_duration_seconds_bucket", s, r);
    size_t bytes = a->size - from;
    for (unsigned i = 0; i <= EDGES; i++) {
        if (i)
            http_put_again(a, from, bytes);
        http_put_text(a, edges[i]);
        end_line(a, i < EDGES ? r->below[i] : r->count, 0);
    }
    put_fop(a, "kiln_brick_fop_duration_seconds_count", s, r);
    end_line(a, r->count, 0);
    put_fop(a, "kiln_brick_fop_duration_seconds_sum", s, r);
    end_line(a, r->sum, 9);
}

static void
put_quantiles(struct http_answer *a, const struct sheet *s, const struct fop_row *r)
{
    static const char *const labels[QUANTILES + 2] = {
        NULL, ",quantile=\"0.5\"", ",quantile=\"0.9\"", ",quantile=\"0.99\"", ",quantile=\"0.999\"", NULL};
    size_t from = a->size, bytes = 0;

    for (unsigned i = 1; r->count && i <= QUANTILES; i++) {
        if (bytes)
            http_put_again(a, from, bytes);
        else
            put_fop(a, "kiln_brick_fop_duration_quantile_seconds", s, r);
        bytes = bytes ? bytes : a->size - from;
        http_put_text(a, labels[i]);
        end_line(a, r->quantiles[i], 9);
    }
}

static uint64_t
hits_of(const struct fop_row *r)
{
    return r->calls;
}

static uint64_t
mean_of(const struct fop_row *r)
{
    return r->count ? r->sum / r->count : 0;
}

static uint64_t
least_of(const struct fop_row *r)
{
    return r->quantiles[0];
}

static uint64_t
most_of(const struct fop_row *r)
{
    return r->quantiles[QUANTILES + 1];
}

/* gluster_volume_profile_fop_*: these name the brick otherwise. Nanoseconds are shown as microseconds. */
static const struct profile_row {
    const char *name, *help;
    uint64_t (*value)(const struct fop_row *r);
    unsigned decimals;
} profile_rows[] = {
    {"gluster_volume_profile_fop_hits", "Calls of an operation", hits_of, 0},
    {"gluster_volume_profile_fop_avg_latency", "Microseconds that one took", mean_of, 3},
    {"gluster_volume_profile_fop_min_latency", "Microseconds of the shortest, 2 % at most off", least_of, 3},
    {"gluster_volume_profile_fop_max_latency", "Microseconds of the longest, 2 % at most off", most_of, 3},
};

static void
put_profile(struct http_answer *a, const struct sheet *s, const struct profile_row *p,
            const struct fop_row *r)
{
    http_put_text(a, p->name);
    http_put_text(a, "{");
    put_labels(a, &s->profile, r->brick);
    http_put_text(a, ",fop=\"");
    http_put_text(a, s->fops[r->fop]);
    http_put_text(a, "\"");
    end_line(a, p->value(r), p->decimals);
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
    put_one(a, "kiln_sandbox_refused_calls", "counter", "System calls that the sandbox has refused",
            (double)sandbox_refusals());
    put_one(a, "kiln_worker_events", "counter", "Events that workers handled", (double)w->events);
    put_one(a, "kiln_connections", "gauge", "Connections, of clients and others",
            (double)(t->accepted - t->closed));
    put_one(a, "kiln_connections_opened", "counter", "Connections that there were", (double)t->accepted);
    put_one(a, "kiln_received_bytes", "counter", "Bytes that arrived over connections", (double)t->bytes_in);
    put_one(a, "kiln_sent_bytes", "counter", "Bytes that were sent over connections", (double)t->bytes_out);
    put_one(a, "kiln_received_records", "counter", "Calls that arrived", (double)t->records);
}

/* ---- the answer, part by part ---------------------------------------------------------------- */

enum { GLUSTER_ROWS = sizeof gluster_rows / sizeof gluster_rows[0],
       KILN_ROWS = sizeof kiln_rows / sizeof kiln_rows[0],
       PROFILE_ROWS = sizeof profile_rows / sizeof profile_rows[0] };

/* In the order of the answer. */
enum part {
    PART_GLUSTER,                           /* a part for each of the rows: of each brick a line */
    PART_KILN = PART_GLUSTER + GLUSTER_ROWS,
    PART_UNBUILT = PART_KILN + KILN_ROWS,   /* the lines that each brick needs */
    PART_PROFILE,                           /* as the first: of each fop of a brick a line */
    PART_CALLS = PART_PROFILE + PROFILE_ROWS,
    PART_HISTOGRAMS,
    PART_QUANTILES,
    PART_PROCESS,
    PARTS
};

static void
put_row_family(struct http_answer *a, const struct brick_row *row)
{
    family(a, row->name, row->type, row->help);
}

static void
put_family(struct http_answer *a, unsigned part)
{
    if (part < PART_KILN)
        put_row_family(a, &gluster_rows[part]);
    else if (part < PART_UNBUILT)
        put_row_family(a, &kiln_rows[part - PART_KILN]);
    else if (part == PART_UNBUILT)
        family(a, "kiln_brick_unbuilt_feature", "gauge",
               "1: the volume asks for a feature that is not built; the brick serves without it");
    else if (part < PART_CALLS)
        family(a, profile_rows[part - PART_PROFILE].name, "gauge", profile_rows[part - PART_PROFILE].help);
    else if (part == PART_CALLS)
        family(a, "kiln_brick_fop_calls", "counter", "Calls of an operation");
    else if (part == PART_HISTOGRAMS)
        family(a, "kiln_brick_fop_duration_seconds", "histogram",
               "How long calls took, time in queues included");
    else if (part == PART_QUANTILES)
        family(a, "kiln_brick_fop_duration_quantile_seconds", "gauge",
               "The same since the brick was attached, as quantiles, 2 % at most off");
}

static unsigned
items_of(const struct sheet *s, unsigned part)
{
    return part < PART_PROFILE ? s->f->brick_count : part < PART_PROCESS ? s->row_count : 1;
}

/* Prints the limit of a started volume whose usage is counted. The name of a volume needs no escapes. */
static void
put_limit(const struct volume *v, void *arg)
{
    struct quota_usage usage;

    quota_usage(v, &usage);
    if (usage.limit)
        http_printf(arg, "kiln_volume_limit_bytes{volume=\"%s\"} %llu\n", v->name,
                    (unsigned long long)usage.limit);
}

static void
put_used(const struct volume *v, void *arg)
{
    struct quota_usage usage;

    quota_usage(v, &usage);
    if (usage.is_known)
        http_printf(arg, "kiln_volume_used_bytes{volume=\"%s\"} %llu\n", v->name,
                    (unsigned long long)usage.used);
}

/* ---- sums of volumes ------------------------------------------------------------------------- */

/* Of the bricks of a volume that this process serves. */
struct volume_sum {
    const char *name;
    uint64_t bricks, calls, read, written, open, clients, heal_pending;
};

static int
compare_sums(const void *a, const void *b)
{
    return strcmp(((const struct volume_sum *)a)->name, ((const struct volume_sum *)b)->name);
}

static void
add_to_sum(struct volume_sum *sum, const struct brick_figures *b)
{
    sum->bricks++;
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++)
        sum->calls += b->counts.calls[fop];
    sum->read += b->counts.bytes_read;
    sum->written += b->counts.bytes_written;
    sum->open += b->counts.open;
    if (b->clients > sum->clients) /* a client of the volume is connected to each of its bricks */
        sum->clients = b->clients;
    sum->heal_pending += b->heal_pending > 0 ? (uint64_t)b->heal_pending : 0;
}

/* Returns the sums, one for each volume, sorted by name; NULL: no memory, or no brick. */
static struct volume_sum *
sum_bricks(const struct figures *f, unsigned *count)
{
    struct volume_sum *sums = calloc(f->brick_count ? f->brick_count : 1, sizeof *sums);
    unsigned n = 0;

    *count = 0;
    for (unsigned i = 0; sums && i < f->brick_count; i++) {
        sums[i].name = f->bricks[i].volume;
        add_to_sum(&sums[i], &f->bricks[i]);
    }
    if (!sums || !f->brick_count)
        return sums;
    qsort(sums, f->brick_count, sizeof *sums, compare_sums);
    for (unsigned i = 1; i < f->brick_count; i++) {
        struct volume_sum *to = &sums[n], *from = &sums[i];

        if (strcmp(to->name, from->name) != 0) {
            sums[++n] = *from;
            continue;
        }
        to->bricks += from->bricks;
        to->calls += from->calls;
        to->read += from->read;
        to->written += from->written;
        to->open += from->open;
        to->clients = from->clients > to->clients ? from->clients : to->clients;
        to->heal_pending += from->heal_pending;
    }
    *count = n + 1;
    return sums;
}

static void
put_sums(struct http_answer *a, const struct figures *f)
{
#define SUM(field) offsetof(struct volume_sum, field)
    static const struct {
        const char *name, *type, *help;
        size_t at;
    } families[] = {
        {"kiln_volume_bricks", "gauge", "Bricks of a volume that this process serves", SUM(bricks)},
        {"kiln_volume_calls", "counter", "Calls of all operations to these bricks", SUM(calls)},
        {"kiln_volume_read_bytes", "counter", "Bytes that READ of these bricks has answered", SUM(read)},
        {"kiln_volume_written_bytes", "counter", "Bytes that came with WRITE to these bricks", SUM(written)},
        {"kiln_volume_open_files", "gauge", "Files that clients have open on these bricks", SUM(open)},
        {"kiln_volume_clients", "gauge", "Clients of the brick that has most", SUM(clients)},
        {"kiln_volume_heal_pending", "gauge", "Objects that wait for heal, as these bricks know them",
         SUM(heal_pending)},
    };
    unsigned count;
    struct volume_sum *sums = sum_bricks(f, &count);

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        family(a, families[i].name, families[i].type, families[i].help);
        for (unsigned n = 0; n < count; n++) {
            http_printf(a, "%s%s{volume=\"", families[i].name, families[i].type[0] == 'c' ? "_total" : "");
            put_value(a, sums[n].name);
            http_printf(a, "\"} %llu\n",
                        (unsigned long long)*(const uint64_t *)(const void *)((const char *)&sums[n] +
                                                                              families[i].at));
        }
    }
    free(sums);
}

static void
put_volumes(struct http_answer *a, const struct figures *f)
{
    put_sums(a, f);
    family(a, "kiln_volume_limit_bytes", "gauge",
           "Limit of a volume that this daemon keeps; absent: it has none");
    volumes_each(put_limit, a);
    family(a, "kiln_volume_used_bytes", "gauge",
           "Bytes that the files of a volume use, where they are counted; replicas count once");
    volumes_each(put_used, a);
}

static void
put_end(struct http_answer *a, const struct sheet *s)
{
    put_pools(a, s->f);
    put_volumes(a, s->f);
    put_process(a, s->f, s->host);
    put_one(a, "kiln_scrape_duration_seconds", "gauge", "What this answer took",
            (double)(clock_mono_ns() - s->began) / 1e9);
    if (a->content_type == openmetrics)
        http_put_text(a, "# EOF\n");
}

static void
put_item(struct http_answer *a, const struct sheet *s, unsigned part, unsigned item)
{
    if (part < PART_KILN)
        put_row(a, s, &gluster_rows[part], item, s->host);
    else if (part == PART_UNBUILT)
        put_unbuilt(a, s, item);
    else if (part < PART_UNBUILT)
        put_row(a, s, &kiln_rows[part - PART_KILN], item, NULL);
    else if (part < PART_CALLS)
        put_profile(a, s, &profile_rows[part - PART_PROFILE], &s->rows[item]);
    else if (part == PART_CALLS)
        put_calls(a, s, &s->rows[item]);
    else if (part == PART_HISTOGRAMS)
        put_histogram(a, s, &s->rows[item]);
    else if (part == PART_QUANTILES)
        put_quantiles(a, s, &s->rows[item]);
    else
        put_end(a, s);
}

/* Adds items until the answer has so many bytes. False: no item is left. */
static bool
put_items(struct http_answer *a, struct sheet *s, size_t bytes)
{
    struct place *p = &s->place;

    while (p->part < PARTS && a->size < bytes && !a->is_short) {
        unsigned items = items_of(s, p->part);

        if (p->item == 0)
            put_family(a, p->part);
        for (; p->item < items && (p->item == 0 || a->size < bytes); p->item++) /* a family once */
            put_item(a, s, p->part, p->item);
        if (p->item == items)
            *p = (struct place){.part = p->part + 1};
    }
    return p->part < PARTS && !a->is_short;
}

enum { WHOLE_BYTES = 16 << 20, PIECE_BYTES = 256 << 10 };

static bool
put_piece(struct http_answer *a, void *sheet)
{
    return put_items(a, sheet, PIECE_BYTES);
}

static void
end_pieces(void *sheet)
{
    sheet_free(sheet);
}

void
metrics_answer(const struct http_request *req, struct http_answer *answer)
{
    static _Atomic size_t usual; /* bytes of the last answer */
    struct sheet *s = sheet_new();
    const char *accepted = http_header(req, "Accept");

    if (!s) {
        http_fail(answer, 503, "no memory for the figures");
        return;
    }
    answer->content_type =
        accepted && strstr(accepted, "application/openmetrics-text") ? openmetrics : prometheus;
    http_reserve(answer, usual + usual / 16);
    bool is_more = put_items(answer, s, WHOLE_BYTES);
    usual = answer->size;
    if (!is_more) {
        sheet_free(s);
        return;
    }
    answer->more = put_piece;
    answer->end = end_pieces;
    answer->arg = s;
    answer->arg_bytes = sheet_bytes(s);
}
