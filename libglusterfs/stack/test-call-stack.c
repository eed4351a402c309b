/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Built twice: test-call-stack has assertions, and each broken promise stops the program;
 * test-call-stack-release has none (NDEBUG), and the client gets an error instead of no answer. */
#include "stack/call-stack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <check.h>

#include "data/dict.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "stack/xlator.h"

static struct graph graph;
static struct xlator layers[2];
static unsigned done_count;
static int32_t last_ret, last_errno;
static struct call_stack *kept;

static void
done(struct call_stack *stk)
{
    done_count++;
    last_ret = stk->reply.op_ret;
    last_errno = stk->reply.op_errno;
    call_stack_free(stk);
}

/* `size` of the call is the wanted verdict of the lower layer, `offset` that of a callback of the upper
 * one. */
static xl_verdict
upper_cb(struct frame *f, struct call_stack *stk)
{
    (void)f;
    return (xl_verdict)stk->call.offset;
}

static xl_verdict
upper(struct xlator *xl, struct call_stack *stk)
{
    return frame_push(stk, xl, upper_cb) ? XL_PASS : -ENOMEM;
}

static xl_verdict
lower(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = 7;
    kept = stk;
    return (xl_verdict)(int64_t)stk->call.size;
}

static void
setup(void)
{
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(dict_pools_init(), 0);
    ck_assert_int_eq(stack_pools_init(), 0);
    static const struct xlator_ops ops[2] = {{.stat = upper}, {.stat = lower}};

    for (unsigned i = 0; i < 2; i++)
        layers[i] = (struct xlator){.name = i ? "lower" : "upper", .graph = &graph, .ops = &ops[i]};
    xlator_set_next(&layers[0], FOP_stat, &layers[1]);
    done_count = 0;
}

static struct call_stack *
wind(xl_verdict of_lower, xl_verdict of_callback)
{
    struct call_stack *stk = call_stack_new(done, NULL);

    ck_assert_ptr_nonnull(stk);
    stk->call.fop = FOP_stat;
    stk->call.size = (uint64_t)(int64_t)of_lower;
    stk->call.offset = (uint64_t)(int64_t)of_callback;
    call_stack_wind(stk, &layers[0]);
    return stk;
}

START_TEST(each_verdict_is_acted_on)
{
    wind(XL_DONE, XL_PASS);
    ck_assert_uint_eq(done_count, 1);
    ck_assert_int_eq(last_ret, 7);
    wind(-ENOSPC, XL_PASS);
    ck_assert_uint_eq(done_count, 2);
    ck_assert_int_eq(last_ret, -1);
    ck_assert_int_eq(last_errno, ENOSPC);
    wind(XL_PASS, XL_PASS); /* no layer is left that implements the fop */
    ck_assert_int_eq(last_errno, EOPNOTSUPP);
    wind(XL_OWNED, XL_PASS);
    ck_assert_uint_eq(done_count, 3);
    call_stack_unwind(kept);
    ck_assert_uint_eq(done_count, 4);
    ck_assert_int_eq(last_ret, 7);
    wind(XL_OWNED, XL_PASS);
    call_stack_answer(kept, -EIO);
    ck_assert_uint_eq(done_count, 5);
    ck_assert_int_eq(last_errno, EIO);
}
END_TEST

START_TEST(a_callback_may_hold_the_reply_back)
{
    wind(XL_DONE, XL_OWNED);
    ck_assert_uint_eq(done_count, 0);
    call_stack_unwind(kept);
    ck_assert_uint_eq(done_count, 1);
    ck_assert_int_eq(last_ret, 7);
}
END_TEST

static xl_verdict
skipper(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return -EREMOTE;
}

static const struct xlator_type skipper_type = {.traits = LAYER_SKIPS_PLAIN_WRITES};
static const struct xlator_ops skipper_ops = {.any = skipper}, bottom_ops = {.writev = lower};

/* A writev that the upper layer may skip; the caller changes the call before the wind. */
static struct call_stack *
plain_write(struct fd *fd)
{
    static const struct xlator_type bottom_type = {.name = "bottom"};

    layers[0] = (struct xlator){.type = &skipper_type, .name = "upper", .graph = &graph, .ops = &skipper_ops};
    layers[1] = (struct xlator){.type = &bottom_type, .name = "lower", .graph = &graph, .ops = &bottom_ops};
    for (unsigned path = 0; path < PATH_COUNT; path++)
        xlator_set_next(&layers[0], path, xlator_first(&layers[1], path));
    struct call_stack *stk = call_stack_new(done, NULL);

    ck_assert_ptr_nonnull(stk);
    stk->call.fop = FOP_writev;
    stk->call.size = (uint64_t)(int64_t)XL_DONE;
    stk->call.fd = fd;
    return stk;
}

