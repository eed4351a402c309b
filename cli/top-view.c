/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"

enum kind { TEXT, COUNT, BYTES, MICROSECONDS, PERCENT };
/* The first column takes spare width up to FIRST_MAX. The last column takes the rest if its kind is TEXT. */
enum { FIRST_MAX = 40, WIDTH_MORE = 92, WIDTH_PATHS = 124 };

struct top_column {
    const char *title;
    const char *key;
    enum kind kind;
    int width;
    int from_width; /* the column is shown on screens of this width or more */
};

/* ---- names of bricks ------------------------------------------------------------------------- */

static const char *
row_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    return text ? text : "";
}

/* Returns the last `components` components of a path; 1: the file's name alone. */
static const char *
tail_of(const char *path, unsigned components)
{
    const char *at = path + strlen(path);

    while (at > path && components > 0) {
        at--;
        if (*at == '/' && --components == 0)
            return at + 1;
    }
    return at;
}

/* Tells whether another brick of the volume has the same last components. */
static bool
is_tail_shared(const json_t *bricks, const json_t *brick, unsigned components)
{
    const char *tail = tail_of(row_text(brick, "brick"), components);
    const json_t *other;
    size_t i;

    json_array_foreach(bricks, i, other)
    {
        if (other != brick && strcmp(row_text(other, "volume"), row_text(brick, "volume")) == 0 &&
            strcmp(row_text(other, "host"), row_text(brick, "host")) == 0 &&
            strcmp(tail_of(row_text(other, "brick"), components), tail) == 0)
            return true;
    }
    return false;
}

