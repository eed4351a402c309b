/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "daemon/statedump-options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "log/dump.h"

/* Stock's keys. In a brick of Kiln the layers keep the state of fds and of layers' contexts. */
static const struct {
    const char *key;
    unsigned parts;
} keys[] = {
    {"all", DUMP_ALL},        {"mem", DUMP_MEM},   {"iobuf", DUMP_IOBUF}, {"callpool", DUMP_CALLS},
    {"priv", DUMP_LAYERS},    {"fd", DUMP_LAYERS}, {"inode", DUMP_INODES}, {"inodectx", DUMP_LAYERS},
    {"fdctx", DUMP_LAYERS},   {"history", 0},
};

/* True: the key is known. */
static bool
parse_dump_option(char *line, unsigned *wanted, struct statedump_options *out)
{
    char *value = strchr(line, '=');

    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(line, "path") == 0 && *value == '/')
        snprintf(out->dir, sizeof out->dir, "%s", value);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(line, keys[i].key) != 0)
            continue;
        if (strcmp(value, "yes") == 0)
            *wanted |= keys[i].parts;
        return true;
    }
    return false;
}

static int
read_file(FILE *f, struct statedump_options *out)
{
    char line[2048];
    unsigned wanted = 0;
    bool says_what = false;

    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        says_what |= parse_dump_option(line, &wanted, out);
    }
    if (ferror(f))
        return -EIO;
    out->leaves_out = says_what ? DUMP_ALL & ~wanted : 0;
    return 0;
}

int
statedump_options_read(const char *dir, long pid, struct statedump_options *out)
{
    char path[1024];

    *out = (struct statedump_options){0};
    snprintf(path, sizeof path, "%s/glusterdump.options", dir);
    FILE *f = fopen(path, "re");
    if (!f && errno == ENOENT) {
        snprintf(path, sizeof path, "%s/glusterdump.%ld.options", dir, pid);
        f = fopen(path, "re");
    }
    if (!f)
        return errno == ENOENT ? 0 : -errno;
    int err = read_file(f, out);
    fclose(f);
    return err;
}
