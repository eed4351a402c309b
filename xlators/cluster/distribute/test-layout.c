/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Layouts as stock writes them, with holes and overlaps, and random layouts. */
#include "xlators/cluster/distribute/layout.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mem-pool.h"
#include "xlators/cluster/distribute/hash.h"

enum { HERE = 3 };

static void
setup(void)
{
    ck_assert_int_eq(layout_pools_init(), 0);
}

static const uint8_t *
bytes_of(uint32_t commit, uint32_t type, uint32_t start, uint32_t stop)
{
    static uint8_t bytes[LAYOUT_BYTES];

    layout_write(&(struct layout_range){.commit = commit, .type = type, .start = start, .stop = stop}, bytes);
    return bytes;
}

static struct layout *
layout_of_three(uint32_t a, uint32_t a_stop, uint32_t b, uint32_t b_stop, uint32_t c, uint32_t c_stop)
{
    struct layout *l = layout_new(3, 0);

    ck_assert_ptr_nonnull(l);
    layout_read(l, 0, bytes_of(0, 0, a, a_stop), LAYOUT_BYTES);
    layout_read(l, 1, bytes_of(0, 0, b, b_stop), LAYOUT_BYTES);
    layout_read(l, 2, bytes_of(0, 0, c, c_stop), LAYOUT_BYTES);
    layout_settle(l);
    return l;
}

START_TEST(bytes_are_as_stock_writes_them)
{
    /* observed on the second brick of three, in the folder /d1 */
    static const uint8_t seen[LAYOUT_BYTES] = {0,    0,    0,    0,    0,    0,    0,    0,
                                               0xaa, 0xaa, 0xaa, 0xaa, 0xff, 0xff, 0xff, 0xff};
    struct layout *l = layout_new(1, 0);
    uint8_t again[LAYOUT_BYTES];

    layout_read(l, 0, seen, sizeof seen);
    ck_assert_int_eq(l->of[0].err, 0);
    ck_assert_uint_eq(l->of[0].start, 0xaaaaaaaa);
    ck_assert_uint_eq(l->of[0].stop, 0xffffffff);
    layout_write(&l->of[0], again);
    ck_assert_mem_eq(again, seen, sizeof seen);
    layout_unref(l);
}
END_TEST

START_TEST(an_invalid_layout_is_an_error_of_its_subvolume)
{
    struct layout *l = layout_new(5, 0);
    struct layout_flaws f;

    layout_read(l, 0, bytes_of(0, 0, 5, 4), LAYOUT_BYTES);
    layout_read(l, 1, bytes_of(0, 2, 0, 9), LAYOUT_BYTES);
    layout_read(l, 2, bytes_of(0, 0, 0, 9), LAYOUT_BYTES - 1);
    layout_read(l, 3, NULL, 0);
    layout_failed(l, 4, ESTALE);
    layout_settle(l);
    layout_check(l, &f);
    ck_assert_uint_eq(f.other, 3);
    ck_assert_uint_eq(f.no_xattr, 1);
    ck_assert_uint_eq(f.missing, 1);
    ck_assert_uint_eq(f.holes, 1);
    ck_assert_int_eq(layout_find(l, 0), -1);
    layout_unref(l);
}
END_TEST

START_TEST(a_whole_layout_has_no_flaw_and_finds_every_hash)
{
    struct layout *l = layout_of_three(0xaaaaaaaa, 0xffffffff, 0, 0x55555554, 0x55555555, 0xaaaaaaa9);
    struct layout_flaws f;

    layout_check(l, &f);
    ck_assert_uint_eq(f.holes + f.overlaps + f.missing + f.no_xattr + f.away + f.other, 0);
    ck_assert_int_eq(layout_find(l, 0), 1);
    ck_assert_int_eq(layout_find(l, 0x55555554), 1);
    ck_assert_int_eq(layout_find(l, 0x55555555), 2);
    ck_assert_int_eq(layout_find(l, 0xffffffff), 0);
    ck_assert_uint_eq(l->commit, 0);
    layout_unref(l);
}
END_TEST

static const struct {
    uint32_t at[6];
    unsigned holes, overlaps;
} flawed[] = {
    {{0, 9, 10, 0xffffffff, 0, 0}, 0, 0},             /* the third has none */
    {{1, 9, 10, 0xffffffff, 0, 0}, 1, 0},             /* at the beginning */
    {{0, 9, 11, 0xffffffff, 0, 0}, 1, 0},             /* in the middle */
    {{0, 9, 10, 0xfffffffe, 0, 0}, 1, 0},             /* at the end */
    {{0, 9, 9, 0xffffffff, 0, 0}, 0, 1},
    {{0, 0xffffffff, 5, 7, 0, 0}, 0, 1},              /* a range inside another */
    {{0, 0xffffffff, 0, 0xffffffff, 0, 0xffffffff}, 0, 2},
    {{0, 0, 0, 0, 0, 0}, 1, 0},                       /* no range at all */
    {{0, 9, 5, 20, 30, 0xffffffff}, 1, 1},
};

