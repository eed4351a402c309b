/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Buffers: at least the requested size, aligned, counted, and back in the pool of their class. */
#include "mem/iobuf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mem/mem-ids.h"
#include "mem/test-mem.h"

static void
setup_iobuf(void)
{
    setup();
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
}

static int64_t
live(void)
{
    int64_t n = 0;

    for (unsigned id = MEM_ID_IOBUF_4K; id <= MEM_ID_IOBUF_1M; id++)
        n += stats(mem_pool_by_id(id)).live;
    return n;
}

static const size_t sizes[] = {0,     1,      4096,   4097,    16384,   65536,
                               65537, 131072, 140000, 1048576, 1100000, 5000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

START_TEST(buffers_of_every_size_are_usable_and_aligned)
{
    for (int i = 0; i < SIZES; i++) {
        struct iobuf *b = iobuf_get(sizes[i]), *c = iobuf_get_aligned(sizes[i]);

        ck_assert_uint_ge(b->size, sizes[i]);
        ck_assert_uint_eq((uintptr_t)b->bytes % 64, 0);
        ck_assert_uint_ge(c->size, sizes[i]);
        ck_assert_uint_eq((uintptr_t)c->bytes % 4096, 0);
        memset(b->bytes, 1, b->size);
        memset(c->bytes, 2, c->size);
        ck_assert_int_eq(b->bytes[b->size - 1], 1);
        iobuf_unref(b);
        iobuf_unref(c);
    }
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(the_last_reference_frees)
{
    struct iobuf *b = iobuf_get(100);

    ck_assert_ptr_eq(iobuf_ref(b), b);
    iobuf_unref(b);
    ck_assert_int_eq(live(), 1);
    b->bytes[99] = 1;
    iobuf_unref(b);
    ck_assert_int_eq(live(), 0);
    iobuf_unref(NULL);
}
END_TEST

START_TEST(without_memory_no_buffer_is_returned)
{
    ck_assert_ptr_null(iobuf_get(SIZE_MAX));
    ck_assert_ptr_null(iobuf_get_aligned(SIZE_MAX));
    mem_test_fail_at = INT64_MAX;
    mem_test_fail_always = true;
    for (int i = 0; sizes[i] <= 1048576; i++)
        ck_assert_ptr_null(iobuf_get(sizes[i]));
    ck_assert_ptr_null(iobuf_get_aligned(100));
    mem_test_fail_at = 0;
    mem_test_fail_always = false;
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(spare_buffers_are_available_without_memory)
{
    struct iobuf *b[33];
    int n = 0;

    mem_test_fail_at = INT64_MAX;
    mem_test_fail_always = true;
    while (n < 33 && (b[n] = iobuf_get_spare())) {
        ck_assert(iobuf_is_spare(b[n]));
        ck_assert_uint_eq(b[n]->size, IOBUF_SPARE_BYTES);
        memset(b[n]->bytes, n, b[n]->size);
        n++;
    }
    mem_test_fail_at = 0;
    mem_test_fail_always = false;
    ck_assert_int_gt(n, 1);
    ck_assert_int_lt(n, 33);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(b[i]->bytes[IOBUF_SPARE_BYTES - 1], i);
    iobuf_unref(iobuf_ref(b[1]));
    ck_assert_ptr_null(iobuf_get_spare());
    iobuf_unref(b[1]);
    ck_assert_ptr_eq(iobuf_get_spare(), b[1]);
    for (int i = 0; i < n; i++)
        iobuf_unref(b[i]);
    ck_assert_int_eq(live(), 0);
    struct iobuf *usual = iobuf_get(100);

    ck_assert(!iobuf_is_spare(usual));
    iobuf_unref(usual);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        buffers_of_every_size_are_usable_and_aligned, the_last_reference_frees,
        without_memory_no_buffer_is_returned, spare_buffers_are_available_without_memory
    };
    Suite *s = suite_create("iobuf");
    TCase *t = tcase_create("iobuf");

    tcase_add_checked_fixture(t, setup_iobuf, teardown);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
