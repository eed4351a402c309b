/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal/child-log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "log/escape.h"
#include "log/log.h"

void
child_log_begin(struct child_log *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(l->name, sizeof l->name, fmt, ap);
    va_end(ap);
    l->used = l->logged = 0;
}

static const char between[] = " | ";
enum { BETWEEN = sizeof between - 1 };

static void
log_line(struct child_log *l)
{
    char text[2 * sizeof l->text];
    bool was_cut = l->logged > CHILD_LOG_BYTES;

    if (l->used > BETWEEN && memcmp(l->text + l->used - BETWEEN, between, BETWEEN) == 0)
        l->used -= BETWEEN;
    l->logged += l->used;
    if (l->used > 0 && l->logged <= CHILD_LOG_BYTES) {
        log_escape(text, sizeof text, l->text, l->used);
        log_event(LOG_INFO, NULL, "child-output", "%s: %s", l->name, text);
    } else if (l->used > 0 && !was_cut) {
        log_event(LOG_WARNING, NULL, "child-output-cut",
                  "%s: printed more than %d bytes; further output is dropped", l->name, CHILD_LOG_BYTES);
    }
    l->used = 0;
}

void
child_log_put(struct child_log *l, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (l->used + BETWEEN > sizeof l->text)
            log_line(l);
        if (bytes[i] != '\n') {
            l->text[l->used++] = bytes[i];
        } else if (l->used > 0) {
            memcpy(l->text + l->used, between, BETWEEN);
            l->used += BETWEEN;
        }
    }
    if (bytes[count - 1] == '\n')
        log_line(l);
}

void
child_log_end(struct child_log *l)
{
    log_line(l);
}
