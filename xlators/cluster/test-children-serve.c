/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The calls that a brick in memory serves, by its disk. */
#include "xlators/cluster/test-children.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/test-must.h"
#include "graph/dir-offset.h"
#include "mem/iobuf.h"
#include "xlators/cluster/test-children-internal.h"

/* ---- serving a call: looking up -------------------------------------------------------------- */

static struct graph *
call_graph(const struct child_call *c)
{
    return c->xl->graph;
}

static void
reply_stats(struct child_call *c, struct stored_object *o)
{
    c->stk->reply.stat = c->stk->reply.pre = c->stk->reply.post = o->stat;
}

/* Adds the xattrs and counts that a LOOKUP's xdata asks for. */
static int
reply_lookup_xdata(struct child_call *c, struct stored_object *o)
{
    const struct dict *asked = c->stk->call.xdata;
    struct dict *d = reply_xdata(c->stk);
    bool all = dict_has(asked, DICT_KEY_LIST_XATTR);

    for (unsigned i = 0; i < o->xattr_count; i++) {
        const struct stored_xattr *x = &o->xattr[i];

        if (dict_find_text(asked, x->key) || (all && strncmp(x->key, "trusted.afr.", 12) != 0))
            must(dict_set_text(d, x->key, DICT_PTR, x->bytes, x->len) == 0);
    }
    if (dict_has(asked, DICT_KEY_INODELK_COUNT) || dict_has(asked, DICT_KEY_INODELK_DOM_COUNT))
        (void)dict_set_int(d, DICT_KEY_INODELK_COUNT, locks_count(c->child, &o->stat.gfid, false));
    if (dict_has(asked, DICT_KEY_ENTRYLK_COUNT))
        (void)dict_set_int(d, DICT_KEY_ENTRYLK_COUNT, locks_count(c->child, &o->stat.gfid, true));
    if (dict_has(asked, DICT_KEY_LINK_COUNT))
        (void)dict_set_int(d, DICT_KEY_LINK_COUNT, store_pending(c->s));
    return 0;
}

static int
serve_lookup(struct child_call *c, struct stored_object *by_gfid)
{
    const struct fop_call *call = &c->stk->call;
    struct stored_object *o = by_gfid;
    struct gfid asked;

    if (call->loc.parent) {
        struct stored_name *n = store_name_of(c->s, c->dir, call->loc.name);

        if (!n)
            return -ENOENT;
        o = &c->s->object[n->object];
        c->stk->reply.post = c->s->object[c->dir].stat;
        if (gfid_is_null(&o->stat.gfid) && !dict_get_gfid(call->xdata, DICT_KEY_GFID_REQ, &asked))
            o->stat.gfid = asked;
        if (gfid_is_null(&o->stat.gfid) && !dict_has(call->xdata, DICT_KEY_GFIDLESS_LOOKUP))
            return -ENODATA;
    } else if (!o || !o->stat.nlink) {
        return -ESTALE;
    }
    struct iatt post = c->stk->reply.post;

    reply_stats(c, o);
    c->stk->reply.post = post;
    return reply_lookup_xdata(c, o);
}

/* ---- serving a call: names ------------------------------------------------------------------- */

static void
reply_fd(struct child_call *c, const struct stored_object *o)
{
    struct inode *inode = inode_link(call_graph(c)->inodes, NULL, NULL, &o->stat);

    c->stk->reply.fd = fd_new(inode, NULL, c->stk->call.flags, S_ISDIR(o->stat.mode));
    inode_unref(inode);
}

static bool
is_linkto_object(struct stored_object *o)
{
    return S_ISREG(o->stat.mode) && (o->stat.mode & 07777) == S_ISVTX &&
           store_xattr(o, "trusted.glusterfs.dht.linkto");
}

