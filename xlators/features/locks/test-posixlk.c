/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Posix locks compared with a model: for each byte of a small file, the lock that each owner holds there. */
#include "xlators/features/test-layers.h"

#include "xlators/features/locks/locks-internal.h"

#define BYTES 48 /* the last one stands for all bytes from there to infinity */
#define OWNERS 4
#define FREE 9

extern const struct xlator_type features_locks_xlator;

static uint8_t model[OWNERS][BYTES];
static struct inode *file;
static struct fd *fd;

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

static void
setup(void)
{
    bench_setup(&features_locks_xlator, NULL, bottom);
    memset(model, FREE, sizeof model);
    file = bench_inode("f", 1, S_IFREG);
    fd = fd_new(file, NULL, 0, false);
}

static void
teardown(void)
{
    fd_unref(fd);
    inode_unref(file);
    bench_teardown();
}

static struct bench_call *
lk(unsigned owner, uint32_t cmd, uint32_t type, int64_t start, int64_t len)
{
    static const uint8_t owners[OWNERS][2] = {{1, 1}, {1, 2}, {2, 1}, {3, 0}};
    struct bench_call *call = bench_call(FOP_lk, NULL);
    struct fop_call *c = &call->stk->call;

    c->fd = fd_ref(fd);
    c->cmd = cmd;
    c->type = type;
    c->flock.start = start;
    c->flock.len = len;
    call->stk->caller.lk_owner = (struct lk_owner){owner == 3 ? 1 : 2, owners[owner]};
    return call;
}

static bool
model_conflict(unsigned owner, uint32_t type, int first, int last)
{
    for (unsigned o = 0; o < OWNERS; o++) {
        for (int i = first; o != owner && i <= last; i++) {
            if (model[o][i] == FLOCK_WRITE || (model[o][i] == FLOCK_READ && type == FLOCK_WRITE))
                return true;
        }
    }
    return false;
}

/* Checks that the granted list equals the model, and that locks of one owner do not overlap. */
static void
check_model(void)
{
    uint8_t seen[OWNERS][BYTES];
    struct lock_inode *li = inode_ctx(file, bench_xl);
    const struct lock *l;
    unsigned count = 0;

    memset(seen, FREE, sizeof seen);
    cds_list_for_each_entry(l, &li->posix.granted, link) {
        unsigned o = l->owner.len == 1 ? 3 : l->owner.bytes[0] == 2 ? 2 : l->owner.bytes[1] - 1;

        count++;
        ck_assert(l->start <= l->end);
        ck_assert(l->end == INT64_MAX || l->end < BYTES - 1);
        for (int i = (int)l->start; i <= (l->end == INT64_MAX ? BYTES - 1 : (int)l->end); i++) {
            ck_assert_uint_eq(seen[o][i], FREE);
            seen[o][i] = (uint8_t)l->type;
        }
    }
    ck_assert_uint_eq(count, li->counts[LOCK_POSIX]);
    ck_assert_mem_eq(seen, model, sizeof model);
}

