/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The dict of version 400 (spec: wire 4.2): xdr_size, count, npairs, then key, tag and value of each pair.
 *
 * Nothing is allocated for a pair count that the bytes at hand cannot hold. Keys, texts and raw bytes stay in
 * the record; keys must bring their NUL, values need not (dict_get_str checks).
 */
#include "rpc/xdr/xdr-types.h"

enum {
    HEAD_BYTES = 12,
    NULL_COUNT = -1,
    PAIR_BYTES_MIN = 8 + 4 + 4, /* key of one character, tag, an empty value */
};

static void
typed_dict_get_key(struct xdr *x, struct dict_pair *pair)
{
    uint32_t len;
    const char *key = xdr_get_opaque(x, DICT_KEY_LEN_MAX + 1, &len);

    if (key && (len == 0 || memchr(key, '\0', len) != key + len - 1)) {
        xdr_fail(x, -EBADMSG);
        key = NULL;
    }
    pair->key = key;
    pair->key_len = key ? (uint16_t)(len - 1) : 0;
}

static void
get_value(struct xdr *x, struct dict_pair *pair)
{
    struct iatt *iatt, no_iatt;
    struct mdata *mdata, no_mdata;

    switch (pair->type) {
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE: /* its bits */
        pair->v.u = xdr_get_u64(x);
        break;
    case DICT_UNTYPED:
    case DICT_STR:
    case DICT_PTR:
        pair->v.bytes = xdr_get_opaque(x, UINT32_MAX, &pair->len);
        break;
    case DICT_GFID:
        xdr_get_gfid(x, &pair->v.gfid);
        break;
    case DICT_IATT:
        iatt = x->error ? NULL : x->skips_dicts ? &no_iatt : arena_alloc(x->arena, sizeof *iatt);
        if (iatt)
            xdr_get_iatt(x, iatt);
        else
            xdr_fail(x, -ENOMEM);
        pair->v.iatt = x->skips_dicts ? NULL : iatt;
        break;
    case DICT_MDATA:
        mdata = x->error ? NULL : x->skips_dicts ? &no_mdata : arena_alloc(x->arena, sizeof *mdata);
        if (mdata)
            xdr_get_mdata(x, mdata);
        else
            xdr_fail(x, -ENOMEM);
        pair->v.mdata = x->skips_dicts ? NULL : mdata;
        break;
    default:
        xdr_fail(x, -EBADMSG);
    }
}

static struct dict *
get_pairs(struct xdr *x, uint32_t npairs)
{
    struct dict *d;

    if (npairs > xdr_left(x) / PAIR_BYTES_MIN || npairs > DICT_PAIRS_MAX) {
        xdr_fail(x, -EBADMSG);
        return NULL;
    }
    d = x->skips_dicts ? NULL : dict_new(x->arena);
    if (!d && !x->skips_dicts)
        xdr_fail(x, -ENOMEM);
    for (uint32_t i = 0; i < npairs && !x->error; i++) {
        struct dict_pair pair = {0};
        uint32_t type;

        typed_dict_get_key(x, &pair);
        type = xdr_get_u32(x);
        pair.type = type <= DICT_MDATA ? (uint8_t)type : 0;
        get_value(x, &pair);
        if (!x->error && !x->skips_dicts && !dict_append(d, &pair))
            xdr_fail(x, -ENOMEM);
    }
    return x->error ? NULL : d;
}

/* Where a payload follows, the pairs end where the size word says, to a multiple of 4 (wire 4.2, 6.4). */
static struct dict *
get_sized_pairs(struct xdr *x, uint32_t size, uint32_t npairs)
{
    struct xdr pairs;
    struct dict *d;

    xdr_pull(x, xdr_padded(size));
    pairs = *x;
    if (!xdr_take(x, xdr_padded(size)))
        return NULL;
    pairs.end = pairs.at + size;
    pairs.more_count = 0;
    d = get_pairs(&pairs, npairs);
    xdr_fail(x, pairs.error);
    return d;
}

struct dict *
xdr_get_dict(struct xdr *x)
{
    uint32_t size, npairs;
    int32_t count;
    struct dict *d;

    if (x->more_count)
        xdr_pull(x, HEAD_BYTES);
    size = xdr_get_u32(x);
    count = xdr_get_i32(x);
    npairs = xdr_get_u32(x);
    if (x->error)
        return NULL;
    if (count >= 0 && (uint32_t)count != npairs) {
        xdr_fail(x, -EBADMSG);
        return NULL;
    }
    if (count < 0 && npairs == 0 && !(x->dicts_are_sized && size))
        return NULL;
    d = x->dicts_are_sized ? get_sized_pairs(x, size, npairs) : get_pairs(x, npairs);
    return count < 0 ? NULL : d;
}

static void
typed_dict_put_value(struct xdr *x, const struct dict_pair *pair)
{
    switch ((enum dict_type)pair->type) {
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE:
        xdr_put_u64(x, pair->v.u);
        break;
    case DICT_UNTYPED:
    case DICT_STR:
    case DICT_PTR:
        xdr_put_opaque(x, pair->v.bytes, pair->len);
        break;
    case DICT_GFID:
        xdr_put_gfid(x, &pair->v.gfid);
        break;
    case DICT_IATT:
        xdr_put_iatt(x, pair->v.iatt);
        break;
    case DICT_MDATA:
        xdr_put_mdata(x, pair->v.mdata);
        break;
    }
}

void
xdr_put_dict(struct xdr *x, const struct dict *d)
{
    char *head = xdr_room(x, HEAD_BYTES);

    if (!head)
        return;
    if (!d) {
        xdr_store_u32(head, 0);
        xdr_store_u32(head + 4, (uint32_t)NULL_COUNT);
        xdr_store_u32(head + 8, 0);
        return;
    }
    dict_for_each(pair, d)
    {
        xdr_put_opaque(x, pair->key, pair->key_len + 1u);
        xdr_put_u32(x, pair->type);
        typed_dict_put_value(x, pair);
    }
    xdr_store_u32(head, (uint32_t)(x->at - head) - HEAD_BYTES);
    xdr_store_u32(head + 4, d->count);
    xdr_store_u32(head + 8, d->count);
}

static size_t
value_size(const struct dict_pair *pair)
{
    switch ((enum dict_type)pair->type) {
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE:
        return 8;
    case DICT_UNTYPED:
    case DICT_STR:
    case DICT_PTR:
        return xdr_opaque_size(pair->len);
    case DICT_GFID:
        return GFID_BYTES;
    case DICT_IATT:
        return IATT_XDR_BYTES;
    case DICT_MDATA:
        return MDATA_XDR_BYTES;
    }
    return 0;
}

size_t
xdr_dict_size(const struct dict *d)
{
    size_t n = HEAD_BYTES;

    dict_for_each(pair, d) n += xdr_opaque_size(pair->key_len + 1u) + 4 + value_size(pair);
    return n;
}
