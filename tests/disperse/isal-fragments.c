/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Compares the erasure code of cluster/disperse with ISA-L, for all numbers of data and redundant chunks that
 * a volume may have and for random bytes: both compute the same fragments, and each gives the bytes back from
 * K random fragments of the other. ISA-L computes with bytes; so each chunk is turned from eight planes of
 * bits to 512 symbols before, and back afterwards. The argument is the seed.
 *
 * Prints the number of comparisons; the status is 1 after the first difference. */
#include <isa-l.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/disperse/codec.h"

enum { STRIPES = 2, BYTES = STRIPES * CODEC_CHUNK, SUBSETS = 6 };

static unsigned data, count; /* K, N */
static unsigned char plain[CODEC_DATA_MAX * BYTES];
static unsigned char kiln[CODEC_FRAGMENTS_MAX * BYTES], isal[CODEC_FRAGMENTS_MAX][BYTES];
static unsigned long compared;

static void
must_equal(const void *a, const void *b, size_t size, const char *what)
{
    compared++;
    if (memcmp(a, b, size) == 0)
        return;
    printf("%u+%u: %s differ\n", data, count - data, what);
    exit(1);
}

static void
symbols_of_planes(const unsigned char *planes, unsigned char *symbols)
{
    memset(symbols, 0, CODEC_CHUNK);
    for (unsigned s = 0; s < CODEC_CHUNK; s++) {
        for (unsigned b = 0; b < 8; b++)
            symbols[s] |= (unsigned char)((planes[b * CODEC_PLANE + s / 8] >> s % 8 & 1) << b);
    }
}

static void
planes_of_symbols(const unsigned char *symbols, unsigned char *planes)
{
    memset(planes, 0, CODEC_CHUNK);
    for (unsigned s = 0; s < CODEC_CHUNK; s++) {
        for (unsigned b = 0; b < 8; b++)
            planes[b * CODEC_PLANE + s / 8] |= (unsigned char)((symbols[s] >> b & 1) << s % 8);
    }
}

/* The rows of the matrix of the specification: powers of the index + 1, the highest first. */
static void
make_matrix(unsigned char *rows)
{
    for (unsigned i = 0; i < count; i++) {
        rows[i * data + data - 1] = 1;
        for (unsigned j = data - 1; j--;)
            rows[i * data + j] = gf_mul(rows[i * data + j + 1], (unsigned char)(i + 1));
    }
}

/* Multiplies the `in_count` chunks of one stripe by the rows. */
static void
isal_multiply(unsigned char *rows, unsigned row_count, unsigned char *const *in, unsigned char *const *out)
{
    static unsigned char tables[32 * CODEC_DATA_MAX * CODEC_FRAGMENTS_MAX];
    static unsigned char from[CODEC_DATA_MAX][CODEC_CHUNK], to[CODEC_FRAGMENTS_MAX][CODEC_CHUNK];
    unsigned char *sources[CODEC_DATA_MAX], *results[CODEC_FRAGMENTS_MAX];

    for (unsigned j = 0; j < data; j++) {
        symbols_of_planes(in[j], from[j]);
        sources[j] = from[j];
    }
    for (unsigned i = 0; i < row_count; i++)
        results[i] = to[i];
    ec_init_tables((int)data, (int)row_count, rows, tables);
    ec_encode_data(CODEC_CHUNK, (int)data, (int)row_count, tables, sources, results);
    for (unsigned i = 0; i < row_count; i++)
        planes_of_symbols(to[i], out[i]);
}

static void
isal_encode(unsigned char *rows)
{
    for (unsigned s = 0; s < STRIPES; s++) {
        unsigned char *in[CODEC_DATA_MAX], *out[CODEC_FRAGMENTS_MAX];

        for (unsigned j = 0; j < data; j++)
            in[j] = plain + (s * data + j) * CODEC_CHUNK;
        for (unsigned i = 0; i < count; i++)
            out[i] = isal[i] + s * CODEC_CHUNK;
        isal_multiply(rows, count, in, out);
    }
}

static void
isal_decode(unsigned char *rows, const unsigned *index, unsigned char *back)
{
    unsigned char chosen[CODEC_DATA_MAX * CODEC_DATA_MAX], inverse[CODEC_DATA_MAX * CODEC_DATA_MAX];

    for (unsigned k = 0; k < data; k++)
        memcpy(chosen + k * data, rows + index[k] * data, data);
    if (gf_invert_matrix(chosen, inverse, (int)data)) {
        printf("%u+%u: ISA-L finds no inverse\n", data, count - data);
        exit(1);
    }
    for (unsigned s = 0; s < STRIPES; s++) {
        unsigned char *in[CODEC_DATA_MAX], *out[CODEC_DATA_MAX];

        for (unsigned k = 0; k < data; k++) {
            in[k] = kiln + index[k] * BYTES + s * CODEC_CHUNK;
            out[k] = back + (s * data + k) * CODEC_CHUNK;
        }
        isal_multiply(inverse, data, in, out);
    }
}

/* Draws K different fragments, in any order. */
static void
draw_fragments(unsigned *index)
{
    unsigned all[CODEC_FRAGMENTS_MAX];

    for (unsigned i = 0; i < count; i++)
        all[i] = i;
    for (unsigned k = 0; k < data; k++) {
        unsigned at = k + (unsigned)rand() % (count - k);

        index[k] = all[at];
        all[at] = all[k];
    }
}

static void
compare_shape(void)
{
    unsigned char rows[CODEC_FRAGMENTS_MAX * CODEC_DATA_MAX], back[CODEC_DATA_MAX * BYTES];
    unsigned index[CODEC_DATA_MAX];
    struct codec_plan plan;

    for (unsigned i = 0; i < data * BYTES; i++)
        plain[i] = (unsigned char)rand();
    make_matrix(rows);
    isal_encode(rows);
    codec_encode(data, (unsigned)((1ull << count) - 1), plain, STRIPES, kiln);
    for (unsigned i = 0; i < count; i++)
        must_equal(kiln + i * BYTES, isal[i], BYTES, "the fragments");
    for (unsigned n = 0; n < SUBSETS; n++) {
        const unsigned char *in[CODEC_DATA_MAX];

        draw_fragments(index);
        for (unsigned k = 0; k < data; k++)
            in[k] = isal[index[k]];
        codec_plan_make(&plan, data, index);
        codec_decode(&plan, in, STRIPES, back);
        must_equal(back, plain, data * BYTES, "the bytes that Kiln decodes from ISA-L's fragments");
        isal_decode(rows, index, back);
        must_equal(back, plain, data * BYTES, "the bytes that ISA-L decodes from Kiln's fragments");
    }
}

int
main(int argc, char **argv)
{
    srand(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++) {
        codec_use(cpu);
        for (data = 2; data <= CODEC_DATA_MAX; data++) {
            for (count = data + 1; count < 2 * data && count <= CODEC_FRAGMENTS_MAX; count++)
                compare_shape();
        }
        printf("%s: %lu comparisons\n", codec_cpu_name(cpu), compared);
    }
    return 0;
}
