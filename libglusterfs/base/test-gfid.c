/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/gfid.h"

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test-child.h"

enum { N = 2000 }; /* more than one system call brings */

static int
gfid_order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct gfid));
}

START_TEST(random_gfids_differ_and_are_of_version_4)
{
    static struct gfid all[N];

    for (int i = 0; i < N; i++) {
        gfid_random(&all[i]);
        ck_assert_uint_eq(all[i].b[6] >> 4, 4);
        ck_assert_uint_eq(all[i].b[8] >> 6, 2);
    }
    qsort(all, N, sizeof all[0], gfid_order);
    for (int i = 1; i < N; i++)
        ck_assert(!gfid_equal(&all[i - 1], &all[i]));
}
END_TEST

/* The parent has read random bytes before the fork. The child must not use the same bytes. */
START_TEST(a_child_process_makes_other_gfids_than_its_parent)
{
    enum { EACH = 8 };
    struct gfid first, ours, theirs[EACH];
    int ends[2];

    gfid_random(&first);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = test_fork();

    if (pid == 0) {
        for (int i = 0; i < EACH; i++)
            gfid_random(&theirs[i]);
        _exit(write(ends[1], theirs, sizeof theirs) == (ssize_t)sizeof theirs ? 0 : 1);
    }
    ck_assert_int_eq(test_child_status(pid), 0);
    ck_assert_int_eq(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    for (int i = 0; i < EACH; i++) {
        gfid_random(&ours);
        for (int k = 0; k < EACH; k++)
            ck_assert(!gfid_equal(&ours, &theirs[k]));
    }
    close(ends[0]);
    close(ends[1]);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("gfid");
    TCase *t = tcase_create("gfid");

    tcase_add_test(t, random_gfids_differ_and_are_of_version_4);
    tcase_add_test(t, a_child_process_makes_other_gfids_than_its_parent);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
