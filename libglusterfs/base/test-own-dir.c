/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Directories of this user, and the files that another user may put in their place. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own-dir.h"

enum { NOBODY = 65534 };

static char top[] = "/tmp/test-own-dir-XXXXXX", path[64], other[64];

static mode_t
mode_of(const char *name)
{
    struct stat st;

    ck_assert_int_eq(stat(name, &st), 0);
    return st.st_mode & 07777;
}

static void
setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(path, sizeof path, "%s/dir", top);
    snprintf(other, sizeof other, "%s/other", top);
}

static void
teardown(void)
{
    unlink(path);
    rmdir(path);
    rmdir(other);
    rmdir(top);
    snprintf(top + sizeof top - 7, 7, "XXXXXX");
}

static void
makes(mode_t umask_now, mode_t mode)
{
    mode_t before = umask(umask_now);
    (void)mkdir(path, 0700); /* the directory of an earlier call stays */
    int fd = own_dir_open(path, mode);

    umask(before);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_uint_eq(mode_of(path), mode);
    close(fd);
}

START_TEST(the_mode_does_not_depend_on_the_umask)
{
    makes(0, 0700);
    makes(0777, 0755); /* which finds the directory of the first call */
    makes(0, 0700);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(own_dir_open(path, 0700), -ENOENT);
    makes(0277, 0755);
}
END_TEST

/* The target of the symlink keeps its mode. */
START_TEST(a_symlink_or_a_file_is_refused)
{
    ck_assert_int_eq(mkdir(other, 0711), 0);
    ck_assert_int_eq(symlink("other", path), 0);
    ck_assert_int_eq(own_dir_open(path, 0700), -ENOTDIR);
    ck_assert_uint_eq(mode_of(other), 0711);
    ck_assert_int_eq(unlink(path), 0);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(own_dir_open(path, 0700), -ENOTDIR);
    ck_assert_uint_eq(mode_of(path), 0600);
}
END_TEST

START_TEST(a_folder_of_another_user_is_refused)
{
    if (geteuid() != 0) {
        printf("not root: nothing to see\n");
        return;
    }
    ck_assert_int_eq(mkdir(path, 0711), 0);
    ck_assert_int_eq(chown(path, NOBODY, NOBODY), 0);
    ck_assert_int_eq(own_dir_open(path, 0700), -EPERM);
    ck_assert_uint_eq(mode_of(path), 0711);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("own-dir");
    TCase *t = tcase_create("own-dir");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_mode_does_not_depend_on_the_umask);
    tcase_add_test(t, a_symlink_or_a_file_is_refused);
    tcase_add_test(t, a_folder_of_another_user_is_refused);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
