/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* config: reads a configuration file of kilnd: lines KEY = VALUE, empty lines, and comments behind a '#' at
 * the beginning of a line. Blanks around key and value do not count. A value ends with its line, so a value
 * may contain '#', '=' and quotes, which have no meaning.
 *
 * thread: the main thread, before there are others. */
#ifndef KILN_GLUSTERFSD_CONFIG_H
#define KILN_GLUSTERFSD_CONFIG_H

#include <stddef.h>

#define CONFIG_PATH "/etc/kiln/kilnd.conf"

struct config_line {
    unsigned number; /* 1: the first */
    char *key, *value;
};

struct config {
    char *text; /* holds the keys and values */
    struct config_line *lines;
    unsigned count;
};

/* Reads the whole file. Returns 0, or -errno with the reason in `error`: "PATH: ..." or "PATH:LINE: ...".
 * After a failure nothing has to be freed. */
int config_read(const char *path, struct config *c, char *error, size_t error_size);
void config_free(struct config *c);

#endif
