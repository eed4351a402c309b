/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* escape: names that clients choose, made fit to stand in a line of a log or a statedump.
 * thread: any */
#ifndef KILN_LOG_ESCAPE_H
#define KILN_LOG_ESCAPE_H

#include <stddef.h>

/* Copies `len` bytes to `out`, each byte below 0x20 and 0x7f as \xNN: so nobody ends a line, or moves a
 * terminal's cursor. Ends in a NUL and stops before an escape would be cut. The length written. size > 0. */
size_t log_escape(char *out, size_t size, const char *text, size_t len);

/* The same of a text that is one field of several in a line: blanks, commas and '=' as \xNN, too, so that no
 * name looks like further fields. */
size_t log_escape_field(char *out, size_t size, const char *text);

#endif
