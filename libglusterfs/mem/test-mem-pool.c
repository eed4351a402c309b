/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The pool in one thread: states of an object, forms of a get and a put, misuse. Continued in
 * test-mem-age.c. Check runs each test in a process of its own, so each chooses its own mode. */
#define TEST_MEM_CLOCK
#include "mem/test-mem.h"

/* ---- one object ------------------------------------------------------------------------------ */

START_TEST(last_put_is_first_got)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "lifo");
    void *a = mem_get(p), *b = mem_get(p);

    mem_put(a);
    mem_put(b);
    ck_assert_ptr_eq(mem_get(p), b);
    ck_assert_ptr_eq(mem_get(p), a);
    mem_put(a);
    mem_put(b);
    mem_put(NULL);
}
END_TEST

START_TEST(every_size_is_usable_and_aligned)
{
    static const size_t sizes[] = {1,    8,    47,   48,    49,     112,    240,    256,
                                   1000, 4096, 9000, 70000, 300000, 600000, 5000000};
    static const size_t aligns[] = { 0, 16, 64, 256, 4096 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t k = 0; k < 5; k++) {
            struct mem_pool *p =
                mem_pool_new_opts(&(struct mem_pool_opts){.name = "s", .size = sizes[i], .align = aligns[k]});
            char *o[3];

            ck_assert_ptr_nonnull(p);
            get_many(p, (void **)o, 3);
            for (int n = 0; n < 3; n++) {
                ck_assert_uint_eq((uintptr_t)o[n] % (aligns[k] ? aligns[k] : 16), 0);
                memset(o[n], n + 1, sizes[i]);
            }
            for (int n = 0; n < 3; n++) {
                ck_assert_int_eq(o[n][0], n + 1);
                ck_assert_int_eq(o[n][sizes[i] - 1], n + 1);
                mem_put(o[n]);
            }
            mem_pool_destroy(p);
        }
        mem_pools_sweep_now();
        mem_pools_sweep_now();
        mem_pools_sweep_now();
    }
}
END_TEST

START_TEST(no_stride_is_a_multiple_of_256)
{
    for (size_t size = 1; size < 4000; size += 37) {
        struct mem_pool *p = mem_pool_new_fn(size, 0, "stride");

        ck_assert_uint_ne(stats(p).stride % 256, 0);
        ck_assert_uint_ge(stats(p).stride, size + 16);
        mem_pool_destroy(p);
        mem_pools_sweep_now();
        mem_pools_sweep_now();
    }
}
END_TEST

START_TEST(get0_zeroes_zero_len_only)
{
    struct mem_pool *p = mem_pool_new_opts(&(struct mem_pool_opts){.name = "z", .size = 200, .zero_len = 50});
    unsigned char *o = mem_get(p);

    memset(o, 7, 200);
    mem_put(o);
    unsigned char *again = mem_get0(p);
    ck_assert_ptr_eq(o, again);
    for (int i = 0; i < 50; i++)
        ck_assert_uint_eq(again[i], 0);
    ck_assert_uint_eq(again[50], 7);
    mem_put(again);
}
END_TEST

static int constructed, was_reset;

static void
ctor(void *o)
{
    memset(o, 0xaa, 100);
    constructed++;
}

static void
reset(void *o)
{
    *(char *)o = (char)0xaa;
    was_reset++;
}

START_TEST(bad_options_are_refused)
{
    static const struct mem_pool_opts bad[] = {
        { .size = 8 },
        { .name = "x" },
        { .name = "x", .size = (16u << 20) + 1 },
        { .name = "x", .size = 8, .zero_len = 9 },
        { .name = "x", .size = 8, .align = 24 },
        { .name = "x", .size = 8, .align = 8192 },
        { .name = "x", .size = 8, .flags = 1u << 20 },
        { .name = "x", .size = 8, .id = 1 },
        { .name = "x", .size = 8, .id = MEM_ID_TYPED_MAX + 1 },
        { .name = "x", .size = 8, .id = 9, .reset = reset },
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_ptr_null(mem_pool_new_opts(&bad[i]));
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_nonnull(mem_pool_new_opts(&(struct mem_pool_opts){ .name = "x", .size = 8, .id = 9 }));
    ck_assert_ptr_null(mem_pool_new_opts(&(struct mem_pool_opts){ .name = "x", .size = 8, .id = 9 }));
    ck_assert_int_eq(errno, EEXIST);
    for (int i = MEM_ID_TYPED_MAX + 1; i < MEM_IDS; i++)
        ck_assert_ptr_nonnull(mem_pool_new_fn(8, 0, "many"));
    ck_assert_ptr_null(mem_pool_new_fn(8, 0, "one too many"));
    ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

START_TEST(constructed_state_survives)
{
    struct mem_pool *p =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "c", .size = 100, .ctor = ctor, .reset = reset});
    unsigned char *o = mem_get(p);

    ck_assert_int_gt(constructed, 0);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(o[i], 0xaa);
    o[0] = 1;
    o[1] = 2;
    mem_put(o);
    ck_assert_int_eq(was_reset, 1);
    ck_assert_ptr_eq(mem_get(p), o);
    ck_assert_uint_eq(o[0], 0xaa);
    ck_assert_uint_eq(o[1], 2);
    mem_put(o);
}
END_TEST