/* Removes a stale linkto file in the way of a call that allows it. Returns whether the name is free. */
static bool
is_name_free(struct child_call *c, unsigned dir, const char *name, const struct gfid *gfid)
{
    struct stored_name *n = store_name_of(c->s, dir, name);
    struct stored_object *o = n ? &c->s->object[n->object] : NULL;

    if (!n)
        return true;
    if (!dict_has(c->stk->call.xdata, DICT_KEY_FORCE_REPLACE) || !is_linkto_object(o) ||
        gfid_equal(&o->stat.gfid, gfid))
        return false;
    store_drop_name(c->s, n);
    return true;
}

/* Returns whether the folder has the range of the layout that the call expects, if the call names one. */
static bool
has_range_of_call(struct child_call *c)
{
    const char *key = dict_get_str(c->stk->call.xdata, DICT_KEY_PREOP_PARENT_KEY);
    const struct dict_pair *p = key ? dict_find_text(c->stk->call.xdata, key) : NULL;
    struct stored_xattr *x = p ? store_xattr(&c->s->object[c->dir], key) : NULL;

    if (!p || (x && x->len == p->len && memcmp(x->bytes, p->v.bytes, x->len) == 0))
        return true;
    must(dict_set_int(reply_xdata(c->stk), DICT_KEY_PREOP_CHECK_FAILED, 1) == 0);
    return false;
}

/* CREATE, MKNOD, MKDIR, SYMLINK. */
static int
serve_make(struct child_call *c)
{
    const struct fop_call *call = &c->stk->call;
    uint32_t type = call->fop == FOP_mkdir     ? S_IFDIR
                    : call->fop == FOP_symlink ? S_IFLNK
                    : call->mode & S_IFMT      ? call->mode & S_IFMT
                                               : S_IFREG;
    uint32_t mode = type | (call->fop == FOP_symlink ? 0777 : call->mode & 07777);
    struct gfid gfid;

    if (dict_get_gfid(call->xdata, DICT_KEY_GFID_REQ, &gfid))
        return -EPERM;
    if (!has_range_of_call(c))
        return -EIO;
    if (!is_name_free(c, c->dir, call->loc.name, &gfid))
        return -EEXIST;
    int known = store_object_of(c->s, &gfid);

    if (known >= 0 && !c->s->object[known].stat.nlink) { /* its last name is gone */
        c->s->object[known].stat.mode = 0;
        known = -1;
    }
    if (known >= 0 && (S_ISDIR(type) || !S_ISREG(c->s->object[known].stat.mode)))
        return -EEXIST;
    struct stored_object *o = known < 0 ? store_add_object(c->s, mode, &gfid) : &c->s->object[known];

    o->stat.uid = c->stk->caller.uid;
    o->stat.gid = c->stk->caller.gid;
    o->stat.rdev = call->rdev;
    if (call->fop == FOP_symlink)
        snprintf(o->target, sizeof o->target, "%s", call->name2);
    dict_for_each(p, call->xdata)
    {
        bool is_of_parent =
            p->key_id == DICT_KEY_DHT_LAYOUT && dict_has(call->xdata, DICT_KEY_PREOP_PARENT_KEY);
        bool is_stored = strncmp(p->key, "trusted.", 8) == 0 || strncmp(p->key, "user.", 5) == 0;

        if (pair_has_bytes(p) && is_stored && !is_of_parent)
            must(store_set_xattr(o, p->key, p->v.bytes, p->len) == 0);
    }
    store_add_name(c->s, c->dir, call->loc.name, (unsigned)(o - c->s->object));
    reply_stats(c, o);
    if (call->fop == FOP_create)
        reply_fd(c, o);
    return 0;
}

static int
serve_link(struct child_call *c, struct stored_object *o)
{
    if (!o || !o->stat.nlink)
        return -ESTALE;
    if (!is_name_free(c, c->dir2, c->stk->call.loc2.name, &o->stat.gfid))
        return -EEXIST;
    store_add_name(c->s, c->dir2, c->stk->call.loc2.name, (unsigned)(o - c->s->object));
    reply_stats(c, o);
    return 0;
}

