/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* child-log: a pump's sink that puts what a child prints into the log. The log counts lines of one kind after
 * the tenth in a burst, so lines that a child prints at once share one, with " | " between them. */
#ifndef KILN_VOLUMES_CHILD_LOG_H
#define KILN_VOLUMES_CHILD_LOG_H

#include <stddef.h>

enum { CHILD_LOG_BYTES = 8192 }; /* of one child; the rest is read and left out, which the log says once */

struct child_log {
    char name[160];  /* what each line begins with */
    char text[1000];
    size_t used;     /* of `text` */
    size_t logged;   /* bytes until now */
};

/* Empties it, for a child of that name. */
void child_log_begin(struct child_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Takes bytes that the child has printed, at least one. One thread at a time, as a pump calls its sinks. */
void child_log_put(struct child_log *l, const char *bytes, size_t count);
/* A last line that has no newline. */
void child_log_end(struct child_log *l);

#endif
