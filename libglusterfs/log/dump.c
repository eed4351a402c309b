/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "log/dump.h"

#include <stdarg.h>
#include <stdlib.h>

#include "log/escape.h"

/* Names and domains of clients may contain any bytes; escaping keeps them on their line. Without memory a
 * long text is cut. */
static void
put_escaped(struct dump *d, const char *fmt, va_list ap)
{
    char room[1024], out[4 * sizeof room], *text = room;
    va_list again;

    va_copy(again, ap);
    int len = vsnprintf(room, sizeof room, fmt, ap);
    if (len >= (int)sizeof room) {
        text = vasprintf(&text, fmt, again) < 0 ? room : text;
        len = text == room ? (int)sizeof room - 1 : len;
    }
    va_end(again);
    for (int at = 0; at < len; at += (int)sizeof room - 1) {
        int part = len - at < (int)sizeof room - 1 ? len - at : (int)sizeof room - 1;

        fwrite(out, 1, log_escape(out, sizeof out, text + at, (size_t)part), d->file);
    }
    if (text != room)
        free(text);
}

void
dump_section(struct dump *d, const char *fmt, ...)
{
    va_list ap;

    fputs("\n[", d->file);
    va_start(ap, fmt);
    put_escaped(d, fmt, ap);
    va_end(ap);
    fputs("]\n", d->file);
}

static void __attribute__((format(printf, 2, 3)))
dump_key(struct dump *d, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_escaped(d, fmt, ap);
    va_end(ap);
}

void
dump_line(struct dump *d, const char *key, const char *fmt, ...)
{
    va_list ap;

    dump_key(d, "%s=", key);
    va_start(ap, fmt);
    put_escaped(d, fmt, ap);
    va_end(ap);
    fputc('\n', d->file);
}