static int
serve_remove(struct child_call *c)
{
    struct stored_name *n = store_name_of(c->s, c->dir, c->stk->call.loc.name);
    bool wants_dir = c->stk->call.fop == FOP_rmdir;

    if (!n)
        return -ENOENT;
    struct stored_object *o = &c->s->object[n->object];

    if (S_ISDIR(o->stat.mode) != wants_dir)
        return wants_dir ? -ENOTDIR : -EISDIR;
    if (wants_dir && !store_is_empty(c->s, n->object) && !c->stk->call.flags)
        return -ENOTEMPTY;
    if (dict_has(c->stk->call.xdata, DICT_KEY_UNLINK_ONLY_LINKTO) && !is_linkto_object(o))
        return -EBUSY;
    reply_stats(c, o);
    if (dict_has(c->stk->call.xdata, DICT_KEY_IATT_IN_XATTR))
        must(dict_set_iatt(reply_xdata(c->stk), DICT_KEY_IATT_IN_XATTR, &o->stat) == 0);
    store_drop_name(c->s, n);
    return 0;
}

static int
serve_rename(struct child_call *c)
{
    const struct fop_call *call = &c->stk->call;
    struct stored_name *from = store_name_of(c->s, c->dir, call->loc.name);
    struct stored_name *to = store_name_of(c->s, c->dir2, call->loc2.name);

    if (!from)
        return -ENOENT;
    unsigned moved = from->object;
    bool is_dir = S_ISDIR(c->s->object[moved].stat.mode);

    if (to && to->object == moved)
        return 0;
    if (to && S_ISDIR(c->s->object[to->object].stat.mode) != is_dir)
        return is_dir ? -ENOTDIR : -EISDIR;
    if (to && is_dir && !store_is_empty(c->s, to->object))
        return -ENOTEMPTY;
    if (to)
        store_drop_name(c->s, to);
    store_add_name(c->s, c->dir2, call->loc2.name, moved);
    from->is_used = false;
    c->s->object[moved].stat.nlink--;
    store_touch(c->s, &c->s->object[c->dir], true);
    reply_stats(c, &c->s->object[moved]);
    return 0;
}

enum { LISTED_AT_ONCE = 3 };

/* Returns the xattrs of a listed object that the call asks for. */
static struct dict *
listed_xattrs(struct child_call *c, const struct stored_object *o)
{
    struct dict *d = dict_new(&c->stk->arena);

    for (unsigned i = 0; i < o->xattr_count; i++) {
        if (dict_find_text(c->stk->call.xdata, o->xattr[i].key))
            must(dict_set_text(d, o->xattr[i].key, DICT_PTR, o->xattr[i].bytes, o->xattr[i].len) == 0);
    }
    return d;
}

static int
serve_readdir(struct child_call *c, struct stored_object *o)
{
    struct dirent_entry **at = &c->stk->reply.entries;
    unsigned dir = (unsigned)(o - c->s->object), left = 0;
    int count = 0;

    const struct xlator *xl = c->xl;
    unsigned bricks = xl->graph->layers[0].leaf_count, brick;

    for (unsigned i = (unsigned)dir_offset_split(c->stk->call.offset, bricks, &brick); i < STORED_NAMES_MAX;
         i++) {
        struct stored_name *n = &c->s->name[i];

        if (!n->is_used || n->dir != dir)
            continue;
        if (count == LISTED_AT_ONCE) {
            left++;
            continue;
        }
        struct dirent_entry *e = arena_alloc(&c->stk->arena, sizeof *e);
        char *name = arena_alloc(&c->stk->arena, sizeof n->name);

        memcpy(name, n->name, sizeof n->name);
        *e = (struct dirent_entry){.name = name,
                                   .name_len = (uint32_t)strlen(name),
                                   .off = dir_offset_join(i + 1, xl->leaf_first, bricks)};
        e->ino = c->s->object[n->object].stat.ino;
        e->type = IFTODT(c->s->object[n->object].stat.mode);
        if (c->stk->call.fop == FOP_readdirp)
            e->iatt = c->s->object[n->object].stat;
        e->dict = listed_xattrs(c, &c->s->object[n->object]);
        *at = e;
        at = &e->next;
        count++;
    }
    *at = NULL;
    if (dict_has(c->stk->call.xdata, DICT_KEY_LINK_COUNT))
        (void)dict_set_int(reply_xdata(c->stk), DICT_KEY_LINK_COUNT, store_pending(c->s));
    if (!left) /* the end of the folder */
        c->stk->reply.op_errno = ENOENT;
    return count;
}

