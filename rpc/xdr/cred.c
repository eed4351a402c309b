/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/cred.h"

enum {
    V1_GROUP_SLOTS = 16,
    V1_OWNER_BYTES = 8,
    /* Groups and owner bytes share the rest of 400 bytes behind the fixed part; each owner byte counts as a
       word. */
    V2_WORDS = 95,
    V3_WORDS = CRED_GROUPS_MAX,
    UNIX_NAME_MAX = 255,
    UNIX_GROUPS_MAX = 16,
};

/* Reads `count` groups into the arena, in host order. The record keeps its bytes, because they identify the
 * client at login. */
static int
get_groups(struct xdr *x, uint32_t count, struct caller *c)
{
    const char *place = xdr_take(x, count * sizeof(uint32_t));
    uint32_t *groups;

    if (!place)
        return -EACCES;
    if (count == 0)
        return 0;
    groups = arena_alloc(x->arena, count * sizeof *groups);
    if (!groups)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        groups[i] = xdr_load_u32(place + i * sizeof *groups);
    c->groups = groups;
    c->group_count = count;
    return 0;
}

/* The common end of v2 and v3. An owner that is too long is refused, a group list that is too long is cut. */
static int
get_groups_and_owner(struct xdr *x, uint32_t words, struct caller *c)
{
    uint32_t count = xdr_get_u32(x);
    uint32_t owner_bytes;
    const char *owner;
    int err;

    if (count > xdr_left(x) / sizeof(uint32_t))
        return -EACCES;
    err = get_groups(x, count, c);
    if (err)
        return err;
    owner_bytes = xdr_left(x) ? xdr_get_u32(x) : 0;
    if (owner_bytes > (count < words ? words - count : 0))
        return -EACCES;
    if (c->group_count > words - owner_bytes)
        c->group_count = words - owner_bytes;
    owner = xdr_take(x, owner_bytes);
    if (!owner)
        return -EACCES;
    c->lk_owner = (struct lk_owner){owner_bytes, (const uint8_t *)owner};
    return 0;
}

static int
get_v3(struct xdr *x, struct caller *c)
{
    c->pid = xdr_get_i32(x);
    c->uid = xdr_get_u32(x);
    c->gid = xdr_get_u32(x);
    c->time_flags = xdr_get_u32(x);
    c->ctime_nsec = xdr_get_u32(x);
    c->ctime_sec = xdr_get_i64(x);
    return get_groups_and_owner(x, V3_WORDS, c);
}

static int
get_v2(struct xdr *x, struct caller *c)
{
    c->pid = xdr_get_i32(x);
    c->uid = xdr_get_u32(x);
    c->gid = xdr_get_u32(x);
    return get_groups_and_owner(x, V2_WORDS, c);
}

/* The owner travels as a number whose lowest byte is the first. */
static int
get_v1(struct xdr *x, struct caller *c)
{
    uint64_t number = xdr_get_u64(x);
    uint8_t *owner = arena_alloc(x->arena, V1_OWNER_BYTES);
    uint32_t count;

    if (!owner)
        return -ENOMEM;
    for (int i = 0; i < V1_OWNER_BYTES; i++)
        owner[i] = (uint8_t)(number >> 8 * i);
    c->lk_owner = (struct lk_owner){V1_OWNER_BYTES, owner};
    c->pid = xdr_get_i32(x);
    c->uid = xdr_get_u32(x);
    c->gid = xdr_get_u32(x);
    count = xdr_get_u32(x);
    return count > V1_GROUP_SLOTS ? -EACCES : get_groups(x, count, c);
}

static int
get_unix(struct xdr *x, struct caller *c)
{
    uint32_t name_bytes, count;

    (void)xdr_get_u32(x); /* stamp */
    (void)xdr_get_opaque(x, UNIX_NAME_MAX, &name_bytes);
    c->uid = xdr_get_u32(x);
    c->gid = xdr_get_u32(x);
    count = xdr_get_u32(x);
    return x->error || count > UNIX_GROUPS_MAX ? -EACCES : get_groups(x, count, c);
}

