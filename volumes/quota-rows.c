/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/quota-rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
quota_rows_add(struct quota_rows *r, const struct simple_quota_usage *list, unsigned count, unsigned set,
               unsigned brick)
{
    struct quota_row *more = reallocarray(r->rows, r->count + count + 1, sizeof *more);

    if (!more) {
        r->is_short = true;
        return;
    }
    for (unsigned i = 0; i < count; i++)
        more[r->count + i] = (struct quota_row){list[i], set, brick};
    r->rows = more;
    r->count += count;
    r->sets[set] = true;
}

void
quota_rows_end(struct quota_rows *r)
{
    free(r->rows);
    *r = (struct quota_rows){0};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

json_t *
quota_rows_to_json(const struct quota_rows *r)
{
    json_t *sets = json_array(), *rows = json_array();
    int is_short = 0;

    for (unsigned i = 0; i < VOLUME_BRICKS_MAX && r->count <= QUOTA_ROWS_MAX; i++) {
        if (r->sets[i])
            is_short |= json_array_append_new(sets, json_integer(i));
    }
    for (unsigned i = 0; i < r->count && i < QUOTA_ROWS_MAX; i++) {
        const struct simple_quota_usage *u = &r->rows[i].usage;

        is_short |= json_array_append_new(rows, json_pack("[s i I I b]", GFID(&u->ns), (int)r->rows[i].set,
                                                          (json_int_t)u->limit, (json_int_t)u->used,
                                                          (int)u->is_counting));
    }
    json_t *json = json_pack("{so so}", "sets", sets, "rows", rows);
    if (!is_short)
        return json;
    json_decref(json);
    return NULL;
}

void
quota_rows_add_json(struct quota_rows *r, const json_t *json, unsigned sets)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(json, "sets"), i, one)
    {
        json_int_t set = json_is_integer(one) ? json_integer_value(one) : -1;

        if (set >= 0 && set < (json_int_t)sets)
            quota_rows_add(r, NULL, 0, (unsigned)set, QUOTA_ROW_FAR);
    }
    json_array_foreach(json_object_get(json, "rows"), i, one)
    {
        const char *gfid = json_string_value(json_array_get(one, 0));
        json_int_t set = json_integer_value(json_array_get(one, 1));
        struct simple_quota_usage u = {.limit = json_integer_value(json_array_get(one, 2)),
                                       .used = json_integer_value(json_array_get(one, 3)),
                                       .is_counting = json_is_true(json_array_get(one, 4))};

        if (!gfid || gfid_parse(gfid, strlen(gfid), &u.ns) || set < 0 || set >= (json_int_t)sets ||
            u.limit < 0 || i >= QUOTA_ROWS_MAX)
            continue;
        quota_rows_add(r, &u, 1, (unsigned)set, QUOTA_ROW_FAR);
    }
}

/* ---- the sum --------------------------------------------------------------------------------- */

static int
compare_rows(const void *a, const void *b)
{
    const struct quota_row *one = a, *other = b;
    int order = simple_quota_compare(&one->usage, &other->usage);

    return order ? order : (int)one->set - (int)other->set;
}

/* Sums, over the sets, the fullest replica of each namespace; t->rows has room for all. */
static void
sum_sets(const struct quota_row *rows, unsigned count, struct quota_table *t)
{
    int64_t fullest = 0;

    for (unsigned i = 0; i < count; i++) {
        bool is_same = i > 0 && simple_quota_compare(&rows[i - 1].usage, &rows[i].usage) == 0;

        if (!is_same)
            t->rows[t->count++] = rows[i].usage;
        struct simple_quota_usage *sum = &t->rows[t->count - 1];
        if (!is_same) {
            fullest = rows[i].usage.used;
            continue;
        }
        if (rows[i - 1].set != rows[i].set)
            fullest = 0;
        if (rows[i].usage.used > fullest) {
            sum->used += rows[i].usage.used - fullest;
            fullest = rows[i].usage.used;
        }
        sum->limit = rows[i].usage.limit > sum->limit ? rows[i].usage.limit : sum->limit;
        sum->is_counting |= rows[i].usage.is_counting;
    }
}

int
quota_rows_sum(struct quota_rows *r, unsigned sets, struct quota_table *t)
{
    *t = (struct quota_table){.is_whole = true};
    for (unsigned i = 0; i < sets; i++)
        t->is_whole &= r->sets[i];
    t->rows = r->is_short ? NULL : calloc(r->count + 1, sizeof *t->rows);
    if (!t->rows)
        return -ENOMEM;
    if (r->count) {
        qsort(r->rows, r->count, sizeof *r->rows, compare_rows);
        sum_sets(r->rows, r->count, t);
    }
    return 0;
}
