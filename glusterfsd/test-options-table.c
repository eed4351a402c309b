/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* doc/options.md names every option of every layer with its effect in the code, and names no other option.
 * Its table of refused keys names each key of `volume set` that takes a single value. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glusterfsd/brick-types.h"
#include "graph/unbuilt.h"
#include "stack/xlator.h"

struct row {
    char layer[64], key[64], volume_key[PATH_MAX], effect[64];
};

static struct row rows[512];
static size_t row_count;
static char refusals[16384]; /* the text of the table of refused keys */

/* The next column of a table's row, without the spaces around it. */
static void
take_column(char **at, char *out, size_t size)
{
    char *end = strchr(*at, '|');

    ck_assert_ptr_nonnull(end);
    *at += strspn(*at, " ");
    size_t len = (size_t)(end - *at);
    while (len > 0 && (*at)[len - 1] == ' ')
        len--;
    snprintf(out, size, "%.*s", (int)len, *at);
    *at = end + 1;
}

static void
take_row(char *at, const char *layer)
{
    struct row *r = &rows[row_count];

    take_column(&at, r->key, sizeof r->key);
    take_column(&at, r->volume_key, sizeof r->volume_key);
    take_column(&at, r->effect, sizeof r->effect);
    if (strcmp(r->key, "option") == 0 || strncmp(r->key, "---", 3) == 0)
        return;
    snprintf(r->layer, sizeof r->layer, "%s", layer);
    row_count++;
    ck_assert_uint_lt(row_count, sizeof rows / sizeof rows[0]);
}

/* Layers have a slash in their names; the headings of other tables have none. */
static void
take_line(char *line, const char *heading)
{
    if (line[0] != '|')
        return;
    if (strchr(heading, '/')) {
        take_row(line + 1, heading);
        return;
    }
    size_t len = strlen(refusals);
    ck_assert_uint_lt(len + strlen(line), sizeof refusals - 1);
    snprintf(refusals + len, sizeof refusals - len, "%s\n", line);
}

static void
setup(void)
{
    const char *top = getenv("top_srcdir");
    char path[PATH_MAX], line[PATH_MAX], layer[64] = "";

    snprintf(path, sizeof path, "%s/doc/options.md", top ? top : ".");
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read: say where it is with top_srcdir=DIR", path);
    row_count = 0;
    refusals[0] = '\0';
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "## ", 3) == 0)
            snprintf(layer, sizeof layer, "%.60s", line + 3);
        else
            take_line(line, layer);
    }
    fclose(f);
    ck_assert_uint_gt(row_count, 100);
}

/* As the table writes it: a family of keys ends with a star. */
static void
key_text(const struct option *o, char *out, size_t size)
{
    snprintf(out, size, "%s%s", o->key, o->type == OPTION_PREFIX ? "*" : "");
}

static bool
is_at_start(const struct xlator_type *type, const char *key)
{
    for (const char *const *k = type->at_start; k && *k; k++) {
        if (strcmp(*k, key) == 0)
            return true;
    }
    return false;
}

static void
effect_text(const struct xlator_type *type, const struct option *o, char *out, size_t size)
{
    if (o->type == OPTION_MUST_BE)
        snprintf(out, size, "only %s", o->text_default);
    else if (unbuilt_find(type->name, o->key))
        snprintf(out, size, "not built");
    else if (o->type == OPTION_IGNORED)
        snprintf(out, size, "no effect");
    else
        snprintf(out, size, "%s", is_at_start(type, o->key) ? "at the start" : "at once");
}

static const struct row *
row_of(const char *layer, const char *key)
{
    const struct row *found = NULL;

    for (size_t i = 0; i < row_count; i++) {
        if (strcmp(rows[i].layer, layer) != 0 || strcmp(rows[i].key, key) != 0)
            continue;
        ck_assert_msg(!found, "%s has two rows for %s", layer, key);
        found = &rows[i];
    }
    return found;
}

static void
check_option(const struct xlator_type *type, const struct option *o)
{
    char key[64], effect[64];

    key_text(o, key, sizeof key);
    effect_text(type, o, effect, sizeof effect);
    const struct row *r = row_of(type->name, key);
    ck_assert_msg(r != NULL, "%s: option %s (%s) has no row", type->name, key, effect);
    /* The effect of a family of keys is its layer's secret. */
    if (o->type != OPTION_PREFIX)
        ck_assert_msg(strcmp(r->effect, effect) == 0,
                      "%s: option %s: \"%s\" in the table, but \"%s\" in the code", type->name, key,
                      r->effect, effect);
}

START_TEST(each_option_has_its_row)
{
    const struct xlator_type *type;

    for (size_t i = 0; (type = brick_type_at(i)); i++) {
        for (const struct option *o = type->options; o->key; o++)
            check_option(type, o);
    }
}
END_TEST

static bool
has_option(const struct xlator_type *type, const char *key)
{
    char text[64];

    for (const struct option *o = type->options; o->key; o++) {
        key_text(o, text, sizeof text);
        if (strcmp(text, key) == 0)
            return true;
    }
    return false;
}

START_TEST(each_row_is_of_an_option)
{
    for (size_t i = 0; i < row_count; i++) {
        const struct xlator_type *type = brick_type_find(rows[i].layer);

        ck_assert_msg(type != NULL, "there is no layer %s", rows[i].layer);
        ck_assert_msg(has_option(type, rows[i].key), "%s has no option %s", rows[i].layer, rows[i].key);
    }
}
END_TEST

START_TEST(what_is_refused_stands_in_one_table)
{
    size_t refused = 0;

    for (size_t i = 0; i < row_count; i++) {
        bool is_told = strncmp(rows[i].effect, "only ", 5) == 0 || strcmp(rows[i].effect, "not built") == 0;

        if (!is_told || rows[i].volume_key[0] == '\0')
            continue;
        ck_assert_msg(strstr(refusals, rows[i].volume_key) != NULL, "%s is refused: no row tells of it",
                      rows[i].volume_key);
        refused++;
    }
    ck_assert_uint_gt(refused, 10);
}
END_TEST

START_TEST(what_is_not_built_is_kept_and_says_what_that_means)
{
    const struct xlator_type *type;
    unsigned found = 0;

    for (size_t i = 0; (type = brick_type_at(i)); i++) {
        for (const struct option *o = type->options; o->key; o++) {
            const struct unbuilt_feature *f = unbuilt_find(type->name, o->key);

            if (!f)
                continue;
            ck_assert_int_eq(o->type, OPTION_STR); /* the type that graph_each_unbuilt() reads */
            ck_assert_ptr_null(o->text_default);
            ck_assert_uint_gt(strlen(f->without), 10);
            found++;
        }
    }
    ck_assert_uint_gt(found, 15);
}
END_TEST

START_TEST(what_acts_at_the_start_is_an_option)
{
    const struct xlator_type *type;

    for (size_t i = 0; (type = brick_type_at(i)); i++) {
        for (const char *const *k = type->at_start; k && *k; k++)
            ck_assert_msg(has_option(type, *k), "%s has no option %s", type->name, *k);
    }
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("options-table");
    TCase *t = tcase_create("options-table");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, each_option_has_its_row);
    tcase_add_test(t, each_row_is_of_an_option);
    tcase_add_test(t, what_is_refused_stands_in_one_table);
    tcase_add_test(t, what_is_not_built_is_kept_and_says_what_that_means);
    tcase_add_test(t, what_acts_at_the_start_is_an_option);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
