/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* GET /top[?slow=N]: what `kiln top` makes its figures of, with the N slowest calls of all bricks; without N
 * with all that are kept. A line of JSON, and behind it a line for each fop of a brick, "CALLS NS 12:3 13:9":
 * calls, nanoseconds of all of them, bucket and count of each bucket that is not empty. "fops" says where the
 * line of each begins, in bytes behind the JSON's line. As JSON they would be nine tenths of what it costs to
 * read the answer. */
#include "glusterfsd/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "event/timer.h"
#include "fs/brick-client.h"
#include "glusterfsd/brick-ops.h"
#include "glusterfsd/figures.h"
#include "glusterfsd/http.h"
#include "graph/graph.h"

struct top_work {
    struct http_answer lines;      /* of fops */
    struct histogram h;            /* of one fop */
    struct io_stats_slow slow[IO_STATS_SLOW_MAX]; /* of one brick */
    uint64_t slow_ns;              /* calls that took less are not told */
};

static void
put_fop_line(struct http_answer *a, uint64_t calls, const struct histogram *h)
{
    http_put_number(a, calls, 0);
    http_put(a, " ", 1);
    http_put_number(a, h->sum, 0);
    for (uint32_t left = h->octaves; left; left &= left - 1) {
        unsigned at = (unsigned)__builtin_ctz(left) * HISTOGRAM_SUB;

        for (unsigned i = at; i < at + HISTOGRAM_SUB; i++) {
            if (!h->buckets[i])
                continue;
            http_put(a, " ", 1);
            http_put_number(a, i, 0);
            http_put(a, ":", 1);
            http_put_number(a, h->buckets[i], 0);
        }
    }
    http_put(a, "\n", 1);
}

static void
put_fops(struct http_answer *a, const struct brick_figures *b, struct top_work *w)
{
    bool is_first = true;

    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        if (!b->counts.calls[fop])
            continue;
        histogram_clear(&w->h);
        (void)io_stats_latencies(b->stats, fop, &w->h);
        http_printf(a, "%s\"%s\":%zu", is_first ? "" : ",", fop_info[fop].name, w->lines.size);
        put_fop_line(&w->lines, b->counts.calls[fop], &w->h);
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
put_slowest_json(struct http_answer *a, const struct brick_figures *b, struct top_work *w)
{
    unsigned count = b->stats ? io_stats_slowest(b->stats, w->slow) : 0;

    for (unsigned i = 0; i < count && w->slow[i].total_ns >= w->slow_ns; i++) {
        http_put(a, ",", i > 0);
        put_slow_json(a, &w->slow[i]);
    }
}

static int
longest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

/* False: no memory. */
static bool
find_slow(const struct figures *f, size_t wanted, struct top_work *w)
{
    uint64_t *all = calloc((size_t)f->brick_count * IO_STATS_SLOW_MAX + 1, sizeof *all);
    size_t count = 0;

    if (!all)
        return false;
    for (unsigned n = 0; n < f->brick_count; n++) {
        unsigned more = f->bricks[n].stats ? io_stats_slowest(f->bricks[n].stats, w->slow) : 0;

        for (unsigned i = 0; i < more; i++)
            all[count++] = w->slow[i].total_ns;
    }
    qsort(all, count, sizeof *all, longest_first);
    w->slow_ns = count > wanted ? (wanted ? all[wanted - 1] : UINT64_MAX) : 0;
    free(all);
    return true;
}

static void
put_brick_json(struct http_answer *a, const struct brick_figures *b, struct top_work *w)
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
    put_fops(a, b, w);
    http_printf(a, "},\"client_list\":[");
    put_clients_json(a, b->graph);
    http_printf(a, "],\"slow\":[");
    put_slowest_json(a, b, w);
    http_printf(a, "]}");
}

static void
put_all_json(struct http_answer *a, const struct figures *f, struct top_work *w)
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
        put_brick_json(a, &f->bricks[i], w);
    }
    http_printf(a, "]}\n");
}

void
top_answer(const struct http_request *req, struct http_answer *answer)
{
    static _Atomic size_t usual; /* bytes of the last answer */
    const char *wanted = http_query(req, "slow");
    struct figures *f = figures_take();
    struct top_work *w = calloc(1, sizeof *w);
    bool is_well = f && w;

    if (is_well && wanted)
        is_well = find_slow(f, strtoul(wanted, NULL, 10), w);
    if (is_well) {
        http_reserve(answer, usual + usual / 16);
        http_reserve(&w->lines, usual);
        io_stats_gather();
        put_all_json(answer, f, w);
        http_put(answer, w->lines.bytes, w->lines.size);
        answer->is_short |= w->lines.is_short;
        usual = answer->size;
    } else {
        http_fail(answer, 503, "no memory for the figures");
    }
    figures_free(f);
    if (w)
        free(w->lines.bytes);
    free(w);
}
