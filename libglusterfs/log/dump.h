/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dump: the statedump writer: sections and key=value lines in a file, in the format of stock's statedump. */
#ifndef KILN_LOG_DUMP_H
#define KILN_LOG_DUMP_H

#include <stdio.h>

/* Parts that can be selected separately. */
enum dump_part {
    DUMP_MEM = 0x1,    /* memory pools */
    DUMP_IOBUF = 0x2,  /* memory pools of iobufs */
    DUMP_CALLS = 0x4,  /* workers and connections */
    DUMP_INODES = 0x8, /* inode tables */
    DUMP_LAYERS = 0x10,
    DUMP_ALL = 0x1f,
};

struct dump {
    FILE *file;
    unsigned leaves_out; /* bits of enum dump_part, tested by the writers of those parts */
};

/* Writes `[title]`, after a blank line. One thread at a time; a write error stays in the FILE (ferror).
 * Control characters are escaped, so that a name cannot look like a section. */
void dump_section(struct dump *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes `key=value`. */
void dump_line(struct dump *d, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
