/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "data/dict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <check.h>

#include "mem/mem-pool.h"

static struct arena arena;

static void
setup(void)
{
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(dict_pools_init(), 0);
    arena_init(&arena);
}

static void
teardown(void)
{
    arena_release(&arena);
    mem_pools_fini();
}

START_TEST(every_known_key_is_found_by_its_text)
{
    for (unsigned id = 1; id < DICT_KEY_COUNT; id++) {
        const char *text = dict_key_text(id);

        ck_assert_uint_eq(dict_key_find(text, strlen(text)), id);
    }
    ck_assert_uint_eq(dict_key_find("no such key", 11), DICT_KEY_UNKNOWN);
    ck_assert_uint_eq(dict_key_find("", 0), DICT_KEY_UNKNOWN);
    ck_assert_uint_eq(dict_key_find("gfid-re", 7), DICT_KEY_UNKNOWN);
}
END_TEST

START_TEST(numbers_read_back_from_any_type)
{
    struct dict *d = dict_new(&arena);
    int64_t i;

    dict_set_int(d, DICT_KEY_GET_SIZE, -5);
    ck_assert_int_eq(dict_get_int(d, DICT_KEY_GET_SIZE, &i), 0);
    ck_assert_int_eq(i, -5);
    dict_set_str(d, DICT_KEY_GET_SIZE, "77");
    ck_assert_int_eq(dict_get_int(d, DICT_KEY_GET_SIZE, &i), 0);
    ck_assert_int_eq(i, 77);
    ck_assert_uint_eq(d->count, 1); /* replaced, not added */
    dict_set_str(d, DICT_KEY_GET_SIZE, "yes");
    ck_assert_int_eq(dict_get_int(d, DICT_KEY_GET_SIZE, &i), -EINVAL);
    ck_assert(dict_get_flag(d, DICT_KEY_GET_SIZE));
    ck_assert_int_eq(dict_get_int(d, DICT_KEY_MODE, &i), -ENOENT);
    ck_assert_int_eq(dict_get_int(NULL, DICT_KEY_MODE, &i), -ENOENT);
}
END_TEST

START_TEST(a_text_without_its_nul_is_no_text)
{
    struct dict *d = dict_new(&arena);
    struct dict_pair p = {.key = "x", .key_len = 1, .type = DICT_STR, .len = 3, .v.bytes = "abc"};

    dict_append(d, &p);
    ck_assert_ptr_null(dict_pair_str(dict_find_text(d, "x")));
}
END_TEST

START_TEST(many_pairs_outgrow_the_object)
{
    struct dict *d = dict_new(&arena);
    char key[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "user.key-%d", i);
        ck_assert_int_eq(dict_set_text(d, key, DICT_PTR, &i, sizeof i), 0);
    }
    ck_assert_uint_eq(d->count, 1000);
    for (int i = 0; i < 1000; i += 2) {
        snprintf(key, sizeof key, "user.key-%d", i);
        dict_remove_pair(d, dict_find_text(d, key));
    }
    ck_assert_uint_eq(d->count, 500);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "user.key-%d", i);
        const struct dict_pair *p = dict_find_text(d, key);
        ck_assert_int_eq(p != NULL, i % 2);
        if (p)
            ck_assert_mem_eq(p->v.bytes, &i, sizeof i);
    }
}
END_TEST

START_TEST(a_copy_shares_nothing)
{
    struct arena other = {0};
    struct dict *d = dict_new(&arena);
    struct gfid g;
    struct iatt iatt = {.size = 42};
    int err;

    gfid_random(&g);
    dict_set_gfid(d, DICT_KEY_GFID_REQ, &g);
    dict_set_iatt(d, DICT_KEY_PRESTAT, &iatt);
    dict_set_text(d, "user.x", DICT_STR, "value", 6);
    struct dict *copy = dict_dup(d, &other, &err);
    ck_assert_ptr_nonnull(copy);
    arena_release(&arena);

    struct gfid back;
    ck_assert_int_eq(dict_get_gfid(copy, DICT_KEY_GFID_REQ, &back), 0);
    ck_assert(gfid_equal(&g, &back));
    ck_assert_uint_eq(dict_find(copy, DICT_KEY_PRESTAT)->v.iatt->size, 42);
    ck_assert_str_eq(dict_pair_str(dict_find_text(copy, "user.x")), "value");
    arena_release(&other);
}
END_TEST

START_TEST(an_arena_gives_pieces_of_all_sizes)
{
    char *pieces[200];

    for (int i = 0; i < 200; i++) {
        size_t size = (size_t)(i * i * 7) % 200000;
        pieces[i] = arena_alloc(&arena, size);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], i, size);
    }
    for (int i = 0; i < 200; i++) {
        size_t size = (size_t)(i * i * 7) % 200000;
        for (size_t k = 0; k < size; k += 97)
            ck_assert_int_eq((unsigned char)pieces[i][k], i);
    }
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX));
    char *text = arena_printf(&arena, "%0600d", 7);
    ck_assert_uint_eq(strlen(text), 600);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("dict");
    TCase *t = tcase_create("dict");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_known_key_is_found_by_its_text);
    tcase_add_test(t, numbers_read_back_from_any_type);
    tcase_add_test(t, a_text_without_its_nul_is_no_text);
    tcase_add_test(t, many_pairs_outgrow_the_object);
    tcase_add_test(t, a_copy_shares_nothing);
    tcase_add_test(t, an_arena_gives_pieces_of_all_sizes);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