START_TEST(holes_and_overlaps_are_counted)
{
    const uint32_t *at = flawed[_i].at;
    struct layout *l = layout_of_three(at[0], at[1], at[2], at[3], at[4], at[5]);
    struct layout_flaws f;

    layout_check(l, &f);
    ck_assert_uint_eq(f.holes, flawed[_i].holes);
    ck_assert_uint_eq(f.overlaps, flawed[_i].overlaps);
    layout_unref(l);
}
END_TEST

START_TEST(differing_commit_hashes_give_no_commit_hash)
{
    struct layout *l = layout_new(3, 0);

    layout_read(l, 0, bytes_of(7, 0, 0, 9), LAYOUT_BYTES);
    layout_read(l, 2, bytes_of(7, 0, 10, 0xffffffff), LAYOUT_BYTES);
    layout_settle(l);
    ck_assert_uint_eq(l->commit, 7);
    layout_read(l, 1, bytes_of(8, 0, 0, 0), LAYOUT_BYTES);
    layout_settle(l);
    ck_assert_uint_eq(l->commit, LAYOUT_COMMIT_INVALID);
    layout_unref(l);
}
END_TEST

/* Layouts of a stock client on three bricks of equal size: for each folder, the brick whose range begins at
 * 0. */
static const struct {
    const char *path;
    unsigned first;
} seen[] = {{"/", 1}, {"/d1", 2}, {"/d2", 2}, {"/d1/e1", 1}, {"/d1/e2", 1}, {"/d1/.foo.bar", 1}};

START_TEST(folders_are_laid_out_as_by_stock)
{
    static const uint16_t order[] = {0, 1, 2};
    static const uint32_t weights[] = {16384, 16384, 16384};
    static const uint32_t starts[] = {0, 0x55555555, 0xaaaaaaaa},
                          stops[] = {0x55555554, 0xaaaaaaa9, 0xffffffff};
    const char *path = seen[_i].path;
    struct layout *l = layout_new(3, 0);

    for (unsigned i = 0; i < 3; i++)
        layout_read(l, i, NULL, 0);
    layout_assign(l, &(struct layout_plan){order, weights, hash_bytes(path, strlen(path)), 0, 0});
    for (unsigned k = 0; k < 3; k++) {
        unsigned i = (seen[_i].first + k) % 3;

        ck_assert_uint_eq(l->of[i].start, starts[k]);
        ck_assert_uint_eq(l->of[i].stop, stops[k]);
    }
    layout_unref(l);
}
END_TEST

START_TEST(a_spread_limits_the_number_of_ranges)
{
    static const uint16_t order[] = {2, 0, 1};
    static const uint32_t weights[] = {1, 1, 1};
    struct layout *l = layout_new(3, 0);
    struct layout_flaws f;

    for (unsigned i = 0; i < 3; i++)
        layout_read(l, i, NULL, 0);
    layout_assign(l, &(struct layout_plan){order, weights, 4, 2, 9}); /* begins at order[1] */
    ck_assert_uint_eq(l->of[0].start, 0);
    ck_assert_uint_eq(l->of[1].stop, UINT32_MAX);
    ck_assert(layout_range_is_empty(&l->of[2]));
    ck_assert_int_eq(l->of[2].err, 0);
    ck_assert_uint_eq(l->commit, 9);
    layout_check(l, &f);
    ck_assert_uint_eq(f.holes + f.overlaps, 0);
    layout_unref(l);
}
END_TEST

/* Random numbers and sizes of subvolumes give no hole and no overlap, and keep the errors. */
START_TEST(random_layouts_are_whole)
{
    srandom(7);
    for (int round = 0; round < 2000; round++) {
        unsigned count = 1 + (unsigned)random() % 40, usable = 0;
        uint16_t order[40];
        uint32_t weights[40];
        struct layout *l = layout_new(count, 0);
        struct layout_flaws f;

        for (unsigned i = 0; i < count; i++) {
            order[i] = (uint16_t)((i + (unsigned)round) % count);
            weights[i] = round % 4 ? (uint32_t)random() % 100000 : random() % 2 ? 1 : UINT32_MAX;
            if (random() % HERE)
                layout_read(l, i, NULL, 0);
            usable += l->of[i].err == LAYOUT_NO_XATTR && weights[i];
        }
        layout_assign(l, &(struct layout_plan){order, weights, (uint32_t)random(), 0, 0});
        layout_check(l, &f);
        ck_assert_uint_eq(f.holes, usable ? 0 : 1);
        ck_assert_uint_eq(f.overlaps, 0);
        for (int i = 0; i < 20 && usable; i++)
            ck_assert_int_ge(layout_find(l, (uint32_t)random() << 1), 0);
        layout_unref(l);
    }
}
END_TEST

