/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* printable: what kilnd answers, fit for a terminal. Names of files and of clients are what others chose: one
 * with an escape sequence would move root's cursor, and one with a line end would make up a line. */
#ifndef KILN_CLI_PRINTABLE_H
#define KILN_CLI_PRINTABLE_H

#include <jansson.h>

/* A copy in which each control character of a text or a key stands as \xHH, those of two bytes in UTF-8
 * (U+0080 to U+009F) too. NULL: no memory. */
json_t *printable(const json_t *json);

#endif
