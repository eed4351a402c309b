/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* test-vector: captured bytes, written as hex digits in groups; `*N` is N zero bytes. For tests. */
#ifndef KILN_RPC_XDR_TEST_VECTOR_H
#define KILN_RPC_XDR_TEST_VECTOR_H

#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static inline size_t
vector_bytes(const char *hex, char *out, size_t room)
{
    size_t n = 0;

    while (*hex) {
        if (*hex == ' ') {
            hex++;
        } else if (*hex == '*') {
            char *end;
            size_t zeros = strtoul(hex + 1, &end, 10);

            ck_assert_uint_le(n + zeros, room);
            memset(out + n, 0, zeros);
            n += zeros;
            hex = end;
        } else {
            char byte[3] = {hex[0], hex[1], '\0'};

            ck_assert(isxdigit((unsigned char)hex[0]) && isxdigit((unsigned char)hex[1]));
            ck_assert_uint_lt(n, room);
            out[n++] = (char)strtoul(byte, NULL, 16);
            hex += 2;
        }
    }
    return n;
}

#endif
