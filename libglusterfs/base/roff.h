/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* roff: prints the parts of manual pages that come from a program's own tables. The tables have plain
 * hyphens, which become \-. Main thread, before any other thread. */
#ifndef KILN_BASE_ROFF_H
#define KILN_BASE_ROFF_H

#include <stdbool.h>
#include <stdio.h>

/* Prints a text of the manual, with all its requests, and a newline. */
void roff_text(FILE *out, const char *text);
/* Prints the paragraph of an option. `alias`, `letter` (0) and `arg` (NULL) may be missing. */
void roff_option(FILE *out, const char *name, const char *alias, int letter, const char *arg,
                 bool arg_may_lack, const char *text);
/* Prints the paragraph of the options that argp adds. */
void roff_help_option(FILE *out);
/* Print the lines between which tests/check/manuals replaces a generated part of a page. */
void roff_begin(FILE *out, const char *part);
void roff_end(FILE *out, const char *part);

#endif
