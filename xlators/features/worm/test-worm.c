/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which operations a write-once volume refuses, and to which clients. */
#include <fcntl.h>

#include "xlators/features/test-layers.h"

extern const struct xlator_type features_worm_xlator;

static void
setup(void)
{
    bench_setup(&features_worm_xlator, (const char *const[]){"worm", "on", NULL}, bench_succeed);
}

START_TEST(existing_files_and_names_stay)
{
    static const enum fop refused[] = {FOP_link,  FOP_unlink,      FOP_rename,      FOP_truncate,
                                       FOP_rmdir, FOP_removexattr, FOP_fremovexattr};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ck_assert_int_eq(bench_ask(refused[i], 1000, 0), -EROFS);
        ck_assert_int_eq(bench_ask(refused[i], -6, 0), 0);
    }
}
END_TEST

START_TEST(new_things_may_be_made)
{
    static const enum fop allowed[] = {FOP_create,  FOP_mkdir,    FOP_mknod,  FOP_symlink, FOP_setattr,
                                       FOP_setxattr, FOP_fsetxattr, FOP_lookup, FOP_xattrop, FOP_fsync};

    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        ck_assert_int_eq(bench_ask(allowed[i], 1000, 0), 0);
}
END_TEST

START_TEST(open_for_writing_is_refused)
{
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_RDONLY), 0);
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_WRONLY), -EROFS);
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_RDONLY | O_TRUNC), -EROFS);
    ck_assert_int_eq(bench_ask(FOP_open, 1000, O_RDONLY | O_APPEND), -EROFS);
    ck_assert_int_eq(bench_ask(FOP_open, -6, O_RDWR), 0);
}
END_TEST

static int
create_existing(int pid, uint32_t flags)
{
    struct bench_call *call = bench_call(FOP_create, NULL);

    call->stk->caller.pid = pid;
    call->stk->call.flags = flags;
    call->stk->call.loc.inode = bench_inode("f", 1, S_IFREG);
    return bench_run(call);
}

START_TEST(create_opens_no_existing_file_for_writing)
{
    ck_assert_int_eq(create_existing(1000, O_CREAT | O_RDWR), -EROFS);
    ck_assert_int_eq(create_existing(1000, O_CREAT | O_WRONLY), -EROFS);
    ck_assert_int_eq(create_existing(1000, O_CREAT | O_RDONLY | O_TRUNC), -EROFS);
    ck_assert_int_eq(create_existing(1000, O_CREAT | O_RDONLY | O_APPEND), -EROFS);
    ck_assert_int_eq(create_existing(1000, O_CREAT | O_RDONLY), 0);
    ck_assert_int_eq(create_existing(1000, O_CREAT | O_RDWR | O_EXCL), 0); /* storage answers EEXIST */
    ck_assert_int_eq(create_existing(-6, O_CREAT | O_RDWR), 0);
}
END_TEST

static int
change(enum fop fop, int pid, bool is_anonymous)
{
    struct inode *i = bench_inode("f", 1, S_IFREG);
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->caller.pid = pid;
    call->stk->call.fd = is_anonymous ? fd_new_anonymous(i, NULL) : fd_new(i, NULL, O_RDWR, false);
    ck_assert_ptr_nonnull(call->stk->call.fd);
    if (fop == FOP_copy_file_range) { /* copies from the first file to the second */
        call->stk->call.fd2 = call->stk->call.fd;
        call->stk->call.fd = is_anonymous ? fd_new(i, NULL, O_RDWR, false) : fd_new_anonymous(i, NULL);
    }
    inode_unref(i);
    return bench_run(call);
}

START_TEST(only_the_fd_that_made_a_file_writes_it)
{
    static const enum fop fops[] = {FOP_writev,  FOP_ftruncate, FOP_fallocate,
                                    FOP_discard, FOP_zerofill,  FOP_copy_file_range};

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        ck_assert_int_eq(change(fops[i], 1000, false), 0);
        ck_assert_int_eq(change(fops[i], 1000, true), -EROFS);
        ck_assert_int_eq(change(fops[i], -6, true), 0);
    }
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("worm");
    TCase *t = tcase_create("worm");

    tcase_add_checked_fixture(t, setup, bench_teardown);
    tcase_add_test(t, existing_files_and_names_stay);
    tcase_add_test(t, new_things_may_be_made);
    tcase_add_test(t, open_for_writing_is_refused);
    tcase_add_test(t, create_opens_no_existing_file_for_writing);
    tcase_add_test(t, only_the_fd_that_made_a_file_writes_it);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