/* ---- serving a call: contents ---------------------------------------------------------------- */

/* `offset` is a multiple of the scale. */
static void
write_scaled(struct stored_object *o, uint64_t offset, const struct iovec *from)
{
    const unsigned char *bytes = from->iov_base;

    for (size_t k = 0; k < from->iov_len; k += store_scale())
        o->data[(offset + k) / store_scale()] = bytes[k];
}

static int
serve_write(struct child_call *c, struct stored_object *o)
{
    const struct fop_call *call = &c->stk->call;
    bool appends = call->fd && call->fd->flags & O_APPEND;
    uint64_t offset = appends ? o->stat.size : call->offset, end = offset + call->payload_bytes;
    bool is_append = o->stat.size == offset;

    c->stk->reply.pre = o->stat;
    if (end > STORED_DATA_MAX * store_scale() || end < offset)
        return -EFBIG;
    if (!c->s->is_arbiter) {
        for (int i = 0; i < call->payload_count; i++) {
            write_scaled(o, offset, &call->payload[i]);
            offset += call->payload[i].iov_len;
        }
        store_resize(c->s, o, end > o->stat.size ? end : o->stat.size);
    }
    store_touch(c->s, o, true);
    c->stk->reply.post = o->stat;
    if (dict_has(call->xdata, DICT_KEY_WRITE_IS_APPEND))
        (void)dict_set_int(reply_xdata(c->stk), DICT_KEY_WRITE_IS_APPEND, is_append);
    if (dict_has(call->xdata, DICT_KEY_INODELK_DOM_COUNT))
        (void)dict_set_int(reply_xdata(c->stk), DICT_KEY_INODELK_COUNT,
                           locks_count(c->child, &o->stat.gfid, false));
    return (int)call->payload_bytes;
}

static int
serve_truncate(struct child_call *c, struct stored_object *o)
{
    c->stk->reply.pre = o->stat;
    if (c->stk->call.offset > STORED_DATA_MAX * store_scale())
        return -EFBIG;
    if (!c->s->is_arbiter)
        store_resize(c->s, o, c->stk->call.offset);
    c->stk->reply.post = o->stat;
    return 0;
}

/* FALLOCATE, DISCARD and ZEROFILL: a range is zeros. The size grows only by ZEROFILL. */
static int
serve_allocate(struct child_call *c, struct stored_object *o)
{
    const struct fop_call *call = &c->stk->call;
    uint64_t end = call->offset + call->size;

    c->stk->reply.pre = o->stat;
    if (end > STORED_DATA_MAX || end < call->offset)
        return -EFBIG;
    if (!c->s->is_arbiter && call->fop == FOP_zerofill && end > o->stat.size)
        store_resize(c->s, o, end);
    if (!c->s->is_arbiter && call->fop != FOP_fallocate && call->offset < o->stat.size) {
        uint64_t until = end < o->stat.size ? end : o->stat.size;

        memset(o->data + call->offset, 0, (size_t)(until - call->offset));
    }
    store_touch(c->s, o, true);
    c->stk->reply.post = o->stat;
    return 0;
}

/* `offset` is a multiple of the scale. */
static void
read_scaled(const struct stored_object *o, uint64_t offset, char *to, size_t len)
{
    for (size_t k = 0; k < len; k += store_scale()) {
        size_t left = len - k;

        memset(to + k, o->data[(offset + k) / store_scale()], left < store_scale() ? left : store_scale());
    }
}

