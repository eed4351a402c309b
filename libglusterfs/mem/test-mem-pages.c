/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Pages between live objects, while another pool, or the same one, is in use. */
#include "mem/mem-span.h"
#include "mem/test-mem.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { OBJECTS = 60000, BYTES = 256, KEPT = 20, PAGE = 4096 };

static void *o[OBJECTS];
static struct mem_pool *sparse, *busy;

/* Called once, while the sweeper gives pages back. */
static void (*meanwhile)(void *from);
static unsigned calls;

static bool is_old_kernel;

ssize_t
process_madvise(int pidfd, const struct iovec *run, size_t n, int advice, unsigned flags)
{
    void (*fn)(void *) = meanwhile;

    calls++;
    meanwhile = NULL;
    if (fn)
        fn(run[0].iov_base);
    if (is_old_kernel) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_process_madvise, pidfd, run, n, advice, flags);
}

static int
by_number(const void *x, const void *y)
{
    uintptr_t a = *(const uintptr_t *)x, b = *(const uintptr_t *)y;

    return (a > b) - (a < b);
}

/* The share, in percent, of the pages below these objects that no live object touches and that are not in
 * memory. */
static unsigned
gone_percent(void)
{
    static uintptr_t all[2 * OBJECTS], live[2 * OBJECTS + 1];
    size_t n = 0, lives = 0;
    unsigned dead = 0, gone = 0;

    for (unsigned i = 0; i < OBJECTS; i++) {
        for (int end = 0; end < 2; end++) {
            uintptr_t page = ((uintptr_t)o[i] - 16 + (end ? BYTES + 15 : 0)) / PAGE;

            all[n++] = page;
            if (i % KEPT == 0)
                live[lives++] = page;
        }
    }
    qsort(all, n, sizeof *all, by_number);
    qsort(live, lives, sizeof *live, by_number);
    for (size_t i = 0; i < n; i++) {
        unsigned char is_here = 0;
        char *page = (char *)(all[i] * PAGE);

        if ((i && all[i] == all[i - 1]) || bsearch(&all[i], live, lives, sizeof *live, by_number) ||
            all[i] * PAGE % (64 << 10) == 0) /* a span's head */
            continue;
        dead++;
        gone += mincore(page, PAGE, &is_here) != 0 || !(is_here & 1);
    }
    ck_assert_uint_gt(dead, 1000);
    return gone * 100 / dead;
}

static void
leave_survivors(void)
{
    get_many(sparse, o, OBJECTS);
    for (unsigned i = 0; i < OBJECTS; i++) {
        memset(o[i], 1, BYTES);
        if (i % KEPT)
            mem_put(o[i]);
    }
}

static void
use(struct mem_pool *p)
{
    void *some[500];

    get_many(p, some, 500);
    mem_put_bulk(some, 500);
}

static void
start(void)
{
    setup();
    sparse = mem_pool_new_fn(BYTES, 0, "sparse");
    busy = mem_pool_new_fn(BYTES, 0, "busy");
}

static void
finish(void)
{
    for (unsigned i = 0; i < OBJECTS; i += KEPT) {
        if (!o[i])
            continue;
        ck_assert_int_eq(((char *)o[i])[BYTES - 1], 1);
        mem_put(o[i]);
    }
    teardown();
}

START_TEST(pages_between_survivors_of_an_idle_pool_are_released)
{
    leave_survivors();
    ck_assert_uint_lt(gone_percent(), 10);
    for (int i = 0; i < 2; i++) {
        use(busy);
        mem_pools_sweep_now();
    }
    ck_assert_uint_ge(gone_percent(), 90);
}
END_TEST

START_TEST(survivors_where_the_kernel_takes_one_run_a_call)
{
    is_old_kernel = true;
    leave_survivors();
    for (int i = 0; i < 4; i++) { /* takes longer, because a sweep has a limit of time */
        use(busy);
        mem_pools_sweep_now();
    }
    ck_assert_uint_ge(gone_percent(), 30);
}
END_TEST

