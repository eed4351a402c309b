/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xdr: the wire's encoding, to and from memory (spec: wire 0, 4, 5).
 *
 * A decoder reads as a list of fields and is checked once at the end: the first error sticks, every later
 * read gives zeros and empty texts. The decoder avoids copies: it terminates strings in place and leaves
 * opaque bytes in the record. It checks every length against the remaining bytes and against a stated bound.
 *
 * Decoding writes NULs into the bytes, so they must belong to the decoder and can be decoded only once.
 *
 * thread: one at a time for each struct xdr. A struct xdr owns nothing: decoded values live as long as the
 * bytes or the arena. Sizes are bytes. A function that takes a struct xdr fails by its `error` alone.
 */
#ifndef KILN_RPC_XDR_H
#define KILN_RPC_XDR_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/gfid.h"
#include "mem/arena.h"

struct xdr {
    char *at, *end;
    struct arena *arena; /* decode: for dicts and lists; encode: unused */
    int error; /* sticky, decode: 0; -EBADMSG: malformed bytes; -ENOMEM; another -errno: well-formed, but over
                * a bound or not acceptable, to be answered with this error. encode: 0, -ENOBUFS: no room */
    bool dicts_are_sized; /* decode: a dict ends where its size word says: a payload follows */
    bool skips_dicts; /* decode: there is no memory for dicts, which are passed over: NULL */
    /* Decode: the record's further pieces. xdr_pull() joins a field that spans pieces on the arena. */
    int more_count;
    const struct iovec *more;
    size_t more_skip; /* bytes of more[0] already used */
};

/* Starts at `size` bytes to decode, or at `size` bytes of room. `arena`: NULL if no field needs it. */
static inline void
xdr_init(struct xdr *x, void *bytes, size_t size, struct arena *arena)
{
    *x = (struct xdr){.at = bytes, .end = (char *)bytes + size, .arena = arena};
}

/* Bytes before the end of this piece. */
static inline size_t
xdr_left(const struct xdr *x)
{
    return (size_t)(x->end - x->at);
}

/* With the pad bytes behind it. */
static inline size_t
xdr_padded(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

/* The first error stays. */
static inline void
xdr_fail(struct xdr *x, int error)
{
    if (!x->error)
        x->error = error;
}

/* ---- raw places ------------------------------------------------------------------------------ */

/* Loads and stores of numbers at any address. The caller has checked the room. */
static inline uint32_t
xdr_load_u32(const char *p)
{
    uint32_t be;

    memcpy(&be, p, sizeof be);
    return be32toh(be);
}
static inline uint64_t
xdr_load_u64(const char *p)
{
    uint64_t be;

    memcpy(&be, p, sizeof be);
    return be64toh(be);
}
static inline void
xdr_store_u32(char *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, sizeof v);
}
static inline void
xdr_store_u64(char *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, sizeof v);
}

/* Steps over `n` bytes to be read. NULL: fewer are left, or an error stuck before. */
static inline char *
xdr_take(struct xdr *x, size_t n)
{
    char *p = x->at;

    if (__builtin_expect(x->error || xdr_left(x) < n, 0)) {
        xdr_fail(x, -EBADMSG);
        return NULL;
    }
    x->at += n;
    return p;
}

/* Steps over `n` bytes to be written. NULL: no room, or an error stuck before. */
static inline char *
xdr_room(struct xdr *x, size_t n)
{
    char *p = x->at;

    if (__builtin_expect(x->error || xdr_left(x) < n, 0)) {
        xdr_fail(x, -ENOBUFS);
        return NULL;
    }
    x->at += n;
    return p;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* The next number; 0 after an error. */
static inline uint32_t
xdr_get_u32(struct xdr *x)
{
    const char *p = xdr_take(x, 4);

    return p ? xdr_load_u32(p) : 0;
}
static inline int32_t
xdr_get_i32(struct xdr *x)
{
    return (int32_t)xdr_get_u32(x);
}
static inline uint64_t
xdr_get_u64(struct xdr *x)
{
    const char *p = xdr_take(x, 8);

    return p ? xdr_load_u64(p) : 0;
}
static inline int64_t
xdr_get_i64(struct xdr *x)
{
    return (int64_t)xdr_get_u64(x);
}

/* 0 or 1, nothing else: the marks of lists. */
static inline bool
xdr_get_bool(struct xdr *x)
{
    uint32_t v = xdr_get_u32(x);

    if (v > 1)
        xdr_fail(x, -EBADMSG);
    return v == 1;
}

/* 16 bytes, copied; gfid_null after an error. */
static inline void
xdr_get_gfid(struct xdr *x, struct gfid *out)
{
    const char *p = xdr_take(x, GFID_BYTES);

    if (p)
        memcpy(out, p, GFID_BYTES);
    else
        *out = gfid_null;
}

/* Text. The NUL goes into the first pad byte or, if there is none, the text moves down by one byte over its
 * length word. Longer than `max`: `too_long` (a negative errno) sticks; a NUL inside it: -EINVAL. *out is
 * never NULL. */
void xdr_get_string(struct xdr *x, const char **out, size_t max, int too_long);

/* Bytes with a length word; they stay in the record. Longer than `max`: -EBADMSG. */
const void *xdr_get_opaque(struct xdr *x, size_t max, uint32_t *len);

/* Everything that is left in all pieces. */
size_t xdr_left_total(const struct xdr *x);

/* Makes the next `n` bytes contiguous, on the arena if they span pieces: -EBADMSG if the record is shorter,
 * -ENOMEM. */
void xdr_pull(struct xdr *x, size_t n);

/* ---- encoding -------------------------------------------------------------------------------- */

/* All of these: -ENOBUFS. */
static inline void
xdr_put_u32(struct xdr *x, uint32_t v)
{
    char *p = xdr_room(x, 4);

    if (p)
        xdr_store_u32(p, v);
}
static inline void
xdr_put_i32(struct xdr *x, int32_t v)
{
    xdr_put_u32(x, (uint32_t)v);
}
static inline void
xdr_put_u64(struct xdr *x, uint64_t v)
{
    char *p = xdr_room(x, 8);

    if (p)
        xdr_store_u64(p, v);
}
static inline void
xdr_put_i64(struct xdr *x, int64_t v)
{
    xdr_put_u64(x, (uint64_t)v);
}
static inline void
xdr_put_gfid(struct xdr *x, const struct gfid *g)
{
    char *p = xdr_room(x, GFID_BYTES);

    if (p)
        memcpy(p, g, GFID_BYTES);
}

/* Bytes without a length word, padded with zeros to a multiple of 4. */
void xdr_put_bytes(struct xdr *x, const void *bytes, size_t len);
/* With a length word. */
void xdr_put_opaque(struct xdr *x, const void *bytes, uint32_t len);
/* NULL is sent as the empty text. */
void xdr_put_string(struct xdr *x, const char *text);

/* The bytes that xdr_put_opaque() and xdr_put_string() write. */
static inline size_t
xdr_opaque_size(size_t len)
{
    return 4 + xdr_padded(len);
}
static inline size_t
xdr_string_size(const char *text)
{
    return xdr_opaque_size(text ? strlen(text) : 0);
}

#endif
