/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Extended attributes. The volume's own xattrs cannot be changed, and are not listed. Trusted xattrs are
 * listed for root only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"
#include "data/dict.h"

struct xattr_request {
    struct request r;
    struct glfs_fd *fd; /* or `path` */
    const char *path;
    int how; /* PLACE_* */
    enum fop fop, file_fop;
    const char *name; /* NULL: list */
    const void *value;
    char *out;
    size_t size;
    int flags;
};

static struct xattr_request *
xattr_of(struct request *r)
{
    return caa_container_of(r, struct xattr_request, r);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool is_prefix;
    int get, set; /* errno; 0: the brick decides. `set` is for removing, too */
} api_rules[] = {
    {"trusted.gfid", false, 0, EPERM},
    {"trusted.glusterfs.volume-id", false, 0, EPERM},
    {"trusted.glusterfs.dht", true, EOPNOTSUPP, EPERM},
    {"trusted.glusterfs.mdata", false, 0, EPERM},
    {"trusted.afr.", true, ENODATA, EPERM},
    {"trusted.ec.", true, ENODATA, EPERM},
};

/* Returns 0 or -errno. */
static int
name_rule(const struct xattr_request *q)
{
    bool sets = q->fop != FOP_getxattr;

    if (!q->name || !*q->name || strlen(q->name) > FOP_NAME_MAX)
        return -(q->name && *q->name ? ERANGE : EINVAL);
    for (size_t i = 0; i < sizeof api_rules / sizeof api_rules[0]; i++) {
        const char *name = api_rules[i].name;

        if (api_rules[i].is_prefix ? strncmp(q->name, name, strlen(name)) == 0 : strcmp(q->name, name) == 0)
            return -(sets ? api_rules[i].set : api_rules[i].get);
    }
    return 0;
}

static bool
is_name_listed(const struct request *r, const struct dict_pair *p)
{
    static const char *const hidden[] = {"trusted.afr.", "trusted.ec.",    "trusted.glusterfs.",
                                         "trusted.gfid", "trusted.pgfid.", "glusterfs."};

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (strncmp(p->key, hidden[i], strlen(hidden[i])) == 0)
            return false;
    }
    return r->caller.uid == 0 || strncmp(p->key, "trusted.", 8) != 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Copies the value, or returns its size if the program gave no buffer. */
static int64_t
copy_bytes_out(struct xattr_request *q, const void *bytes, size_t size)
{
    if (q->size && size > q->size)
        return -ERANGE;
    if (q->size && size)
        memcpy(q->out, bytes, size);
    return (int64_t)size;
}

static int64_t
copy_value_out(struct xattr_request *q, const struct call_stack *stk)
{
    const struct dict_pair *p = dict_find_text(stk->reply.dict, q->name);

    if (!p)
        return -ENODATA;
    if (p->type == DICT_GFID)
        return copy_bytes_out(q, &p->v.gfid, sizeof p->v.gfid);
    if (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED)
        return copy_bytes_out(q, p->v.bytes, p->len);
    return -EIO;
}

static int64_t
copy_names_out(struct xattr_request *q, const struct call_stack *stk)
{
    size_t size = 0;
    char *at = q->out;

    dict_for_each (p, stk->reply.dict)
        size += is_name_listed(&q->r, p) ? p->key_len + 1u : 0;
    if (!q->size || size > q->size)
        return q->size ? -ERANGE : (int64_t)size;
    dict_for_each (p, stk->reply.dict) {
        if (!is_name_listed(&q->r, p))
            continue;
        memcpy(at, p->key, p->key_len + 1u);
        at += p->key_len + 1u;
    }
    return (int64_t)size;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int
put_arguments(const struct xattr_request *q, struct call_stack *stk)
{
    struct fop_call *call = &stk->call;

    if (q->fop != FOP_setxattr) {
        call->name = q->name;
        call->has_name = q->name != NULL;
        return 0;
    }
    call->flags = (uint32_t)q->flags;
    call->dict = dict_new(&stk->arena);
    return call->dict ? dict_set_text(call->dict, q->name, DICT_PTR, q->value, (uint32_t)q->size) : -ENOMEM;
}

static int64_t
xattr_wind(struct xattr_request *q, struct call_stack *stk)
{
    int64_t ret = stk ? put_arguments(q, stk) : -ENOMEM;

    if (!ret)
        ret = request_wind(&q->r, stk);
    if (ret >= 0)
        ret = q->fop != FOP_getxattr ? 0 : q->name ? copy_value_out(q, stk) : copy_names_out(q, stk);
    if (stk)
        call_stack_free(stk);
    return ret;
}

static int64_t
xattr_path_go(struct request *r)
{
    struct xattr_request *q = xattr_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, q->how, &p, NULL);

    if (!ret) {
        struct call_stack *stk = request_call(r, q->fop);

        if (stk)
            stk->call.loc.inode = inode_ref(p.inode);
        ret = xattr_wind(q, stk);
    }
    place_release(&p);
    return ret;
}

static int64_t
xattr_file_go(struct request *r)
{
    struct xattr_request *q = xattr_of(r);

    return xattr_wind(q, request_call_on(r, q->file_fop, q->fd));
}

