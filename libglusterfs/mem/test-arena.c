/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The memory of one operation: pieces that don't overlap, chunks that grow, and the release of everything
 * at once. */
#include "mem/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mem/mem-ids.h"
#include "mem/test-mem.h"

static struct mem_pool *dicts;

static void
setup_arena(void)
{
    setup();
    ck_assert_int_eq(mem_pool_make(&dicts, MEM_ID_DICT, 64, "dict"), 0);
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(arena_pools_init(), 0);
}

static int64_t
live(unsigned id)
{
    return stats(mem_pool_by_id(id)).live;
}

START_TEST(pieces_are_apart_and_aligned)
{
    static char *piece[3000];
    static size_t size[3000];
    struct arena a = { 0 };

    for (unsigned i = 0; i < 3000; i++) {
        size[i] = i * 7 % 300;
        ck_assert_ptr_nonnull(piece[i] = arena_alloc(&a, size[i]));
        ck_assert_uint_eq((uintptr_t)piece[i] % 16, 0);
        memset(piece[i], (int)i, size[i]);
    }
    for (unsigned i = 0; i < 3000; i++)
        for (size_t k = 0; k < size[i]; k++)
            if (piece[i][k] != (char)i)
                ck_abort_msg("byte %zu of piece %u", k, i);
    ck_assert_int_eq(live(MEM_ID_ARENA_4K), 1); /* the first is small, the next ones are large */
    ck_assert_int_gt(live(MEM_ID_ARENA_64K), 3);
    arena_release(&a);
    ck_assert_int_eq(live(MEM_ID_ARENA_4K) + live(MEM_ID_ARENA_64K), 0);
}
END_TEST

START_TEST(a_large_piece_comes_first)
{
    struct arena a;

    arena_init(&a);
    memset(arena_alloc(&a, 20000), 1, 20000);
    ck_assert_int_eq(live(MEM_ID_ARENA_64K), 1);
    ck_assert_int_eq(live(MEM_ID_ARENA_4K), 0);
    arena_release(&a);
}
END_TEST

/* A piece too large for a chunk does not replace the chunk in use. */
START_TEST(a_huge_piece_is_a_separate_allocation)
{
    struct arena a = { 0 };
    char *before = arena_alloc(&a, 16), *huge = arena_zalloc(&a, 200000), *after = arena_alloc(&a, 16);

    ck_assert_ptr_eq(after, before + 16);
    for (int i = 0; i < 200000; i++)
        if (huge[i])
            ck_abort_msg("byte %d is not zero", i);
    ck_assert_int_eq(live(MEM_ID_ARENA_4K), 1);
    ck_assert_int_eq(live(MEM_ID_ARENA_64K), 0);
    arena_release(&a);
    arena_release(&a); /* an empty one may be released */
    ck_assert_int_eq(live(MEM_ID_ARENA_4K), 0);
}
END_TEST

START_TEST(copied_and_formatted_texts_end_with_a_nul)
{
    struct arena a = { 0 };
    char long_text[2000];

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = 0;
    ck_assert_str_eq(arena_dup(&a, "some bytes", 4), "some");
    ck_assert_str_eq(arena_dup(&a, NULL, 0), "");
    ck_assert_str_eq(arena_printf(&a, "%d-%s", 12, "ab"), "12-ab");
    ck_assert_str_eq(arena_printf(&a, "%s", long_text), long_text);
    ck_assert_ptr_null(arena_printf(&a, "%ls", L"\xd800")); /* cannot be converted */
    arena_release(&a);
}
END_TEST

START_TEST(a_release_also_frees_the_dicts)
{
    struct arena a = { 0 };

    for (int i = 0; i < 3; i++) {
        struct arena_object *d = mem_get_t(MEM_ID_DICT);

        d->next = a.dicts;
        a.dicts = d;
    }
    arena_release(&a);
    ck_assert_int_eq(live(MEM_ID_DICT), 0);
    ck_assert_ptr_null(a.dicts);
}
END_TEST

START_TEST(no_memory_changes_nothing)
{
    struct arena a = { 0 };
    char long_text[2000];

    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 3)); /* larger than the address space */
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = 0;
    mem_test_fail_at = INT64_MAX;
    mem_test_fail_always = true;
    ck_assert_ptr_null(arena_alloc(&a, 100));
    ck_assert_ptr_null(arena_zalloc(&a, 10000));
    ck_assert_ptr_null(arena_dup(&a, "x", 1));
    ck_assert_ptr_null(arena_printf(&a, "%d", 1));
    ck_assert_ptr_null(arena_printf(&a, "%s", long_text));
    ck_assert_ptr_null(a.chunks);
    mem_test_fail_at = 0;
    mem_test_fail_always = false;
    ck_assert_str_eq(arena_dup(&a, "x", 1), "x");
    arena_release(&a);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        pieces_are_apart_and_aligned, a_large_piece_comes_first, a_huge_piece_is_a_separate_allocation,
        copied_and_formatted_texts_end_with_a_nul, a_release_also_frees_the_dicts,
        no_memory_changes_nothing
    };
    Suite *s = suite_create("arena");
    TCase *t = tcase_create("arena");

    tcase_add_checked_fixture(t, setup_arena, teardown);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
