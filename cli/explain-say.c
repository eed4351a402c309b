/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"

enum { POOLS_NAMED = 10, LOCKS_MAX = 4096, SENTENCE_BYTES = 2048 };

static void __attribute__((format(printf, 2, 3)))
say(json_t *list, const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    va_list ap;

    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    json_t *text = json_string(sentence); /* NULL: vsnprintf() cut the sentence within a character */
    json_array_append_new(list, text ? text : json_string("(something that cannot be shown)"));
}

/* ---- a section's lines ----------------------------------------------------------------------- */

static const char *
title_of(const json_t *section)
{
    const char *title = json_string_value(json_object_get(section, "section"));

    return title ? title : "";
}

static const char *
part(const json_t *line, size_t i)
{
    const char *text = json_string_value(json_array_get(line, i));

    return text ? text : "";
}

/* Returns the key's value in the section; "": the section has no such key. */
static const char *
value_of(const json_t *section, const char *key)
{
    const json_t *line;
    size_t i;

    json_array_foreach(json_object_get(section, "lines"), i, line)
    {
        if (strcmp(part(line, 0), key) == 0)
            return part(line, 1);
    }
    return "";
}

static long long
number_of(const json_t *section, const char *key)
{
    return atoll(value_of(section, key));
}

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *
bytes_text(long long bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t unit = 0;

    for (; n >= 1024 && unit < 4; unit++)
        n /= 1024;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return text;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct pool {
    const char *name;
    long long bytes, live, cached;
};

static int
explain_by_bytes(const void *a, const void *b)
{
    const struct pool *x = a, *y = b;

    return (y->bytes > x->bytes) - (y->bytes < x->bytes);
}

static struct pool
pool_of_json(const json_t *p)
{
    return (struct pool){json_string_value(json_object_get(p, "pool")),
                         json_integer_value(json_object_get(p, "bytes")),
                         json_integer_value(json_object_get(p, "live")),
                         json_integer_value(json_object_get(p, "hot")) +
                             json_integer_value(json_object_get(p, "cold"))};
}

static struct pool
pool_of_section(const json_t *s)
{
    return (struct pool){value_of(s, "pool-name"), number_of(s, "size"), number_of(s, "active-count"),
                         number_of(s, "cached-hot") + number_of(s, "cached-cold")};
}

/* Returns all pools that the dump names, the largest first. The caller frees the list. NULL: no memory. */
static struct pool *
find_pools(const json_t *dump, size_t *count)
{
    const json_t *top = json_object_get(dump, "top"), *sections = json_object_get(dump, "sections"), *one;
    struct pool *pools = calloc(json_array_size(top) + json_array_size(sections) + 1, sizeof *pools);
    size_t i;

    *count = 0;
    if (!pools)
        return NULL;
    json_array_foreach(top, i, one) pools[(*count)++] = pool_of_json(one);
    json_array_foreach(sections, i, one)
    {
        if (begins(title_of(one), "mempool."))
            pools[(*count)++] = pool_of_section(one);
    }
    qsort(pools, *count, sizeof *pools, explain_by_bytes);
    return pools;
}

static void
say_process(json_t *out, const json_t *dump, const struct pool *pools, size_t count)
{
    const json_t *resident = json_object_get(dump, "resident_bytes"), *s;
    long long bytes = 0;
    char all[32], cached[32];
    size_t i;

    for (i = 0; i < count; i++)
        bytes += pools[i].bytes;

    if (resident)
        say(out, "The process has %s of the machine's memory.",
            bytes_text(json_integer_value(resident), all));
    json_array_foreach(json_object_get(dump, "sections"), i, s)
    {
        if (strcmp(title_of(s), "mempool") == 0)
            say(out, "The pools have %s; %s of it is cached, ready for use, and goes back when it is idle.",
                bytes_text(bytes, all),
                bytes_text(number_of(s, "cached-bytes"), cached));
    }
}

static bool
say_memory(json_t *out, const json_t *dump)
{
    char bytes[32];
    size_t count;
    struct pool *pools = find_pools(dump, &count);

    say_process(out, dump, pools, pools ? count : 0);
    for (size_t i = 0; pools && i < count && i < POOLS_NAMED && pools[i].bytes > 0; i++)
        say(out, "%s for %s: %lld in use, %lld cached.", bytes_text(pools[i].bytes, bytes),
            pools[i].name ? pools[i].name : "?", pools[i].live, pools[i].cached);
    free(pools);
    return pools != NULL;
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct lock {
    const char *kind, *value; /* texts of the dump's line */
    size_t kind_len;
    const char *domain;
    bool waits, writes;
    long long start, end; /* -1: to the end of the file */
};

/* Returns the value behind `key` in a lock's line ("type=WRITE, ..." or "pid = 12, ..."), cut to `size`. "":
 * the line has no such key. */
static const char *
word_of(const char *line, const char *key, char *out, size_t size)
{
    const char *at = strstr(line, key);

    out[0] = '\0';
    if (at) {
        at += strlen(key);
        snprintf(out, size, "%.*s", (int)strcspn(at, ","), at);
    }
    return out;
}

static bool
read_lock(const json_t *line, const char *domain, struct lock *l)
{
    const char *key = part(line, 0), *value = part(line, 1), *dot = strchr(key, '.');
    char word[64];

    if (!dot || (!begins(key, "posixlk.") && !begins(key, "inodelk.") && !begins(key, "entrylk.")))
        return false;
    *l = (struct lock){.kind = key, .kind_len = (size_t)(dot - key), .value = value, .domain = domain};
    l->waits = strstr(key, "(BLOCKED)") != NULL;
    l->writes = begins(value, "type=WRITE") || begins(value, "type=ENTRYLK_WRLCK");
    l->start = atoll(word_of(value, "start=", word, sizeof word));
    long long len = atoll(word_of(value, "len=", word, sizeof word));
    l->end = len ? l->start + len - 1 : -1;
    return true;
}

/* Tells whether two entry locks cover a common name. A lock without a name covers all names. */
static bool
names_meet(const struct lock *a, const struct lock *b)
{
    char one[512], other[512];

    word_of(a->value, "basename=", one, sizeof one);
    word_of(b->value, "basename=", other, sizeof other);
    return strcmp(one, other) == 0 || strcmp(one, "(null)") == 0 || strcmp(other, "(null)") == 0;
}

static bool
is_same_owner(const struct lock *a, const struct lock *b)
{
    char one[2][256], other[2][256];

    return strcmp(word_of(a->value, "owner=", one[0], sizeof one[0]),
                  word_of(b->value, "owner=", other[0], sizeof other[0])) == 0 &&
           strcmp(word_of(a->value, "connection-id=", one[1], sizeof one[1]),
                  word_of(b->value, "connection-id=", other[1], sizeof other[1])) == 0;
}

/* Tells whether the lock `held` keeps the lock `wants` waiting. */
static bool
is_in_the_way(const struct lock *held, const struct lock *wants)
{
    bool is_same_kind = held->kind_len == wants->kind_len &&
                        strncmp(held->kind, wants->kind, held->kind_len) == 0 &&
                        strcmp(held->domain, wants->domain) == 0;

    if (held->waits || !is_same_kind || (!held->writes && !wants->writes) || is_same_owner(held, wants))
        return false;
    if (begins(wants->kind, "entrylk"))
        return names_meet(held, wants);
    return (held->end < 0 || held->end >= wants->start) && (wants->end < 0 || wants->end >= held->start);
}

/* "process 12 on HOST, by the mount of process 34 there", from the client's connection id. */
static const char *
who(const struct lock *l, char *out, size_t size)
{
    char pid[32], uid[300], *host, *client;

    word_of(l->value, "pid = ", pid, sizeof pid);
    word_of(l->value, "connection-id=", uid, sizeof uid);
    client = strstr(uid, "-PID:");
    host = client ? strstr(client, "-HOST:") : NULL;
    char *end = host ? strstr(host, "-PC_NAME:") : NULL;
    if (!end) {
        snprintf(out, size, "process %s of client %s", pid, uid);
        return out;
    }
    *host = *end = '\0';
    snprintf(out, size, "process %s on %s, by the mount of process %s there", pid, host + 6, client + 5);
    return out;
}

/* Returns " since 2026-01-02 03:04:05", or "" if the line has no time. */
static const char *
since(const struct lock *l, char out[64])
{
    const char *at = strstr(l->value, l->waits ? ", blocked at " : ", granted at ");

    out[0] = '\0';
    if (at)
        snprintf(out, 64, " since %.19s", at + strlen(", blocked at "));
    return out;
}

static void
say_waiter(json_t *out, const char *path, const struct lock *list, size_t count, const struct lock *l)
{
    char asker[512], holder[512], time[64], held[64];
    size_t others = 0;
    const struct lock *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!is_in_the_way(&list[i], l))
            continue;
        if (first)
            others++;
        else
            first = &list[i];
    }
    if (!first)
        say(out, "%s: %s waits%s for a lock (%.*s), behind others that wait.", path,
            who(l, asker, sizeof asker), since(l, time), (int)l->kind_len, l->kind);
    else
        say(out, "%s: %s waits%s for a %s lock (%.*s) that is held%s by %s%s.", path,
            who(l, asker, sizeof asker), since(l, time), l->writes ? "write" : "read", (int)l->kind_len,
            l->kind, since(first, held), who(first, holder, sizeof holder), others ? " and others" : "");
}

