/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The field, the matrix and its inverses, and the choice of vector instructions. codec-kernel.h has the
 * loops. */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "xlators/cluster/disperse/codec.h"

/* ---- kernels --------------------------------------------------------------------------------- */

/* All values of index + 1. */
#define CODEC_EACH_VALUE(do)                                                                                 \
    do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15) do(16)   \
    do(17) do(18) do(19) do(20) do(21) do(22) do(23) do(24) do(25) do(26) do(27) do(28) do(29) do(30) do(31)

#define KERNEL(name) name##_portable
#define KERNEL_BYTES 16
#define KERNEL_TARGET
#include "xlators/cluster/disperse/codec-kernel.h"
#undef KERNEL
#undef KERNEL_BYTES
#undef KERNEL_TARGET

struct kernel {
    const char *name;
    void (*encode)(unsigned data, unsigned v, const unsigned char *in, size_t stripes, unsigned char *out);
    void (*decode)(const struct codec_plan *plan, const unsigned char *const *in, size_t stripes,
                   unsigned char *out);
};

#ifdef __x86_64__
#define KERNEL(name) name##_avx2
#define KERNEL_BYTES 32
#define KERNEL_TARGET __attribute__((target("avx2")))
#include "xlators/cluster/disperse/codec-kernel.h"
#undef KERNEL
#undef KERNEL_BYTES
#undef KERNEL_TARGET

#define KERNEL(name) name##_avx512
#define KERNEL_BYTES 64
#ifdef __clang__ /* knows the width as an option of the whole file only */
#define KERNEL_TARGET __attribute__((target("avx512f")))
#else
#define KERNEL_TARGET __attribute__((target("avx512f,prefer-vector-width=512")))
#endif
#include "xlators/cluster/disperse/codec-kernel.h"
#undef KERNEL
#undef KERNEL_BYTES
#undef KERNEL_TARGET
#endif

/* On other processors the portable kernel is compiled to their vectors of 16 bytes, such as NEON. */
static const struct kernel kernels[CODEC_CPUS] = {
    [CODEC_PORTABLE] = {"portable", encode_portable, decode_portable},
#ifdef __x86_64__
    [CODEC_AVX2] = {"avx2", encode_avx2, decode_avx2},
    [CODEC_AVX512] = {"avx512", encode_avx512, decode_avx512},
#endif
};

static _Atomic(const struct kernel *) chosen;

enum codec_cpu
codec_best(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return CODEC_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return CODEC_AVX2;
#endif
    return CODEC_PORTABLE;
}

void
codec_use(enum codec_cpu cpu)
{
    assert(kernels[cpu].encode);
    atomic_store(&chosen, &kernels[cpu]);
}

const char *
codec_cpu_name(enum codec_cpu cpu)
{
    return kernels[cpu].name ? kernels[cpu].name : "not on this processor";
}

static const struct kernel *
kernel(void)
{
    const struct kernel *k = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (!k) {
        codec_use(codec_best());
        k = atomic_load(&chosen);
    }
    return k;
}

/* ---- field ----------------------------------------------------------------------------------- */

unsigned char
codec_multiply(unsigned char a, unsigned char b)
{
    unsigned sum = 0, term = a;

    for (unsigned bits = b; bits; bits >>= 1) {
        sum ^= bits & 1 ? term : 0;
        term = term << 1 ^ (term & 0x80 ? 0x11d : 0);
    }
    return (unsigned char)sum;
}

/* a^254, because a^255 is 1. */
unsigned char
codec_inverse(unsigned char a)
{
    unsigned char power = a, result = 1;

    for (unsigned bits = 254; bits; bits >>= 1) {
        if (bits & 1)
            result = codec_multiply(result, power);
        power = codec_multiply(power, power);
    }
    return result;
}

/* ---- matrix ---------------------------------------------------------------------------------- */

static void
codec_fill_row(unsigned data, unsigned index, unsigned char *row)
{
    row[data - 1] = 1;
    for (unsigned j = data - 1; j-- > 0;)
        row[j] = codec_multiply(row[j + 1], (unsigned char)(index + 1));
}

static void
codec_scale_row(unsigned char *row, unsigned data, unsigned char factor)
{
    for (unsigned j = 0; j < data; j++)
        row[j] = codec_multiply(row[j], factor);
}

static void
codec_add_row(unsigned char *to, const unsigned char *from, unsigned data, unsigned char factor)
{
    for (unsigned j = 0; j < data; j++)
        to[j] ^= codec_multiply(from[j], factor);
}

/* Gauss-Jordan on `m`, with the same steps on `out`, which begins as the identity. The matrix of different
 * fragments always has an inverse (Vandermonde). */
static void
invert_matrix(unsigned data, unsigned char m[CODEC_DATA_MAX][CODEC_DATA_MAX],
              unsigned char out[CODEC_DATA_MAX][CODEC_DATA_MAX])
{
    unsigned char row[CODEC_DATA_MAX];

    for (unsigned c = 0; c < data; c++) {
        unsigned r = c;

        while (r + 1 < data && !m[r][c])
            r++;
        assert(m[r][c]);
        memcpy(row, m[r], sizeof row);
        memcpy(m[r], m[c], sizeof row);
        memcpy(m[c], row, sizeof row);
        memcpy(row, out[r], sizeof row);
        memcpy(out[r], out[c], sizeof row);
        memcpy(out[c], row, sizeof row);
        unsigned char factor = codec_inverse(m[c][c]);
        codec_scale_row(m[c], data, factor);
        codec_scale_row(out[c], data, factor);
        for (unsigned k = 0; k < data; k++) {
            factor = m[k][c];
            if (k == c || !factor)
                continue;
            codec_add_row(m[k], m[c], data, factor);
            codec_add_row(out[k], out[c], data, factor);
        }
    }
}

void
codec_plan_make(struct codec_plan *plan, unsigned data, const unsigned *index)
{
    unsigned char m[CODEC_DATA_MAX][CODEC_DATA_MAX] = {0};

    assert(data >= 1 && data <= CODEC_DATA_MAX);
    memset(plan, 0, sizeof *plan);
    plan->data = data;
    for (unsigned k = 0; k < data; k++) {
        codec_fill_row(data, index[k], m[k]);
        plan->inverse[k][k] = 1;
    }
    invert_matrix(data, m, plan->inverse);
    for (unsigned j = 0; j < data; j++) {
        for (unsigned k = 0; k < data; k++) {
            for (unsigned b = 0; b < 8; b++)
                plan->terms[j][b] |= (unsigned short)((plan->inverse[j][k] >> b & 1) << k);
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { BLOCK_BYTES = 16 * 1024 }; /* half of a first-level cache, for the fragments' common input */

void
codec_encode(unsigned data, unsigned which, const unsigned char *in, size_t stripes, unsigned char *out)
{
    const struct kernel *k = kernel();
    size_t block = BLOCK_BYTES / (data * CODEC_CHUNK);

    for (size_t s = 0; s < stripes; s += block) {
        size_t count = stripes - s < block ? stripes - s : block;

        for (unsigned left = which; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);

            k->encode(data, i + 1, in + s * data * CODEC_CHUNK, count, out + (i * stripes + s) * CODEC_CHUNK);
        }
    }
}

void
codec_decode(const struct codec_plan *plan, const unsigned char *const *in, size_t stripes,
             unsigned char *out)
{
    kernel()->decode(plan, in, stripes, out);
}
