/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Layers write sections and key=value lines (log/dump.h); this file makes JSON of these. Lines stay a list of
 * pairs: a key may come more than once in a section, and the order of the lines has a meaning. */
#include "bricks/statedump-json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bricks/figures.h"
#include "daemon/http.h"
#include "graph/graph.h"
#include "log/dump.h"

enum { TOP_POOLS = 20, BYTES_DEFAULT = 4 << 20, BYTES_MAX = 32 << 20 };

/* ---- text, up to a bound --------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t size, room, max;
    bool is_cut;
};

/* Drops the bytes that do not fit: the writer goes on. */
static ssize_t
text_write(void *cookie, const char *data, size_t size)
{
    struct text *t = cookie;
    size_t fits = t->size + size <= t->max ? size : t->max - t->size;

    t->is_cut |= fits < size;
    if (t->size + fits > t->room) {
        size_t wanted = 2 * (t->size + fits) < t->max ? 2 * (t->size + fits) : t->max;
        char *grown = realloc(t->bytes, wanted + 1);

        if (!grown) {
            t->is_cut = true;
            return (ssize_t)size;
        }
        t->bytes = grown;
        t->room = wanted;
    }
    if (fits)
        memcpy(t->bytes + t->size, data, fits);
    t->size += fits;
    return (ssize_t)size;
}

/* 0 or -ENOMEM. The text ends with a 0 and becomes the caller's. */
static int
text_of_graph(struct graph *g, struct text *t)
{
    struct dump d = {.file = fopencookie(t, "w", (cookie_io_functions_t){.write = text_write})};

    if (!d.file)
        return -ENOMEM;
    graph_dump(g, &d);
    if (fclose(d.file) || !t->bytes)
        return -ENOMEM;
    t->bytes[t->size] = '\0';
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Leaves out a line that was cut in its middle, which has no newline. */
static void
put_sections(struct http_answer *a, char *text)
{
    bool has_section = false, has_line = false;

    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *equals;

        *end = '\0';
        if (line[0] == '[' && end > line + 1) {
            end[-1] = '\0'; /* the bracket */
            http_printf(a, "%s{\"section\":", has_section ? "]}," : "");
            http_put_json_string(a, line + 1);
            http_printf(a, ",\"lines\":[");
            has_section = true;
            has_line = false;
        } else if (has_section && (equals = strchr(line, '='))) {
            *equals = '\0';
            http_printf(a, "%s[", has_line ? "," : "");
            http_put_json_string(a, line);
            http_put(a, ",", 1);
            http_put_json_string(a, equals + 1);
            http_put(a, "]", 1);
            has_line = true;
        }
    }
    http_printf(a, "%s", has_section ? "]}" : "");
}

static int
put_brick(struct http_answer *a, const struct brick_figures *b, size_t max)
{
    struct text t = {.max = max};
    int err = text_of_graph(b->graph, &t);

    if (!err) {
        http_printf(a, "{\"brick\":");
        http_put_json_string(a, b->graph->name);
        http_printf(a, ",\"volume\":");
        http_put_json_string(a, b->volume);
        http_printf(a, ",\"memory_bytes\":%" PRIu64 ",\"is_cut\":%s,\"sections\":[", b->memory_bytes,
                    t.is_cut ? "true" : "false");
        put_sections(a, t.bytes);
        http_printf(a, "]}");
    }
    free(t.bytes);
    return err;
}

static int
by_bytes(const void *x, const void *y)
{
    const struct pool_figures *a = x, *b = y;

    return (a->resident_bytes < b->resident_bytes) - (a->resident_bytes > b->resident_bytes);
}

static void
put_top(struct http_answer *a, struct figures *f)
{
    if (f->pool_count)
        qsort(f->pools, f->pool_count, sizeof f->pools[0], by_bytes);
    http_printf(a, "{\"resident_bytes\":%" PRIu64 ",\"threads\":%u,\"top\":[", f->memory.resident,
                f->threads);
    for (unsigned i = 0; i < f->pool_count && i < TOP_POOLS; i++) {
        const struct pool_figures *p = &f->pools[i];

        http_printf(a, "%s{\"pool\":", i ? "," : "");
        http_put_json_string(a, p->name);
        http_printf(a,
                    ",\"bytes\":%" PRIu64 ",\"live\":%" PRIu64 ",\"hot\":%" PRIu64 ",\"cold\":%" PRIu64 "}",
                    p->resident_bytes, p->live, p->hot, p->cold);
    }
    http_printf(a, "],\"bricks\":[");
}

/* `only` NULL: all. The number of bricks, or -ENOMEM. */
static int
put_bricks(struct http_answer *a, const struct figures *f, const char *only, size_t max)
{
    int count = 0;

    for (unsigned i = 0; i < f->brick_count; i++) {
        if (only && strcmp(only, f->bricks[i].graph->name) != 0)
            continue;
        if (count++)
            http_put(a, ",", 1);
        int err = put_brick(a, &f->bricks[i], max);
        if (err)
            return err;
    }
    http_printf(a, "]}\n");
    return count;
}

/* 0: no number. */
static size_t
wanted_bytes(const struct http_request *req)
{
    const char *text = http_query(req, "max_bytes");
    char *end;

    if (!text)
        return BYTES_DEFAULT;
    unsigned long long n = strtoull(text, &end, 10);
    return *end || end == text || text[0] == '-' || n > BYTES_MAX ? 0 : (size_t)n;
}

void
statedump_json(const struct http_request *req, struct http_answer *answer)
{
    const char *only = http_query(req, "brick");
    size_t max = wanted_bytes(req);

    if (!max) {
        http_fail(answer, 400, "max_bytes: expected a number from 1 to %d", BYTES_MAX);
        return;
    }
    struct figures *f = figures_take(true);
    int count = -ENOMEM;

    if (f) {
        answer->content_type = "application/json";
        put_top(answer, f);
        count = put_bricks(answer, f, only, max);
    }
    if (count < 0)
        http_fail(answer, 503, "no memory for the statedump");
    else if (only && !count)
        http_fail(answer, 404, "%s: there is no such brick here", only);
    figures_free(f);
}