static int
serve_read(struct child_call *c, struct stored_object *o)
{
    uint64_t offset = c->stk->call.offset, left = offset < o->stat.size ? o->stat.size - offset : 0;
    size_t len = (size_t)(left < c->stk->call.size ? left : c->stk->call.size);

    c->stk->reply.iobuf = iobuf_get(len ? len : 1);
    read_scaled(o, offset, c->stk->reply.iobuf->bytes, len);
    c->stk->reply.payload = (struct iovec){c->stk->reply.iobuf->bytes, len};
    reply_stats(c, o);
    return (int)len;
}

/* The sum is the block itself as far as it fits, and a hash of the block. */
static int
serve_checksum(struct child_call *c, struct stored_object *o)
{
    uint64_t hash = 14695981039346656037u, from = c->stk->call.offset, end = from + c->stk->call.size;

    for (uint64_t i = from; i < end && i < o->stat.size; i += store_scale())
        hash = (hash ^ o->data[i / store_scale()]) * 1099511628211u;
    memset(c->stk->reply.strong, 0, sizeof c->stk->reply.strong);
    memcpy(c->stk->reply.strong, &hash, sizeof hash);
    return 0;
}

/* ---- serving a call: attributes -------------------------------------------------------------- */

/* As kilnd does: a user's change does not end the state of a file that is being migrated. */
static uint32_t
mode_to_store(const struct child_call *c, struct stored_object *o)
{
    uint32_t was = o->stat.mode & 07777, mode = c->stk->call.stbuf.mode & 07777;
    bool is_marked = (was & (S_ISVTX | S_ISGID)) == (S_ISVTX | S_ISGID), is_linkto = was == S_ISVTX;

    if (!S_ISREG(o->stat.mode) || c->stk->caller.pid < 0 || !store_xattr(o, "trusted.glusterfs.dht.linkto") ||
        (!is_marked && !is_linkto))
        return mode;
    return is_linkto ? was : mode | S_ISVTX | S_ISGID;
}

static int
serve_setattr(struct child_call *c, struct stored_object *o)
{
    const struct iatt *to = &c->stk->call.stbuf;
    int32_t valid = c->stk->call.valid;

    c->stk->reply.pre = o->stat;
    if (valid & SETATTR_MODE)
        o->stat.mode = (o->stat.mode & S_IFMT) | mode_to_store(c, o);
    if (valid & SETATTR_UID)
        o->stat.uid = to->uid;
    if (valid & SETATTR_GID)
        o->stat.gid = to->gid;
    if (valid & SETATTR_ATIME)
        o->stat.atime = to->atime;
    if (valid & SETATTR_MTIME)
        o->stat.mtime = to->mtime;
    store_touch(c->s, o, false);
    c->stk->reply.post = o->stat;
    return 0;
}

static int
serve_setxattr(struct child_call *c, struct stored_object *o)
{
    int err = 0;

    dict_for_each(p, c->stk->call.dict)
    {
        if (pair_has_bytes(p) && !err && p->key_id != DICT_KEY_LOCKINFO) /* moves locks, and is not stored */
            err = store_set_xattr(o, p->key, p->v.bytes, p->len);
    }
    store_touch(c->s, o, false);
    must(dict_set_iatt(reply_xdata(c->stk), DICT_KEY_IATT_IN_XATTR, &o->stat) == 0);
    return err;
}

static int
serve_removexattr(struct child_call *c, struct stored_object *o)
{
    struct stored_xattr *x = store_xattr(o, c->stk->call.name);

    if (!x)
        return -ENODATA;
    *x = o->xattr[--o->xattr_count];
    store_touch(c->s, o, false);
    return 0;
}

