/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xdr: the wire's encoding, to and from memory (spec: wire 0, 4, 5).
 *
 * A decoder reads as a list of fields and is checked once at the end: the first error sticks, every later read gives zeros.
 * Nothing is copied that need not be: strings are given their NUL in place (the four bytes of their length make room), opaque
 * bytes stay in the record. Every length is checked against what is left and against a stated bound.
 */
#ifndef KILN_RPC_XDR_H
#define KILN_RPC_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/gfid.h"
#include "mem/arena.h"

struct xdr {
    char *at, *end;
    struct arena *arena; /* decode: for dicts and lists; encode: unused */
    int error;           /* sticky: 0, -EINVAL (bad bytes), -ENOMEM, -ENOBUFS (encode: no room) */
};

static inline void
xdr_init(struct xdr *x, void *bytes, size_t size, struct arena *arena)
{
    *x = (struct xdr){.at = bytes, .end = (char *)bytes + size, .arena = arena};
}

static inline size_t
xdr_left(const struct xdr *x)
{
    return (size_t)(x->end - x->at);
}

static inline uint32_t
xdr_get_u32(struct xdr *x)
{
    uint32_t be;

    if (__builtin_expect(x->error || xdr_left(x) < sizeof be, 0)) {
        x->error = x->error ? x->error : -22;
        return 0;
    }
    memcpy(&be, x->at, sizeof be);
    x->at += sizeof be;
    return __builtin_bswap32(be);
}

static inline uint64_t
xdr_get_u64(struct xdr *x)
{
    uint64_t high = xdr_get_u32(x);

    return high << 32 | xdr_get_u32(x);
}

static inline void
xdr_put_u32(struct xdr *x, uint32_t v)
{
    uint32_t be = __builtin_bswap32(v);

    if (__builtin_expect(x->error || xdr_left(x) < sizeof be, 0)) {
        x->error = x->error ? x->error : -105;
        return;
    }
    memcpy(x->at, &be, sizeof be);
    x->at += sizeof be;
}

static inline void
xdr_put_u64(struct xdr *x, uint64_t v)
{
    xdr_put_u32(x, (uint32_t)(v >> 32));
    xdr_put_u32(x, (uint32_t)v);
}

#endif
