/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Tests that a parcel returns the values that were put, also through a file, and that a parcel that is cut or
 * changed anywhere is reported as broken and never read beyond its end. */
#include "base/parcel.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void
fill(struct parcel *p)
{
    size_t place;

    parcel_put_u32(p, 7);
    place = parcel_reserve_u32(p);
    parcel_put_u64(p, UINT64_C(1) << 40);
    parcel_put_text(p, "brick");
    parcel_put_text(p, NULL);
    parcel_put_bytes(p, "abc", 3);
    parcel_put_bytes(p, NULL, 0);
    parcel_put_text(p, "");
    parcel_set_u32(p, place, 9);
}

static bool
has_all(struct parcel *p)
{
    char abc[3];
    size_t count;

    bool is_same = parcel_get_u32(p) == 7 && parcel_get_u32(p) == 9 && parcel_get_u64(p) == UINT64_C(1) << 40;
    const char *brick = parcel_get_text(p), *none = parcel_get_text(p);

    parcel_get_exactly(p, abc, sizeof abc);
    (void)parcel_get_bytes(p, &count);
    const char *empty = parcel_get_text(p);

    return !p->is_broken && is_same && strcmp(brick, "brick") == 0 && !none && memcmp(abc, "abc", 3) == 0 &&
           count == 0 && *empty == '\0' && p->at == p->used;
}

START_TEST(a_parcel_returns_the_values_in_order)
{
    struct parcel p = {0};

    fill(&p);
    ck_assert(has_all(&p));
    parcel_free(&p);
}
END_TEST

START_TEST(a_parcel_survives_a_file)
{
    struct parcel out = {0}, in = {0};
    int fd = memfd_create("parcel", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    fill(&out);
    ck_assert_int_eq(parcel_write(&out, fd), 0);
    ck_assert_int_eq(parcel_read(&in, fd), 0);
    ck_assert(has_all(&in));
    close(fd);
    parcel_free(&out);
    parcel_free(&in);
}
END_TEST

START_TEST(a_cut_parcel_is_broken)
{
    struct parcel whole = {0};

    fill(&whole);
    for (size_t bytes = 0; bytes < whole.used; bytes++) {
        /* A separate allocation of exactly these bytes, so that ASan sees a read beyond the end. */
        struct parcel cut = {.bytes = malloc(bytes ? bytes : 1), .used = bytes, .room = bytes};

        ck_assert_ptr_nonnull(cut.bytes);
        memcpy(cut.bytes, whole.bytes, bytes);
        ck_assert(!has_all(&cut));
        ck_assert(cut.is_broken);
        parcel_free(&cut);
    }
    parcel_free(&whole);
}
END_TEST

START_TEST(a_length_beyond_the_end_breaks_the_parcel)
{
    struct parcel p = {0};
    size_t count;

    parcel_put_u64(&p, UINT64_MAX);
    parcel_put_u32(&p, 1);
    ck_assert_ptr_null(parcel_get_bytes(&p, &count));
    ck_assert_uint_eq(count, 0);
    ck_assert(p.is_broken);
    ck_assert_uint_eq(parcel_get_u32(&p), 0);
    parcel_free(&p);
}
END_TEST

START_TEST(a_text_without_an_end_breaks_the_parcel)
{
    struct parcel p = {0};

    parcel_put_bytes(&p, "abc", 3);
    ck_assert_ptr_null(parcel_get_text(&p));
    ck_assert(p.is_broken);
    parcel_free(&p);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("parcel");
    TCase *t = tcase_create("parcel");

    tcase_add_test(t, a_parcel_returns_the_values_in_order);
    tcase_add_test(t, a_parcel_survives_a_file);
    tcase_add_test(t, a_cut_parcel_is_broken);
    tcase_add_test(t, a_length_beyond_the_end_breaks_the_parcel);
    tcase_add_test(t, a_text_without_an_end_breaks_the_parcel);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
