/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The erasure code beside fragments that stock bricks hold (vectors/K+R-NAME.in.hex: the file,
 * .fI.hex: fragment I), with each instruction set of this processor. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/disperse/codec.h"

enum { BYTES_MAX = 8192, STRIPES_MAX = 4 };

/* ---- vectors --------------------------------------------------------------------------------- */

struct vector {
    unsigned data, redundancy;
    const char *name;
};

static const struct vector vectors[] = {
    {2, 1, "hello"}, {2, 1, "full"}, {2, 1, "bits"},  {2, 1, "two"},  {4, 2, "hello"},
    {4, 2, "full"},  {4, 2, "bits"}, {8, 3, "hello"}, {8, 3, "full"}, {8, 3, "bits"},
};

/* Reads a file of hexadecimal bytes. Returns the number of bytes. */
static size_t
vector_read(const struct vector *v, const char *part, unsigned char *out)
{
    const char *top = getenv("top_srcdir");
    char path[512];
    unsigned byte;
    size_t n = 0;

    snprintf(path, sizeof path, "%s/xlators/cluster/disperse/vectors/%u+%u-%s.%s.hex", top ? top : ".",
             v->data, v->redundancy, v->name, part);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read: say where it is with top_srcdir=DIR", path);
    while (n < BYTES_MAX && fscanf(f, "%2x", &byte) == 1)
        out[n++] = (unsigned char)byte;
    fclose(f);
    return n;
}

/* Reads the file, padded with zeros to whole stripes. Returns the number of stripes. */
static size_t
vector_read_file(const struct vector *v, unsigned char *out)
{
    memset(out, 0, BYTES_MAX);
    size_t stripe = (size_t)v->data * CODEC_CHUNK;

    return (vector_read(v, "in", out) + stripe - 1) / stripe;
}

static void
check_fragments(const struct vector *v)
{
    unsigned char file[BYTES_MAX], expected[BYTES_MAX], got[2 * BYTES_MAX];
    size_t stripes = vector_read_file(v, file);

    codec_encode(v->data, (1u << (v->data + v->redundancy)) - 1, file, stripes, got);
    for (unsigned i = 0; i < v->data + v->redundancy; i++) {
        char part[16];

        snprintf(part, sizeof part, "f%u", i);
        ck_assert_uint_eq(vector_read(v, part, expected), stripes * CODEC_CHUNK);
        ck_assert_msg(memcmp(got + i * stripes * CODEC_CHUNK, expected, stripes * CODEC_CHUNK) == 0,
                      "%u+%u-%s: fragment %u", v->data, v->redundancy, v->name, i);
    }
}

START_TEST(fragments_are_those_of_stock)
{
    for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++) {
        codec_use(cpu);
        check_fragments(&vectors[_i]);
    }
}
END_TEST

/* ---- every choice of fragments --------------------------------------------------------------- */

/* Decodes from the fragments of `set`, a bit for each. */
static void
check_decoding(unsigned data, unsigned set, unsigned char fragment[][STRIPES_MAX * CODEC_CHUNK],
               const unsigned char *file, size_t stripes)
{
    static unsigned char got[CODEC_DATA_MAX * CODEC_CHUNK * STRIPES_MAX];
    const unsigned char *in[CODEC_DATA_MAX];
    unsigned index[CODEC_DATA_MAX], n = 0;
    struct codec_plan plan;

    for (unsigned i = 0; set >> i; i++) {
        if (!(set >> i & 1))
            continue;
        in[n] = fragment[i];
        index[n++] = i;
    }
    must(n == data);
    codec_plan_make(&plan, data, index);
    codec_decode(&plan, in, stripes, got);
    ck_assert_msg(memcmp(got, file, stripes * data * CODEC_CHUNK) == 0, "%u data chunks from %#x", data, set);
}

/* Returns a random set of `count` of `all` fragments. */
static unsigned
random_set(unsigned count, unsigned all)
{
    unsigned set = 0;

    while ((unsigned)__builtin_popcount(set) < count)
        set |= 1u << ((unsigned)rand() % all);
    return set;
}