/* Returns the number of hashes of which the child is the same in both layouts. */
static uint64_t
hashes_kept(const struct layout *a, const struct layout *b)
{
    uint64_t kept = 0;

    for (unsigned i = 0; i < a->count; i++) {
        const struct layout_range *x = &a->of[i], *y = &b->of[i];
        uint32_t start = x->start > y->start ? x->start : y->start,
                 stop = x->stop < y->stop ? x->stop : y->stop;

        if (!layout_range_is_empty(x) && !layout_range_is_empty(y) && start <= stop)
            kept += (uint64_t)stop - start + 1;
    }
    return kept;
}

static struct layout *
layout_of_equals(unsigned count, const uint32_t *weights, uint32_t hash)
{
    static const uint16_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct layout *l = layout_new(count, 0);

    for (unsigned i = 0; i < count; i++)
        layout_read(l, i, NULL, 0);
    layout_assign(l, &(struct layout_plan){order, weights, hash, 0, 0});
    return l;
}

/* A child is added or leaves: at least half of the hashes stay, two thirds with two old children. */
START_TEST(a_changed_layout_is_near_the_old_one)
{
    for (unsigned count = 3; count <= 12; count++) {
        for (unsigned n = 0; n < 2 * count; n++) {
            uint32_t all[12], some[12];
            bool grows = n % 2;

            for (unsigned i = 0; i < count; i++) {
                all[i] = 1;
                some[i] = i != n / 2;
            }
            struct layout *old = layout_of_equals(count, grows ? some : all, n * 77u);
            struct layout *l = layout_of_equals(count, grows ? all : some, n * 131u);
            struct layout_flaws f;

            ck_assert_int_eq(layout_keep_near(l, old), 0);
            layout_check(l, &f);
            ck_assert(!f.holes && !f.overlaps);
            ck_assert(grows || layout_range_is_empty(&l->of[n / 2]));
            uint64_t least = count == 3 && grows ? UINT64_C(0xaaaaaa00) : UINT64_C(0x70000000);
            ck_assert_msg(hashes_kept(old, l) >= least, "%u children, %u: %llx hashes", count, n,
                          (unsigned long long)hashes_kept(old, l));
            layout_unref(old);
            layout_unref(l);
        }
    }
}
END_TEST

/* Random bytes cause no crash, and accepted bytes are written back unchanged. */
START_TEST(random_bytes_are_read_or_refused)
{
    uint8_t bytes[32], again[LAYOUT_BYTES];

    srandom(11);
    for (int round = 0; round < 20000; round++) {
        struct layout *l = layout_new(2, 0);
        size_t len = random() % 3 ? LAYOUT_BYTES : (size_t)random() % sizeof bytes;

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(random() % 2 && i / 4 == 1 ? 0 : random());
        layout_read(l, 0, bytes, len);
        layout_settle(l);
        ck_assert(l->of[0].err == 0 || l->of[0].err == EINVAL);
        if (!l->of[0].err) {
            layout_write(&l->of[0], again);
            ck_assert_mem_eq(again, bytes, LAYOUT_BYTES);
        }
        int found = layout_find(l, (uint32_t)random());
        ck_assert(found == -1 || found == 0);
        layout_unref(l);
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("layout");
    TCase *t = tcase_create("layout");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, bytes_are_as_stock_writes_them);
    tcase_add_test(t, an_invalid_layout_is_an_error_of_its_subvolume);
    tcase_add_test(t, a_whole_layout_has_no_flaw_and_finds_every_hash);
    tcase_add_loop_test(t, holes_and_overlaps_are_counted, 0, (int)(sizeof flawed / sizeof flawed[0]));
    tcase_add_test(t, differing_commit_hashes_give_no_commit_hash);
    tcase_add_loop_test(t, folders_are_laid_out_as_by_stock, 0, (int)(sizeof seen / sizeof seen[0]));
    tcase_add_test(t, a_spread_limits_the_number_of_ranges);
    tcase_add_test(t, random_layouts_are_whole);
    tcase_add_test(t, a_changed_layout_is_near_the_old_one);
    tcase_add_test(t, random_bytes_are_read_or_refused);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
