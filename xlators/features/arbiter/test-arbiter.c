/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which changes of contents an arbiter answers with success, which calls it refuses, and which it passes to
 * storage. */
#include <fcntl.h>

#include "xlators/features/test-layers.h"

extern const struct xlator_type features_arbiter_xlator;

enum { FROM_STORAGE = 7 };

static xl_verdict
answer_of_storage(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = FROM_STORAGE;
    return XL_DONE;
}

static void
setup(void)
{
    bench_setup(&features_arbiter_xlator, NULL, answer_of_storage);
}

/* Makes a call on bytes [offset, offset + size) of a regular file or a directory, both on an fd with these
 * flags and by gfid. */
static struct bench_call *
change(enum fop fop, uint32_t type, uint32_t fd_flags, uint64_t offset, uint64_t size)
{
    struct bench_call *call = bench_call(fop, NULL);
    struct inode *i = bench_inode("f", 1, type);

    call->stk->call.fd = fd_new(i, NULL, fd_flags, false);
    ck_assert_ptr_nonnull(call->stk->call.fd);
    call->stk->call.loc.inode = i;
    call->stk->call.offset = offset;
    call->stk->call.size = size;
    call->stk->call.payload_bytes = size;
    return call;
}

static int
answer(enum fop fop, uint32_t type, uint32_t fd_flags, uint64_t offset, uint64_t size)
{
    return bench_run(change(fop, type, fd_flags, offset, size));
}

static const enum fop of_fds[] = {FOP_writev, FOP_ftruncate, FOP_fallocate, FOP_discard, FOP_zerofill};
enum { OF_FDS = sizeof of_fds / sizeof of_fds[0] };

START_TEST(changes_of_contents_succeed)
{
    for (int i = 0; i < OF_FDS; i++)
        ck_assert_int_eq(answer(of_fds[i], S_IFREG, O_RDWR, 5, 100), of_fds[i] == FOP_writev ? 100 : 0);
    ck_assert_int_eq(answer(FOP_writev, S_IFREG, O_WRONLY, 5, 0), 0);
    ck_assert_int_eq(answer(FOP_truncate, S_IFREG, O_RDONLY, 5, 0), 0);
}
END_TEST

START_TEST(changes_that_other_replicas_refuse_are_refused)
{
    for (int i = 0; i < OF_FDS; i++) {
        ck_assert_int_eq(answer(of_fds[i], S_IFREG, O_RDONLY, 5, 100), -EBADF);
        ck_assert_int_eq(answer(of_fds[i], S_IFDIR, O_RDWR, 5, 100), -EISDIR);
        ck_assert_int_eq(answer(of_fds[i], S_IFIFO, O_RDWR, 5, 100), -EINVAL);
        ck_assert_int_eq(answer(of_fds[i], S_IFREG, O_RDWR, UINT64_MAX - 50, 100), -EINVAL);
        if (of_fds[i] != FOP_ftruncate)
            ck_assert_int_eq(answer(of_fds[i], S_IFREG, O_RDWR, INT64_MAX - 99, 100), -EINVAL);
    }
    ck_assert_int_eq(answer(FOP_fallocate, S_IFREG, O_RDWR, 0, UINT64_MAX), -EINVAL);
    ck_assert_int_eq(answer(FOP_fallocate, S_IFREG, O_RDWR, 0, 0), -EINVAL);
    ck_assert_int_eq(answer(FOP_truncate, S_IFDIR, O_RDONLY, 5, 0), -EISDIR);
    ck_assert_int_eq(answer(FOP_truncate, S_IFLNK, O_RDONLY, 5, 0), -EINVAL);
}
END_TEST

START_TEST(contents_cannot_be_read)
{
    ck_assert_int_eq(answer(FOP_readv, S_IFREG, O_RDONLY, 0, 10), -ENOSYS);
    ck_assert_int_eq(answer(FOP_seek, S_IFREG, O_RDONLY, 0, 0), -ENOSYS);
}
END_TEST

START_TEST(other_calls_reach_the_storage)
{
    static const enum fop own[] = {FOP_writev,  FOP_truncate, FOP_ftruncate, FOP_fallocate,
                                   FOP_discard, FOP_zerofill, FOP_readv,     FOP_seek};

    for (enum fop fop = FOP_null + 1; fop < FOP_COUNT; fop++) {
        bool is_own = false;

        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            is_own |= own[i] == fop;
        if (!is_own)
            ck_assert_msg(answer(fop, S_IFREG, O_RDWR, 0, 1) == FROM_STORAGE, "%s", fop_info[fop].name);
    }
}
END_TEST

START_TEST(a_write_counts_open_fds_and_is_always_an_append)
{
    struct bench_call *call = change(FOP_writev, S_IFREG, O_RDWR, 5, 100);
    struct call_stack *stk = call->stk;
    uint64_t value = 0;

    stk->call.xdata = dict_new(&stk->arena);
    ck_assert_int_eq(dict_set_uint(stk->call.xdata, DICT_KEY_OPEN_FD_COUNT, 0), 0);
    ck_assert_int_eq(dict_set_uint(stk->call.xdata, DICT_KEY_WRITE_IS_APPEND, 0), 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 100);
    ck_assert_int_eq(dict_get_uint(stk->reply.xdata, DICT_KEY_OPEN_FD_COUNT, &value), 0);
    ck_assert_uint_eq(value, 1);
    ck_assert_int_eq(dict_get_uint(stk->reply.xdata, DICT_KEY_WRITE_IS_APPEND, &value), 0);
    ck_assert_uint_eq(value, 1);
    bench_free(call);
}
END_TEST

START_TEST(a_write_without_requests_gets_no_xdata)
{
    struct bench_call *call = change(FOP_writev, S_IFREG, O_RDWR, 5, 100);

    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 100);
    ck_assert_ptr_null(call->stk->reply.xdata);
    ck_assert(gfid_is_null(&call->stk->reply.post.gfid)); /* no attributes */
    bench_free(call);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("arbiter");
    TCase *t = tcase_create("arbiter");

    tcase_add_checked_fixture(t, setup, bench_teardown);
    tcase_add_test(t, changes_of_contents_succeed);
    tcase_add_test(t, changes_that_other_replicas_refuse_are_refused);
    tcase_add_test(t, contents_cannot_be_read);
    tcase_add_test(t, other_calls_reach_the_storage);
    tcase_add_test(t, a_write_counts_open_fds_and_is_always_an_append);
    tcase_add_test(t, a_write_without_requests_gets_no_xdata);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
