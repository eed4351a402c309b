/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "cli/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_BYTES = 4 };

/* Returns the bytes of the control character at `s`; 0: the character at `s` is no control character. */
static size_t
control_bytes(const unsigned char *s)
{
    if (s[0] < 0x20 || s[0] == 0x7f)
        return 1;
    return s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f ? 2 : 0;
}

static char *
escaped(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text, *end = s + len;
    char *out = malloc(ESCAPE_BYTES * len + 1), *at = out;

    while (out && s < end) {
        size_t n = control_bytes(s);

        if (n)
            at += snprintf(at, ESCAPE_BYTES + 1, "\\x%02x", s[n - 1]);
        else
            *at++ = (char)*s;
        s += n ? n : 1;
    }
    if (out)
        *at = '\0';
    return out;
}

static json_t *
printable_text(const json_t *text)
{
    char *out = escaped(json_string_value(text), json_string_length(text));
    json_t *json = out ? json_string(out) : NULL;

    free(out);
    return json;
}

static json_t *
printable_list(const json_t *list)
{
    json_t *out = json_array(), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (json_array_append_new(out, printable(one))) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

static json_t *
printable_object(const json_t *object)
{
    json_t *out = json_object(), *one;
    const char *key;

    json_object_foreach((json_t *)object, key, one)
    {
        char *name = escaped(key, strlen(key));
        int err = name ? json_object_set_new(out, name, printable(one)) : -1;

        free(name);
        if (err) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* Recurses as deep as the JSON is nested, which the parser limits. */
json_t *
printable(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        return printable_text(json);
    case JSON_ARRAY:
        return printable_list(json);
    case JSON_OBJECT:
        return printable_object(json);
    default:
        return json_incref((json_t *)json);
    }
}
