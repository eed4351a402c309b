/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* printable: kilnd's answer, fit for a terminal. Other users choose the names of files and of clients. A name
 * with an escape sequence would move root's cursor, and a name with a line end would fake a line. */
#ifndef KILN_CLI_PRINTABLE_H
#define KILN_CLI_PRINTABLE_H

#include <jansson.h>

/* Returns a copy in which \xHH replaces each control character of a text or a key, also the control
 * characters of two bytes in UTF-8 (U+0080 to U+009F). NULL: no memory. */
json_t *printable(const json_t *json);

#endif
