/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* top: what `kiln top` shows. kilnd answers with rates (glusterfsd/top-answer.c says of what), these become
 * rows of a view, and rows become lines of text (top-view.c), which go to the screen (top.c) or to standard
 * output. */
#ifndef KILN_CLI_TOP_H
#define KILN_CLI_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct top_view {
    const char *name;
    const struct top_column *columns; /* the first is a text, and as wide as there is room */
    unsigned column_count;
    unsigned sorted_by;                   /* to begin with */
    json_t *(*rows)(const json_t *rates); /* flat objects with the columns' keys */
};
enum { TOP_UNBUILT = 4, TOP_VIEWS };
/* bricks, fops, clients, slow; and features that volumes ask for and that are not built */
extern const struct top_view top_views[TOP_VIEWS];

/* The view's rows, sorted by a column: texts rising, numbers falling, or reversed. The caller's. */
json_t *top_rows(const struct top_view *view, const json_t *rates, unsigned sorted_by, bool is_reversed);
/* The titles (row NULL) or a row as text of `width` columns at most, which are filled; `sorted_by`'s title is
 * in capitals. Bytes that are no printable ASCII become '?'. */
void top_line(const struct top_view *view, const json_t *row, unsigned sorted_by, int width, char *out,
              size_t size);
/* The line about the process. */
void top_summary(const json_t *rates, char *out, size_t size);

#endif
