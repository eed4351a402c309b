/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The old dict (spec: wire 4.1): carried in an opaque; inside, nothing is aligned, and all values are texts
 * or raw bytes. Numbers travel as decimal text. */
#include <inttypes.h>
#include <stdio.h>

#include "rpc/xdr/xdr-types.h"

enum { NUMBER_TEXT_SIZE = 24, GFID_AS_BYTES = GFID_BYTES };

static const struct dict_pair *
get_pair(struct xdr *x, struct dict *d)
{
    struct dict_pair pair = {.type = DICT_UNTYPED};
    uint32_t key_len = xdr_get_u32(x);
    uint32_t value_len = xdr_get_u32(x);
    const char *key = xdr_take(x, (size_t)key_len + 1);

    if (!key)
        return NULL;
    if (key_len > DICT_KEY_LEN_MAX || memchr(key, '\0', key_len + 1) != key + key_len) {
        xdr_fail(x, -EBADMSG);
        return NULL;
    }
    pair.key = key;
    pair.key_len = (uint16_t)key_len;
    pair.v.bytes = xdr_take(x, value_len);
    pair.len = value_len;
    return pair.v.bytes ? dict_append(d, &pair) : NULL;
}

struct dict *
xdr_get_old_dict(struct xdr *x)
{
    enum { PAIR_BYTES_MIN = 9 };
    uint32_t len, count;
    const char *bytes = xdr_get_opaque(x, UINT32_MAX, &len);
    struct xdr in;
    struct dict *d;

    if (!bytes || len == 0)
        return NULL;
    xdr_init(&in, (char *)bytes, len, x->arena);
    count = xdr_get_u32(&in);
    if (in.error || count > xdr_left(&in) / PAIR_BYTES_MIN || count > DICT_PAIRS_MAX) {
        xdr_fail(x, -EBADMSG);
        return NULL;
    }
    d = dict_new(x->arena);
    if (!d) {
        xdr_fail(x, -ENOMEM);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!get_pair(&in, d)) {
            xdr_fail(x, in.error ? in.error : -ENOMEM);
            return NULL;
        }
    }
    if (xdr_left(&in) != 0)
        xdr_fail(x, -EBADMSG);
    return x->error ? NULL : d;
}

/* The value's bytes; numbers are written into `text`. Attributes have no old form: an empty value. */
static const void *
value_bytes(const struct dict_pair *pair, char text[NUMBER_TEXT_SIZE], uint32_t *len)
{
    switch ((enum dict_type)pair->type) {
    case DICT_INT:
        *len = (uint32_t)snprintf(text, NUMBER_TEXT_SIZE, "%" PRId64, pair->v.i) + 1;
        return text;
    case DICT_UINT:
        *len = (uint32_t)snprintf(text, NUMBER_TEXT_SIZE, "%" PRIu64, pair->v.u) + 1;
        return text;
    case DICT_DOUBLE:
        *len = (uint32_t)snprintf(text, NUMBER_TEXT_SIZE, "%.15g", pair->v.d) + 1;
        return text;
    case DICT_UNTYPED:
    case DICT_STR:
    case DICT_PTR:
        *len = pair->len;
        return pair->v.bytes;
    case DICT_GFID:
        *len = GFID_AS_BYTES;
        return &pair->v.gfid;
    case DICT_IATT:
    case DICT_MDATA:
        break;
    }
    *len = 0;
    return text;
}

static size_t
contents_size(const struct dict *d)
{
    char text[NUMBER_TEXT_SIZE];
    size_t n = 4;
    uint32_t len;

    dict_for_each(pair, d)
    {
        value_bytes(pair, text, &len);
        n += 4 + 4 + pair->key_len + 1u + len;
    }
    return n;
}

void
xdr_put_old_dict(struct xdr *x, const struct dict *d)
{
    char text[NUMBER_TEXT_SIZE];
    size_t size = d ? contents_size(d) : 0;
    char *p;

    xdr_put_u32(x, (uint32_t)size);
    p = xdr_room(x, xdr_padded(size));
    if (!p || !d)
        return;
    memset(p + size, 0, xdr_padded(size) - size);
    xdr_store_u32(p, d->count);
    p += 4;
    dict_for_each(pair, d)
    {
        uint32_t len;
        const void *bytes = value_bytes(pair, text, &len);

        xdr_store_u32(p, pair->key_len);
        xdr_store_u32(p + 4, len);
        memcpy(p + 8, pair->key, pair->key_len + 1u);
        p += 8 + pair->key_len + 1u;
        if (len)
            memcpy(p, bytes, len);
        p += len;
    }
}

size_t
xdr_old_dict_size(const struct dict *d)
{
    return xdr_opaque_size(d ? contents_size(d) : 0);
}
