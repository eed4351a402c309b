/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The memory that an idle process keeps: in its pools, and in the malloc beneath. This program has the
 * same malloc as kilnd. */
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

/* A few live objects keep their spans, but not all pages of the spans. */
START_TEST(pages_between_small_objects_are_released)
{
    enum { OBJECTS = 100000, BYTES = 180, KEPT = 500 };
    struct mem_pool *p = mem_pool_new_fn(BYTES, 0, "sparse");
    static void *o[OBJECTS];

    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    memset(o, 1, sizeof o);
    size_t before = resident_bytes();
    for (int i = 0; i < OBJECTS; i++)
        memset(o[i] = mem_get(p), 1, BYTES);
    for (int i = 0; i < OBJECTS; i++) {
        if (i % KEPT)
            mem_put(o[i]);
    }
    /* Remaining: the head of each span and the page of the live object; a sanitizer's shadow. Or until the
     * test's time is up. */
    while (resident_bytes() > before + OBJECTS * BYTES / 2)
        usleep(5000);
    mem_pools_check();
    for (int i = 0; i < OBJECTS; i += KEPT) {
        ck_assert_int_eq(((char *)o[i])[BYTES - 1], 1);
        mem_put(o[i]);
    }
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

/* jemalloc keeps freed memory for ten seconds, and for ever when it is no longer called. */
START_TEST(memory_cached_by_malloc_is_released)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "drowsy");

    if (strcmp(KILN_ALLOCATOR, "jemalloc") != 0)
        return; /* only jemalloc is called */
    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    size_t before = resident_bytes();
    malloc_and_free();
    mem_put(mem_get(p)); /* wakes the sweeper if it was asleep */
    while (resident_bytes() > before + PIECES * PIECE / 8) /* or until the test's time is up */
        usleep(5000);
    mem_pools_fini();
}
END_TEST

START_TEST(memory_cached_by_malloc_is_trimmed)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* a sanitizer's malloc is not called */
#endif
    size_t before = resident_bytes();

    malloc_and_free();
    mem_pools_trim(3);
    ck_assert_uint_lt(resident_bytes(), before + PIECES * PIECE / 8);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("mem-rest");
    TCase *t = tcase_create("rest");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, pages_between_small_objects_are_released);
    tcase_add_test(t, memory_cached_by_malloc_is_released);
    tcase_add_test(t, memory_cached_by_malloc_is_trimmed);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
