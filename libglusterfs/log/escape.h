/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* escape: makes names that clients choose safe for a line of a log or a statedump. thread: any */
#ifndef KILN_LOG_ESCAPE_H
#define KILN_LOG_ESCAPE_H

#include <stddef.h>

/* Copies `len` bytes to `out`, each byte below 0x20 and 0x7f as \xNN, so that a name cannot end a line or
 * move a terminal's cursor. Ends in a NUL and stops before an escape would be cut. Returns the length
 * written. size > 0. */
size_t log_escape(char *out, size_t size, const char *text, size_t len);

/* Like log_escape(), for a text that is one field of several in a line: also writes blanks, commas and '='
 * as \xNN, so that no name looks like further fields. */
size_t log_escape_field(char *out, size_t size, const char *text);

#endif
