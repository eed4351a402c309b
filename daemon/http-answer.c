/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The functions by which a handler fills its answer (http.h): bytes that grow up to HTTP_ANSWER_MAX, texts,
 * numbers, JSON strings, and errors. They touch nothing but the answer, so they know neither listeners nor
 * libmicrohttpd; http.c sends the answer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http.h"

static bool
has_room(struct http_answer *a, size_t more)
{
    if (a->is_short || more > HTTP_ANSWER_MAX - a->size) {
        a->is_short = true;
        return false;
    }
    if (a->size + more <= a->room)
        return true;
    size_t wanted = a->room ? a->room : 1024;
    while (wanted < a->size + more)
        wanted *= 2;
    if (wanted > HTTP_ANSWER_MAX)
        wanted = HTTP_ANSWER_MAX; /* http_put() looks no further than the room */
    char *grown = realloc(a->bytes, wanted);
    if (!grown) {
        a->is_short = true;
        return false;
    }
    a->bytes = grown;
    a->room = wanted;
    return true;
}

void
http_reserve(struct http_answer *a, size_t bytes)
{
    char *grown = bytes > a->room && bytes <= HTTP_ANSWER_MAX ? realloc(a->bytes, bytes) : NULL;

    if (!grown)
        return;
    a->bytes = grown;
    a->room = bytes;
}

void
http_put_slowly(struct http_answer *a, const void *bytes, size_t size)
{
    if (!has_room(a, size))
        return;
    memcpy(a->bytes + a->size, bytes, size);
    a->size += size;
}

void
http_put_again(struct http_answer *a, size_t from, size_t size)
{
    if (!has_room(a, size))
        return;
    memcpy(a->bytes + a->size, a->bytes + from, size);
    a->size += size;
}

void
http_put_number(struct http_answer *a, uint64_t number, unsigned decimals)
{
    char digits[24]; /* 20, and the point */
    size_t at = sizeof digits;

    for (unsigned n = 0; number || n <= decimals; n++, number /= 10) {
        if (n && n == decimals)
            digits[--at] = '.';
        digits[--at] = (char)('0' + number % 10);
    }
    http_put(a, digits + at, sizeof digits - at);
}

static void
put_formatted(struct http_answer *a, const char *fmt, va_list ap)
{
    size_t room = a->is_short ? 0 : a->room - a->size;
    va_list again;

    va_copy(again, ap);
    int len = vsnprintf(room ? a->bytes + a->size : NULL, room, fmt, ap);
    bool fits = len >= 0 && (size_t)len < room;
    if (!fits && len >= 0 && has_room(a, (size_t)len + 1)) {
        vsnprintf(a->bytes + a->size, (size_t)len + 1, fmt, again);
        fits = true;
    }
    a->size += fits ? (size_t)len : 0;
    va_end(again);
}

void
http_printf(struct http_answer *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_formatted(a, fmt, ap);
    va_end(ap);
}

/* Bytes of the well-formed UTF-8 character at `s`; 0: none. */
static unsigned
utf8_length(const unsigned char *s)
{
    unsigned length = s[0] < 0x80   ? 1
                      : s[0] < 0xc2 ? 0
                      : s[0] < 0xe0 ? 2
                      : s[0] < 0xf0 ? 3
                      : s[0] < 0xf5 ? 4
                                    : 0;

    for (unsigned i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    bool is_overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool is_outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);

    return is_overlong || is_outside ? 0 : length;
}

void
http_put_json_string(struct http_answer *a, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    http_put(a, "\"", 1);
    while (*s) {
        unsigned length = utf8_length(s);

        if (*s == '"' || *s == '\\')
            http_printf(a, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            http_printf(a, "\\u%04x", *s);
        else if (length)
            http_put(a, s, length);
        else
            http_put(a, "\\ufffd", 6);
        s += length ? length : 1;
    }
    http_put(a, "\"", 1);
}

void
http_fail(struct http_answer *a, unsigned status, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->size = 0;
    a->is_short = false;
    a->more = NULL;
    a->status = status;
    a->content_type = "application/json";
    http_put(a, "{\"error\": ", 10);
    http_put_json_string(a, text);
    http_put(a, "}\n", 2);
}
