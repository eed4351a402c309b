/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* hash: FNV-1a of bytes and texts, for sets in memory and for names of files. A peer that chooses the input
 * can make two inputs with one hash, so callers compare the input, or survive such a pair.
 *
 * thread: any. Functions keep no pointers to their arguments. */
#ifndef KILN_BASE_HASH_H
#define KILN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Adds bytes to a hash, which begins as HASH_START. */
static inline uint64_t
hash_add(uint64_t hash, const void *bytes, size_t len)
{
    const uint8_t *b = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The hash of a text without its NUL. */
static inline uint64_t
hash_text(const char *text)
{
    return hash_add(HASH_START, text, strlen(text));
}

#endif
