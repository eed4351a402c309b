/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* No byte of an answer acts on a terminal. */
#include "cli/printable.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void
becomes(const char *before, const char *after)
{
    json_t *in = json_loads(before, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    json_t *want = json_loads(after, JSON_DECODE_ANY, NULL), *out;

    ck_assert_ptr_nonnull(in);
    ck_assert_ptr_nonnull(want);
    out = printable(in);
    ck_assert_ptr_nonnull(out);
    char *text = json_dumps(out, JSON_ENCODE_ANY);
    ck_assert_msg(json_equal(out, want), "%s became %s", before, text);
    free(text);
    json_decref(out);
    json_decref(want);
    json_decref(in);
}

START_TEST(control_characters_are_escaped)
{
    becomes("\"/a\\u001b[2Jb\\n[x]\\u007f\"", "\"/a\\\\x1b[2Jb\\\\x0a[x]\\\\x7f\"");
    becomes("\"a\\u0000b\"", "\"a\\\\x00b\"");
    becomes("\"\\u009b2J \\u0080\"", "\"\\\\x9b2J \\\\x80\""); /* CSI in one character */
    becomes("\"\"", "\"\"");
}
END_TEST

START_TEST(all_else_stays)
{
    becomes("\"/b\\u00fccher \\u20ac \\\\x1b \\u00a0\"", "\"/b\\u00fccher \\u20ac \\\\x1b \\u00a0\"");
    becomes("{\"n\": [1, 2.5, true, null, {}], \"m\": []}", "{\"n\": [1, 2.5, true, null, {}], \"m\": []}");
}
END_TEST

START_TEST(keys_and_what_lies_deep_too)
{
    becomes("{\"k\\u001b\": [[{\"v\": \"\\r\"}]]}", "{\"k\\\\x1b\": [[{\"v\": \"\\\\x0d\"}]]}");
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("printable");
    TCase *t = tcase_create("printable");

    tcase_add_test(t, control_characters_are_escaped);
    tcase_add_test(t, all_else_stays);
    tcase_add_test(t, keys_and_what_lies_deep_too);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