static bool
say_locks(json_t *out, const json_t *section)
{
    const json_t *lines = json_object_get(section, "lines"), *line;
    size_t size = json_array_size(lines) < LOCKS_MAX ? json_array_size(lines) : LOCKS_MAX, count = 0, i;
    struct lock *list = calloc(size + 1, sizeof *list);
    const char *domain = "";

    if (!list)
        return false;
    json_array_foreach(lines, i, line)
    {
        if (strcmp(part(line, 0), "lock-dump.domain.domain") == 0)
            domain = part(line, 1);
        else if (begins(part(line, 0), "posixlk"))
            domain = "";
        if (count < size)
            count += read_lock(line, domain, &list[count]);
    }
    for (i = 0; i < count; i++) {
        if (list[i].waits)
            say_waiter(out, value_of(section, "path"), list, count, &list[i]);
    }
    free(list);
    return true;
}

/* ---- bricks ---------------------------------------------------------------------------------- */

static void
say_brick(json_t *bricks, json_t *waits, const char *name, const json_t *s, const json_t *memory)
{
    char bytes[32];

    say(bricks, "%s: its objects take %s; %lld inodes are remembered, %lld of them unused.", name,
        bytes_text(json_integer_value(json_object_get(memory, name)), bytes), number_of(s, "inodes"),
        number_of(s, "inodes-lru"));
    if (strcmp(value_of(s, "child-up"), "0") == 0)
        say(waits, "%s: its disk has failed; clients have been told.", name);
    if (strcmp(value_of(s, "draining"), "1") == 0)
        say(waits, "%s: it is being detached, and waits for what still holds it.", name);
    if (*value_of(s, "parked"))
        say(waits, "%s: calls wait for others: %s.", name, value_of(s, "parked"));
}