void
top_name_bricks(json_t *rates)
{
    const json_t *bricks = json_object_get(rates, "bricks");
    json_t *brick;
    size_t i;

    json_array_foreach(bricks, i, brick)
    {
        const char *volume = row_text(brick, "volume"), *path = row_text(brick, "brick");
        const char *host = row_text(brick, "host");
        unsigned components = 1;

        while (tail_of(path, components) > path && is_tail_shared(bricks, brick, components))
            components++;
        json_t *name = json_sprintf("%s%s%s%s%s", volume, *volume ? ":" : "", host, *host ? ":" : "",
                                    tail_of(path, components));
        json_object_set_new(brick, "name", name ? name : json_string("?"));
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static json_t *
brick_rows(const json_t *rates)
{
    return json_incref(json_object_get(rates, "bricks"));
}

/* Joins the bricks' lists of this key into one list. Each row carries the name and volume of its brick. */
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

            json_object_set(row, "name", json_object_get(brick, "name"));
            json_object_set(row, "volume", json_object_get(brick, "volume"));
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

/* One row for each host of a store. */
static json_t *
host_rows(const json_t *rates)
{
    json_t *rows = json_array(), *host;
    size_t i;

    json_array_foreach(json_object_get(rates, "hosts"), i, host)
    {
        json_t *row = json_copy(host);

        if (!json_is_string(json_object_get(row, "error")))
            json_object_set_new(row, "error", json_string("answers"));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void
add_number(json_t *sum, const json_t *row, const char *key, bool is_greatest)
{
    double had = json_number_value(json_object_get(sum, key)),
           more = json_number_value(json_object_get(row, key));

    json_object_set_new(sum, key, json_real(!is_greatest ? had + more : more > had ? more : had));
}

/* Adds the figures of a brick or volume. Percentiles cannot be added: the sum shows the worst. */
static void
add_row_to_sum(json_t *sum, const json_t *row)
{
    static const char *const added[] = {"ops",        "read",          "written", "queue",      "open",
                                        "locks_held", "locks_waiting", "memory",  "cpu_percent"};

    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        add_number(sum, row, added[i], false);
    add_number(sum, row, "p50_us", true);
    add_number(sum, row, "p99_us", true);
}

/* Returns one row for each volume. A client of a volume connects to all bricks, so the greatest number of
 * clients of a brick is the volume's number of clients. */
static json_t *
sum_volumes(const json_t *bricks)
{
    json_t *rows = json_array(), *by_name = json_object(), *brick;
    size_t i;

    json_array_foreach(bricks, i, brick)
    {
        const char *volume = row_text(brick, "volume");
        json_t *sum = json_object_get(by_name, volume);

        if (!sum) {
            sum = json_pack("{ss ss}", "name", *volume ? volume : "?", "volume", volume);
            json_array_append(rows, sum);
            json_object_set_new(by_name, volume, sum);
        }
        add_row_to_sum(sum, brick);
        add_number(sum, brick, "clients", true);
        json_object_set_new(sum, "bricks",
                            json_integer(json_integer_value(json_object_get(sum, "bricks")) + 1));
    }
    json_decref(by_name);
    return rows;
}

static json_t *
volume_rows(const json_t *rates)
{
    return sum_volumes(json_object_get(rates, "bricks"));
}

json_t *
top_sum(const struct top_view *view, const json_t *rows)
{
    bool is_of_bricks = view == &top_views[TOP_BRICKS];
    char name[64];

    if ((!is_of_bricks && view != &top_views[TOP_VOLUMES]) || json_array_size(rows) < 2)
        return NULL;
    json_t *volumes = is_of_bricks ? sum_volumes(rows) : json_incref((json_t *)rows), *sum = json_object(),
           *one;
    size_t i;

    json_array_foreach(volumes, i, one)
    {
        add_row_to_sum(sum, one);
        add_number(sum, one, "clients", false);
        add_number(sum, one, "bricks", false);
    }
    snprintf(name, sizeof name, "all %zu %s", json_array_size(rows), view->name);
    json_object_set_new(sum, "name", json_string(name));
    json_decref(volumes);
    return sum;
}

json_t *
top_filter(json_t *rows, const char *text)
{
    json_t *kept = *text ? json_array() : json_incref(rows), *row, *value;
    const char *key;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        bool has_it = false;

        if (!*text)
            break;
        json_object_foreach(row, key, value)
            has_it |= json_is_string(value) && strstr(json_string_value(value), text);
        if (has_it)
            json_array_append(kept, row);
    }
    json_decref(rows);
    return kept;
}

/* ---- the views ------------------------------------------------------------------------------- */

/* clang-format off */
static const struct top_column brick_columns[] = {
    {"brick", "name", TEXT, 21, 0}, {"ops/s", "ops", COUNT, 6, 0}, {"p50", "p50_us", MICROSECONDS, 6, 0},
    {"p99", "p99_us", MICROSECONDS, 6, 0}, {"rd/s", "read", BYTES, 5, 0}, {"wr/s", "written", BYTES, 5, 0},
    {"queue", "queue", COUNT, 5, 0}, {"open", "open", COUNT, 5, WIDTH_MORE}, {"cli", "clients", COUNT, 3, 0},
    {"lock", "locks_held", COUNT, 5, 0}, {"wait", "locks_waiting", COUNT, 4, 0},
    {"mem", "memory", BYTES, 5, WIDTH_MORE}, {"cpu%", "cpu_percent", PERCENT, 4, 0},
    {"path", "brick", TEXT, 28, WIDTH_PATHS},
};
static const struct top_column fop_columns[] = {
    {"brick", "name", TEXT, 21, 0}, {"fop", "fop", TEXT, 13, 0}, {"ops/s", "ops", COUNT, 8, 0},
    {"p50", "p50_us", MICROSECONDS, 7, 0}, {"p99", "p99_us", MICROSECONDS, 7, 0}, {"time%", "share", PERCENT, 5, 0},
};
static const struct top_column client_columns[] = {
    {"brick", "name", TEXT, 18, 0}, {"client", "client", TEXT, 16, 0}, {"from", "peer", TEXT, 22, 0},
    {"in/s", "received", BYTES, 6, 0}, {"out/s", "sent", BYTES, 6, 0}, {"lock", "locks", COUNT, 5, 0},
};
static const struct top_column slow_columns[] = {
    {"what", "object", TEXT, 12, 0}, {"fop", "fop", TEXT, 9, 0}, {"total", "total_us", MICROSECONDS, 6, 0},
    {"worker", "worker_us", MICROSECONDS, 6, WIDTH_MORE}, {"queue", "queue_us", MICROSECONDS, 6, 0},
    {"locks", "locks_us", MICROSECONDS, 6, 0}, {"disk", "disk_us", MICROSECONDS, 6, 0},
    {"reply", "reply_us", MICROSECONDS, 6, WIDTH_MORE}, {"ago s", "age_s", COUNT, 5, 0}, {"brick", "name", TEXT, 20, 0},
};
static const struct top_column unbuilt_columns[] = {
    {"brick", "name", TEXT, 14, 0}, {"layer", "layer", TEXT, 22, 0}, {"option", "option", TEXT, 18, 0},
    {"so", "without", TEXT, 64, 0},
};
static const struct top_column volume_columns[] = {
    {"volume", "name", TEXT, 20, 0}, {"bricks", "bricks", COUNT, 6, 0}, {"ops/s", "ops", COUNT, 6, 0},
    {"p99", "p99_us", MICROSECONDS, 6, 0}, {"rd/s", "read", BYTES, 5, 0}, {"wr/s", "written", BYTES, 5, 0},
    {"queue", "queue", COUNT, 5, 0}, {"open", "open", COUNT, 5, WIDTH_MORE}, {"cli", "clients", COUNT, 3, 0},
    {"lock", "locks_held", COUNT, 5, 0}, {"wait", "locks_waiting", COUNT, 4, 0},
    {"mem", "memory", BYTES, 5, WIDTH_MORE}, {"cpu%", "cpu_percent", PERCENT, 5, 0},
};
static const struct top_column host_columns[] = {
    {"host", "host", TEXT, 16, 0}, {"bricks", "bricks", COUNT, 6, 0}, {"ops/s", "ops", COUNT, 6, 0},
    {"rd/s", "read", BYTES, 5, 0}, {"wr/s", "written", BYTES, 5, 0}, {"ram", "resident_bytes", BYTES, 5, 0},
    {"cpu%", "cpu_percent", PERCENT, 5, 0}, {"all%", "machine_percent", PERCENT, 5, 0}, {"state", "error", TEXT, 20, 0},
};
/* clang-format on */
#define COLUMNS(array) (array), sizeof(array) / sizeof(array)[0]

const struct top_view top_views[TOP_VIEWS] = {
    {"bricks", COLUMNS(brick_columns), 1, brick_rows},
    {"fops", COLUMNS(fop_columns), 2, fop_rows},
    {"clients", COLUMNS(client_columns), 3, client_rows},
    {"slow", COLUMNS(slow_columns), 2, slow_rows},
    {"not built", COLUMNS(unbuilt_columns), 0, unbuilt_rows},
    {"volumes", COLUMNS(volume_columns), 2, volume_rows},
    {"hosts", COLUMNS(host_columns), 0, host_rows},
};

/* ---- sorting --------------------------------------------------------------------------------- */

static struct {
    const struct top_column *column;
    bool is_reversed;
} order; /* for compare(), because qsort(3) passes no argument along; the command has one thread */

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

/* Writes a number with four digits at most and a letter: 12.3k, 4.5M. `step`: 1000 or 1024. */
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

/* Cuts a text to the width. A path loses the beginning, because the end tells more. A gfid keeps the first
 * digits. VOLUME:BRICK keeps parts of both names. */
static void
fit(char *text, int width)
{
    size_t len = strlen(text), room = (size_t)width;
    const char *colon = *text == '/' ? NULL : strchr(text, ':');
    size_t head = colon ? (size_t)(colon - text) + 1 : 0;

    if (len <= room || *text == '<') {
        text[len <= room ? len : room] = '\0';
        return;
    }
    if (head > room / 2)
        head = room / 2;
    memmove(text + head, text + len - (room - head), room - head + 1);
}

bool
top_column_is_shown(const struct top_view *view, unsigned column, int width)
{
    return view->columns[column].from_width <= width;
}

/* Returns the width of a column's text, with the column's share of the spare width. */
static int
room_of(const struct top_view *view, unsigned column, int width)
{
    int spare = width + 1, room = view->columns[column].width;
    unsigned last = 0;

    for (unsigned i = 0; i < view->column_count; i++) {
        if (top_column_is_shown(view, i, width)) {
            spare -= view->columns[i].width + 1;
            last = i;
        }
    }
    spare = spare > 0 ? spare : 0;
    int first_takes = FIRST_MAX - view->columns[0].width;
    if (first_takes > spare)
        first_takes = spare;
    if (column == 0)
        return room + first_takes;
    return column == last && view->columns[last].kind == TEXT ? room + spare - first_takes : room;
}

void
top_line(const struct top_view *view, const json_t *row, unsigned sorted_by, int width, char *out,
         size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < view->column_count && at < size; i++) {
        const struct top_column *c = &view->columns[i];
        char cell[4352];

        if (!top_column_is_shown(view, i, width))
            continue;
        int room = room_of(view, i, width);
        if (row)
            put_cell(c, row, cell, sizeof cell);
        else
            put_title(c, i == sorted_by, cell, sizeof cell);
        for (char *s = cell; *s; s++)
            *s = *s >= ' ' && *s < 0x7f ? *s : '?';
        fit(cell, room);
        at += (size_t)snprintf(out + at, size - at, c->kind == TEXT ? "%s%-*s" : "%s%*s", i ? " " : "", room,
                               cell);
    }
    if (width >= 0 && (size_t)width < size)
        out[width] = '\0';
}

/* "  machine 93% load 4.1 wait cpu 12 mem 0 io 3 free 3.2G"; the waits are percent of the last ten seconds,
 * `free` is the memory that programs can take. "": an older kilnd sends no figures of the machine. */
static void
put_machine(char *out, size_t size, const json_t *m)
{
    static const struct {
        const char *key, *title;
    } waits[] = {{"cpu_pressure", "cpu"}, {"memory_pressure", "mem"}, {"io_pressure", "io"}};
    char bytes[16];
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
    double available = json_number_value(json_object_get(m, "memory_available"));
    if (available <= 0 || at <= 0 || (size_t)at >= size)
        return;
    put_short(bytes, sizeof bytes, available, 1024);
    snprintf(out + at, size - (size_t)at, " free %s", bytes);
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
    /* A screen of 80 columns cuts the end, so that the pools come last. */
    snprintf(out, size, "%zu bricks%s  cpu %.0f%%  ram %s  threads %.0f%s  pools %s live %s cached %s",
             json_array_size(json_object_get(rates, "bricks")), unbuilt,
             json_number_value(json_object_get(rates, "cpu_percent")), resident,
             json_number_value(json_object_get(rates, "threads")), machine, bytes, live, cached);
}
