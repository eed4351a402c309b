/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/xdr.h"

void
xdr_get_string(struct xdr *x, const char **out, size_t max, int too_long)
{
    uint32_t len = xdr_get_u32(x);
    char *text = xdr_take(x, xdr_padded(len));

    *out = "";
    if (!text)
        return;
    if (len > max) {
        xdr_fail(x, too_long);
        return;
    }
    if (memchr(text, '\0', len)) {
        xdr_fail(x, -EINVAL);
        return;
    }
    if (len % 4 == 0) {
        memmove(text - 1, text, len);
        text--;
    }
    text[len] = '\0';
    *out = text;
}

const void *
xdr_get_opaque(struct xdr *x, size_t max, uint32_t *len)
{
    uint32_t n = xdr_get_u32(x);
    const char *bytes = xdr_take(x, xdr_padded(n));

    if (bytes && n > max) {
        xdr_fail(x, -EBADMSG);
        bytes = NULL;
    }
    *len = bytes ? n : 0;
    return bytes;
}

size_t
xdr_left_total(const struct xdr *x)
{
    size_t n = xdr_left(x);

    for (int i = 0; i < x->more_count; i++)
        n += x->more[i].iov_len;
    return n - x->more_skip;
}

void
xdr_pull(struct xdr *x, size_t n)
{
    size_t have = xdr_left(x);
    char *joined;

    if (have >= n || x->error)
        return;
    if (xdr_left_total(x) < n) {
        xdr_fail(x, -EBADMSG);
        return;
    }
    joined = arena_alloc(x->arena, n);
    if (!joined) {
        xdr_fail(x, -ENOMEM);
        return;
    }
    memcpy(joined, x->at, have);
    while (have < n) {
        size_t part = x->more->iov_len - x->more_skip;

        if (part > n - have)
            part = n - have;
        memcpy(joined + have, (char *)x->more->iov_base + x->more_skip, part);
        have += part;
        x->more_skip += part;
        if (x->more_skip == x->more->iov_len) {
            x->more++;
            x->more_count--;
            x->more_skip = 0;
        }
    }
    x->at = joined;
    x->end = joined + n;
}

void
xdr_put_bytes(struct xdr *x, const void *bytes, size_t len)
{
    size_t padded = xdr_padded(len);
    char *p = xdr_room(x, padded);

    if (!p || !len)
        return;
    xdr_store_u32(p + padded - 4, 0);
    memcpy(p, bytes, len);
}

void
xdr_put_opaque(struct xdr *x, const void *bytes, uint32_t len)
{
    xdr_put_u32(x, len);
    xdr_put_bytes(x, bytes, len);
}

void
xdr_put_string(struct xdr *x, const char *text)
{
    xdr_put_opaque(x, text, text ? (uint32_t)strlen(text) : 0);
}