static void
say_queue(json_t *waits, const char *name, const json_t *s)
{
    static const char *const priorities[] = {"HIGH", "NORMAL", "LOW", "LEAST"};
    char key[64];

    for (size_t i = 0; i < sizeof priorities / sizeof priorities[0]; i++) {
        snprintf(key, sizeof key, "%s_priority_parked", priorities[i]);
        long long parked = number_of(s, key);
        snprintf(key, sizeof key, "%s_priority_running", priorities[i]);
        if (parked > 0)
            say(waits, "%s: %lld calls of priority %s wait for the disk, in which %lld are (at most %lld).",
                name, parked, priorities[i], number_of(s, key), number_of(s, "maximum_threads_count"));
    }
}

/* ---- the slowest calls ----------------------------------------------------------------------- */

/* Returns the number behind `key` in a line of words, or 0. */
static long long
word_number(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    return at ? atoll(at + strlen(key)) : 0;
}

static const char *
time_text(long long us, char text[32])
{
    if (us >= 1000000)
        snprintf(text, 32, "%.1f s", (double)us / 1e6);
    else
        snprintf(text, 32, "%.1f ms", (double)us / 1e3);
    return text;
}

/* Describes the stages that took a tenth of the call's time or more. */
static void
put_stages(const char *line, long long total, char *out, size_t size)
{
    static const struct {
        const char *key, *text;
    } stages[] = {{" worker_us=", "being read, or behind calls that had come with it"},
                  {" queue_us=", "in the brick's queue for the disk"},
                  {" locks_us=", "behind locks of other clients"},
                  {" disk_us=", "in the brick and its disk"},
                  {" reply_us=", "until its reply had left"}};
    size_t at = 0;
    char time[32];

    out[0] = '\0';
    for (size_t i = 0; i < sizeof stages / sizeof stages[0] && at < size; i++) {
        long long us = word_number(line, stages[i].key);

        if (us * 10 >= total)
            at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", time_text(us, time),
                                   stages[i].text);
    }
}