/* Writes the path of a folder, or of a file by its first name. */
static void
store_path(const struct store *s, unsigned dir, char *path, size_t size)
{
    char below[STORED_TEXT_MAX] = "";

    path[0] = '\0';
    for (unsigned i = 0; dir && i < STORED_NAMES_MAX; i++) {
        if (!s->name[i].is_used || s->name[i].object != dir)
            continue;
        snprintf(path, size, "/%s%s", s->name[i].name, below);
        snprintf(below, sizeof below, "%.*s", (int)sizeof below - 1, path);
        dir = s->name[i].dir;
        i = UINT_MAX; /* from the start, for the folder above */
    }
}

static int
serve_getxattr(struct child_call *c, struct stored_object *o)
{
    const char *name = c->stk->call.name;
    struct dict *d = reply_dict(c->stk);

    const char *path_key = S_ISDIR(o->stat.mode) ? "glusterfs.ancestry.path" : "glusterfs.gfidtopath";

    if (name && strcmp(name, path_key) == 0) {
        char path[STORED_TEXT_MAX];

        store_path(c->s, (unsigned)(o - c->s->object), path, sizeof path);
        return dict_set_text(d, name, DICT_STR, path, (uint32_t)strlen(path) + 1);
    }
    if (name && *name && !store_xattr(o, name))
        return -ENODATA;
    for (unsigned i = 0; i < o->xattr_count; i++) {
        if (!name || !*name || strcmp(name, o->xattr[i].key) == 0)
            (void)dict_set_text(d, o->xattr[i].key, DICT_PTR, o->xattr[i].bytes, o->xattr[i].len);
    }
    return 0;
}

/* Adds big-endian words of 32 bits, or of 64 (features/shard), and answers with the sums; or sets the values.
 * */
static int
serve_xattrop(struct child_call *c, struct stored_object *o)
{
    enum { ADD64 = 1, GET_AND_SET = 4 };
    uint32_t op = c->stk->call.flags, width = op == ADD64 ? 8 : 4;
    struct dict *d = reply_dict(c->stk);

    if (dict_has(c->stk->call.xdata, DICT_KEY_GET_SIZE))
        (void)dict_set_uint(reply_xdata(c->stk), DICT_KEY_GET_SIZE, o->stat.size);
    if (dict_has(c->stk->call.xdata, DICT_KEY_REQUEST_LINK_COUNT))
        (void)dict_set_uint(reply_xdata(c->stk), DICT_KEY_REQUEST_LINK_COUNT, o->stat.nlink);
    dict_for_each(p, c->stk->call.dict)
    {
        const unsigned char *add = p->v.bytes;
        unsigned char sum[STORED_TEXT_MAX] = {0};
        struct stored_xattr *x = op == GET_AND_SET ? NULL : store_xattr(o, p->key);

        if (x)
            memcpy(sum, x->bytes, x->len);
        for (uint32_t at = 0, carry = 0; at < p->len; at++) {
            uint32_t byte = p->len - 1 - at; /* from the last byte on */

            carry = (at % width ? carry : 0) + sum[byte] + add[byte];
            sum[byte] = (unsigned char)carry;
            carry >>= 8;
        }
        if (store_set_xattr(o, p->key, sum, p->len))
            return -ENOSPC;
        if (strncmp(p->key, "trusted.afr.", 12) != 0 && width == 4) /* their times are not compared */
            store_touch(c->s, o, false);
        (void)dict_set_text(d, p->key, DICT_PTR, sum, p->len);
    }
    return 0;
}

/* ---- serving a call -------------------------------------------------------------------------- */