/* Runs the request by path if the volume is given, else by file. */
static ssize_t
xattr_run(struct xattr_request *q, struct glfs *fs, bool lists)
{
    int err = lists ? 0 : name_rule(q);

    if (!err && q->size && !q->out && !q->value)
        err = -EINVAL;
    if (!err && q->size > UINT32_MAX)
        err = -E2BIG;
    if (err)
        return (ssize_t)request_result(err);
    return q->fd ? request_run_on(&q->r, q->fd, xattr_file_go) : request_run(&q->r, fs, xattr_path_go);
}

static int
xattr_no_file(void)
{
    errno = EBADF;
    return -1;
}

/* ---- setting --------------------------------------------------------------------------------- */

int
api_setxattr(struct glfs *fs, const struct glfs_object *at, const char *path, int how, const char *name,
             const void *value, size_t size, int flags)
{
    struct xattr_request q = {.r.at = at,
                              .path = path,
                              .how = how,
                              .fop = FOP_setxattr,
                              .name = name,
                              .value = value,
                              .size = size,
                              .flags = flags};

    return (int)xattr_run(&q, fs, false);
}

GFAPI int
glfs_setxattr(struct glfs *fs, const char *path, const char *name, const void *value, size_t size, int flags)
{
    return api_setxattr(fs, NULL, path, PLACE_FOLLOW, name, value, size, flags);
}

GFAPI int
glfs_lsetxattr(struct glfs *fs, const char *path, const char *name, const void *value, size_t size, int flags)
{
    return api_setxattr(fs, NULL, path, 0, name, value, size, flags);
}

GFAPI int
glfs_fsetxattr(struct glfs_fd *fd, const char *name, const void *value, size_t size, int flags)
{
    struct xattr_request q = {.fd = fd,
                              .fop = FOP_setxattr,
                              .file_fop = FOP_fsetxattr,
                              .name = name,
                              .value = value,
                              .size = size,
                              .flags = flags};

    return fd ? (int)xattr_run(&q, NULL, false) : xattr_no_file();
}

/* ---- getting --------------------------------------------------------------------------------- */

ssize_t
api_getxattr(struct glfs *fs, const struct glfs_object *at, const char *path, int how, const char *name,
             void *value, size_t size)
{
    struct xattr_request q = {.r.at = at,
                              .path = path,
                              .how = how,
                              .fop = FOP_getxattr,
                              .name = name,
                              .out = value,
                              .size = size};

    return xattr_run(&q, fs, !name);
}

/* A NULL name is an error, unless the program lists names. */
static ssize_t
get_by_path(struct glfs *fs, const char *path, int how, const char *name, void *value, size_t size,
            bool lists)
{
    return api_getxattr(fs, NULL, path, how, name || lists ? name : "", value, size);
}

static ssize_t
get_by_file(struct glfs_fd *fd, const char *name, void *value, size_t size, bool lists)
{
    struct xattr_request q = {.fd = fd,
                              .fop = FOP_getxattr,
                              .file_fop = FOP_fgetxattr,
                              .name = name,
                              .out = value,
                              .size = size};

    return fd ? xattr_run(&q, NULL, lists) : xattr_no_file();
}

GFAPI ssize_t
glfs_getxattr(struct glfs *fs, const char *path, const char *name, void *value, size_t size)
{
    return get_by_path(fs, path, PLACE_FOLLOW, name, value, size, false);
}

GFAPI ssize_t
glfs_lgetxattr(struct glfs *fs, const char *path, const char *name, void *value, size_t size)
{
    return get_by_path(fs, path, 0, name, value, size, false);
}

GFAPI ssize_t
glfs_fgetxattr(struct glfs_fd *fd, const char *name, void *value, size_t size)
{
    return get_by_file(fd, name, value, size, false);
}

GFAPI ssize_t
glfs_listxattr(struct glfs *fs, const char *path, void *names, size_t size)
{
    return get_by_path(fs, path, PLACE_FOLLOW, NULL, names, size, true);
}

GFAPI ssize_t
glfs_llistxattr(struct glfs *fs, const char *path, void *names, size_t size)
{
    return get_by_path(fs, path, 0, NULL, names, size, true);
}

GFAPI ssize_t
glfs_flistxattr(struct glfs_fd *fd, void *names, size_t size)
{
    return get_by_file(fd, NULL, names, size, true);
}

/* ---- removing -------------------------------------------------------------------------------- */

int
api_removexattr(struct glfs *fs, const struct glfs_object *at, const char *path, int how, const char *name)
{
    struct xattr_request q = {
        .r.at = at, .path = path, .how = how, .fop = FOP_removexattr, .name = name};

    return (int)xattr_run(&q, fs, false);
}

GFAPI int
glfs_removexattr(struct glfs *fs, const char *path, const char *name)
{
    return api_removexattr(fs, NULL, path, PLACE_FOLLOW, name);
}

GFAPI int
glfs_lremovexattr(struct glfs *fs, const char *path, const char *name)
{
    return api_removexattr(fs, NULL, path, 0, name);
}

GFAPI int
glfs_fremovexattr(struct glfs_fd *fd, const char *name)
{
    struct xattr_request q = {.fd = fd, .fop = FOP_removexattr, .file_fop = FOP_fremovexattr, .name = name};

    return fd ? (int)xattr_run(&q, NULL, false) : xattr_no_file();
}
