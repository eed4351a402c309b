/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "data/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gfid.h"

static bool
is_word_of(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcasecmp(text, *words) == 0)
            return true;
    }
    return false;
}

int
option_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"on", "yes", "true", "enable", "1", NULL};
    static const char *const no[] = {"off", "no", "false", "disable", "0", NULL};

    if (is_word_of(text, yes))
        *out = true;
    else if (is_word_of(text, no))
        *out = false;
    else
        return -EINVAL;
    return 0;
}

/* Parses a number; *rest is the text behind it. */
static int
split_number(const char *text, int base, int64_t *out, const char **rest)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    errno = 0;
    *out = strtoll(text, &end, base);
    if (errno || end == text)
        return -EINVAL;
    *rest = end;
    return 0;
}

int
option_int(const char *text, int64_t *out)
{
    const char *rest;
    int64_t value;

    if (split_number(text, 10, &value, &rest) || *rest)
        return -EINVAL;
    *out = value;
    return 0;
}

struct unit {
    const char *name;
    int64_t factor;
};

/* A decimal number (a fraction is allowed) and a unit of the table. */
static int
with_unit(const char *text, const struct unit *units, int64_t *out)
{
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || value < 0 || !(value < 9e18))
        return -EINVAL;
    for (const struct unit *u = units; u->name; u++) {
        if (strcasecmp(end, u->name) == 0) {
            if (value * (double)u->factor >= 9e18)
                return -EINVAL;
            *out = (int64_t)(value * (double)u->factor);
            return 0;
        }
    }
    return -EINVAL;
}

int
option_size(const char *text, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},           {"B", 1},         {"KB", 1 << 10},   {"K", 1 << 10},
        {"MB", 1 << 20},   {"M", 1 << 20},   {"GB", 1 << 30},   {"G", 1 << 30},
        {"TB", 1ll << 40}, {"T", 1ll << 40}, {"PB", 1ll << 50}, {NULL, 0},
    };
    int64_t value;
    int err = with_unit(text, units, &value);

    if (!err)
        *out = (uint64_t)value;
    return err;
}

int
option_time(const char *text, int64_t *out)
{
    static const struct unit units[] = {
        {"", 1},     {"s", 1},     {"sec", 1},    {"m", 60},    {"min", 60},      {"h", 3600},
        {"hr", 3600}, {"d", 86400}, {"days", 86400}, {"w", 604800}, {"wk", 604800}, {NULL, 0},
    };

    return with_unit(text, units, out);
}

/* "5", "5%" : percent; larger plain numbers and sizes with units: bytes. */
static int
percent_or_size(const char *text, uint64_t *out)
{
    size_t len = strlen(text);
    char digits[32];

    if (len > 0 && text[len - 1] == '%') {
        if (len > sizeof digits)
            return -EINVAL;
        memcpy(digits, text, len - 1);
        digits[len - 1] = '\0';
        int64_t percent;
        if (option_int(digits, &percent) || percent < 0 || percent > 99)
            return -EINVAL;
        *out = (uint64_t)percent;
        return 0;
    }
    return option_size(text, out);
}

/* "one of a, b, c" */
static const char *
choices_text(const struct option *o, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "one of");

    for (int i = 0; o->choices && o->choices[i]; i++)
        if (*o->choices[i] && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 6 ? ", " : " ", o->choices[i]);
    return out;
}

static const char *
expected_text(const struct option *o, char *out, size_t size)
{
    switch (o->type) {
    case OPTION_BOOL:
        return "on or off";
    case OPTION_INT:
        return "a whole number";
    case OPTION_SIZE:
        return "a size such as 4096, 64KB or 1GB";
    case OPTION_TIME:
        return "a time such as 30, 30s or 2min";
    case OPTION_OCTAL:
        return "an octal mode such as 0755";
    case OPTION_PERCENT_OR_SIZE:
        return "a percentage or a size";
    case OPTION_ENUM:
        return choices_text(o, out, size);
    case OPTION_UUID:
        return "a uuid of 36 characters";
    default:
        return "another value";
    }
}

static bool
out_of_range(const struct option *o, int64_t value)
{
    return (o->min || o->max) && (value < o->min || value > o->max);
}

/* -EINVAL if the text is no value of the option's type, -ERANGE out of bounds, -EOPNOTSUPP not built,
 * -ENOMEM. */