START_TEST(no_pool_goes_to_malloc_and_is_counted)
{
    struct mem_pool *p =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "n", .size = 100, .flags = MEM_POOL_NO_POOL});
    void *o = mem_get0(p);

    memset(o, 1, 100);
    ck_assert_int_eq(stats(p).live, 1);
    mem_put(o);
    ck_assert_int_eq(stats(p).live, 0);
    ck_assert_uint_eq(stats(p).cached_hot, 0);
}
END_TEST

START_TEST(pools_are_bypassed_by_name)
{
    static const struct {
        const char *names, *name;
        bool bypassed;
    } cases[] = {
        {"", "a", false},
        {"a", "a", true},
        {"a", "ab", false},
        {"ab", "a", false},
        {"b,struct a", "struct a", true},
        {"a,b,c", "b", true},
        {"a,b", "a,b", false},
        {"*", "any", true},
        {",,a", "a", true},
        {"b,*", "a", true},
        {"*a", "a", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(mem_pools_set_option("bypass", cases[i].names), 0);
        struct mem_pool *p = mem_pool_new_opts(
            &(struct mem_pool_opts){.name = cases[i].name, .size = 100, .id = 9 + (unsigned)i});
        void *o = i % 2 ? mem_get(p) : mem_get_t(9 + (unsigned)i);

        memset(o, 1, 100);
        ck_assert_int_eq(stats(p).live, 1);
        if (i % 2)
            mem_put_t(9 + (unsigned)i, o);
        else
            mem_put(o);
        ck_assert_int_eq(stats(p).live, 0);
        ck_assert_msg((stats(p).cached_hot == 0) == cases[i].bypassed, "\"%s\" and %s", cases[i].names,
                      cases[i].name);
    }
    char much[1025] = { 0 };

    memset(much, 'x', 1024);
    ck_assert_int_eq(mem_pools_set_option("bypass", much), -EINVAL);
    ck_assert_ptr_nonnull(mem_pool_new_fn(8, 0, "b")); /* the earlier option still holds */
}
END_TEST

START_TEST(bulk_is_all_or_nothing)
{
    struct mem_pool *p = mem_pool_new_fn(64, 0, "bulk");
    void *o[300];

    ck_assert_int_eq(mem_get_bulk(p, o, 300), 0);
    ck_assert_int_eq(stats(p).live, 300);
    mem_put_bulk(o, 300);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

START_TEST(a_bulk_put_takes_objects_of_several_pools)
{
    struct mem_pool *a = mem_pool_new_fn(64, 0, "a"), *b = mem_pool_new_fn(200, 0, "b");
    struct mem_pool *direct =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "d", .size = 9, .flags = MEM_POOL_NO_POOL});
    struct mem_pool *again =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "r", .size = 100, .reset = reset});
    void *o[1000], *all[1000];

    for (int round = 0; round < 3; round++) {
        was_reset = 0;
        ck_assert_int_eq(mem_get_bulk(a, o, 400), 0);
        ck_assert_int_eq(mem_get_bulk(b, o + 400, 300), 0);
        ck_assert_int_eq(mem_get_bulk(direct, o + 700, 100), 0);
        ck_assert_int_eq(mem_get_bulk(again, o + 800, 100), 0);
        memset(o + 900, 0, 100 * sizeof(o[0]));
        for (int i = 0; i < 400; i++)
            memset(o[i], i, 64);
        for (int i = 400; i < 700; i++)
            memset(o[i], i, 200);
        for (int i = 0; i < 400; i++)
            for (int k = 0; k < 64; k++)
                ck_assert_uint_eq(((unsigned char *)o[i])[k], (unsigned char)i);
        for (int i = 0; i < 1000; i++) /* runs of one pool, and NULLs */
            all[i] = o[round ? i * 7 % 1000 : i];
        ck_assert_int_eq(stats(a).live, 400);
        ck_assert_int_eq(stats(b).live, 300);
        mem_put_bulk(all, 1000);
        ck_assert_int_eq(stats(a).live, 0);
        ck_assert_int_eq(stats(b).live, 0);
        ck_assert_int_eq(stats(direct).live, 0);
        ck_assert_int_eq(stats(again).live, 0);
        ck_assert_int_eq(was_reset, 100);
        ck_assert_uint_eq(stats(a).gets, (uint64_t)(round + 1) * 400);
        ck_assert_uint_eq(stats(a).puts, (uint64_t)(round + 1) * 400);
    }
    ck_assert_int_eq(mem_get_bulk(a, o, 0), 0);
    mem_put_bulk(o, 0);
}
END_TEST

