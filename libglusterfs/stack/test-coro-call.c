/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls in a coroutine: answered before they return, later in another thread, with an error, several at
 * once. */
#include "stack/coro-call.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "coro/stack-pool.h"
#include "data/dict.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "mem/mem-shared.h"
#include "stack/xlator.h"

enum { PARKED_MAX = 64, ROUNDS = 2000 };
enum { NOW, FAILS, FAILS_WITHOUT_REASON, LATER, UNSENT };

static struct graph graph;
static struct xlator layer;
static struct stack_pool *stacks;
static struct call_stack *parked[PARKED_MAX];
static int parked_count;
static int result;
static bool has_ended;

/* `size` selects the way of the answer, `offset` its value. */
static xl_verdict
layer_any(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    switch (stk->call.size) {
    case NOW:
        stk->reply.op_ret = (int32_t)stk->call.offset;
        return XL_DONE;
    case FAILS:
        return -(int)stk->call.offset;
    case FAILS_WITHOUT_REASON:
        stk->reply.op_ret = -1;
        return XL_DONE;
    case UNSENT: /* the first time */
        stk->call.size = NOW;
        return call_stack_unsent(stk);
    default:
        parked[parked_count++] = stk;
        return XL_OWNED;
    }
}

static void
answer(struct call_stack *stk)
{
    stk->reply.op_ret = (int32_t)stk->call.offset;
    call_stack_unwind(stk);
}

static struct call_stack *
make(uint64_t how, uint64_t with)
{
    struct call_stack *stk = coro_call_new();

    ck_assert_ptr_nonnull(stk);
    stk->call.fop = FOP_stat;
    stk->call.size = how;
    stk->call.offset = with;
    return stk;
}

static void
run(coroutine_fn fn, void *arg)
{
    struct coroutine *c;

    has_ended = false;
    ck_assert_int_eq(coroutine_new(stacks, fn, arg, &c), 0);
    coroutine_resume(c);
}

static void
setup(void)
{
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(dict_pools_init(), 0);
    ck_assert_int_eq(stack_pools_init(), 0);
    ck_assert_int_eq(coro_stacks_init(), 0);
    stacks = coro_stacks();
    graph = (struct graph){.layers = &layer, .layer_count = 1};
    static const struct xlator_ops ops = {.any = layer_any};

    layer = (struct xlator){.name = "layer", .graph = &graph, .ops = &ops};
    parked_count = 0;
}

static void
teardown(void)
{
    struct stack_pool_stats stats;

    stack_pool_stats(stacks, &stats);
    ck_assert_uint_eq(stats.live, 0);
    coro_stacks_end();
}

static void
one_go(void *arg)
{
    struct call_stack *stk = arg;

    result = coro_call(stk, &layer);
    call_stack_free(stk);
    has_ended = true;
}

START_TEST(an_answer_that_comes_at_once)
{
    run(one_go, make(NOW, 17));
    ck_assert(has_ended);
    ck_assert_int_eq(result, 17);
}
END_TEST

START_TEST(a_failed_call_returns_a_negative_errno)
{
    run(one_go, make(FAILS, ENOENT));
    ck_assert_int_eq(result, -ENOENT);
    run(one_go, make(FAILS_WITHOUT_REASON, 0));
    ck_assert_int_eq(result, -EIO);
}
END_TEST

START_TEST(the_coroutine_sleeps_until_the_reply_has_come)
{
    run(one_go, make(LATER, 23));
    ck_assert(!has_ended);
    ck_assert_int_eq(parked_count, 1);
    answer(parked[0]);
    ck_assert(has_ended);
    ck_assert_int_eq(result, 23);
}
END_TEST

struct several {
    unsigned later, now;
};

static void
several_go(void *arg)
{
    const struct several *s = arg;
    struct call_stack *stk[PARKED_MAX];
    unsigned count = s->later + s->now;
    struct coro_group g;

    coro_group_begin(&g);
    for (unsigned i = 0; i < count; i++) {
        stk[i] = make(i < s->later ? LATER : NOW, i);
        coro_group_wind(&g, stk[i], &layer);
    }
    coro_group_wait(&g);
    result = 0;
    for (unsigned i = 0; i < count; i++) {
        result += coro_call_result(stk[i]);
        call_stack_free(stk[i]);
    }
    has_ended = true;
}