/* All sets of K fragments; of more than 12 fragments 100 random sets. */
static void
check_all_sets(unsigned data, unsigned fragments)
{
    static unsigned char file[CODEC_DATA_MAX * CODEC_CHUNK * STRIPES_MAX];
    static unsigned char fragment[CODEC_FRAGMENTS_MAX][STRIPES_MAX * CODEC_CHUNK];

    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (unsigned char)rand();
    codec_encode(data, (unsigned)((1ul << fragments) - 1), file, STRIPES_MAX, fragment[0]);
    for (unsigned n = 0; fragments > 12 && n < 100; n++)
        check_decoding(data, random_set(data, fragments), fragment, file, STRIPES_MAX);
    for (unsigned set = 0; fragments <= 12 && set < 1u << fragments; set++) {
        if ((unsigned)__builtin_popcount(set) == data)
            check_decoding(data, set, fragment, file, STRIPES_MAX);
    }
}

START_TEST(any_k_fragments_give_the_file)
{
    static const unsigned shapes[][2] = {{2, 3}, {3, 5}, {4, 6}, {8, 11}, {8, 12}, {16, 20}, {16, 31}};

    srand(1);
    for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++) {
        codec_use(cpu);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            check_all_sets(shapes[i][0], shapes[i][1]);
    }
}
END_TEST

/* ---- field and matrix ------------------------------------------------------------------------ */

START_TEST(the_field_is_that_of_stock)
{
    ck_assert_uint_eq(codec_multiply(2, 0x80), 0x1d);
    ck_assert_uint_eq(codec_multiply(3, 0x80), 0x9d);
    ck_assert_uint_eq(codec_multiply(0x53, 0xca), 0x8f);
    ck_assert_uint_eq(codec_inverse(2), 0x8e);
    ck_assert_uint_eq(codec_inverse(3), 0xf4);
    for (unsigned a = 1; a < 256; a++)
        ck_assert_uint_eq(codec_multiply((unsigned char)a, codec_inverse((unsigned char)a)), 1);
}
END_TEST

START_TEST(inverses_are_those_of_the_specification)
{
    static const unsigned char expected[4][4] = {
        {0xcb, 0x5d, 0xdd, 0x4b}, {0x4b, 0, 0xdd, 0x96}, {0xa7, 0x8c, 3, 0x28}, {0xd2, 0xd5, 4, 2}};
    struct codec_plan plan;

    codec_plan_make(&plan, 4, (const unsigned[]){2, 3, 4, 5});
    for (unsigned j = 0; j < 4; j++)
        ck_assert_mem_eq(plan.inverse[j], expected[j], 4);
    codec_plan_make(&plan, 2, (const unsigned[]){0, 2});
    ck_assert_mem_eq(plan.inverse[0], "\x8e\x8e", 2);
    ck_assert_mem_eq(plan.inverse[1], "\x8f\x8e", 2);
}
END_TEST

START_TEST(buffers_need_no_alignment)
{
    static unsigned char file[4 * CODEC_CHUNK + 3], a[6 * CODEC_CHUNK + 5], b[6 * CODEC_CHUNK];

    srand(2);
    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (unsigned char)rand();
    for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++) {
        codec_use(cpu);
        codec_encode(4, 0x3f, file + 3, 1, a + 5);
        codec_use(CODEC_PORTABLE);
        codec_encode(4, 0x3f, file + 3, 1, b);
        ck_assert_mem_eq(a + 5, b, sizeof b);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("codec");
    TCase *t = tcase_create("codec");

    tcase_add_loop_test(t, fragments_are_those_of_stock, 0, (int)(sizeof vectors / sizeof vectors[0]));
    tcase_add_test(t, any_k_fragments_give_the_file);
    tcase_add_test(t, the_field_is_that_of_stock);
    tcase_add_test(t, inverses_are_those_of_the_specification);
    tcase_add_test(t, buffers_need_no_alignment);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);

    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);

    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
