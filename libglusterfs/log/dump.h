/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dump: the statedump writer: sections and key=value lines in a file, as stock's statedump. */
#ifndef KILN_LOG_DUMP_H
#define KILN_LOG_DUMP_H

#include <stdio.h>

struct dump {
    FILE *file;
};

/* `[title]`, after a blank line. One thread at a time; a write error is the file's (ferror). Control characters in what is
 * printed are escaped, so that a name cannot look like a section. */
void dump_section(struct dump *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* `key=value`. */
void dump_line(struct dump *d, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
