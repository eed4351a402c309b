/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Parts and folder of a statedump, read from its options file. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/statedump-options.h"
#include "log/dump.h"

static char dir[64];

static void
put(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void
take_away(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(unlink(path), 0);
}

static struct statedump_options
read_options(void)
{
    struct statedump_options o;

    ck_assert_int_eq(statedump_options_read(dir, 77, &o), 0);
    return o;
}

START_TEST(only_what_was_asked_for_is_wanted)
{
    ck_assert_uint_eq(read_options().leaves_out, 0);
    put("glusterdump.78.options", "mem=yes\n"); /* of another process */
    ck_assert_uint_eq(read_options().leaves_out, 0);
    put("glusterdump.77.options", "mem=yes\niobuf=yes\n");
    ck_assert_uint_eq(read_options().leaves_out, DUMP_ALL & ~(unsigned)(DUMP_MEM | DUMP_IOBUF));
    put("glusterdump.77.options", "all=yes\nmem=yes\n");
    ck_assert_uint_eq(read_options().leaves_out, 0);
    put("glusterdump.77.options", "inode=yes\npriv=no\n");
    ck_assert_uint_eq(read_options().leaves_out, DUMP_ALL & ~(unsigned)DUMP_INODES);
    put("glusterdump.77.options", "history=yes\n");
    ck_assert_uint_eq(read_options().leaves_out, DUMP_ALL);
    put("glusterdump.77.options", "colour=yes\nmem\n\n");
    ck_assert_uint_eq(read_options().leaves_out, 0);
    put("glusterdump.options", "path=/srv/dumps\ncallpool=yes\n"); /* the common file comes first */
    struct statedump_options o = read_options();
    ck_assert_uint_eq(o.leaves_out, DUMP_ALL & ~(unsigned)DUMP_CALLS);
    ck_assert_str_eq(o.dir, "/srv/dumps");
    put("glusterdump.options", "path=relative\n");
    o = read_options();
    ck_assert_uint_eq(o.leaves_out, 0);
    ck_assert_str_eq(o.dir, "");
    take_away("glusterdump.options");
    take_away("glusterdump.77.options");
    take_away("glusterdump.78.options");
}
END_TEST

static void
setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/kiln-test-options.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void
teardown(void)
{
    ck_assert_int_eq(rmdir(dir), 0);
}

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("statedump-options");
    TCase *t = tcase_create("file");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, only_what_was_asked_for_is_wanted);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
