/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A configuration file is read as keys, values and line numbers; a wrong line is named. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glusterfsd/config.h"

static char path[64];
static char error[1024];

static int
read_config_of(const char *text, size_t size, struct config *c)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
    *error = '\0';
    return config_read(path, c, error, sizeof error);
}

START_TEST(a_file_is_read_line_by_line)
{
    static const char text[] = "# a comment\n\nlog-level = INFO\n\t pool-option=cap=64M \r\n"
                               "  metrics-address  =  [::]:9421 # kept\nstate =";
    struct config c;

    ck_assert_int_eq(read_config_of(text, sizeof text - 1, &c), 0);
    ck_assert_uint_eq(c.count, 4);
    ck_assert_uint_eq(c.lines[0].number, 3);
    ck_assert_str_eq(c.lines[0].key, "log-level");
    ck_assert_str_eq(c.lines[0].value, "INFO");
    ck_assert_uint_eq(c.lines[1].number, 4);
    ck_assert_str_eq(c.lines[1].key, "pool-option");
    ck_assert_str_eq(c.lines[1].value, "cap=64M");
    ck_assert_str_eq(c.lines[2].value, "[::]:9421 # kept");
    ck_assert_str_eq(c.lines[3].key, "state");
    ck_assert_str_eq(c.lines[3].value, "");
    config_free(&c);
    ck_assert_int_eq(read_config_of("", 0, &c), 0);
    ck_assert_uint_eq(c.count, 0);
    config_free(&c);
}
END_TEST

START_TEST(a_wrong_line_is_named)
{
    static const struct {
        const char *text;
        size_t size;
        int err;
        const char *said;
    } wrong[] = {
        {"log-level INFO\n", 15, -EINVAL, ":1: expected KEY = VALUE"},
        {"log-level = INFO\n\n= x\n", 22, -EINVAL, ":3: expected KEY = VALUE"},
        {"--log-level = INFO\nLog = x\n", 27, -EINVAL, ":2: expected KEY = VALUE"},
        {"log level = INFO\n", 17, -EINVAL, ":1: expected KEY = VALUE"},
        {"log-level = IN\0FO\n", 18, -EILSEQ, ": a byte 0 in the file"},
    };
    struct config c;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(read_config_of(wrong[i].text, wrong[i].size, &c), wrong[i].err);
        ck_assert_ptr_eq(strstr(error, path), error);
        ck_assert_ptr_nonnull(strstr(error, wrong[i].said));
        ck_assert_ptr_null(c.lines);
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named)
{
    struct config c;
    char *text = malloc((1 << 20) + 1);

    ck_assert_int_eq(config_read("/nonexistent/kilnd.conf", &c, error, sizeof error), -ENOENT);
    ck_assert_str_eq(error, "/nonexistent/kilnd.conf: No such file or directory");
    ck_assert_int_eq(config_read("/tmp", &c, error, sizeof error), -EISDIR);
    memset(text, '\n', (1 << 20) + 1);
    ck_assert_int_eq(read_config_of(text, 1 << 20, &c), 0);
    config_free(&c);
    ck_assert_int_eq(read_config_of(text, (1 << 20) + 1, &c), -EFBIG);
    free(text);
}
END_TEST

static void
setup(void)
{
    int fd;

    strcpy(path, "/tmp/kiln-test-config.XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
teardown(void)
{
    ck_assert_int_eq(unlink(path), 0);
}

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("file");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_file_is_read_line_by_line);
    tcase_add_test(t, a_wrong_line_is_named);
    tcase_add_test(t, a_file_that_cannot_be_read_is_named);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