static bool
skips_upper(struct call_stack *stk)
{
    call_stack_wind(stk, &layers[0]);
    ck_assert(last_ret == 7 || last_errno == EREMOTE);
    return last_ret == 7;
}

/* The fd outlives the call: the call drops the reference that this function takes. */
static struct fd *
fd_of_type(struct inode *inode, struct fd *fd, uint32_t type, uint32_t flags)
{
    *inode = (struct inode){.type = type};
    *fd = (struct fd){.inode = inode, .flags = flags};
    refcount_init(&fd->refs, 2);
    return fd;
}

START_TEST(only_a_plain_write_skips_a_layer)
{
    struct inode inode;
    struct fd fd;
    struct call_stack *stk;

    ck_assert(skips_upper(plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR))));
    ck_assert(!skips_upper(plain_write(NULL)));
    ck_assert(!skips_upper(plain_write(fd_of_type(&inode, &fd, S_IFDIR, 0))));
    ck_assert(!skips_upper(plain_write(fd_of_type(&inode, &fd, 0, 0))));
    ck_assert(!skips_upper(plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR | O_DSYNC))));
    stk = plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR));
    stk->call.flags = O_SYNC;
    ck_assert(!skips_upper(stk));
    stk = plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR));
    stk->caller.pid = PID_NFS;
    ck_assert(!skips_upper(stk));
    stk = plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR));
    stk->call.xdata = dict_new(&stk->arena);
    ck_assert_int_eq(dict_set_int(stk->call.xdata, DICT_KEY_LINK_COUNT, 1), 0);
    ck_assert(!skips_upper(stk));
    stk = plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR));
    stk->call.xdata = dict_new(&stk->arena);
    ck_assert(skips_upper(stk)); /* an empty dict asks nothing */
    stk = plain_write(fd_of_type(&inode, &fd, S_IFREG, O_RDWR));
    stk->call.fop = FOP_readv;
    ck_assert(!skips_upper(stk));
}
END_TEST

/* Invalid verdicts and their effects: builds with assertions end the program. */

START_TEST(zero_is_no_verdict)
{
    wind(0, XL_PASS);
    ck_assert_uint_eq(done_count, 1);
    ck_assert_int_eq(last_ret, -1);
    ck_assert_int_eq(last_errno, EIO);
}
END_TEST

START_TEST(zero_is_no_verdict_of_a_callback)
{
    wind(XL_DONE, 0);
    ck_assert_uint_eq(done_count, 1);
    ck_assert_int_eq(last_errno, EIO);
}
END_TEST

START_TEST(zero_is_no_verdict_of_a_parked_call)
{
    wind(XL_OWNED, XL_PASS);
    call_stack_answer(kept, 0);
    ck_assert_uint_eq(done_count, 1);
    ck_assert_int_eq(last_errno, EIO);
}
END_TEST

#ifndef NDEBUG
static void
done_is_late(struct call_stack *stk)
{
    (void)stk;
    done_count++;
}

START_TEST(a_second_answer_is_caught)
{
    struct call_stack *stk = call_stack_new(done_is_late, NULL);

    stk->call.fop = FOP_stat;
    stk->call.size = XL_DONE;
    stk->call.offset = XL_PASS;
    call_stack_wind(stk, &layers[0]);
    ck_assert_uint_eq(done_count, 1);
    call_stack_unwind(stk);
}
END_TEST

START_TEST(release_before_the_answer_is_caught)
{
    call_stack_free(wind(XL_OWNED, XL_PASS));
}
END_TEST

START_TEST(an_answer_to_a_call_never_wound_is_caught)
{
    struct call_stack *stk = call_stack_new(done, NULL);

    call_stack_fail(stk, EIO);
}
END_TEST
#endif

static Suite *
test_suite(void)
{
    Suite *s = suite_create("call-stack");
    TCase *t = tcase_create("verdicts");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, each_verdict_is_acted_on);
    tcase_add_test(t, a_callback_may_hold_the_reply_back);
    tcase_add_test(t, only_a_plain_write_skips_a_layer);
#ifdef NDEBUG
    tcase_add_test(t, zero_is_no_verdict);
    tcase_add_test(t, zero_is_no_verdict_of_a_callback);
    tcase_add_test(t, zero_is_no_verdict_of_a_parked_call);
#else
    tcase_add_test_raise_signal(t, zero_is_no_verdict, SIGABRT);
    tcase_add_test_raise_signal(t, zero_is_no_verdict_of_a_callback, SIGABRT);
    tcase_add_test_raise_signal(t, zero_is_no_verdict_of_a_parked_call, SIGABRT);
    tcase_add_test_raise_signal(t, a_second_answer_is_caught, SIGABRT);
    tcase_add_test_raise_signal(t, release_before_the_answer_is_caught, SIGABRT);
    tcase_add_test_raise_signal(t, an_answer_to_a_call_never_wound_is_caught, SIGABRT);
#endif
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
