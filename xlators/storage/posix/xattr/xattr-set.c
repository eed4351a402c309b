/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* setxattr, fsetxattr: set a dict of xattrs on an object (spec: brick 5.1). */
#include "xlators/storage/posix/xattr/xattr-set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "xlators/storage/posix/xattr/acl-text.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"

/* ---- one pair -------------------------------------------------------------------------------- */

/* Returns the bytes to store for a typed value. Numbers are stored as text with its NUL, as in stock's
 * memory. */
static int
pair_bytes(const struct dict_pair *p, char number[32], const void **bytes, size_t *len)
{
    switch (p->type) {
    case DICT_STR:
    case DICT_PTR:
    case DICT_UNTYPED:
        *bytes = p->v.bytes;
        *len = p->len;
        return 0;
    case DICT_INT:
        *len = (size_t)snprintf(number, 32, "%lld", (long long)p->v.i) + 1;
        break;
    case DICT_UINT:
        *len = (size_t)snprintf(number, 32, "%llu", (unsigned long long)p->v.u) + 1;
        break;
    case DICT_GFID:
        *bytes = p->v.gfid.b;
        *len = GFID_BYTES;
        return 0;
    default:
        return -EINVAL;
    }
    *bytes = number;
    return 0;
}

/* Under the inode's lock, so that an xattrop that has read the old value does not overwrite the new value
 * with its sum. */
static int
set_stored(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct dict_pair *p,
           int flags)
{
    struct posix_inode *pi = posix_inode_get(xl, inode);
    char number[32];
    const void *bytes;
    size_t len;

    if (pi == NULL)
        return -ENOMEM;
    int err = pair_bytes(p, number, &bytes, &len);
    if (err)
        return err;
    pthread_mutex_lock(&pi->change_lock);
    err = posix_obj_setxattr(obj, p->key, bytes, len, flags);
    pthread_mutex_unlock(&pi->change_lock);
    return err;
}

/* The reply has the stored form, because a client that caches ACLs has only seen the text. */
static int
set_acl_text(struct call_stack *stk, struct posix_obj *obj, const struct dict_pair *p, int flags)
{
    const bool is_default = p->key_id == DICT_KEY_ACL_DEFAULT_TEXT;
    const char *text = dict_pair_str(p);
    unsigned char acl[ACL_BYTES_MAX];
    char copy[4096];

    if (text == NULL) {
        /* setfattr sends the text as bytes, without a NUL. */
        bool has_bytes = p->type == DICT_PTR || p->type == DICT_UNTYPED;
        if (!has_bytes || p->len >= sizeof copy)
            return -EINVAL;
        memcpy(copy, p->v.bytes, p->len);
        copy[p->len] = '\0';
        text = copy;
    }
    ssize_t n = acl_from_text(text, acl);
    if (n < 0)
        return (int)n;
    int err =
        posix_obj_setxattr(obj, is_default ? POSIX_ACL_DEFAULT : POSIX_ACL_ACCESS, acl, (size_t)n, flags);
    if (err)
        return err;
    struct dict *x = reply_xdata(stk);
    return x ? dict_set_bytes(x, is_default ? DICT_KEY_ACL_DEFAULT : DICT_KEY_ACL_ACCESS, acl, (uint32_t)n)
             : -ENOMEM;
}

/* Merges the times: the later of each wins (brick 3.4). */
static int
set_mdata(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct dict_pair *p)
{
    struct mdata m;

    if (p->type == DICT_MDATA)
        return posix_mdata_merge(xl, obj, inode, p->v.mdata);
    if (p->type != DICT_PTR && p->type != DICT_UNTYPED)
        return -EINVAL;
    int err = posix_mdata_decode(p->v.bytes, p->len, &m);
    return err ? err : posix_mdata_merge(xl, obj, inode, &m);
}

/* Sets one pair of a dict by the rules of its key (brick 5.1). flags: XATTR_CREATE, XATTR_REPLACE or 0.
 * Returns 0 or -errno. */
