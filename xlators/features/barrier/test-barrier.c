/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* While the barrier is up, it holds replies in the order of arrival. When the option, the management or the
 * time limit lowers the barrier, the replies are sent. */
#include <fcntl.h>
#include <unistd.h>

#include "xlators/features/barrier/barrier.h"
#include "xlators/features/test-layers.h"

extern const struct xlator_type features_barrier_xlator;

enum { CALLS = 16, HOLD_MS = 50 };

static atomic_int done_below;

static xl_verdict
succeed(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    atomic_fetch_add(&done_below, 1);
    stk->reply.op_ret = 0;
    return XL_DONE;
}

static void
setup_with(const char *const *options)
{
    atomic_store(&done_below, 0);
    bench_setup(&features_barrier_xlator, options, succeed);
    ck_assert_int_eq(features_barrier_xlator.start(bench_xl), 0);
}

static void
setup(void)
{
    setup_with(NULL);
}

static void
teardown(void)
{
    read_section_begin();
    features_barrier_xlator.stop(bench_xl);
    read_section_end();
    bench_teardown();
}

static int
raise_or_lower(bool is_on)
{
    read_section_begin();
    int err = barrier_switch(bench_xl, is_on);
    read_section_end();
    return err;
}

static struct bench_call *
begin(enum fop fop, uint32_t flags)
{
    struct inode *i = bench_inode("f", 1, S_IFREG);
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.fd = fd_new(i, NULL, O_RDWR, false);
    ck_assert_ptr_nonnull(call->stk->call.fd);
    call->stk->call.flags = flags;
    inode_unref(i);
    bench_wind(call);
    return call;
}

static const enum fop held[] = {FOP_fsync,    FOP_unlink,    FOP_rmdir,       FOP_rename,
                                FOP_truncate, FOP_ftruncate, FOP_removexattr, FOP_fremovexattr};
enum { HELD = sizeof held / sizeof held[0] };

START_TEST(replies_of_lasting_changes_wait_for_the_barrier)
{
    struct bench_call *calls[HELD];

    ck_assert_int_eq(raise_or_lower(true), 0);
    for (int i = 0; i < HELD; i++)
        calls[i] = begin(held[i], 0);
    ck_assert_int_eq(atomic_load(&done_below), HELD); /* the operations themselves are done */
    usleep(HOLD_MS * 1000);
    for (int i = 0; i < HELD; i++)
        ck_assert_msg(!bench_is_done(calls[i]), "%s", fop_info[held[i]].name);
    ck_assert_int_eq(raise_or_lower(false), 0);
    for (int i = 0; i < HELD; i++) {
        ck_assert_int_eq(bench_result(calls[i]), 0);
        bench_free(calls[i]);
    }
}
END_TEST

START_TEST(synchronous_writes_are_held_and_others_pass)
{
    ck_assert_int_eq(raise_or_lower(true), 0);
    struct bench_call *plain = begin(FOP_writev, 0), *sync = begin(FOP_writev, O_DSYNC);
    struct bench_call *create = begin(FOP_create, 0);

    ck_assert_int_eq(bench_result(plain), 0);
    ck_assert_int_eq(bench_result(create), 0);
    usleep(HOLD_MS * 1000);
    ck_assert(!bench_is_done(sync));
    ck_assert_int_eq(raise_or_lower(false), 0);
    ck_assert_int_eq(bench_result(sync), 0);
    bench_free(plain);
    bench_free(create);
    bench_free(sync);
}
END_TEST

START_TEST(setting_the_same_state_again_is_refused)
{
    ck_assert_int_eq(raise_or_lower(false), -EALREADY);
    ck_assert_int_eq(raise_or_lower(true), 0);
    ck_assert_int_eq(raise_or_lower(true), -EALREADY);
    ck_assert_int_eq(raise_or_lower(false), 0);
}
END_TEST

static void
setup_on_for_a_second(void)
{
    setup_with((const char *const[]){"barrier", "enable", "barrier-timeout", "1", NULL});
}

START_TEST(the_time_limit_lowers_the_barrier)
{
    struct bench_call *call = begin(FOP_fsync, 0);

    usleep(HOLD_MS * 1000);
    ck_assert(!bench_is_done(call));
    ck_assert_int_eq(bench_result(call), 0);
    bench_free(call);
    ck_assert_int_eq(raise_or_lower(false), -EALREADY);
}
END_TEST

/* Several threads send calls while the barrier goes up and down: each call gets exactly one reply. */
static void *
call_many(void *arg)
{
    (void)arg;
    rcu_register_thread();
    for (int i = 0; i < 2000; i++) {
        struct bench_call *call = bench_call(held[i % HELD], NULL);

        ck_assert_int_eq(bench_run(call), 0);
    }
    rcu_unregister_thread();
    return NULL;
}

START_TEST(no_reply_is_lost_while_the_barrier_moves)
{
    pthread_t threads[2];
    atomic_int rounds = 0;

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_many, NULL), 0);
    while (atomic_load(&done_below) < 4000) {
        raise_or_lower(atomic_fetch_add(&rounds, 1) % 2 == 0);
        usleep(100);
    }
    raise_or_lower(false);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("barrier");
    TCase *t = tcase_create("barrier"), *timed = tcase_create("timed");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, replies_of_lasting_changes_wait_for_the_barrier);
    tcase_add_test(t, synchronous_writes_are_held_and_others_pass);
    tcase_add_test(t, setting_the_same_state_again_is_refused);
    tcase_add_test(t, no_reply_is_lost_while_the_barrier_moves);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(timed, setup_on_for_a_second, teardown);
    tcase_set_timeout(timed, 60);
    tcase_add_test(timed, the_time_limit_lowers_the_barrier);
    suite_add_tcase(s, timed);
    return s;
}

#include "base/test-main.h"
