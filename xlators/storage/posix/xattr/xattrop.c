/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattrop, fxattrop: change counters in xattrs in place (spec: brick 7.1). AFR, EC, DHT, shard and quota keep
 * their counters with these calls.
 *
 * Values are arrays of big-endian numbers as long as the request's. A shorter stored value counts as filled
 * up with zeros, a missing one as all zeros. The whole dict is processed under the inode's lock: read, change
 * and write of a key are one step. A crash between two keys is covered by AFR's order of calls. */
#include "xlators/storage/posix/xattr/xattrop.h"

#include <errno.h>
#include <string.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"

#define VALUE_MAX 65536u /* the kernel's limit of an xattr */

static bool
is_zero(const void *bytes, size_t len)
{
    const char *p = bytes;

    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static uint64_t
load(const unsigned char *p, unsigned width)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < width; i++)
        v = v << 8 | p[i];
    return v;
}

static void
store_number(unsigned char *p, unsigned width, uint64_t v)
{
    for (unsigned i = width; i > 0; i--, v >>= 8)
        p[i - 1] = (unsigned char)v;
}

/* Returns how an operation reads its request: the width of a number, and whether defaults follow the deltas.
 */
static int
op_shape(uint32_t op, unsigned *width, bool *has_default)
{
    *has_default = op == XATTROP_ADD_DEFAULT || op == XATTROP_ADD64_DEFAULT;
    switch (op) {
    case XATTROP_ADD:
    case XATTROP_ADD_DEFAULT:
        *width = 4;
        return 0;
    case XATTROP_ADD64:
    case XATTROP_ADD64_DEFAULT:
        *width = 8;
        return 0;
    default: /* or, and: not implemented by bricks; others are unknown */
        return -EINVAL;
    }
}

ssize_t
xattrop_result_len(uint32_t op, const void *request, size_t len)
{
    unsigned width = 1;
    bool has_default = false;
    int err = op_shape(op, &width, &has_default);

    if (op == XATTROP_GET_AND_SET)
        return (ssize_t)len;
    if (err)
        return is_zero(request, len) ? (ssize_t)len : err; /* only reads */
    if (has_default && len % 2 != 0)
        return -EINVAL;
    size_t result = has_default ? len / 2 : len;
    return result % width == 0 ? (ssize_t)result : -EINVAL;
}

void
xattrop_apply(uint32_t op, const void *request, unsigned char *value, size_t len)
{
    const unsigned char *delta = request, *fallback = delta + len;
    unsigned width;
    bool has_default;

    if (op_shape(op, &width, &has_default) != 0)
        return;
    for (size_t at = 0; at < len; at += width) {
        uint64_t now = load(value + at, width);
        if (has_default && now == 0)
            now = load(fallback + at, width);
        store_number(value + at, width, now + load(delta + at, width));
    }
}

/* ---- one key --------------------------------------------------------------------------------- */

/* The names that the object has. AFR names a counter for each replica, and on a healthy file only one of them
 * exists. From three keys on, one list costs less than reading each. */
#define LIST_FROM 3

struct stored_names {
    char room[1024], *names;
    ssize_t len; /* -1: not listed, read each key */
};

static bool
may_be_stored(const struct stored_names *s, const char *key)
{
    if (s->len < 0)
        return true;
    for (const char *name = s->names; name < s->names + s->len; name += strlen(name) + 1) {
        if (strcmp(name, key) == 0)
            return true;
    }
    return false;
}

/* Reads the stored value into `value`, filled up with zeros. Returns 1: it exists; 0: it does not; -ERANGE:
 * longer than len. */
static int
read_stored(struct posix_obj *obj, const struct stored_names *s, const char *key, unsigned char *value,
            size_t len)
{
    memset(value, 0, len);
    if (!may_be_stored(s, key))
        return 0;
    ssize_t n = posix_obj_getxattr(obj, key, value, len);
    if (n == -ENODATA)
        return 0;
    if (n < 0)
        return (int)n;
    if ((size_t)n > len) /* len is 0: the call only asked for the length */
        return -ERANGE;
    return 1;
}

static int
change_key(struct posix_obj *obj, struct stored_names *s, uint32_t op, const struct dict_pair *p,
           struct dict *reply)
{
    const size_t request_len = p->len;
    ssize_t len = xattrop_result_len(op, p->v.bytes, request_len);

    if (len < 0)
        return (int)len;
    unsigned char *value = arena_alloc(reply->arena, (size_t)len + 1);
    if (value == NULL)
        return -ENOMEM;
    int was_there = read_stored(obj, s, p->key, value, (size_t)len);
    if (was_there < 0)
        return was_there;
    if (op != XATTROP_GET_AND_SET && is_zero(p->v.bytes, request_len))
        return posix_dict_add(reply, p->key, value, (size_t)len);
    if (!was_there)
        s->len = -1; /* the list becomes out of date: a dict may name a key twice */
    if (op == XATTROP_GET_AND_SET) {
        int err = posix_obj_setxattr(obj, p->key, p->v.bytes, request_len, 0);
        if (err || !was_there)
            return err;
    } else {
        xattrop_apply(op, p->v.bytes, value, (size_t)len);
        int err = posix_obj_setxattr(obj, p->key, value, (size_t)len, 0);
        if (err)
            return err;
    }
    return posix_dict_add(reply, p->key, value, (size_t)len);
}

static int
check_key(const struct dict_pair *p)
{
    if (!xattr_has_namespace(p->key))
        return -ENOTSUP;
    switch (xattr_kind_of(p->key)) {
    case XATTR_IDENTITY:
    case XATTR_GFID2PATH:
    case XATTR_MDATA:
        return -EPERM; /* not counters: only the brick sets them */
    default:
        break;
    }
    bool has_bytes = p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED;
    return has_bytes && p->len <= VALUE_MAX ? 0 : -EINVAL;
}

static int
change_keys(struct call_stack *stk, struct posix_obj *obj, struct posix_inode *pi)
{
    struct dict *reply = reply_dict(stk);
    int err = 0;

    if (reply == NULL)
        return -ENOMEM;
    dict_for_each (p, stk->call.dict) {
        err = check_key(p);
        if (err)
            return err;
    }
    struct stored_names s = {.len = -1};
    pthread_mutex_lock(&pi->change_lock);
    if (stk->call.dict != NULL && stk->call.dict->count >= LIST_FROM)
        s.len = posix_xattr_names(obj, s.room, sizeof s.room, &stk->arena, &s.names);
    dict_for_each (p, stk->call.dict) {
        err = change_key(obj, &s, stk->call.flags, p, reply);
        if (err)
            break;
    }
    pthread_mutex_unlock(&pi->change_lock);
    return err;
}

static int
change_object(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode)
{
    struct posix_inode *pi = posix_inode_get(xl, inode);
    int err = pi ? change_keys(stk, obj, pi) : -ENOMEM;

    if (err == 0)
        err = posix_xattr_fill_reply(xl, stk, obj, inode, NULL, POSIX_FILL_XATTROP);
    return err ? err : XL_DONE;
}

xl_verdict
posix_fop_xattrop(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);

    return err ? err : change_object(xl, stk, &obj, stk->call.loc.inode);
}

xl_verdict
posix_fop_fxattrop(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int err = posix_obj_of_fd(xl, stk->call.fd, &obj);

    return err ? err : change_object(xl, stk, &obj, stk->call.fd->inode);
}
