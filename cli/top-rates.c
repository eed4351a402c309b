/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "cli/top.h"

static double
number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *
text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? s : "";
}

/* What has been added; a count that has gone down is that of a brick or client that began anew. */
static double
grown(const json_t *before, const json_t *now, const char *key)
{
    double old = number(before, key), new = number(now, key);

    return new >= old ? new - old : new;
}

static json_t *
find(const json_t *list, const char *key, const char *wanted)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (strcmp(text(item, key), wanted) == 0)
            return item;
    }
    return NULL;
}

/* ---- fops ------------------------------------------------------------------------------------ */

static uint64_t
read_digits(const char **at)
{
    uint64_t n = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++)
        n = n * 10 + (uint64_t)(**at - '0');
    return n;
}

/* The line of kilnd's answer that is the fop's: "CALLS NS BUCKET:COUNT BUCKET:COUNT"; what is none ends it.
 * Returns the calls. `at`, `sample` NULL: none. */
static uint64_t
read_fop(const json_t *at, const json_t *sample, struct histogram *h)
{
    const json_t *lines = json_object_get(sample, "lines");
    json_int_t begin = at ? json_integer_value(at) : -1;
    const char *c = "";

    if (begin >= 0 && (uint64_t)begin < json_string_length(lines))
        c = json_string_value(lines) + begin;
    histogram_clear(h);
    uint64_t calls = read_digits(&c);
    c += *c == ' ';
    h->sum = read_digits(&c);
    while (*c == ' ') {
        c++;
        uint64_t bucket = read_digits(&c);
        if (bucket >= HISTOGRAM_BUCKETS || *c++ != ':')
            break;
        histogram_put(h, (unsigned)bucket, read_digits(&c));
    }
    return calls;
}

static double
quantile_us(const struct histogram *h, double q)
{
    return (double)histogram_quantile(h, q) / 1e3;
}

/* Three histograms, too large for a stack that knows nothing of them, and whose they are. */
struct work {
    const json_t *now_sample, *before_sample;
    struct histogram now, before, all;
    uint64_t busy_ns; /* of all fops of the brick */
};

static json_t *
fop_rates(const char *name, const json_t *before, const json_t *now, double seconds, struct work *w)
{
    uint64_t calls = read_fop(now, w->now_sample, &w->now);
    uint64_t old = read_fop(before, w->before_sample, &w->before);

    if (calls >= old)
        calls -= old;
    if (w->now.count >= w->before.count)
        histogram_subtract(&w->now, &w->before);
    histogram_merge(&w->all, &w->now);
    return json_pack("{ss sf sf sf sf}", "fop", name, "ops", (double)calls / seconds, "p50_us",
                     quantile_us(&w->now, 0.5), "p99_us", quantile_us(&w->now, 0.99), "busy_ns",
                     (double)w->now.sum);
}

/* Which part of the time that all calls of the brick took together was this one's. */
static void
add_shares(json_t *fops, const struct work *w)
{
    json_t *fop;
    size_t i;

    json_array_foreach(fops, i, fop)
    {
        double share = w->all.sum ? 100 * number(fop, "busy_ns") / (double)w->all.sum : 0;

        json_object_del(fop, "busy_ns");
        json_object_set_new(fop, "share", json_real(share));
    }
}

static json_t *
all_fops(const json_t *before, json_t *now, double seconds, struct work *w)
{
    json_t *list = json_array(), *fop;
    const json_t *old = json_object_get(before, "fops");
    const char *name;

    histogram_clear(&w->all);
    json_object_foreach(json_object_get(now, "fops"), name, fop)
        json_array_append_new(list, fop_rates(name, json_object_get(old, name), fop, seconds, w));
    add_shares(list, w);
    return list;
}

/* ---- clients --------------------------------------------------------------------------------- */

static json_t *
all_clients(const json_t *before, const json_t *now, double seconds)
{
    const json_t *old = json_object_get(before, "client_list");
    json_t *list = json_array(), *client;
    size_t i;

    json_array_foreach(json_object_get(now, "client_list"), i, client)
    {
        const json_t *same = find(old, "id", text(client, "id"));

        json_array_append_new(
            list, json_pack("{ss ss sf sf sf}", "client", text(client, "name"), "peer", text(client, "peer"),
                            "received", grown(same, client, "received") / seconds, "sent",
                            grown(same, client, "sent") / seconds, "locks", number(client, "locks")));
    }
    return list;
}

/* ---- bricks ---------------------------------------------------------------------------------- */

static double
sum_of(const json_t *list, const char *key)
{
    double sum = 0;
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item) sum += number(item, key);
    return sum;
}

static json_t *
brick_rates(const json_t *before, json_t *now, double seconds, struct work *w)
{
    json_t *fops = all_fops(before, now, seconds, w);

    return json_pack("{ss ss sb sf sf sf sf sf sf sf sf sf sf sf sf so so sO*}", "brick", text(now, "brick"),
                     "volume", text(now, "volume"), "up", json_is_true(json_object_get(now, "up")), "ops",
                     sum_of(fops, "ops"), "p50_us", quantile_us(&w->all, 0.5), "p99_us",
                     quantile_us(&w->all, 0.99), "read", grown(before, now, "bytes_read") / seconds,
                     "written", grown(before, now, "bytes_written") / seconds, "queue",
                     number(now, "running") + number(now, "queued"), "open", number(now, "open"), "clients",
                     number(now, "clients"), "locks_held", number(now, "locks_held"), "locks_waiting",
                     number(now, "locks_waiting"), "memory", number(now, "memory_bytes"), "cpu_percent",
                     grown(before, now, "cpu_ns") / 1e7 / seconds, "fops", fops,
                     "client_list", all_clients(before, now, seconds), "slow",
                     json_object_get(now, "slow"));
}

json_t *
top_rates(const json_t *before, const json_t *now)
{
    const json_t *old_bricks = json_object_get(before, "bricks"),
                 *new_bricks = json_object_get(now, "bricks");
    double seconds = grown(before, now, before ? "time_ns" : "age_ns") / 1e9;
    struct work *w = calloc(1, sizeof *w);
    json_t *bricks = json_array(), *brick;
    size_t i;

    if (!w || !json_is_array(new_bricks) || !(seconds > 0)) {
        free(w);
        json_decref(bricks);
        return NULL;
    }
    w->now_sample = now;
    w->before_sample = before;
    json_array_foreach(new_bricks, i, brick)
    {
        const json_t *same = find(old_bricks, "brick", text(brick, "brick"));

        json_array_append_new(bricks, brick_rates(same, brick, seconds, w));
    }
    free(w);
    return json_pack("{sf sf sf sf sO* so}", "seconds", seconds, "resident_bytes",
                     number(now, "resident_bytes"), "cpu_percent",
                     100 * grown(before, now, "cpu_seconds") / seconds, "threads", number(now, "threads"),
                     "pools", json_object_get(now, "pools"), "bricks", bricks);
}
