/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* top: the views of `kiln top`. kilnd answers with rates (bricks/top-answer.c describes the answer).
 * top-view.c makes rows of a view from the rates, and lines of text from the rows. top.c draws the lines on
 * the screen or prints the lines on standard output. */
#ifndef KILN_CLI_TOP_H
#define KILN_CLI_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct top_view {
    const char *name;
    const struct top_column *columns; /* the first column is a text, and takes spare width */
    unsigned column_count;
    unsigned sorted_by;                   /* number of the column that sorts at first */
    json_t *(*rows)(const json_t *rates); /* flat objects with the columns' keys */
};
enum { TOP_BRICKS, TOP_FOPS, TOP_CLIENTS, TOP_SLOW, TOP_UNBUILT, TOP_VOLUMES, TOP_HOSTS, TOP_VIEWS };
extern const struct top_view top_views[TOP_VIEWS];

/* Gives each brick of an answer a "name": VOLUME:PATH, or with several hosts VOLUME:HOST:PATH, with as many
 * last components of the path as tell the bricks of the volume apart. Called before the next functions. */
void top_name_bricks(json_t *rates);
/* Returns the view's rows, sorted by a column: texts rising, numbers falling, or reversed. The caller owns
 * the rows. */
json_t *top_rows(const struct top_view *view, const json_t *rates, unsigned sorted_by, bool is_reversed);
/* Writes the titles (row NULL) or a row as text, and fills up to `width` columns at most. The title of the
 * column `sorted_by` is in capitals. Bytes that are no printable ASCII become '?'. */
void top_line(const struct top_view *view, const json_t *row, unsigned sorted_by, int width, char *out,
              size_t size);
/* Tells whether a screen of this width has the column. */
bool top_column_is_shown(const struct top_view *view, unsigned column, int width);
/* Returns the rows of which a text contains `text`; "": all. Takes `rows` over. */
json_t *top_filter(json_t *rows, const char *text);
/* Returns a row with the sums of bricks or volumes. NULL: the view has no sums, or there are less than two
 * rows. */
json_t *top_sum(const struct top_view *view, const json_t *rows);
/* Writes the line about the process. */
void top_summary(const json_t *rates, char *out, size_t size);

#endif
