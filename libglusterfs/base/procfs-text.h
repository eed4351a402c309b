/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* procfs-text: what the kernel prints, parsed in place: for procfs.c, and for the sweeper of the pools, which
 * are used in other programs too: so all of it is here. thread: any; nothing is kept. */
#ifndef KILN_BASE_PROCFS_TEXT_H
#define KILN_BASE_PROCFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PROCFS_DIGITS_SAFE 19 /* so many cannot overflow */

/* The number at *at, which moves behind it; blanks before it are skipped. False: there is none, or it is too
 * large; nothing has changed. */
static inline bool
procfs_take_number(const char **at, uint64_t *out)
{
    const char *p = *at, *first;
    uint64_t value = 0;

    while (*p == ' ' || *p == '\t')
        p++;
    first = p;
    for (unsigned digit; (digit = (unsigned)*p - '0') < 10 && p - first < PROCFS_DIGITS_SAFE; p++)
        value = value * 10 + digit;
    for (unsigned digit; (digit = (unsigned)*p - '0') < 10; p++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (p == first)
        return false;
    *at = p;
    *out = value;
    return true;
}

/* A number that stands behind a word at the start of a line. `key` is the whole word with its colon, if the
 * file has one. */
struct procfs_field {
    const char *key;
    uint64_t value; /* as printed: mostly KiB */
};

/* The value behind `key` at the start of a line from `from` on up to `end`; NULL: there is none. */
static inline const char *
procfs_find_line(const char *from, const char *end, const char *key, size_t key_bytes)
{
    for (const char *line = from; line < end; line++) {
        if ((size_t)(end - line) > key_bytes && memcmp(line, key, key_bytes) == 0 &&
            (line[key_bytes] == ' ' || line[key_bytes] == '\t'))
            return line + key_bytes;
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line)
            return NULL;
    }
    return NULL;
}

/* Finds `count` of them. Fields in the order of the text cost one pass. How many were found; those that were
 * not keep their value. */
static inline unsigned
procfs_parse_fields(const char *text, struct procfs_field *fields, unsigned count)
{
    const char *at = text, *end = text + strlen(text);
    unsigned found = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t key_bytes = strlen(fields[i].key);
        const char *value = procfs_find_line(at, end, fields[i].key, key_bytes);

        if (!value && at != text) /* not in the order of the file */
            value = procfs_find_line(text, end, fields[i].key, key_bytes);
        if (!value || !procfs_take_number(&value, &fields[i].value))
            continue;
        found++;
        const char *line_end = memchr(value, '\n', (size_t)(end - value));

        at = line_end ? line_end + 1 : end;
    }
    return found;
}

#endif
