/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "log/dump.h"

#include <stdarg.h>

void
dump_section(struct dump *d, const char *fmt, ...)
{
    va_list ap;

    fputs("\n[", d->file);
    va_start(ap, fmt);
    vfprintf(d->file, fmt, ap);
    va_end(ap);
    fputs("]\n", d->file);
}

void
dump_line(struct dump *d, const char *key, const char *fmt, ...)
{
    va_list ap;

    fprintf(d->file, "%s=", key);
    va_start(ap, fmt);
    vfprintf(d->file, fmt, ap);
    va_end(ap);
    fputc('\n', d->file);
}