static void
ask_again(void *arg)
{
    struct call_stack *stk = arg;

    ck_assert_int_eq(coro_call(stk, &layer), -ENOMEM);
    ck_assert_int_eq(stk->reply.shortage, SHORTAGE_UNSENT);
    call_stack_again(stk);
    result = coro_call(stk, &layer);
    ck_assert_int_eq(stk->reply.shortage, SHORTAGE_NONE);
    call_stack_free(stk);
}

START_TEST(an_unsent_call_is_sent_again)
{
    run(ask_again, make(UNSENT, 7));
    ck_assert_int_eq(result, 7);
}
END_TEST

/* Uses all spare calls, each with two dicts, while there is no memory. */
START_TEST(a_spare_call_is_made_without_memory)
{
    struct call_stack *all[33], *usual = make(NOW, 0);
    int count = 0;

    ck_assert_ptr_nonnull(usual->call.xdata = dict_new(&usual->arena));
    ck_assert_int_eq(dict_set_int(usual->call.xdata, DICT_KEY_LIST_XATTR, 1), 0);
    mem_test_fail_always = true;
    mem_test_fail_at = INT64_MAX;
    while (count < 33 && (all[count] = coro_call_fork_spare(usual))) {
        struct call_stack *stk = all[count++];

        ck_assert(call_stack_is_spare(stk));
        ck_assert_ptr_nonnull(stk->call.xdata);
        ck_assert_ptr_nonnull(stk->call.dict = dict_new(&stk->arena));
        ck_assert_int_eq(dict_set_int(stk->call.dict, DICT_KEY_LIST_XATTR, count), 0);
        ck_assert_ptr_nonnull(arena_alloc(&stk->arena, 200));
    }
    mem_test_fail_at = 0;
    mem_test_fail_always = false;
    ck_assert_int_gt(count, 1);
    ck_assert_int_lt(count, 33);
    call_stack_free(all[0]);
    ck_assert_ptr_nonnull(all[0] = coro_call_new_spare());
    for (int i = 0; i < count; i++)
        call_stack_free(all[i]);
    ck_assert(!call_stack_is_spare(usual));
    call_stack_free(usual);
}
END_TEST

START_TEST(a_group_waits_for_all_replies)
{
    struct several s = {.later = 3, .now = 2};

    run(several_go, &s);
    ck_assert_int_eq(parked_count, 3);
    answer(parked[2]);
    answer(parked[0]);
    ck_assert(!has_ended);
    answer(parked[1]);
    ck_assert(has_ended);
    ck_assert_int_eq(result, 0 + 1 + 2 + 3 + 4);
}
END_TEST

START_TEST(a_group_of_none_or_of_answers_at_once_does_not_sleep)
{
    struct several none = {0}, now = {.now = 4};

    run(several_go, &none);
    ck_assert(has_ended);
    run(several_go, &now);
    ck_assert(has_ended);
    ck_assert_int_eq(result, 6);
}
END_TEST

/* The other thread answers every wound call, perhaps before the coroutine sleeps. */
static sem_t wound, ended;
static struct call_stack *volatile handed;

static xl_verdict
handing_any(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    handed = stk;
    sem_post(&wound);
    return XL_OWNED;
}

static void *
answerer(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&wound);
        answer(handed);
    }
    return arg;
}

static void
many_go(void *arg)
{
    int *sum = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct call_stack *stk = make(LATER, 1);

        *sum += coro_call(stk, &layer);
        call_stack_free(stk);
    }
    sem_post(&ended);
}

START_TEST(answers_come_from_another_thread)
{
    static const struct xlator_ops handing = {.any = layer_any, .stat = handing_any};
    pthread_t thread;
    int sum = 0;

    sem_init(&wound, 0, 0);
    sem_init(&ended, 0, 0);
    layer.ops = &handing;
    ck_assert_int_eq(pthread_create(&thread, NULL, answerer, NULL), 0);
    run(many_go, &sum);
    sem_wait(&ended);
    pthread_join(thread, NULL);
    ck_assert_int_eq(sum, ROUNDS);
}
END_TEST

/* ---- a layer between that fans out ----------------------------------------------------------- */

static struct xlator above;
static struct call_stack *answered_stack;

static void
seen_by_asker(struct call_stack *stk)
{
    answered_stack = stk;
}

