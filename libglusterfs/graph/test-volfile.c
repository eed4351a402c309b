/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/volfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

static struct volfile *
parse(const char *text, char *error)
{
    error[0] = '\0';
    return volfile_parse("t.vol", text, strlen(text), error, 256);
}

/* The last value of a key wins, as in option_parse(). */
static const char *
value_of(const struct volfile_section *s, const char *key)
{
    for (size_t i = s->option_count; i-- > 0;) {
        if (strcmp(s->options[i].key, key) == 0)
            return s->options[i].value;
    }
    return NULL;
}

START_TEST(a_brick_file_is_read)
{
    char error[256];
    struct volfile *v =
        parse("# a comment\nvolume p\n type storage/posix\n option directory \"/a \\\"b\\\"\"\n"
              " option volume-id x#y\nend-volume\n\n"
              "volume top type debug/io-stats subvolumes p option a 1 option a 2 end-volume",
              error);

    ck_assert_msg(v != NULL, "%s", error);
    ck_assert_uint_eq(v->section_count, 2);
    ck_assert_str_eq(v->top->name, "top");
    ck_assert_ptr_eq(v->top->subvolumes[0], &v->sections[0]);
    ck_assert_str_eq(value_of(&v->sections[0], "directory"), "/a \"b\"");
    ck_assert_str_eq(value_of(&v->sections[0], "volume-id"), "x#y");
    ck_assert_str_eq(value_of(v->top, "a"), "2");
    ck_assert_uint_eq(v->sections[0].options[0].line, 4);
    ck_assert_int_eq(volfile_override(v, "*op", "a", "3"), 0);
    ck_assert_str_eq(value_of(v->top, "a"), "3");
    volfile_free(v);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "t.vol:1: expected 'volume'"},
    {"volum a", "t.vol:1: expected 'volume', found 'volum'"},
    {"volume", "expected the volume's name"},
    {"volume a\noption b c", "t.vol:2: expected 'type' in volume 'a', found 'option'"},
    {"volume a type t\nend", "expected 'option', 'subvolumes' or 'end-volume' in volume 'a', found 'end'"},
    {"volume a type t option x", "expected the option's value"},
    {"volume a type t", "found the end of the file"},
    {"volume a type t subvolumes b end-volume", "subvolume 'b' of 'a' is not defined above"},
    {"volume a type t subvolumes a end-volume", "subvolume 'a' of 'a' is not defined above"},
    {"volume a type t subvolumes end-volume", "expected a subvolume's name"},
    {"volume a type t end-volume volume a type t end-volume", "volume 'a' is defined twice"},
    {"volume a type t option x \"y\nend-volume", "expected a closing '\"'"},
    {"volume a type t option x y\\z end-volume", "expected a blank after 'y'"},
    {"volume a type t option x `id` end-volume", "back-quotes"},
};

START_TEST(a_bad_file_is_refused_with_line_and_reason)
{
    char error[256];

    ck_assert_ptr_null(parse(bad[_i].text, error));
    ck_assert_msg(strstr(error, bad[_i].says), "'%s' lacks '%s'", error, bad[_i].says);
}
END_TEST

START_TEST(truncated_and_changed_text_never_breaks_the_parser)
{
    static const char good[] =
        "volume p\n type storage/posix # c\n option directory \"/a \\\"b\\\"\"\n option x y\n"
        "end-volume\nvolume top\n type debug/io-stats\n subvolumes p\nend-volume\n";
    char error[256], text[sizeof good];

    srandom(1);
    for (size_t len = 0; len < sizeof good - 1; len++)
        volfile_free(volfile_parse("t", good, len, error, sizeof error));
    for (int i = 0; i < 20000; i++) {
        memcpy(text, good, sizeof good);
        for (int k = 0; k < 1 + i % 4; k++)
            text[random() % (long)(sizeof good - 1)] = (char)random();
        volfile_free(volfile_parse("t", text, sizeof good - 1, error, sizeof error));
    }
}
END_TEST

/* `count` sections, each above the previous one, or next to it. The caller frees the text. */
static char *
many_sections(unsigned count, bool is_nested)
{
    size_t room = 64 * (size_t)count + 1, at = 0;
    char *text = malloc(room);

    for (unsigned i = 0; i < count; i++) {
        at += (size_t)snprintf(text + at, room - at, "volume v%u type t", i);
        if (is_nested && i)
            at += (size_t)snprintf(text + at, room - at, " subvolumes v%u", i - 1);
        at += (size_t)snprintf(text + at, room - at, " end-volume\n");
    }
    return text;
}

static void
assert_is_refused(char *text, const char *words)
{
    char error[256];

    ck_assert_ptr_null(parse(text, error));
    ck_assert_msg(strstr(error, words), "'%s' lacks '%s'", error, words);
    free(text);
}

START_TEST(depth_and_number_are_bounded)
{
    char error[256], *text = many_sections(VOLFILE_DEPTH_MAX, true);
    struct volfile *v = parse(text, error);

    ck_assert_msg(v != NULL, "%s", error);
    ck_assert_uint_eq(v->top->depth, VOLFILE_DEPTH_MAX);
    volfile_free(v);
    free(text);
    assert_is_refused(many_sections(VOLFILE_DEPTH_MAX + 1, true),
                      "t.vol:129: volume 'v128' stands on 128 layers: 127 at most");
    assert_is_refused(many_sections(VOLFILE_SECTIONS_MAX + 1, false), "more than 16384 volumes");
}
END_TEST

START_TEST(a_section_is_added_on_top)
{
    char error[256], *text = many_sections(9, true);
    struct volfile *v = parse(text, error);

    ck_assert_int_eq(volfile_add_top(v, "v3", "x"), -EEXIST);
    ck_assert_int_eq(volfile_add_top(v, "new", "x"), 0);
    ck_assert_uint_eq(v->section_count, 10);
    ck_assert_ptr_eq(v->top, &v->sections[9]);
    ck_assert_uint_eq(v->top->depth, 10);
    for (unsigned i = 1; i < 10; i++)
        ck_assert_ptr_eq(v->sections[i].subvolumes[0], &v->sections[i - 1]);
    volfile_free(v);
    free(text);
}
END_TEST

START_TEST(a_section_is_inserted)
{
    char error[256], *text = many_sections(9, true);
    struct volfile *v = parse(text, error);

    ck_assert_int_eq(volfile_insert_above(v, &v->sections[3], "v3", "x"), -EEXIST);
    ck_assert_int_eq(volfile_insert_above(v, &v->sections[3], "new", "x"), 0);
    ck_assert_uint_eq(v->section_count, 10);
    ck_assert_ptr_eq(v->top, &v->sections[9]);
    ck_assert_str_eq(v->sections[4].name, "new");
    for (unsigned i = 1; i < 10; i++) {
        ck_assert_uint_eq(v->sections[i].depth, i + 1);
        ck_assert_ptr_eq(v->sections[i].subvolumes[0], &v->sections[i - 1]);
    }
    volfile_free(v);
    free(text);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("volfile");
    TCase *t = tcase_create("volfile");

    tcase_add_test(t, a_brick_file_is_read);
    tcase_add_loop_test(t, a_bad_file_is_refused_with_line_and_reason, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(t, depth_and_number_are_bounded);
    tcase_add_test(t, a_section_is_added_on_top);
    tcase_add_test(t, a_section_is_inserted);
    tcase_add_test(t, truncated_and_changed_text_never_breaks_the_parser);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
