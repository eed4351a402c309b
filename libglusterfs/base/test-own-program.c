/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The path of the running program, also after its file was removed. The test removes a copy of itself, which
 * it runs with the variable COPY. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own-program.h"
#include "base/test-child.h"

#define COPY "KILN_TEST_OWN_PROGRAM"

static void
copy_own_program(const char *to)
{
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        out = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    struct stat st;

    ck_assert_int_eq(fstat(in, &st), 0);
    while (st.st_size > 0) {
        ssize_t n = sendfile(out, in, NULL, (size_t)st.st_size);

        ck_assert_int_gt(n, 0);
        st.st_size -= n;
    }
    close(in);
    ck_assert_int_eq(close(out), 0);
}

/* In the copy: the path is the same before and after the removal. The status 0 says so. */
static _Noreturn void
copy_main(const char *copy)
{
    char path[PATH_MAX];
    bool is_right = own_program(path) == 0 && strcmp(path, copy) == 0 && unlink(copy) == 0 &&
                    own_program(path) == 0 && strcmp(path, copy) == 0;

    _exit(is_right ? 0 : 1);
}

START_TEST(the_path_leads_to_the_running_file)
{
    char path[PATH_MAX];
    struct stat own, found;

    ck_assert_int_eq(own_program(path), 0);
    ck_assert_int_eq(stat("/proc/self/exe", &own), 0);
    ck_assert_int_eq(stat(path, &found), 0);
    ck_assert_uint_eq(own.st_ino, found.st_ino);
}
END_TEST

START_TEST(a_program_beside_has_the_same_folder)
{
    char path[PATH_MAX], beside[PATH_MAX], name[PATH_MAX + 1];

    ck_assert_int_eq(own_program(path), 0);
    ck_assert_int_eq(own_program_beside(beside, "kiln-heal"), 0);
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(strncmp(beside, path, strlen(path)), 0);
    ck_assert_str_eq(beside + strlen(path), "/kiln-heal");
    memset(name, 'n', sizeof name);
    name[PATH_MAX] = '\0';
    ck_assert_int_eq(own_program_beside(beside, name), -ENAMETOOLONG);
}
END_TEST

START_TEST(a_removed_file_has_its_old_path)
{
    char top[] = "/tmp/test-own-program-XXXXXX", copy[64];

    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(copy, sizeof copy, "%s/copy", top);
    copy_own_program(copy);
    pid_t pid = test_fork();
    if (pid == 0) {
        setenv(COPY, copy, 1);
        execl(copy, copy, (char *)NULL);
        _exit(2);
    }
    ck_assert_int_eq(test_child_status(pid), 0);
    ck_assert_int_eq(rmdir(top), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("own-program");
    TCase *t = tcase_create("own-program");

    if (getenv(COPY))
        copy_main(getenv(COPY));
    tcase_add_test(t, the_path_leads_to_the_running_file);
    tcase_add_test(t, a_program_beside_has_the_same_folder);
    tcase_add_test(t, a_removed_file_has_its_old_path);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
