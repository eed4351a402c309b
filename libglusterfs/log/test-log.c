/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Whatever a client calls its files: a log line stays one line, a statedump has no sections but our own. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/dump.h"
#include "log/escape.h"
#include "log/log.h"

START_TEST(bytes_are_escaped)
{
    char out[64], tight[8];

    ck_assert_uint_eq(log_escape(out, sizeof out, "a\nb\x7f\x1b[\0\xc3\xa4", 9), 21);
    ck_assert_str_eq(out, "a\\x0ab\\x7f\\x1b[\\x00\xc3\xa4");
    /* Never half of an escape, always a NUL. */
    ck_assert_uint_eq(log_escape(tight, sizeof tight, "abcd\nf", 6), 4);
    ck_assert_str_eq(tight, "abcd");
    ck_assert_uint_eq(log_escape(tight, sizeof tight, "abc\nf", 5), 7);
    ck_assert_str_eq(tight, "abc\\x0a");
    ck_assert_uint_eq(log_escape(tight, 1, "abc", 3), 0);
    ck_assert_str_eq(tight, "");
}
END_TEST

static size_t
contents_of(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");

    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, size - 1, f);
    fclose(f);
    text[n] = '\0';
    return n;
}

START_TEST(a_log_line_stays_one)
{
    char path[] = "/tmp/kiln-test-log-XXXXXX", text[32768], many[6000];
    int fd = mkstemp(path);

    ck_assert_int_eq(log_open(path), 0);
    log_event(LOG_ERROR, NULL, "test-forged", "cannot make %s",
              "d\n[2026] C [forged.c:1:f] 0-kilnd: on fire");
    memset(many, '\n', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    log_event(LOG_ERROR, NULL, "test-forged-long", "%s", many);
    log_close();
    size_t n = contents_of(path, text, sizeof text);
    unsigned lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    ck_assert_uint_eq(lines, 2);
    ck_assert_int_eq(text[n - 1], '\n');
    ck_assert_ptr_nonnull(strstr(text, "d\\x0a[2026]"));
    ck_assert_ptr_nonnull(strstr(text, "[test-forged]\n"));
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(a_statedump_has_our_sections_only)
{
    char *text = NULL, big[9000];
    size_t size = 0;
    struct dump d = {.file = open_memstream(&text, &size)};

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    dump_section(&d, "lock.%s", "a]\n[forged");
    dump_line(&d, "dom\nain", "%s", "v\n\n[forged]\nkey=1");
    dump_line(&d, "big", "%s\n", big);
    fclose(d.file);
    ck_assert_ptr_nonnull(
        strstr(text, "\n[lock.a]\\x0a[forged]\ndom\\x0aain=v\\x0a\\x0a[forged]\\x0akey=1\nbig=xxx"));
    ck_assert_uint_eq(strlen(strstr(text, "big=")), 4 + sizeof big - 1 + 4 + 1);
    free(text);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("log");
    TCase *tc = tcase_create("log");

    tcase_add_test(tc, bytes_are_escaped);
    tcase_add_test(tc, a_log_line_stays_one);
    tcase_add_test(tc, a_statedump_has_our_sections_only);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
