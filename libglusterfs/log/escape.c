/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "log/escape.h"

#include <stdbool.h>
#include <string.h>

#define ESCAPE_BYTES 4

static size_t
escape_bytes(char *out, size_t size, const char *text, size_t len, const char *also)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = c >= 0x20 && c != 0x7f && !strchr(also, c);

        if (n + (is_plain ? 1 : ESCAPE_BYTES) >= size)
            break;
        if (is_plain) {
            out[n++] = (char)c;
            continue;
        }
        memcpy(out + n, (const char[]){'\\', 'x', digits[c >> 4], digits[c & 15]}, ESCAPE_BYTES);
        n += ESCAPE_BYTES;
    }
    out[n] = '\0';
    return n;
}

size_t
log_escape(char *out, size_t size, const char *text, size_t len)
{
    return escape_bytes(out, size, text, len, "");
}

size_t
log_escape_field(char *out, size_t size, const char *text)
{
    return escape_bytes(out, size, text, strlen(text), " ,=");
}
