/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* quota-rows: the usage of limited folders, brick by brick, and its sum over a volume.
 *
 * A row is the usage of one folder on one brick, with the set (subvolume) of the brick. The sum counts the
 * fullest replica of each set. Hosts of a store give each other rows as JSON:
 *
 *     {"sets": [sets of which a brick has answered], "rows": [[gfid, set, limit, used, counting], ...]}
 *
 * Plain values: the functions take no lock and touch no brick. */
#ifndef KILN_VOLUMES_QUOTA_ROWS_H
#define KILN_VOLUMES_QUOTA_ROWS_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "volumes/volume.h"
#include "xlators/features/simple-quota/simple-quota.h"

enum { QUOTA_ROWS_MAX = 8192 }; /* rows that one host gives to another */
#define QUOTA_ROW_FAR UINT_MAX

struct quota_row {
    struct simple_quota_usage usage;
    unsigned set;
    unsigned brick; /* number of the brick in the volume; QUOTA_ROW_FAR: a brick of another host */
};

struct quota_rows {
    struct quota_row *rows; /* owned */
    unsigned count;
    bool sets[VOLUME_BRICKS_MAX]; /* a brick of the set has answered */
    bool is_short;                /* there was no memory for some row */
};

struct quota_table {
    struct simple_quota_usage *rows; /* owned; the totals of the volume, sorted by gfid */
    unsigned count;
    bool is_whole; /* at least one brick of each set has answered */
};

/* Adds the usage of one brick of the set. `brick`: as in struct quota_row. */
void quota_rows_add(struct quota_rows *r, const struct simple_quota_usage *list, unsigned count,
                    unsigned set, unsigned brick);
void quota_rows_end(struct quota_rows *r);
/* NULL: no memory. Rows beyond QUOTA_ROWS_MAX are left out, and then no set counts as answered. */
json_t *quota_rows_to_json(const struct quota_rows *r);
/* Adds rows of another host, which may have any form: rows that make no sense are skipped. `sets`: the number
 * of sets of the volume. */
void quota_rows_add_json(struct quota_rows *r, const json_t *json, unsigned sets);
/* Sorts the rows, and sums them. Returns 0 or -ENOMEM; after 0 the caller frees t->rows. */
int quota_rows_sum(struct quota_rows *r, unsigned sets, struct quota_table *t);

#endif
