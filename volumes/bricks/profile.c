/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/read-section.h"
#include "bricks/bricks.h"
#include "graph/graph.h"
#include "xlators/debug/io-stats/io-stats.h"

static struct xlator *
stats_of(struct graph *g)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        if (strcmp(g->layers[i].type->name, "debug/io-stats") == 0)
            return &g->layers[i];
    }
    return NULL;
}

static json_t *
microseconds(uint64_t ns)
{
    return json_real((double)ns / 1000);
}

static json_t *
describe_fop(struct xlator *stats, enum fop fop, uint64_t calls, struct histogram *h)
{
    histogram_clear(h);
    bool has_times = io_stats_latencies(stats, fop, h) && h->count > 0;

    return json_pack("{ss sI so so so}", "fop", fop_info[fop].name, "calls", (json_int_t)calls, "mean_us",
                     has_times ? microseconds(h->sum / h->count) : json_null(), "p50_us",
                     has_times ? microseconds(histogram_quantile(h, 0.5)) : json_null(), "p99_us",
                     has_times ? microseconds(histogram_quantile(h, 0.99)) : json_null());
}

/* Returns null for text that is not UTF-8 or that is cut within a character. */
static json_t *
text_or_null(const char *bytes)
{
    json_t *json = json_string(bytes);

    return json ? json : json_string("(a name that cannot be shown)");
}

static json_t *
describe_slow(const struct io_stats_slow *s)
{
    json_t *stages = json_object();

    for (unsigned i = 0; i < STAGES; i++)
        json_object_set_new(stages, io_stats_stage_names[i],
                            i == STAGE_REPLY && !s->is_sent ? json_null() : microseconds(s->stage_ns[i]));
    return json_pack("{ss so so so sI si si so so}", "fop", fop_info[s->fop].name, "total_us",
                     microseconds(s->total_ns), "stages_us", stages, "age_s",
                     json_real((double)s->age_ns / 1e9), "bytes", (json_int_t)s->bytes, "errno", s->err,
                     "pid", (int)s->pid, "client", text_or_null(s->client), "object",
                     text_or_null(s->object));
}

/* Returns NULL without memory. */
static json_t *
list_slow(struct xlator *stats)
{
    struct io_stats_slow *all = malloc(IO_STATS_SLOW_MAX * sizeof *all);
    unsigned count = all ? io_stats_slowest(stats, all) : 0;
    json_t *list = all ? json_array() : NULL;

    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, describe_slow(&all[i]));
    free(all);
    return list;
}

static json_t *
describe_stats(struct xlator *stats)
{
    struct io_stats_counts counts;
    struct histogram *h = calloc(1, sizeof *h);
    json_t *fops = h ? json_array() : NULL;

    io_stats_counts(stats, &counts);
    io_stats_gather();
    for (unsigned i = 0; i < FOP_COUNT && fops; i++) {
        if (counts.calls[i] == 0 ||
            json_array_append_new(fops, describe_fop(stats, i, counts.calls[i], h)) == 0)
            continue;
        json_decref(fops);
        fops = NULL;
    }
    free(h);
    return json_pack("{sb sI sI sI so so}", "online", 1, "bytes_read", (json_int_t)counts.bytes_read,
                     "bytes_written", (json_int_t)counts.bytes_written, "open_files", (json_int_t)counts.open,
                     "fops", fops, "slow", list_slow(stats));
}

double
profile_cpu_seconds(struct graph *g)
{
    struct xlator *stats = stats_of(g);
    struct io_stats_counts counts = {0};

    if (stats)
        io_stats_counts(stats, &counts);
    return (double)counts.cpu_ns / 1e9;
}

json_t *
profile_of_graph(struct graph *g)
{
    struct xlator *stats = g ? stats_of(g) : NULL;

    read_section_begin();
    json_t *json = stats ? describe_stats(stats) : json_pack("{sb}", "online", 0);
    read_section_end();
    return json;
}

json_t *
profile_of_brick(const struct volume *v, unsigned brick)
{
    struct graph *g = bricks_find(v->bricks[brick].path);
    json_t *json = profile_of_graph(g);

    if (g)
        graph_unpin(g);
    return json;
}
