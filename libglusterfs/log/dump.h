/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dump: the statedump writer: sections and key=value lines in a file, as stock's statedump. */
#ifndef KILN_LOG_DUMP_H
#define KILN_LOG_DUMP_H

#include <stdio.h>

struct dump {
    FILE *file;
};

void dump_section(struct dump *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dump_line(struct dump *d, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
