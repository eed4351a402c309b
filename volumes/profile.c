/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/read-section.h"
#include "glusterfsd/bricks.h"
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
    memset(h, 0, sizeof *h);
    bool has_times = io_stats_latencies(stats, fop, h) && h->count > 0;

    return json_pack("{ss sI so so so}", "fop", fop_info[fop].name, "calls", (json_int_t)calls, "mean_us",
                     has_times ? microseconds(h->sum / h->count) : json_null(), "p50_us",
                     has_times ? microseconds(histogram_quantile(h, 0.5)) : json_null(), "p99_us",
                     has_times ? microseconds(histogram_quantile(h, 0.99)) : json_null());
}

static json_t *
describe(struct xlator *stats)
{
    struct io_stats_counts counts;
    struct histogram *h = malloc(sizeof *h);
    json_t *fops = h ? json_array() : NULL;

    io_stats_counts(stats, &counts);
    for (unsigned i = 0; i < FOP_COUNT && fops; i++) {
        if (counts.calls[i] == 0 ||
            json_array_append_new(fops, describe_fop(stats, i, counts.calls[i], h)) == 0)
            continue;
        json_decref(fops);
        fops = NULL;
    }
    free(h);
    return json_pack("{sb sI sI sI so}", "online", 1, "bytes_read", (json_int_t)counts.bytes_read,
                     "bytes_written", (json_int_t)counts.bytes_written, "open_files", (json_int_t)counts.open,
                     "fops", fops);
}

json_t *
profile_of_brick(const struct volume *v, unsigned brick)
{
    struct graph *g = bricks_find(v->bricks[brick].path);
    struct xlator *stats = g ? stats_of(g) : NULL;

    read_section_begin();
    json_t *json = stats ? describe(stats) : json_pack("{sb}", "online", 0);
    read_section_end();
    if (g)
        graph_unpin(g);
    return json;
}