START_TEST(pages_between_survivors_of_a_busy_pool_are_released)
{
    leave_survivors();
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 20; k++)
            use(sparse);
        mem_pools_sweep_now();
    }
    ck_assert_uint_ge(gone_percent(), 85); /* objects in use lie in some of those spans */
}
END_TEST

START_TEST(given_once_is_not_given_again)
{
    leave_survivors();
    for (int i = 0; i < 2; i++)
        mem_pools_sweep_now();
    unsigned before = calls;

    ck_assert_uint_gt(before, 0);
    for (int i = 0; i < 3; i++) {
        use(busy);
        mem_pools_sweep_now();
    }
    ck_assert_uint_le(calls, before + 3); /* spans of magazines */
}
END_TEST

static uintptr_t
span_at(const void *object)
{
    return (uintptr_t)object & ~(uintptr_t)0xffff;
}

START_TEST(objects_are_taken_from_the_fullest_span)
{
    void *more[40];
    uintptr_t fullest = 0;

    get_many(sparse, o, 2000);
    for (unsigned i = 0; i < 2000; i++) /* few objects of one span are put, most of the others */
        if (span_at(o[i]) == span_at(o[1000]) ? i % 5 == 0 : i % 5 != 0)
            mem_class_free(&sparse->class, &o[i], 1);
    fullest = span_at(o[1000]);
    ck_assert_uint_eq(mem_class_alloc(&sparse->class, more, 10), 10);
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(span_at(more[i]), fullest);
    mem_class_check(&sparse->class);
    exit(0); /* the pool does not know of these objects */
}
END_TEST

/* While a span's pages are being given back, all its live objects are put, and objects are taken. */
static void
put_and_take(void *from)
{
    void *more[4000];

    for (unsigned i = 0; i < OBJECTS; i += KEPT) {
        if (o[i] && span_at(o[i]) == span_at(from)) {
            mem_class_free(&sparse->class, &o[i], 1);
            o[i] = NULL;
        }
    }
    ck_assert_uint_eq(mem_class_alloc(&sparse->class, more, 4000), 4000);
    for (int i = 0; i < 4000; i++)
        ck_assert_uint_ne(span_at(more[i]), span_at(from));
    mem_class_free(&sparse->class, more, 4000);
}

START_TEST(a_span_may_empty_while_its_pages_are_released)
{
    leave_survivors();
    mem_pools_sweep_now();
    meanwhile = put_and_take;
    mem_pools_sweep_now();
    ck_assert(!meanwhile);
    mem_class_check(&sparse->class);
    for (unsigned i = 0; i < OBJECTS; i += KEPT)
        if (o[i])
            ck_assert_int_eq(((char *)o[i])[BYTES - 1], 1);
    exit(0); /* the pool's counts do not include the puts */
}
END_TEST

/* A load that returns after each sweep does not lose its pages each time. */
START_TEST(pages_that_are_taken_again_are_left_alone)
{
    unsigned rounds = 0;

    leave_survivors();
    for (int i = 0; i < 12; i++) {
        unsigned before = calls;

        mem_pools_sweep_now();
        mem_pools_sweep_now();
        rounds += calls > before;
        for (unsigned k = 0; k < OBJECTS; k++)
            if (k % KEPT)
                o[k] = mem_get(sparse);
        for (unsigned k = 0; k < OBJECTS; k++)
            if (k % KEPT)
                mem_put(o[k]);
    }
    ck_assert_uint_le(rounds, 6);
    for (unsigned i = 0; i < OBJECTS; i += KEPT)
        ck_assert_int_eq(((char *)o[i])[BYTES - 1], 1);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("mem-pages");
    TCase *t = tcase_create("pages");

    tcase_add_checked_fixture(t, start, finish);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, pages_between_survivors_of_an_idle_pool_are_released);
    tcase_add_test(t, survivors_where_the_kernel_takes_one_run_a_call);
    tcase_add_test(t, pages_between_survivors_of_a_busy_pool_are_released);
    tcase_add_test(t, given_once_is_not_given_again);
    tcase_add_test(t, objects_are_taken_from_the_fullest_span);
    tcase_add_test(t, a_span_may_empty_while_its_pages_are_released);
    tcase_add_test(t, pages_that_are_taken_again_are_left_alone);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