static int
serve_by_object(struct child_call *c, struct stored_object *o)
{
    switch (c->stk->call.fop) {
    case FOP_readlink:
        c->stk->reply.path = o->target;
        reply_stats(c, o);
        return (int)strlen(o->target);
    case FOP_open:
    case FOP_opendir:
        reply_fd(c, o);
        return 0;
    case FOP_writev:
        return serve_write(c, o);
    case FOP_truncate:
    case FOP_ftruncate:
        return serve_truncate(c, o);
    case FOP_readv:
        return serve_read(c, o);
    case FOP_rchecksum:
        return serve_checksum(c, o);
    case FOP_setattr:
    case FOP_fsetattr:
        return serve_setattr(c, o);
    case FOP_setxattr:
    case FOP_fsetxattr:
        return serve_setxattr(c, o);
    case FOP_removexattr:
    case FOP_fremovexattr:
        return serve_removexattr(c, o);
    case FOP_getxattr:
    case FOP_fgetxattr:
        return serve_getxattr(c, o);
    case FOP_xattrop:
    case FOP_fxattrop:
        return serve_xattrop(c, o);
    case FOP_readdir:
    case FOP_readdirp:
        return serve_readdir(c, o);
    case FOP_inodelk:
    case FOP_finodelk:
    case FOP_entrylk:
    case FOP_fentrylk:
        return lock_serve(c->child, c->stk, &o->stat.gfid);
    case FOP_statfs:
        c->stk->reply.statvfs =
            (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_blocks = 1000, .f_bfree = 500};
        c->stk->reply.statvfs.f_bavail = c->stk->reply.statvfs.f_files = c->stk->reply.statvfs.f_ffree = 500;
        return 0;
    case FOP_lk: /* every lock is free */
        c->stk->reply.flock = c->stk->call.flock;
        return 0;
    case FOP_seek:
        c->stk->reply.offset = c->stk->call.offset;
        return 0;
    case FOP_fallocate:
    case FOP_discard:
    case FOP_zerofill:
        return serve_allocate(c, o);
    case FOP_stat:
    case FOP_fstat:
    case FOP_flush:
    case FOP_fsync:
    case FOP_fsyncdir:
    case FOP_access:
        reply_stats(c, o);
        return dict_has(c->stk->call.xdata, DICT_KEY_SHARD_FILE_SIZE) ? reply_lookup_xdata(c, o) : 0;
    default:
        return -EOPNOTSUPP;
    }
}

static int
call_parent(const struct store *s, const struct inode *parent, unsigned *out)
{
    int dir = parent ? store_object_of(s, &parent->gfid) : 0;

    *out = dir < 0 ? 0 : (unsigned)dir;
    return dir < 0 ? -ESTALE : 0;
}

/* Returns the result or -errno; 1 of a lock: the call waits. */
int
call_serve(struct child_call *c)
{
    const struct fop_call *call = &c->stk->call;
    struct inode *inode = call->fd ? call->fd->inode : call->loc.inode;

    c->s = &scene.store[c->child];
    /* stock's bricks list all xattrs then */
    bool asks = call->fop == FOP_getxattr || call->fop == FOP_fgetxattr;
    must(!asks || !call->name || !call->name[0] || call->has_name);
    if (index_is_asked(call))
        return index_serve(c->s, c->xl, c->stk);
    int at = inode ? store_object_of(c->s, &inode->gfid) : -1;
    struct stored_object *o = at < 0 ? NULL : &c->s->object[at];
    int err = call_parent(c->s, call->loc.parent, &c->dir);

    if (inode && is_unlock(call)) /* also of an object that is gone */
        return lock_serve(c->child, c->stk, &inode->gfid);
    err = err ? err : call_parent(c->s, call->loc2.parent, &c->dir2);
    if (err)
        return err;
    switch (call->fop) {
    case FOP_lookup:
        return serve_lookup(c, o);
    case FOP_create:
    case FOP_mknod:
    case FOP_mkdir:
    case FOP_symlink:
        return serve_make(c);
    case FOP_link:
        return serve_link(c, o);
    case FOP_unlink:
    case FOP_rmdir:
        return serve_remove(c);
    case FOP_rename:
        return serve_rename(c);
    case FOP_ipc:
        return 0;
    default:
        if (!o || (!o->stat.nlink && !o->is_open && (!call->fd || call->fd->is_anonymous)))
            return inode ? -ESTALE : -EINVAL;
        return serve_by_object(c, o);
    }
}
