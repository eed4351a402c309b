/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "glusterfsd/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

/* Removes blanks from both ends, in place. */
static char *
strip_blanks(char *text)
{
    size_t len;

    text += strspn(text, " \t\r");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]))
        text[--len] = '\0';
    return text;
}

static bool
config_is_key(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Adds a line without its newline; comments and empty lines add nothing. Returns 0 or -errno. */
static int
config_add_line(struct config *c, char *line, unsigned number)
{
    char *equals;

    line = strip_blanks(line);
    if (*line == '\0' || *line == '#')
        return 0;
    equals = strchr(line, '=');
    if (!equals)
        return -EINVAL;
    *equals = '\0';
    struct config_line *more = reallocarray(c->lines, c->count + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    c->lines = more;
    more[c->count] = (struct config_line){number, strip_blanks(line), strip_blanks(equals + 1)};
    return config_is_key(more[c->count++].key) ? 0 : -EINVAL;
}

static int
split_lines(struct config *c, unsigned *number)
{
    int err = 0;

    *number = 0;
    for (char *line = c->text, *next; line && !err; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        ++*number;
        err = config_add_line(c, line, *number);
    }
    return err;
}

/* Returns the text, which ends with a 0, or NULL with errno. */
static char *
config_read_text(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(CONFIG_BYTES_MAX + 1) : NULL;
    int err = f && !text ? ENOMEM : errno;

    if (text) {
        size_t n = fread(text, 1, CONFIG_BYTES_MAX + 1, f);

        err = ferror(f) ? errno : n > CONFIG_BYTES_MAX ? EFBIG : 0;
        if (!err && memchr(text, '\0', n))
            err = EILSEQ;
        text[n <= CONFIG_BYTES_MAX ? n : 0] = '\0';
    }
    if (f)
        fclose(f);
    if (text && err) {
        free(text);
        text = NULL;
    }
    errno = err;
    return text;
}

int
config_read(const char *path, struct config *c, char *error, size_t error_size)
{
    unsigned number;

    *c = (struct config){.text = config_read_text(path)};
    if (!c->text) {
        int err = -errno;

        snprintf(error, error_size, "%s: %s", path,
                 err == -EILSEQ ? "a byte 0 in the file: expected text" : strerror(-err));
        return err;
    }
    int err = split_lines(c, &number);
    if (!err)
        return 0;
    snprintf(error, error_size, "%s:%u: %s", path, number,
             err == -EINVAL ? "expected KEY = VALUE, with a key such as log-level, or a comment behind #"
                            : strerror(-err));
    config_free(c);
    return err;
}

void
config_free(struct config *c)
{
    free(c->lines);
    free(c->text);
    *c = (struct config){0};
}