/* A call from a section about slow calls. */
struct slow_call {
    const char *brick, *text;
    long long total_us;
};

enum { SLOW_SAID = 10, SLOW_US = 10000, SLOW_MAX = 16384 };

struct slow_calls {
    struct slow_call *list;
    size_t count;
};

static void
collect_slow(struct slow_calls *all, const char *brick, const json_t *section)
{
    const json_t *line;
    size_t i;

    json_array_foreach(json_object_get(section, "lines"), i, line)
    {
        const char *text = part(line, 1);

        if (begins(part(line, 0), "slow.") && strstr(text, " object=") && all->count < SLOW_MAX)
            all->list[all->count++] = (struct slow_call){brick, text, word_number(text, " total_us=")};
    }
}

static int
explain_by_time(const void *a, const void *b)
{
    const struct slow_call *x = a, *y = b;

    return (y->total_us > x->total_us) - (y->total_us < x->total_us);
}

static void
say_slow_call(json_t *out, const struct slow_call *call)
{
    const char *object = strstr(call->text, " object=") + strlen(" object=");
    char fop[32] = "call", stages[512], time[32];

    (void)sscanf(call->text, "fop=%31s", fop);
    put_stages(call->text, call->total_us, stages, sizeof stages);
    say(out, "%s: %s of %s took %s, %lld s before: %s.", call->brick, fop, object,
        time_text(call->total_us, time), word_number(call->text, " age_s="), stages);
}

/* Explains the slowest calls of all bricks. When no call took SLOW_US, one sentence says so. */
static void
say_slowest(json_t *out, struct slow_calls *all)
{
    char time[32], least[32];

    qsort(all->list, all->count, sizeof *all->list, explain_by_time);
    if (all->count > 0 && all->list[0].total_us < SLOW_US)
        say(out, "Nothing is slow: no call took %s. The slowest one took %s.", time_text(SLOW_US, least),
            time_text(all->list[0].total_us, time));
    for (size_t i = 0; i < all->count && i < SLOW_SAID && all->list[i].total_us >= SLOW_US; i++)
        say_slow_call(out, &all->list[i]);
}

json_t *
explain_say(const json_t *dump)
{
    json_t *memory = json_array(), *waits = json_array(), *bricks = json_array();
    json_t *slow = json_array();
    struct slow_calls calls = {.list = calloc(SLOW_MAX, sizeof *calls.list)};
    const json_t *s;
    const char *brick = "?";
    bool is_good = memory && waits && bricks && slow && calls.list && say_memory(memory, dump);
    size_t i;

    json_array_foreach(json_object_get(dump, "sections"), i, s)
    {
        const char *title = title_of(s);

        if (begins(title, "brick.")) {
            brick = title + strlen("brick.");
            say_brick(bricks, waits, brick, s, json_object_get(dump, "memory"));
        } else if (begins(title, "xlator.performance/io-threads.")) {
            say_queue(waits, brick, s);
        } else if (begins(title, "xlator.debug/io-stats.")) {
            if (calls.list)
                collect_slow(&calls, brick, s);
        } else if (begins(title, "xlator.features.locks.") && *value_of(s, "path")) {
            is_good = is_good && say_locks(waits, s);
        }
    }
    if (calls.list)
        say_slowest(slow, &calls);
    free(calls.list);
    json_t *all =
        json_pack("{so so so so}", "memory", memory, "waits", waits, "bricks", bricks, "slow", slow);
    if (is_good)
        return all;
    json_decref(all);
    return NULL;
}
