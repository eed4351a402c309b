/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Measures a figure of tests/bench/erasure: encodes or decodes 64 stripes again and again for 0.3 s of CPU
 * time, and prints the GB of the file a second. The decoding is checked. */
#include <isa-l.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xlators/cluster/disperse/codec.h"

enum { STRIPES = 64, BYTES = STRIPES * CODEC_CHUNK };
static const double SECONDS = 0.3;

static unsigned data, redundancy;
static unsigned char *file, *back, *part[CODEC_FRAGMENTS_MAX];
static unsigned char tables[32 * CODEC_DATA_MAX * CODEC_FRAGMENTS_MAX];
static unsigned products; /* of ISA-L: results that are computed */
static struct codec_plan plan;

static double
cpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
encode(void)
{
    codec_encode(data, (unsigned)((1ul << (data + redundancy)) - 1), file, STRIPES, part[0]);
}

static void
decode(void)
{
    codec_decode(&plan, (const unsigned char *const *)part + redundancy, STRIPES, back);
}

static void
multiply(void)
{
    unsigned char *in[CODEC_DATA_MAX];

    for (unsigned i = 0; i < data; i++)
        in[i] = file + i * BYTES;
    ec_encode_data(BYTES, (int)data, (int)products, tables, in, part);
}

static void
prepare(const char *what, const char *way)
{
    unsigned index[CODEC_DATA_MAX], all = data + redundancy;
    unsigned char matrix[CODEC_FRAGMENTS_MAX * CODEC_DATA_MAX];
    int is_same = strcmp(way, "isal-same") == 0;

    file = aligned_alloc(64, (size_t)data * BYTES); /* as iobufs are */
    back = aligned_alloc(64, (size_t)data * BYTES);
    part[0] = aligned_alloc(64, (size_t)all * BYTES);
    for (unsigned i = 1; i < all; i++)
        part[i] = part[0] + i * BYTES;
    for (unsigned i = 0; i < data * BYTES; i++)
        file[i] = (unsigned char)rand();
    encode();
    for (unsigned i = 0; i < data; i++)
        index[i] = redundancy + i;
    codec_plan_make(&plan, data, index);
    products = !is_same ? redundancy : strcmp(what, "encode") == 0 ? all : data;
    for (unsigned i = 0; i < sizeof matrix; i++)
        matrix[i] = (unsigned char)rand();
    ec_init_tables((int)data, (int)products, matrix, tables);
}

int
main(int argc, char **argv)
{
    unsigned long runs = 0;

    if (argc == 2 && strcmp(argv[1], "cpus") == 0) {
        for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++)
            puts(codec_cpu_name(cpu));
        return 0;
    }
    if (argc != 5)
        return 64;
    data = (unsigned)atoi(argv[3]);
    redundancy = (unsigned)atoi(argv[4]);
    if (data < 1 || data > CODEC_DATA_MAX || data + redundancy > CODEC_FRAGMENTS_MAX)
        return 64;
    prepare(argv[1], argv[2]);
    for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++) {
        if (strcmp(argv[2], codec_cpu_name(cpu)) == 0)
            codec_use(cpu);
    }
    void (*work)(void) =
        strncmp(argv[2], "isal", 4) == 0 ? multiply : strcmp(argv[1], "encode") == 0 ? encode : decode;
    double began = cpu_now(), now;
    do {
        work();
        runs++;
        now = cpu_now();
    } while (now - began < SECONDS);
    if (work == decode && memcmp(back, file, (size_t)data * BYTES) != 0)
        return 1;
    printf("%.3f\n", (double)runs * data * BYTES / (now - began) / 1e9);
    return 0;
}
