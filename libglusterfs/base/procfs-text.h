/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* procfs-text: parses the kernel's text files in place, for procfs.c and for the sweeper of the memory
 * pools. The pools are used in other programs too, so all functions are inline here. thread: any; there is
 * no state. */
#ifndef KILN_BASE_PROCFS_TEXT_H
#define KILN_BASE_PROCFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PROCFS_DIGITS_SAFE 19 /* this many digits cannot overflow */

/* Reads the number at *at and moves *at behind it; blanks before the number are skipped. False: no number,
 * or too large; nothing has changed. */
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

/* A number that stands behind a word at the start of a line. `key` is the whole word, with its colon if
 * the file has one. */
struct procfs_field {
    const char *key;
    uint64_t value; /* as printed: mostly KiB */
};

/* Returns the text behind `key` at the start of a line between `from` and `end`; NULL: not found. */
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

/* Finds `count` fields. Fields in the order of the text cost one pass. Returns the number of fields found;
 * the others keep their value. */
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