START_TEST(an_object_twice_in_one_bulk_put_is_reported)
{
    struct mem_pool *p = mem_pool_new_fn(64, 0, "twice");
    void *o[20];

    ck_assert_int_eq(mem_get_bulk(p, o, 20), 0);
    mem_put_bulk(o, 20); /* now there is room for all of them */
    ck_assert_int_eq(mem_get_bulk(p, o, 19), 0);
    o[19] = o[3];
    mem_put_bulk(o, 20);
    ck_assert_uint_eq(stats(p).double_free, 1);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

START_TEST(inline_and_other_forms_can_be_mixed)
{
    struct mem_pool *p = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "typed", .size = 64, .id = 7 });
    void *o = mem_get_t(7);

    memset(o, 1, 64);
    ck_assert_int_eq(stats(p).live, 1);
    mem_put_t(7, o);
    mem_put_t(7, NULL);
    o = mem_get(p);
    mem_put_t(7, o);
    o = mem_get_t(7);
    mem_put(o);
    ck_assert_int_eq(stats(p).live, 0);
    if (!MEM_ASAN) {
        ck_assert_ptr_null(mem_get_t(8)); /* no such pool */
        ck_assert_int_eq(errno, EINVAL);
        ck_assert(strstr(last_message, "does not exist"));
    }
}
END_TEST

/* A thread that is stopped while it changes base and flow delays no reader, and its line is counted with
 * an error of a magazine. */
START_TEST(figures_read_during_a_change_are_nearly_right)
{
    struct mem_pool *p = mem_pool_new_fn(200, 0, "torn");
    void *o[100];

    get_many(p, o, 100);
    struct mem_line *l = mem_line_of(mem_self, p->id);
    void **base = l->base;

    mem_self->changes++;
    l->base = NULL;
    ck_assert_int_le(stats(p).live, 100 + MEM_CAP_MAX);
    ck_assert_int_ge(stats(p).live, 100 - MEM_CAP_MAX);
    l->base = base;
    mem_self->changes++;
    ck_assert_int_eq(stats(p).live, 100);
    mem_put_bulk(o, 100);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

/* Exact at every moment of a quiet thread, after any history of its lines. */
START_TEST(live_is_exact_across_magazines)
{
    struct mem_pool *p = mem_pool_new_fn(200, 0, "exact");
    static void *o[1000];
    uint64_t gets = 0;

    for (unsigned n = 1; n <= 1000; n += 37) {
        get_many(p, o, n);
        gets += n;
        ck_assert_int_eq(stats(p).live, n);
        mem_put_bulk(o, n / 2);
        if (n % 3 == 0)
            mem_pools_sweep_now();
        ck_assert_int_eq(stats(p).live, n - n / 2);
        mem_put_bulk(o + n / 2, n - n / 2);
        ck_assert_uint_eq(stats(p).gets, gets);
        ck_assert_uint_eq(stats(p).puts, gets);
    }
}
END_TEST

static void *
sweep_once(void *arg)
{
    mem_pools_sweep_now();
    return arg;
}

/* Where the sweeper may only send requests, a thread about to wait executes them. */
START_TEST(idle_does_what_the_sweeper_asked)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "asked");
    pthread_t t;

    mem_pool_idle(); /* no request to a thread that caches nothing */
    mem_put(mem_get(p));
    mem_set.cooperative = true;
    mem_pool_idle();
    ck_assert_uint_gt(stats(p).cached_hot, 0);
    ck_assert_int_eq(pthread_create(&t, NULL, sweep_once, NULL), 0);
    pthread_join(t, NULL);
    ck_assert_uint_gt(stats(p).cached_hot, 0);
    mem_pool_idle();
    ck_assert_uint_eq(stats(p).cached_hot, 0);
    ck_assert_uint_gt(stats(p).cached_cold, 0);
}
END_TEST