START_TEST(random_locks_match_the_model)
{
    unsigned seed = 4711;

    for (int n = 0; n < 20000; n++) {
        unsigned owner = (unsigned)rand_r(&seed) % OWNERS;
        uint32_t type = (uint32_t)rand_r(&seed) % 3;
        int first = rand_r(&seed) % (BYTES - 1), last = first + rand_r(&seed) % (BYTES - 1 - first);
        bool is_endless = rand_r(&seed) % 8 == 0;
        bool is_backward = !is_endless && rand_r(&seed) % 8 == 0;
        int64_t len = is_endless ? 0 : last - first + 1;

        last = is_endless ? BYTES - 1 : last;
        int expected = type != FLOCK_UNLOCK && model_conflict(owner, type, first, last) ? -EAGAIN : 0;
        if (!expected)
            memset(&model[owner][first], type == FLOCK_UNLOCK ? FREE : (int)type, (size_t)(last - first + 1));
        struct bench_call *call =
            is_backward ? lk(owner, 1, type, last + 1, -len) : lk(owner, 1, type, first, len);
        ck_assert_int_eq(bench_run(call), expected);
        check_model();
    }
    for (unsigned owner = 0; owner < OWNERS; owner++)
        ck_assert_int_eq(bench_run(lk(owner, 1, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_uint_eq(((struct lock_inode *)inode_ctx(file, bench_xl))->count, 0);
}
END_TEST

START_TEST(getlk_returns_the_conflicting_lock)
{
    struct bench_call *call;

    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_WRITE, 10, 5)), 0);
    call = lk(1, 0, FLOCK_READ, 0, 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_uint_eq(call->stk->reply.flock.type, FLOCK_WRITE);
    ck_assert_int_eq(call->stk->reply.flock.start, 10);
    ck_assert_int_eq(call->stk->reply.flock.len, 5);
    ck_assert_uint_eq(call->stk->reply.flock.owner.len, 2);
    bench_free(call);
    call = lk(1, 0, FLOCK_WRITE, 15, 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_uint_eq(call->stk->reply.flock.type, FLOCK_UNLOCK);
    bench_free(call);
    call = lk(0, 1, FLOCK_UNLOCK, 12, 1); /* the parts at both ends stay */
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_uint_eq(call->stk->reply.flock.type, FLOCK_READ);
    bench_free(call);
    call = lk(0, 1, FLOCK_UNLOCK, 0, 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_uint_eq(call->stk->reply.flock.type, FLOCK_UNLOCK);
    bench_free(call);
}
END_TEST

START_TEST(invalid_locks_are_refused)
{
    ck_assert_int_eq(bench_run(lk(0, 1, 7, 0, 0)), -EINVAL);
    ck_assert_int_eq(bench_run(lk(0, 9, FLOCK_READ, 0, 0)), -EINVAL);
    ck_assert_int_eq(bench_run(lk(0, 3, FLOCK_READ, 0, 0)), -EOPNOTSUPP);
    ck_assert_int_eq(bench_run(lk(0, 6, FLOCK_READ, 0, 0)), -EOPNOTSUPP);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_READ, -1, 0)), -EINVAL);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_READ, 5, -6)), -EINVAL);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_READ, 5, INT64_MIN)), -EINVAL);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_READ, INT64_MAX, 2)), -EOVERFLOW);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_READ, INT64_MAX, 1)), 0);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_UNLOCK, 0, 0)), 0);
}
END_TEST

START_TEST(waiters_are_granted_in_order)
{
    struct bench_call *second, *third;

    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_WRITE, 0, 0)), 0);
    second = lk(1, 2, FLOCK_WRITE, 0, 10);
    third = lk(2, 2, FLOCK_WRITE, 5, 10);
    bench_wind(second);
    bench_wind(third);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(bench_result(second), 0);
    ck_assert(!bench_is_done(third));
    ck_assert_int_eq(bench_run(lk(1, 1, FLOCK_UNLOCK, 5, 0)), 0);
    ck_assert_int_eq(bench_result(third), 0);
    bench_free(second);
    bench_free(third);
    ck_assert_int_eq(bench_run(lk(1, 1, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(bench_run(lk(2, 1, FLOCK_UNLOCK, 0, 0)), 0);
}
END_TEST

/* Two readers that both want to write: the first to wait gives up its read lock, so that the second gets its
 * write lock.
 */
START_TEST(an_upgrade_waits_for_the_other_reader)
{
    struct bench_call *waiting;

    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_READ, 0, 0)), 0);
    ck_assert_int_eq(bench_run(lk(1, 1, FLOCK_READ, 0, 0)), 0);
    waiting = lk(0, 2, FLOCK_WRITE, 0, 0);
    bench_wind(waiting);
    ck_assert(!bench_is_done(waiting));
    ck_assert_int_eq(bench_run(lk(1, 2, FLOCK_WRITE, 0, 0)), 0);
    ck_assert_int_eq(bench_run(lk(1, 1, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(bench_result(waiting), 0);
    bench_free(waiting);
    ck_assert_int_eq(bench_run(lk(0, 1, FLOCK_UNLOCK, 0, 0)), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posixlk");
    TCase *t = tcase_create("posixlk");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, random_locks_match_the_model);
    tcase_add_test(t, getlk_returns_the_conflicting_lock);
    tcase_add_test(t, invalid_locks_are_refused);
    tcase_add_test(t, waiters_are_granted_in_order);
    tcase_add_test(t, an_upgrade_waits_for_the_other_reader);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
