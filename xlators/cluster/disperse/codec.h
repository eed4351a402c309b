/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* codec: the erasure code of dispersed volumes: arithmetic on memory, no calls.
 *
 * A file is cut into stripes of K chunks of 512 bytes. Each stripe gives one chunk to each of the N
 * fragments, and any K fragments give the stripe back:
 *
 *      fragment i  =  sum over j of  v^(K-1-j) * chunk j,   v = i + 1,   in the field 2^8 modulo 0x11d
 *
 * A chunk is not 512 symbols in the order of bytes. Plane b (bytes 64b to 64b+63) holds bit b of all 512
 * symbols. So a multiplication by a constant is some exclusive-ors of whole planes, and vector registers of
 * any width do it without tables:
 *
 *      times 2:    planes 0 1 2 3 4 5 6 7  become  7 0 1+7 2+7 3+7 4 5 6
 *
 * Both the matrix and the layout are those of stock clients, bit for bit.
 *
 * thread: any; nothing here is shared, except the choice of vector instructions at the first call. */
#ifndef KILN_CLUSTER_DISPERSE_CODEC_H
#define KILN_CLUSTER_DISPERSE_CODEC_H

#include <stddef.h>

enum {
    CODEC_CHUNK = 512,
    CODEC_PLANE = 64,
    CODEC_DATA_MAX = 16,      /* K */
    CODEC_FRAGMENTS_MAX = 31, /* N, at least 2R + 1 */
};

/* Instructions that the kernels use. The result is the same with each. */
enum codec_cpu { CODEC_PORTABLE, CODEC_AVX2, CODEC_AVX512, CODEC_CPUS };

/* Returns the best instructions of this processor; those that calls use unless codec_use() has changed it. */
enum codec_cpu codec_best(void);
/* Makes all later calls use `cpu`, which the processor must have: for tests and benchmarks, with no other
 * call running. */
void codec_use(enum codec_cpu cpu);
const char *codec_cpu_name(enum codec_cpu cpu);

/* Multiplication in the field, and the inverse of a value other than 0. */
unsigned char codec_multiply(unsigned char a, unsigned char b);
unsigned char codec_inverse(unsigned char a);

/* Computes the fragments of the set `which` (bit i: fragment i) of `stripes` stripes of `data` (K) chunks.
 * `in` has stripes * K * 512 bytes; fragment i, of stripes * 512 bytes, goes to out + i * stripes * 512. No
 * alignment is needed; the buffers must not overlap. */
void codec_encode(unsigned data, unsigned which, const unsigned char *in, size_t stripes, unsigned char *out);

/* The way from K fragments back to the data: depends on the indexes of the fragments only. */
struct codec_plan {
    unsigned data;
    unsigned char inverse[CODEC_DATA_MAX][CODEC_DATA_MAX];
    /* for chunk j and bit b: the fragments whose factor has bit b, one bit each */
    unsigned short terms[CODEC_DATA_MAX][8];
};

/* Prepares the decoding of the K = `data` different fragments in `index`, in the order in which
 * codec_decode() gets them. */
void codec_plan_make(struct codec_plan *plan, unsigned data, const unsigned *index);
/* Computes `stripes` stripes from K fragments of stripes * 512 bytes each. No alignment is needed; the
 * buffers must not overlap. */
void codec_decode(const struct codec_plan *plan, const unsigned char *const *in, size_t stripes,
                  unsigned char *out);

#endif