/* Decodes a glusterfs body that is shorter than its structure as if zeros followed (wire 1.5). */
static int
get_short(uint32_t flavor, const char *body, uint32_t bytes, struct caller *c, struct arena *arena)
{
    char *whole = arena_zalloc(arena, RPC_AUTH_BYTES_MAX);

    if (!whole)
        return -ENOMEM;
    memcpy(whole, body, bytes);
    return cred_decode(flavor, whole, RPC_AUTH_BYTES_MAX, c, arena);
}

static int
decode(uint32_t flavor, struct xdr *x, struct caller *c)
{
    switch (flavor) {
    case CRED_GLUSTERFS_V3:
        return get_v3(x, c);
    case CRED_GLUSTERFS_V2:
        return get_v2(x, c);
    case CRED_GLUSTERFS_V1:
        return get_v1(x, c);
    case CRED_UNIX:
        return get_unix(x, c);
    default: /* none; an unknown flavor counts as none */
        return 0;
    }
}

/* Whether a body is shorter than its flavor's fixed part, or than its counts announce. */
static bool
is_short(uint32_t flavor, const char *body, uint32_t bytes)
{
    uint32_t fixed, groups;

    switch (flavor) {
    case CRED_GLUSTERFS_V3:
        fixed = 28;
        break;
    case CRED_GLUSTERFS_V2:
        fixed = 12;
        break;
    case CRED_GLUSTERFS_V1:
        return bytes < 88;
    default:
        return false;
    }
    if (bytes < fixed + 8)
        return true;
    groups = xdr_load_u32(body + fixed);
    if (groups > (bytes - fixed - 8) / 4)
        return true;
    return xdr_load_u32(body + fixed + 4 + groups * 4) > bytes - fixed - 8 - groups * 4;
}

/* The kernel reads 0xffffffff as "leave unchanged": a new object with this owner would stay root's. */
static bool
has_real_ids(const struct caller *c)
{
    bool is_real = c->uid != UINT32_MAX && c->gid != UINT32_MAX;

    for (uint32_t i = 0; i < c->group_count; i++)
        is_real &= c->groups[i] != UINT32_MAX;
    return is_real;
}

int
cred_decode(uint32_t flavor, const char *body, uint32_t bytes, struct caller *c, struct arena *arena)
{
    struct xdr x;
    int err;

    if (bytes < RPC_AUTH_BYTES_MAX && is_short(flavor, body, bytes))
        return get_short(flavor, body, bytes, c, arena);
    xdr_init(&x, (char *)body, bytes, arena); /* nothing in here writes to it */
    err = decode(flavor, &x, c);
    if (!err && !has_real_ids(c))
        err = -EACCES;
    if (err)
        *c = (struct caller){0};
    return err;
}

int
cred_encode(uint32_t flavor, const struct caller *c, char *out, size_t size)
{
    uint32_t words = flavor == CRED_GLUSTERFS_V3 ? V3_WORDS : V2_WORDS;
    uint32_t groups = c->group_count;
    struct xdr x;

    if (flavor != CRED_GLUSTERFS_V3 && flavor != CRED_GLUSTERFS_V2)
        return -EINVAL;
    if (c->lk_owner.len > words)
        return -EINVAL;
    if (groups > words - c->lk_owner.len)
        groups = words - c->lk_owner.len;
    xdr_init(&x, out, size, NULL);
    xdr_put_i32(&x, c->pid);
    xdr_put_u32(&x, c->uid);
    xdr_put_u32(&x, c->gid);
    if (flavor == CRED_GLUSTERFS_V3) {
        xdr_put_u32(&x, c->time_flags);
        xdr_put_u32(&x, c->ctime_nsec);
        xdr_put_i64(&x, c->ctime_sec);
    }
    xdr_put_u32(&x, groups);
    for (uint32_t i = 0; i < groups; i++)
        xdr_put_u32(&x, c->groups[i]);
    xdr_put_opaque(&x, c->lk_owner.bytes, c->lk_owner.len);
    return x.error ? x.error : (int)(x.at - out);
}