static int
store_value(const struct option *o, const char *text, void *conf)
{
    void *where = (char *)conf + o->offset;
    const char *rest;
    int64_t number_value;
    uint64_t size;
    int err;

    switch (o->type) {
    case OPTION_BOOL:
        return option_bool(text, where);
    case OPTION_INT:
    case OPTION_TIME:
        err = o->type == OPTION_INT ? option_int(text, &number_value) : option_time(text, &number_value);
        if (err || out_of_range(o, number_value))
            return err ? err : -ERANGE;
        *(int64_t *)where = number_value;
        return 0;
    case OPTION_SIZE:
        if ((err = option_size(text, &size)))
            return err;
        if ((o->max && size > (uint64_t)o->max) || (o->min > 0 && size < (uint64_t)o->min))
            return -ERANGE;
        *(uint64_t *)where = size;
        return 0;
    case OPTION_OCTAL:
        if (split_number(text, 8, &number_value, &rest) || *rest)
            return -EINVAL;
        if (out_of_range(o, number_value))
            return -ERANGE;
        *(int64_t *)where = number_value;
        return 0;
    case OPTION_PERCENT_OR_SIZE:
        return percent_or_size(text, where);
    case OPTION_STR:
        free(*(char **)where);
        *(char **)where = strdup(text);
        return *(char **)where ? 0 : -ENOMEM;
    case OPTION_ENUM:
        for (int i = 0; o->choices[i]; i++) {
            if (strcasecmp(text, o->choices[i]) == 0) {
                *(int *)where = i;
                return 0;
            }
        }
        return -EINVAL;
    case OPTION_UUID:
        err = gfid_parse(text, strlen(text), where);
        return err ? err : gfid_is_null(where) ? -EINVAL : 0;
    case OPTION_MUST_BE: {
        /* several spellings of "off" are one value */
        bool given, wanted;

        if (strcasecmp(text, o->text_default) == 0)
            return 0;
        if (option_bool(text, &given) == 0 && option_bool(o->text_default, &wanted) == 0 && given == wanted)
            return 0;
        return -EOPNOTSUPP;
    }
    case OPTION_IGNORED:
    case OPTION_PREFIX:
        return 0;
    }
    return -EINVAL;
}

static const struct option *
option_find(const struct option *table, const char *key)
{
    for (const struct option *o = table; o && o->key; o++) {
        if (o->type == OPTION_PREFIX ? strncmp(key, o->key, strlen(o->key)) == 0 : strcmp(key, o->key) == 0)
            return o;
    }
    return NULL;
}

static void
describe_error(char *error, size_t size, const struct option *o, const struct option_value *v, int err)
{
    char where[32] = "", expected[256];

    if (v->line)
        snprintf(where, sizeof where, "line %u: ", v->line);
    if (err == -EOPNOTSUPP)
        snprintf(error, size, "%soption %s %s: this feature is not built (only '%s' is accepted)", where,
                 v->key, v->value, o->text_default);
    else if (err == -ERANGE)
        snprintf(error, size, "%soption %s %s: expected a value from %" PRId64 " to %" PRId64, where, v->key,
                 v->value, o->min, o->max);
    else if (err == -ENOMEM)
        snprintf(error, size, "%soption %s: no memory", where, v->key);
    else
        snprintf(error, size, "%soption %s %s: expected %s", where, v->key, v->value,
                 expected_text(o, expected, sizeof expected));
}

static int
store_defaults(const struct option *table, void *conf, char *error, size_t error_size)
{
    int err = 0;

    for (const struct option *o = table; o && o->key && !err; o++) {
        if (!o->text_default || o->type == OPTION_MUST_BE)
            continue;
        struct option_value v = {o->key, o->text_default, 0};
        if ((err = store_value(o, v.value, conf)))
            describe_error(error, error_size, o, &v, err);
    }
    return err;
}

int
option_parse(const struct option *table, const struct option_value *values, size_t count, void *conf,
             void (*unknown)(const struct option_value *value, void *arg), void *arg, char *error,
             size_t error_size)
{
    int err = store_defaults(table, conf, error, error_size);

    for (size_t i = 0; i < count && !err; i++) {
        const struct option *o = option_find(table, values[i].key);

        if (!o) {
            if (unknown)
                unknown(&values[i], arg);
        } else if ((err = store_value(o, values[i].value, conf))) {
            describe_error(error, error_size, o, &values[i], err);
        }
    }
    if (err)
        option_conf_fini(table, conf);
    return err == -ERANGE ? -EINVAL : err;
}

static size_t
stored_bytes(enum option_type type)
{
    switch (type) {
    case OPTION_BOOL:
        return sizeof(bool);
    case OPTION_ENUM:
        return sizeof(int);
    case OPTION_UUID:
        return sizeof(struct gfid);
    case OPTION_STR: /* strings are copied otherwise */
    case OPTION_MUST_BE:
    case OPTION_IGNORED:
    case OPTION_PREFIX:
        return 0;
    default:
        return sizeof(int64_t);
    }
}

static int
keep_value(const struct option *o, void *conf, const void *before)
{
    const void *from = (const char *)before + o->offset;
    void *to = (char *)conf + o->offset;

    if (o->type != OPTION_STR) {
        memcpy(to, from, stored_bytes(o->type));
        return 0;
    }
    const char *text = *(char *const *)from;
    free(*(char **)to);
    *(char **)to = text ? strdup(text) : NULL;
    return text && !*(char **)to ? -ENOMEM : 0;
}

int
option_change(const struct option *table, const struct option_value *values, size_t count, void *conf,
              const void *before, const struct option_sink *sink)
{
    char text[512];
    int err = store_defaults(table, conf, text, sizeof text);

    for (size_t i = 0; i < count && !err; i++) {
        const struct option *o = option_find(table, values[i].key);

        if (!o) {
            sink->unknown(&values[i], sink->arg);
        } else if ((err = store_value(o, values[i].value, conf)) && err != -ENOMEM) {
            describe_error(text, sizeof text, o, &values[i], err);
            sink->refused(text, sink->arg);
            err = keep_value(o, conf, before);
        }
    }
    if (err)
        option_conf_fini(table, conf);
    return err;
}

void
option_conf_fini(const struct option *table, void *conf)
{
    for (const struct option *o = table; o && o->key; o++) {
        if (o->type != OPTION_STR)
            continue;
        char **where = (char **)((char *)conf + o->offset);
        free(*where);
        *where = NULL;
    }
}