/* Calls the layer below twice and adds the results. */
static xl_verdict
twice_go(struct xlator *xl, struct call_stack *stk)
{
    struct call_stack *copy[2];
    struct coro_group g;
    int sum = 0;

    (void)xl;
    coro_group_begin(&g);
    for (int i = 0; i < 2; i++) {
        copy[i] = coro_call_fork(stk);
        ck_assert_ptr_nonnull(copy[i]);
        ck_assert_uint_eq(copy[i]->caller.uid, stk->caller.uid);
        coro_group_wind(&g, copy[i], &layer);
    }
    coro_group_wait(&g);
    for (int i = 0; i < 2; i++) {
        sum += coro_call_result(copy[i]);
        call_stack_free(copy[i]);
    }
    if (sum < 0)
        return -EXDEV;
    stk->reply.op_ret = sum;
    return XL_DONE;
}

static xl_verdict
twice_any(struct xlator *xl, struct call_stack *stk)
{
    return coro_fop(xl, stk, twice_go);
}

static int
ask_twice(uint64_t how, uint64_t with)
{
    static const struct xlator_ops twice = {.stat = twice_any};
    struct call_stack *stk = call_stack_new(seen_by_asker, NULL);

    ck_assert_ptr_nonnull(stk);
    above = (struct xlator){.name = "above", .graph = &graph, .ops = &twice};
    answered_stack = NULL;
    stk->caller.uid = 77;
    stk->call.fop = FOP_stat;
    stk->call.size = how;
    stk->call.offset = with;
    call_stack_wind(stk, &above);
    for (int i = 0; i < parked_count; i++) {
        ck_assert_ptr_null(answered_stack);
        answer(parked[i]);
    }
    ck_assert_ptr_eq(answered_stack, stk);
    int ret = coro_call_result(stk);

    call_stack_free(stk);
    return ret;
}

START_TEST(a_layer_answers_from_its_coroutine)
{
    ck_assert_int_eq(ask_twice(NOW, 5), 10);
    ck_assert_int_eq(ask_twice(LATER, 5), 10);
    parked_count = 0;
    ck_assert_int_eq(ask_twice(FAILS, ENOENT), -EXDEV);
}
END_TEST

/* ---- many at a time -------------------------------------------------------------------------- */

enum { EACH_COUNT = 20, EACH_WIDTH = 4 };
static unsigned each_seen[EACH_COUNT];
static int each_most;

static void
each_one(void *arg, size_t n)
{
    struct call_stack *stk = make(LATER, n);

    (void)arg;
    ck_assert_int_eq(coro_call(stk, &layer), (int)n);
    call_stack_free(stk);
    each_seen[n]++;
}

static void
each_in_coroutine(void *arg)
{
    coro_each(EACH_WIDTH, EACH_COUNT, each_one, arg);
    has_ended = true;
}

START_TEST(each_runs_all_with_a_bounded_width)
{
    memset(each_seen, 0, sizeof each_seen);
    run(each_in_coroutine, NULL);
    while (!has_ended) {
        int count = parked_count;
        struct call_stack *waiting[PARKED_MAX];

        ck_assert_int_gt(count, 0);
        each_most = count > each_most ? count : each_most;
        memcpy(waiting, parked, (size_t)count * sizeof waiting[0]);
        parked_count = 0;
        for (int i = 0; i < count; i++)
            answer(waiting[i]);
    }
    ck_assert_int_eq(each_most, EACH_WIDTH);
    for (unsigned n = 0; n < EACH_COUNT; n++)
        ck_assert_uint_eq(each_seen[n], 1);
}
END_TEST

static void
each_in_coroutine_of_none(void *arg)
{
    coro_each(EACH_WIDTH, 0, each_one, arg);
    has_ended = true;
}

START_TEST(each_of_none_returns)
{
    has_ended = false;
    struct coroutine *c;

    ck_assert_int_eq(coroutine_new(stacks, each_in_coroutine_of_none, NULL, &c), 0);
    coroutine_resume(c);
    ck_assert(has_ended);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("coro-call");
    TCase *tc = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_answer_that_comes_at_once);
    tcase_add_test(tc, a_failed_call_returns_a_negative_errno);
    tcase_add_test(tc, the_coroutine_sleeps_until_the_reply_has_come);
    tcase_add_test(tc, an_unsent_call_is_sent_again);
    tcase_add_test(tc, a_spare_call_is_made_without_memory);
    tcase_add_test(tc, a_group_waits_for_all_replies);
    tcase_add_test(tc, a_group_of_none_or_of_answers_at_once_does_not_sleep);
    tcase_add_test(tc, answers_come_from_another_thread);
    tcase_add_test(tc, a_layer_answers_from_its_coroutine);
    tcase_add_test(tc, each_runs_all_with_a_bounded_width);
    tcase_add_test(tc, each_of_none_returns);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed ? 1 : 0;
}
