/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"

/* ---- text ------------------------------------------------------------------------------------ */

/* Returns the bytes as a text. If the bytes are no UTF-8, '?' replaces each byte that is no ASCII. */
static json_t *
text_of(const char *at, size_t size)
{
    json_t *text = json_stringn(at, size);
    char shown[8192];

    if (text)
        return text;
    size = size < sizeof shown ? size : sizeof shown;
    for (size_t i = 0; i < size; i++)
        shown[i] = at[i] & 0x80 ? '?' : at[i];
    return json_stringn(shown, size);
}

/* Appends a section for the lines that follow. Returns a borrowed reference; NULL: no memory. */
static json_t *
begin_section(json_t *sections, const char *title, size_t size)
{
    json_t *s = json_pack("{so s[]}", "section", text_of(title, size), "lines");

    return json_array_append_new(sections, s) ? NULL : s;
}

static bool
add_line(json_t *section, const char *line, size_t size)
{
    const char *equals = memchr(line, '=', size);
    json_t *lines = json_object_get(section, "lines");

    if (!equals || !lines)
        return true; /* a title or the time of the dump */
    size_t key = (size_t)(equals - line);
    return json_array_append_new(lines, json_pack("[oo]", text_of(line, key),
                                                  text_of(equals + 1, size - key - 1))) == 0;
}

/* "id 1, brick /srv/b1, active 3, bytes 192": the objects and bytes of a pool that belong to a brick. */
static void
add_owner(json_t *memory, const char *line, size_t size)
{
    static const char brick[] = ", brick ", bytes[] = ", bytes ";
    char text[4096];

    snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : sizeof text - 1), line);
    char *name = strstr(text, brick), *end = name ? strstr(name, ", active ") : NULL;
    const char *n = end ? strstr(end, bytes) : NULL;
    if (!n)
        return;
    *end = '\0';
    name += strlen(brick);
    json_int_t sum = json_integer_value(json_object_get(memory, name)) + atoll(n + strlen(bytes));
    json_object_set_new(memory, name, json_integer(sum));
}

/* Tells whether a statedump has sections with this title, because a file of another kind is refused. */
static bool
is_known(const char *title, size_t size)
{
    static const char *const known[] = {"workers", "mempool", "brick.", "xlator."};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t len = strlen(known[i]);
        if (size >= len && memcmp(title, known[i], len) == 0)
            return true;
    }
    return false;
}

static json_t *
read_text(const char *text, size_t size)
{
    json_t *sections = json_array(), *memory = json_object(), *now = NULL;
    bool is_good = sections && memory, is_dump = false;

    for (size_t at = 0, n; at < size && is_good; at += n + 1) {
        const char *end = memchr(text + at, '\n', size - at);

        n = end ? (size_t)(end - text) - at : size - at;
        bool is_title = n > 1 && text[at] == '[' && text[at + n - 1] == ']';
        is_dump |= is_title && is_known(text + at + 1, n - 2);
        if (is_title)
            is_good = (now = begin_section(sections, text + at + 1, n - 2));
        else
            is_good = add_line(now, text + at, n);
        if (n > 6 && memcmp(text + at, "owner=", 6) == 0)
            add_owner(memory, text + at, n);
    }
    if (is_good && is_dump)
        return json_pack("{so so}", "sections", sections, "memory", memory);
    json_decref(memory);
    json_decref(sections);
    return NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *
read_json(const char *text, size_t size)
{
    json_t *all = json_loadb(text, size, 0, NULL), *sections = json_array(), *memory = json_object(), *brick;
    const json_t *bricks = json_object_get(all, "bricks");
    bool is_good = json_is_array(bricks) && sections;
    size_t i;

    json_array_foreach(bricks, i, brick)
    {
        const json_t *own = json_object_get(brick, "sections");
        const char *name = json_string_value(json_object_get(brick, "brick"));

        is_good = is_good && name && json_is_array(own) &&
                  json_array_extend(sections, (json_t *)own) == 0 &&
                  json_object_set(memory, name, json_object_get(brick, "memory_bytes")) == 0;
    }
    json_t *dump =
        is_good ? json_pack("{sO sO sO* sO*}", "sections", sections, "memory", memory, "resident_bytes",
                            json_object_get(all, "resident_bytes"), "top", json_object_get(all, "top"))
                : NULL;
    json_decref(memory);
    json_decref(sections);
    json_decref(all);
    return dump;
}

json_t *
explain_read(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    return at < size && text[at] == '{' ? read_json(text, size) : read_text(text, size);
}