static int
posix_xattr_set_pair(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode,
                     const struct dict_pair *p, int flags)
{
    switch (xattr_kind_of(p->key)) {
    case XATTR_IDENTITY:
    case XATTR_IGNORED:
        return 0;
    case XATTR_GFID2PATH:
        return -ENOTSUP;
    case XATTR_VIRTUAL:
        return -EACCES;
    case XATTR_BITROT:
        return -EINVAL;
    case XATTR_MDATA:
    case XATTR_MDATA_FIRST:
        return set_mdata(xl, obj, inode, p);
    case XATTR_ACL_TEXT:
        return set_acl_text(stk, obj, p, flags);
    case XATTR_NO_NAMESPACE:
        return -ENOTSUP;
    case XATTR_QUOTA:
        if (xattr_is_quota_command(p->key, &stk->caller))
            return -ENOTSUP;
        return set_stored(xl, obj, inode, p, flags);
    default:
        return set_stored(xl, obj, inode, p, flags);
    }
}

/* ---- the whole dict -------------------------------------------------------------------------- */

/* DHT's heal of a directory (sync_backend_xattrs): removes the users' xattrs that the dict does not name. The
 * dict has been set before, so no xattr that stays is missing in between. */
static int
remove_unnamed(struct posix_obj *obj, const struct dict *wanted, struct arena *arena)
{
    char room[1024], *names;
    ssize_t len = posix_xattr_names(obj, room, sizeof room, arena, &names);

    if (len < 0)
        return (int)len;
    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        if (!xattr_is_synced(name) || dict_find_text(wanted, name) != NULL)
            continue;
        int err = posix_obj_removexattr(obj, name);
        if (err && err != -ENODATA)
            return err;
    }
    return 0;
}

static int
set_dict(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode)
{
    int flags = (int)stk->call.flags & (XATTR_CREATE | XATTR_REPLACE);

    dict_for_each (p, stk->call.dict) {
        int err = posix_xattr_set_pair(xl, stk, obj, inode, p, flags);
        if (err)
            return err;
    }
    if (stk->call.fop == FOP_setxattr && dict_get_flag(stk->call.xdata, DICT_KEY_SYNC_BACKEND_XATTRS))
        return remove_unnamed(obj, stk->call.dict, &stk->arena);
    return 0;
}

/* Syncs the object that a call has changed. */
static int
make_durable(struct xlator *xl, struct posix_obj *obj, struct inode *inode)
{
    int fd = obj->fd;
    struct stat st;

    if (fd < 0) {
        if (!S_ISREG(inode->type) && !S_ISDIR(inode->type))
            return 0; /* has no contents that could be opened and synced */
        fd = S_ISDIR(inode->type) ? posix_obj_open(obj, O_RDONLY | O_DIRECTORY, 0)
                                  : posix_obj_open_file(xl, obj, inode, O_RDONLY, &st);
        if (fd < 0)
            return fd;
    }
    worker_block_begin();
    int err = fsync(fd) < 0 ? -errno : 0;
    worker_block_end();
    if (obj->fd < 0)
        close(fd);
    return err;
}

int
posix_xattr_change_object(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                          struct inode *inode, posix_xattr_change change)
{
    struct iatt pre, post;

    int err = posix_iatt(xl, obj, inode, &pre, NULL);
    if (err == 0)
        err = change(xl, stk, obj, inode);
    if (err == 0)
        err = posix_iatt(xl, obj, inode, &post, NULL);
    if (err == 0)
        err = posix_mdata_update(xl, &stk->caller, obj, inode, &post);
    if (err == 0 && dict_has(stk->call.xdata, DICT_KEY_DURABLE_OP))
        err = make_durable(xl, obj, inode);
    if (err)
        return err;
    struct dict *x = reply_xdata(stk);
    if (x == NULL || dict_set_iatt(x, DICT_KEY_PRESTAT, &pre) != 0 ||
        dict_set_iatt(x, DICT_KEY_POSTSTAT, &post) != 0 ||
        dict_set_iatt(x, DICT_KEY_IATT_IN_XATTR, &post) != 0)
        return -ENOMEM;
    return XL_DONE;
}

xl_verdict
posix_fop_setxattr(struct xlator *xl, struct call_stack *stk)
{
    int err = posix_reserve_check(xl, stk);

    if (err)
        return err;
    POSIX_OBJ(obj);
    err = posix_obj_of_loc(xl, &stk->call.loc, &obj);
    return err ? err : posix_xattr_change_object(xl, stk, &obj, stk->call.loc.inode, set_dict);
}

xl_verdict
posix_fop_fsetxattr(struct xlator *xl, struct call_stack *stk)
{
    int err = posix_reserve_check(xl, stk);

    if (err)
        return err;
    POSIX_OBJ(obj);
    err = posix_obj_of_fd(xl, stk->call.fd, &obj);
    return err ? err : posix_xattr_change_object(xl, stk, &obj, stk->call.fd->inode, set_dict);
}
