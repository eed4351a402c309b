/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"

enum kind { TEXT, COUNT, BYTES, MICROSECONDS, PERCENT };

struct top_column {
    const char *title;
    const char *key;
    enum kind kind;
    int width;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static json_t *
brick_rows(const json_t *rates)
{
    return json_incref(json_object_get(rates, "bricks"));
}

/* The lists that bricks have, as one, each item with its brick. */
static json_t *
rows_of(const json_t *rates, const char *list)
{
    json_t *rows = json_array(), *brick, *item;
    size_t i, k;

    json_array_foreach(json_object_get(rates, "bricks"), i, brick)
    {
        json_array_foreach(json_object_get(brick, list), k, item)
        {
            json_t *row = json_copy(item);

            json_object_set(row, "brick", json_object_get(brick, "brick"));
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

static json_t *
fop_rows(const json_t *rates)
{
    return rows_of(rates, "fops");
}

static json_t *
client_rows(const json_t *rates)
{
    return rows_of(rates, "client_list");
}

static json_t *
slow_rows(const json_t *rates)
{
    return rows_of(rates, "slow");
}

static json_t *
unbuilt_rows(const json_t *rates)
{
    return rows_of(rates, "not_built");
}

/* ---- the views ------------------------------------------------------------------------------- */

/* clang-format off */
static const struct top_column brick_columns[] = {
    {"brick", "brick", TEXT, 9}, {"ops/s", "ops", COUNT, 6},          {"p50", "p50_us", MICROSECONDS, 6},
    {"p99", "p99_us", MICROSECONDS, 6}, {"rd/s", "read", BYTES, 5}, {"wr/s", "written", BYTES, 5},
    {"queue", "queue", COUNT, 5}, {"open", "open", COUNT, 5},         {"cli", "clients", COUNT, 3},
    {"lock", "locks_held", COUNT, 5}, {"wait", "locks_waiting", COUNT, 4}, {"mem", "memory", BYTES, 5},
    {"cpu%", "cpu_percent", PERCENT, 4},
};
static const struct top_column fop_columns[] = {
    {"brick", "brick", TEXT, 14}, {"fop", "fop", TEXT, 13}, {"ops/s", "ops", COUNT, 8},
    {"p50", "p50_us", MICROSECONDS, 7}, {"p99", "p99_us", MICROSECONDS, 7}, {"time%", "share", PERCENT, 5},
};
static const struct top_column client_columns[] = {
    {"brick", "brick", TEXT, 14}, {"client", "client", TEXT, 16}, {"from", "peer", TEXT, 22},
    {"in/s", "received", BYTES, 6}, {"out/s", "sent", BYTES, 6}, {"lock", "locks", COUNT, 5},
};
static const struct top_column slow_columns[] = {
    {"what", "object", TEXT, 12}, {"fop", "fop", TEXT, 9}, {"total", "total_us", MICROSECONDS, 6},
    {"worker", "worker_us", MICROSECONDS, 6}, {"queue", "queue_us", MICROSECONDS, 6},
    {"locks", "locks_us", MICROSECONDS, 6}, {"disk", "disk_us", MICROSECONDS, 6},
    {"reply", "reply_us", MICROSECONDS, 6}, {"ago s", "age_s", COUNT, 5}, {"brick", "brick", TEXT, 9},
};
static const struct top_column unbuilt_columns[] = {
    {"brick", "brick", TEXT, 14}, {"layer", "layer", TEXT, 22}, {"option", "option", TEXT, 18},
    {"so", "without", TEXT, 64},
};
/* clang-format on */
#define COLUMNS(array) (array), sizeof(array) / sizeof(array)[0]

const struct top_view top_views[TOP_VIEWS] = {
    {"bricks", COLUMNS(brick_columns), 1, brick_rows},
    {"fops", COLUMNS(fop_columns), 2, fop_rows},
    {"clients", COLUMNS(client_columns), 3, client_rows},
    {"slow", COLUMNS(slow_columns), 2, slow_rows},
    {"not built", COLUMNS(unbuilt_columns), 0, unbuilt_rows},
};

/* ---- sorting --------------------------------------------------------------------------------- */

static struct {
    const struct top_column *column;
    bool is_reversed;
} order; /* qsort(3) passes nothing along; one thread */

static int
compare(const void *x, const void *y)
{
    const json_t *a = json_object_get(*(json_t *const *)x, order.column->key);
    const json_t *b = json_object_get(*(json_t *const *)y, order.column->key);
    int result;

    if (order.column->kind == TEXT) {
        const char *left = json_string_value(a), *right = json_string_value(b);

        result = strcmp(left ? left : "", right ? right : "");
    } else {
        double left = json_number_value(a), right = json_number_value(b);

        result = (left < right) - (left > right);
    }
    return order.is_reversed ? -result : result;
}

json_t *
top_rows(const struct top_view *view, const json_t *rates, unsigned sorted_by, bool is_reversed)
{
    json_t *unsorted = view->rows(rates), *sorted = json_array();
    size_t count = json_array_size(unsorted);
    json_t **rows = malloc((count + 1) * sizeof *rows);

    order.column = &view->columns[sorted_by];
    order.is_reversed = is_reversed;
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = json_array_get(unsorted, i);
    if (rows)
        qsort(rows, count, sizeof *rows, compare);
    for (size_t i = 0; rows && i < count; i++)
        json_array_append(sorted, rows[i]);
    free(rows);
    json_decref(unsorted);
    return sorted;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Four digits at most, and a letter: 12.3k, 4.5M. `step`: 1000 or 1024. */
static void
put_short(char *out, size_t size, double value, double step)
{
    static const char letters[] = " kMGTP";
    unsigned i = 0;

    for (; value >= 999.5 && letters[i + 1]; i++)
        value /= step;
    if (i == 0)
        snprintf(out, size, value < 9.95 && value != (double)(int)value ? "%.1f" : "%.0f", value);
    else
        snprintf(out, size, value < 99.95 ? "%.1f%c" : "%.0f%c", value, letters[i]);
}

static void
put_time(char *out, size_t size, double us)
{
    if (us < 999.5)
        snprintf(out, size, us > 0 && us < 9.95 ? "%.1fus" : "%.0fus", us);
    else if (us < 999.5e3)
        snprintf(out, size, us < 99.95e3 ? "%.1fms" : "%.0fms", us / 1e3);
    else
        snprintf(out, size, "%.1fs", us / 1e6);
}

static void
put_cell(const struct top_column *c, const json_t *row, char *out, size_t size)
{
    const json_t *value = json_object_get(row, c->key);
    double n = json_number_value(value);

    switch (c->kind) {
    case TEXT:
        snprintf(out, size, "%s", json_is_string(value) ? json_string_value(value) : "");
        break;
    case COUNT:
        put_short(out, size, n, 1000);
        break;
    case BYTES:
        put_short(out, size, n, 1024);
        break;
    case MICROSECONDS:
        put_time(out, size, n);
        break;
    case PERCENT:
        snprintf(out, size, "%.1f", n);
        break;
    }
}

static void
put_title(const struct top_column *c, bool is_sorted_by, char *out, size_t size)
{
    snprintf(out, size, "%s", c->title);
    for (char *s = out; is_sorted_by && *s; s++)
        *s = (char)toupper((unsigned char)*s);
}

/* A path's end tells more than its beginning. */
static const char *
end_of(const char *text, int width)
{
    size_t len = strlen(text);

    return len > (size_t)width ? text + len - (size_t)width : text;
}

void
top_line(const struct top_view *view, const json_t *row, unsigned sorted_by, int width, char *out,
         size_t size)
{
    int spare = width - (int)view->column_count + 1;
    size_t at = 0;

    for (unsigned i = 0; i < view->column_count; i++)
        spare -= view->columns[i].width;
    out[0] = '\0';
    for (unsigned i = 0; i < view->column_count && at < size; i++) {
        const struct top_column *c = &view->columns[i];
        int room = c->width + (i == 0 && spare > 0 ? spare : 0);
        char cell[4352];

        if (row)
            put_cell(c, row, cell, sizeof cell);
        else
            put_title(c, i == sorted_by, cell, sizeof cell);
        for (char *s = cell; *s; s++)
            *s = *s >= ' ' && *s < 0x7f ? *s : '?';
        at += (size_t)snprintf(out + at, size - at, c->kind == TEXT ? "%s%-*s" : "%s%*s", i ? " " : "", room,
                               end_of(cell, room));
    }
    if (width >= 0 && (size_t)width < size)
        out[width] = '\0';
}

/* "  machine 93% load 4.1 wait cpu 12 mem 0 io 3": percent of the last ten seconds; "": kilnd is an older
 * one. */
static void
put_machine(char *out, size_t size, const json_t *m)
{
    static const struct {
        const char *key, *title;
    } waits[] = {{"cpu_pressure", "cpu"}, {"memory_pressure", "mem"}, {"io_pressure", "io"}};
    int at = 0;

    *out = '\0';
    if (!json_is_object(m))
        return;
    at = snprintf(out, size, "  machine %.0f%% load %.1f",
                  json_number_value(json_object_get(m, "cpu_percent")),
                  json_number_value(json_object_get(m, "load_1min")));
    for (size_t i = 0; i < 3 && at > 0 && (size_t)at < size; i++) {
        const json_t *wait = json_object_get(m, waits[i].key);

        if (json_is_number(wait))
            at += snprintf(out + at, size - (size_t)at, "%s %s %.0f", i ? "" : " wait", waits[i].title,
                           json_number_value(wait));
    }
}

void
top_summary(const json_t *rates, char *out, size_t size)
{
    const json_t *pools = json_object_get(rates, "pools");
    double objects = json_number_value(json_object_get(pools, "hot")) +
                       json_number_value(json_object_get(pools, "cold"));
    char resident[16], live[16], cached[16], bytes[16], unbuilt[48] = "", machine[96];
    json_t *features = unbuilt_rows(rates);

    if (json_array_size(features) > 0)
        snprintf(unbuilt, sizeof unbuilt, "  NOT BUILT: %zu", json_array_size(features));
    json_decref(features);
    put_machine(machine, sizeof machine, json_object_get(rates, "machine"));
    put_short(resident, sizeof resident, json_number_value(json_object_get(rates, "resident_bytes")), 1024);
    put_short(live, sizeof live, json_number_value(json_object_get(pools, "live")), 1000);
    put_short(cached, sizeof cached, objects, 1000);
    put_short(bytes, sizeof bytes, json_number_value(json_object_get(pools, "bytes")), 1024);
    snprintf(out, size, "%zu bricks  cpu %.0f%%  ram %s  threads %.0f  pools %s live %s cached %s%s%s",
             json_array_size(json_object_get(rates, "bricks")),
             json_number_value(json_object_get(rates, "cpu_percent")), resident,
             json_number_value(json_object_get(rates, "threads")), bytes, live, cached, machine, unbuilt);
}
