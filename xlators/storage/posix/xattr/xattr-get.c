/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* getxattr, fgetxattr: one xattr by name, or all of them (spec: brick 5.2). */
#include <errno.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/xattr/virtual-xattr.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"

struct getter {
    struct xlator *xl;
    struct call_stack *stk;
    struct posix_obj *obj;
    struct inode *inode;
    struct dict *reply;
};

static ssize_t
get_stored(struct getter *g, const char *key)
{
    const void *value = NULL;
    ssize_t n = posix_xattr_value(g->obj, key, &g->stk->arena, &value);

    if (n < 0)
        return n;
    int err = posix_dict_add(g->reply, key, value, (size_t)n);
    return err ? err : n;
}

static ssize_t
get_mdata(struct getter *g)
{
    const void *value;

    if (!caller_is_internal(&g->stk->caller))
        return -ENODATA;
    if (!posix_conf(g->xl)->ctime)
        return get_stored(g, POSIX_XATTR_MDATA);
    int r = posix_xattr_mdata(g->xl, g->obj, g->inode, &g->stk->arena, &value);
    if (r <= 0)
        return r < 0 ? r : -ENODATA;
    int err = posix_dict_add(g->reply, POSIX_XATTR_MDATA, value, POSIX_MDATA_BYTES);
    return err ? err : POSIX_MDATA_BYTES;
}

static ssize_t
get_acl_text(struct getter *g, const char *key)
{
    bool is_default = strcmp(key, dict_key_text(DICT_KEY_ACL_DEFAULT_TEXT)) == 0;
    char *text;
    ssize_t n = posix_acl_text(g->obj, is_default, &g->stk->arena, &text);

    if (n < 0)
        return n;
    int err = dict_set_text(g->reply, key, DICT_STR, text, (uint32_t)n + 1);
    return err ? err : n;
}

/* Marks that travel in dicts. Some can be requested; the file system has no xattr of the others. */
static ssize_t
get_mark(struct getter *g, const char *key)
{
    if (strcmp(key, dict_key_text(DICT_KEY_OPEN_FD_COUNT)) != 0)
        return get_stored(g, key);
    int err = dict_set_uint(g->reply, DICT_KEY_OPEN_FD_COUNT, atomic_load(&g->inode->open_fds));
    return err;
}

static ssize_t
get_unnamespaced(struct getter *g, const char *key)
{
    struct stat st;

    if (strcmp(key, dict_key_text(DICT_KEY_GET_SIZE)) != 0)
        return posix_obj_getxattr(g->obj, key, NULL, 0); /* the kernel decides the error */
    int err = posix_obj_stat(g->obj, &st);
    return err ? err : dict_set_uint(g->reply, DICT_KEY_GET_SIZE, (uint64_t)st.st_size);
}

static ssize_t
get_key(struct getter *g, const char *key)
{
    switch (xattr_kind_of(key)) {
    case XATTR_IDENTITY:
        return posix_obj_getxattr(g->obj, key, NULL, 0); /* its length, and an empty dict, as stock */
    case XATTR_GFID2PATH:
        return -ENODATA;
    case XATTR_GEOREP:
        return caller_is_georep(&g->stk->caller) ? get_stored(g, key) : -ENODATA;
    case XATTR_MDATA:
        return get_mdata(g);
    case XATTR_ACL_TEXT:
        return get_acl_text(g, key);
    case XATTR_VIRTUAL:
        return posix_virtual_get(g->xl, g->stk, g->obj, g->inode, key);
    case XATTR_IGNORED:
    case XATTR_MDATA_FIRST:
        return get_mark(g, key);
    case XATTR_NO_NAMESPACE:
        return get_unnamespaced(g, key);
    default:
        return get_stored(g, key);
    }
}

/* Returns the size of the last value, as stock does. */
static ssize_t
get_every_key(struct getter *g)
{
    char room[1024], *names;
    ssize_t last = 0, len = posix_xattr_names(g->obj, room, sizeof room, &g->stk->arena, &names);

    if (len < 0)
        return len;
    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        enum xattr_kind kind = xattr_kind_of(name);
        if (xattr_hidden_in_list(kind, &g->stk->caller))
            continue;
        ssize_t n = kind == XATTR_MDATA ? get_mdata(g) : get_stored(g, name);
        if (n == -ENODATA) /* removed since it was listed */
            continue;
        if (n < 0)
            return n;
        last = n;
    }
    return last;
}

static int
get_from(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode)
{
    const char *name = stk->call.name;
    struct getter g = {.xl = xl, .stk = stk, .obj = obj, .inode = inode, .reply = reply_dict(stk)};

    if (g.reply == NULL)
        return -ENOMEM;
    ssize_t n = stk->call.has_name && name != NULL && name[0] != '\0' ? get_key(&g, name) : get_every_key(&g);
    if (n < 0)
        return (int)n;
    int err = posix_xattr_fill_reply(xl, stk, obj, inode, NULL, POSIX_FILL_OTHER);
    if (err)
        return err;
    stk->reply.op_ret = (int32_t)n;
    return XL_DONE;
}

xl_verdict
posix_fop_getxattr(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);

    return err ? err : get_from(xl, stk, &obj, stk->call.loc.inode);
}

xl_verdict
posix_fop_fgetxattr(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int err = posix_obj_of_fd(xl, stk->call.fd, &obj);

    return err ? err : get_from(xl, stk, &obj, stk->call.fd->inode);
}
