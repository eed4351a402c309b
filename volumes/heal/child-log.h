/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* child-log: a sink of a pump that writes the output of a child process to the log. The log suppresses
 * lines of one kind after the tenth in a burst, so lines that a child prints at once share one log line,
 * with " | " between them. */
#ifndef KILN_VOLUMES_CHILD_LOG_H
#define KILN_VOLUMES_CHILD_LOG_H

#include <stddef.h>

/* limit for one child; further output is read and dropped, which is logged once */
enum { CHILD_LOG_BYTES = 8192 };

struct child_log {
    char name[160];  /* prefix of each log line */
    char text[1000];
    size_t used;     /* bytes of `text` in use */
    size_t logged;   /* bytes logged so far */
};

/* Prepares the log for a child with this name. */
void child_log_begin(struct child_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Takes at least one byte of output. Not thread safe; a pump calls its sinks one at a time. */
void child_log_put(struct child_log *l, const char *bytes, size_t count);
/* Logs a last line without a newline. */
void child_log_end(struct child_log *l);

#endif
