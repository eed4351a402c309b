/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* codec-kernel: the two loops of the codec, for one width of vectors. codec.c includes this file once for
 * each instruction set, with
 *
 *      KERNEL(name)    the name with the suffix of the set
 *      KERNEL_BYTES    width of a vector: 16, 32 or 64
 *      KERNEL_TARGET   attribute that lets the compiler use the set
 *
 * A value of 512 symbols is eight planes; a register holds KERNEL_BYTES of a plane, so a chunk takes
 * 64 / KERNEL_BYTES passes. */

typedef unsigned long long KERNEL(vec)
    __attribute__((vector_size(KERNEL_BYTES), aligned(1), may_alias));

/* Multiplies by x: the planes move up, and the top plane is folded into planes 0, 2, 3 and 4 (0x11d). */
#define KERNEL_TWICE(p)                                                                                      \
    do {                                                                                                     \
        KERNEL(vec) top_ = (p)[7];                                                                           \
                                                                                                             \
        (p)[7] = (p)[6];                                                                                     \
        (p)[6] = (p)[5];                                                                                     \
        (p)[5] = (p)[4];                                                                                     \
        (p)[4] = (p)[3] ^ top_;                                                                              \
        (p)[3] = (p)[2] ^ top_;                                                                              \
        (p)[2] = (p)[1] ^ top_;                                                                              \
        (p)[1] = (p)[0];                                                                                     \
        (p)[0] = top_;                                                                                       \
    } while (0)

/* Horner's rule over the chunks: ((c0 * v + c1) * v + c2) ..., with v = index + 1 multiplied bit by bit from
 * the highest bit. `v` is a constant in each copy of this function, so that no register is moved. */
KERNEL_TARGET static inline __attribute__((always_inline)) void
KERNEL(encode_by)(unsigned v, unsigned data, const unsigned char *in, size_t stripes, unsigned char *out)
{
    const int top = 31 - __builtin_clz(v);

    for (size_t s = 0; s < stripes; s++) {
        const unsigned char *stripe = in + s * data * CODEC_CHUNK;

        for (unsigned at = 0; at < CODEC_PLANE; at += KERNEL_BYTES) {
            KERNEL(vec) sum[8], once[8];

#pragma GCC unroll 8
            for (int p = 0; p < 8; p++)
                sum[p] = *(const KERNEL(vec) *)(stripe + p * CODEC_PLANE + at);
            for (unsigned j = 1; j < data; j++) {
                const unsigned char *chunk = stripe + j * CODEC_CHUNK + at;

#pragma GCC unroll 8
                for (int p = 0; p < 8; p++)
                    once[p] = sum[p];
#pragma GCC unroll 8
                for (int b = top - 1; b >= 0; b--) {
                    KERNEL_TWICE(sum);
                    if (v >> b & 1) {
#pragma GCC unroll 8
                        for (int p = 0; p < 8; p++)
                            sum[p] ^= once[p];
                    }
                }
#pragma GCC unroll 8
                for (int p = 0; p < 8; p++)
                    sum[p] ^= *(const KERNEL(vec) *)(chunk + p * CODEC_PLANE);
            }
#pragma GCC unroll 8
            for (int p = 0; p < 8; p++)
                *(KERNEL(vec) *)(out + s * CODEC_CHUNK + p * CODEC_PLANE + at) = sum[p];
        }
    }
}

KERNEL_TARGET static void
KERNEL(encode)(unsigned data, unsigned v, const unsigned char *in, size_t stripes, unsigned char *out)
{
#define KERNEL_CASE(value)                                                                                   \
    case value:                                                                                              \
        KERNEL(encode_by)(value, data, in, stripes, out);                                                    \
        break;

    switch (v) {
        CODEC_EACH_VALUE(KERNEL_CASE)
    }
#undef KERNEL_CASE
}

/* The sums of all subsets of up to four fragments but the empty one, for one pass. */
KERNEL_TARGET static inline __attribute__((always_inline)) void
KERNEL(sum_subsets)(KERNEL(vec) sums[16][8], const unsigned char *const *in, unsigned count, size_t at)
{
    for (unsigned k = 0; k < count; k++) {
        KERNEL(vec) one[8];

#pragma GCC unroll 8
        for (int p = 0; p < 8; p++)
            sums[1u << k][p] = one[p] = *(const KERNEL(vec) *)(in[k] + at + p * CODEC_PLANE);
        for (unsigned set = 1; set < 1u << k; set++) {
#pragma GCC unroll 8
            for (int p = 0; p < 8; p++)
                sums[1u << k | set][p] = sums[set][p] ^ one[p];
        }
    }
}

/* Horner's rule over the bits of all factors of one chunk: the doublings are shared by the K terms, and the
 * terms of four fragments with the same bit are one precomputed sum. `groups` of four is a constant in each
 * copy. The sums are the caller's: in builds for sanitizers an array of each copy would take its own 32 KiB
 * of a coroutine's stack. */
KERNEL_TARGET static inline __attribute__((always_inline)) void
KERNEL(decode_by)(unsigned groups, KERNEL(vec) (*sums)[16][8], const struct codec_plan *plan,
                  const unsigned char *const *in, size_t stripes, unsigned char *out)
{
    for (size_t pass = 0; pass < stripes * (CODEC_PLANE / KERNEL_BYTES); pass++) {
        size_t s = pass / (CODEC_PLANE / KERNEL_BYTES);
        size_t at = pass % (CODEC_PLANE / KERNEL_BYTES) * KERNEL_BYTES;

        for (unsigned g = 0; g < groups; g++)
            KERNEL(sum_subsets)(sums[g], in + 4 * g, plan->data - 4 * g < 4 ? plan->data - 4 * g : 4,
                                s * CODEC_CHUNK + at);
        for (unsigned j = 0; j < plan->data; j++) {
            unsigned char *chunk = out + (s * plan->data + j) * CODEC_CHUNK + at;
            KERNEL(vec) sum[8] = {0};

#pragma GCC unroll 8
            for (int b = 7; b >= 0; b--) {
                unsigned terms = plan->terms[j][b];

                KERNEL_TWICE(sum);
#pragma GCC unroll 4
                for (unsigned g = 0; g < groups; g++) {
                    const KERNEL(vec) *term = sums[g][terms >> 4 * g & 15];

                    if (!(terms >> 4 * g & 15)) /* as in every pass, so the branch is predicted */
                        continue;
#pragma GCC unroll 8
                    for (int p = 0; p < 8; p++)
                        sum[p] ^= term[p];
                }
            }
#pragma GCC unroll 8
            for (int p = 0; p < 8; p++)
                *(KERNEL(vec) *)(chunk + p * CODEC_PLANE) = sum[p];
        }
    }
}

KERNEL_TARGET static void
KERNEL(decode)(const struct codec_plan *plan, const unsigned char *const *in, size_t stripes,
               unsigned char *out)
{
    KERNEL(vec) sums[CODEC_DATA_MAX / 4][16][8] __attribute__((aligned(64)));

    switch ((plan->data + 3) / 4) {
    case 1:
        KERNEL(decode_by)(1, sums, plan, in, stripes, out);
        break;
    case 2:
        KERNEL(decode_by)(2, sums, plan, in, stripes, out);
        break;
    case 3:
        KERNEL(decode_by)(3, sums, plan, in, stripes, out);
        break;
    default:
        KERNEL(decode_by)(4, sums, plan, in, stripes, out);
    }
}

#undef KERNEL_TWICE
