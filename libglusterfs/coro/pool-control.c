/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "coro/pool-control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coro/stack-pool.h"
#include "log/log.h"
#include "mem/mem-pool.h"

/* ---- settings -------------------------------------------------------------------------------- */

/* Converts a number with one of these units, or none, to a plain number for mem_pools_set_option(). */
struct unit {
    const char *name;
    uint64_t factor;
};
static const struct unit times[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {0}};
static const struct unit sizes[] = {
    {"", 1}, {"K", 1ull << 10}, {"M", 1ull << 20}, {"G", 1ull << 30}, {0}};

static const struct {
    const char *key, *expected;
    const struct unit *units; /* NULL: a word */
} settings[] = {
    {"sweep", "sweep=TIME, from 1ms to 24 hours, as 500ms or 10s; 0: never", times},
    {"release", "release=drop or release=keep", NULL},
    {"cap", "cap=BYTES, as 64M; 0: none", sizes},
    {"stacks", "stacks=age, stacks=drop or stacks=keep", NULL},
};
enum { SETTINGS = sizeof settings / sizeof settings[0], KEY_BYTES = 32 };

/* Returns the index of the setting that a text begins with, and its value; -1: none. */
static int
find_setting(const char *text, const char **value)
{
    size_t len = strcspn(text, "= ");

    *value = text[len] ? text + len + 1 : "";
    for (int i = 0; i < SETTINGS; i++) {
        if (strlen(settings[i].key) == len && memcmp(settings[i].key, text, len) == 0)
            return i;
    }
    return -1;
}

static int
scale_value(const char *value, const struct unit *units, char out[KEY_BYTES])
{
    char *end;

    errno = 0;
    uint64_t number = strtoull(value, &end, 10);
    if (errno || *value < '0' || *value > '9')
        return -EINVAL;
    for (const struct unit *u = units; u->name; u++) {
        uint64_t scaled;

        if (strcmp(end, u->name) != 0 || __builtin_mul_overflow(number, u->factor, &scaled))
            continue;
        snprintf(out, KEY_BYTES, "%" PRIu64, scaled);
        return 0;
    }
    return -EINVAL;
}

int
pool_control_set(const char *text)
{
    const char *value;
    char number[KEY_BYTES];
    int i = find_setting(text, &value), err = i < 0 ? -EINVAL : 0;

    if (err)
        return err;
    if (settings[i].units) {
        err = scale_value(value, settings[i].units, number);
        value = number;
    }
    if (err)
        return err;
    if (strcmp(settings[i].key, "stacks") == 0)
        return stack_pools_set_policy(value);
    return mem_pools_set_option(settings[i].key, value);
}

const char *
pool_control_expected(const char *text)
{
    const char *value;
    int i = find_setting(text, &value);

    return i < 0 ? "sweep=TIME, release=drop|keep, cap=BYTES or stacks=age|drop|keep" : settings[i].expected;
}

size_t
pool_control_trim(bool is_hard)
{
    return mem_pools_trim(is_hard ? 3 : 2);
}

int
pool_control_run(const char *order)
{
    if (strcmp(order, "trim soft") == 0 || strcmp(order, "trim hard") == 0) {
        (void)pool_control_trim(order[5] == 'h');
        return 0;
    }
    int err = strncmp(order, "set ", 4) == 0 ? pool_control_set(order + 4) : -EINVAL;
    if (!err)
        log_event(LOG_INFO, NULL, "pools-set", "memory pools: %s", order + 4);
    return err;
}

/* ---- numbers --------------------------------------------------------------------------------- */

struct writer {
    FILE *out;
    bool has_key, has_item, is_in_owners;
};

static void
json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
            fprintf(out, "\\u%04x", (unsigned char)*text); /* a path may not be UTF-8 */
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void
json_value(FILE *out, const char *text)
{
    size_t len = strlen(text);

    if (len > 0 && len < 19 && strspn(text, "0123456789") == len)
        fputs(text, out);
    else
        json_string(out, text);
}

/* "id 3, brick b0, active 12, bytes 3840"; the name may contain commas. */
static void
json_owner(struct writer *w, const char *text)
{
    const char *name = strstr(text, "brick "), *end = NULL;
    long long active, bytes;

    for (const char *at = text; (at = strstr(at, ", active ")); at++)
        end = at;
    if (!name || !end || sscanf(end, ", active %lld, bytes %lld", &active, &bytes) != 2)
        return;
    char copy[256];
    snprintf(copy, sizeof copy, "%.*s", (int)(end - name - 6), name + 6);
    fputs(w->is_in_owners ? "," : ",\"owners\":[", w->out);
    w->is_in_owners = true;
    fputs("{\"brick\":", w->out);
    json_string(w->out, copy);
    fprintf(w->out, ",\"active\":%lld,\"bytes\":%lld}", active, bytes);
}

static void
end_item(struct writer *w)
{
    fputs(w->is_in_owners ? "]}" : "}", w->out);
    w->is_in_owners = w->has_key = false;
}

/* The dump begins with the process's keys; "-----" begins a pool. */
static void
json_key(void *arg, const char *key, const char *value)
{
    struct writer *w = arg;

    if (strcmp(key, "-----") == 0) {
        if (w->has_key)
            end_item(w);
        fputs(w->has_item ? ",{" : "{", w->out);
        w->has_item = true;
    } else if (strcmp(key, "owner") == 0) {
        json_owner(w, value);
    } else if (!w->is_in_owners) {
        fputs(w->has_key ? "," : "", w->out);
        w->has_key = true;
        json_string(w->out, key);
        fputc(':', w->out);
        json_value(w->out, value);
    }
}

/* The first "-----" ends the process's object. */
static void
json_pools_key(void *arg, const char *key, const char *value)
{
    struct writer *w = arg;

    if (!w->has_item && strcmp(key, "-----") == 0) {
        fprintf(w->out, ",\"stack-policy\":\"%s\"},\"pools\":[{", stack_pools_policy());
        w->has_key = false;
        w->has_item = true;
        return;
    }
    json_key(w, key, value);
}

static void
json_all(FILE *out)
{
    struct writer w = {.out = out}, s = {.out = out};

    fputs("{\"process\":{", out);
    mem_pools_dump(json_pools_key, &w);
    if (w.has_item)
        end_item(&w);
    fputs(w.has_item ? "]" : "},\"pools\":[]", out); /* there are no pools if pools are off */
    fputs(",\"stacks\":[", out);
    stack_pools_dump(json_key, &s);
    if (s.has_key)
        end_item(&s);
    fputs("]}", out);
}

char *
pool_control_json(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    json_all(out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
