/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* What the malloc beneath the pools keeps. This program has the one that kilnd has. */
#include <config.h>

#include "mem/test-mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES = 2048, PIECE = 16 << 10 };

static size_t
resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t size, pages;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%zu %zu", &size, &pages), 2);
    fclose(f);
    return pages * 4096;
}

static void
malloc_and_free(void)
{
    static void *o[PIECES];
    size_t before = resident_bytes();

    for (int i = 0; i < PIECES; i++) {
        o[i] = malloc(PIECE);
        ck_assert_ptr_nonnull(o[i]);
        memset(o[i], 1, PIECE);
    }
    ck_assert_uint_gt(resident_bytes(), before + PIECES * PIECE / 2);
    for (int i = 0; i < PIECES; i++)
        free(o[i]);
}

/* jemalloc keeps what is freed for ten seconds, and for ever when nobody calls it any more. */
START_TEST(goes_back_when_the_sweeper_falls_asleep)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "drowsy");

    if (strcmp(KILN_ALLOCATOR, "jemalloc") != 0)
        return; /* only it is asked */
    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    size_t before = resident_bytes();
    malloc_and_free();
    mem_put(mem_get(p)); /* if it slept already */
    while (resident_bytes() > before + PIECES * PIECE / 8) /* or the test's time is up */
        usleep(5000);
    mem_pools_fini();
}
END_TEST

START_TEST(goes_back_when_all_is_trimmed)
{
    size_t before = resident_bytes();

    malloc_and_free();
    mem_pools_trim(3);
    ck_assert_uint_lt(resident_bytes(), before + PIECES * PIECE / 8);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("mem-malloc");
    TCase *t = tcase_create("malloc");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, goes_back_when_the_sweeper_falls_asleep);
    tcase_add_test(t, goes_back_when_all_is_trimmed);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