/* The forms that replace the inline ones where the caller's compiler may not access objects. */
START_TEST(an_object_can_be_got_by_the_id_of_its_pool)
{
    mem_pool_new_opts(&(struct mem_pool_opts){ .name = "typed", .size = 64, .id = 7 });
    void *o = mem_get_by_id(7);

    memset(o, 1, 64);
    mem_put(o);
    ck_assert_ptr_null(mem_get_by_id(8));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* ---- misuse ---------------------------------------------------------------------------------- */

START_TEST(double_put_is_reported_and_harmless)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "twice");
    void *o = mem_get(p);

    mem_put(o);
    mem_put(o);
    ck_assert(strstr(last_message, "twice") && strstr(last_message, "double free"));
    ck_assert_uint_eq(stats(p).double_free, 1);
    ck_assert_int_eq(stats(p).live, 0);
    ck_assert_ptr_ne(mem_get(p), mem_get(p));
}
END_TEST

START_TEST(foreign_pointers_are_reported)
{
    struct mem_pool *p = mem_pool_new_fn(200, 0, "home");
    char *o = mem_get(p), *other = calloc(1, 400);

    memset(o, 0, 200);
    mem_put(o + 64);
    ck_assert(strstr(last_message, "home") && strstr(last_message, "points into"));
    mem_put(other + 128);
    ck_assert(strstr(last_message, "foreign pointer"));
    memset(other, 0x55, 400);
    mem_put(other + 128);
    ck_assert(strstr(last_message, "in no pool's memory"));
    ck_assert_int_eq(messages, 3);
    ck_assert_int_eq(stats(p).live, 1);
    mem_put(o);
    free(other);
    /* far into an object whose span is larger than the smallest, and into memory that no span uses */
    p = mem_pool_new_fn(200000, 0, "large");
    char *l = mem_get(p);
    memset(l, 0, 200000);
    mem_put(l + 150016);
    ck_assert(strstr(last_message, "large") && strstr(last_message, "points into"));
    mem_put(l);
}
END_TEST

START_TEST(overwritten_header_is_reported)
{
    struct mem_pool *p = mem_pool_new_fn(200, 0, "smashed");
    void *o = mem_get(p);
    struct mem_header good;

    if (MEM_ASAN)
        return; /* ASan stops at the write itself */
    good = *mem_header_of(o);
    mem_header_of(o)->word &= ~(uint64_t)UINT32_MAX;
    mem_put(o);
    ck_assert(strstr(last_message, "smashed") && strstr(last_message, "overwritten"));
    ck_assert_uint_eq(stats(p).wrong_pool, 1);
    *mem_header_of(o) = good;
    mem_put(o);
}
END_TEST

START_TEST(messages_are_folded)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "often");
    void *o = mem_get(p);

    mem_put(o);
    for (int i = 0; i < 100; i++)
        mem_put(o);
    ck_assert_int_eq(messages, 10);
    ck_assert_uint_eq(stats(p).double_free, 100);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        last_put_is_first_got,
        every_size_is_usable_and_aligned,
        no_stride_is_a_multiple_of_256,
        get0_zeroes_zero_len_only,
        bad_options_are_refused,
        constructed_state_survives,
        no_pool_goes_to_malloc_and_is_counted,
        pools_are_bypassed_by_name,
        bulk_is_all_or_nothing,
        a_bulk_put_takes_objects_of_several_pools,
        an_object_twice_in_one_bulk_put_is_reported,
        inline_and_other_forms_can_be_mixed,
        double_put_is_reported_and_harmless,
        foreign_pointers_are_reported,
        overwritten_header_is_reported,
        messages_are_folded,
        figures_read_during_a_change_are_nearly_right,
        live_is_exact_across_magazines,
        idle_does_what_the_sweeper_asked,
        an_object_can_be_got_by_the_id_of_its_pool,
    };
    Suite *s = suite_create("mem-pool");
    TCase *t = tcase_create("pool");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
