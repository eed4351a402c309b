/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The disks of the bricks in memory: names, objects and extended attributes. */
#include "xlators/cluster/test-children.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/test-children-internal.h"

/* ---- a disk: names and objects --------------------------------------------------------------- */

int
store_object_of(const struct store *s, const struct gfid *gfid)
{
    for (int i = 0; i < STORED_OBJECTS_MAX; i++) {
        if (s->object[i].stat.mode && gfid_equal(&s->object[i].stat.gfid, gfid))
            return i;
    }
    return -1;
}

struct stored_name *
store_name_of(struct store *s, unsigned dir, const char *name)
{
    for (unsigned i = 0; i < STORED_NAMES_MAX; i++) {
        if (s->name[i].is_used && s->name[i].dir == dir && strcmp(s->name[i].name, name) == 0)
            return &s->name[i];
    }
    return NULL;
}

bool
store_is_empty(const struct store *s, unsigned dir)
{
    for (unsigned i = 0; i < STORED_NAMES_MAX; i++) {
        if (s->name[i].is_used && s->name[i].dir == dir)
            return false;
    }
    return true;
}

void
store_touch(struct store *s, struct stored_object *o, bool is_contents)
{
    o->stat.ctime = s->clock++;
    if (is_contents)
        o->stat.mtime = o->stat.ctime;
}

void
store_add_name(struct store *s, unsigned dir, const char *name, unsigned object)
{
    unsigned i = 0;

    while (i < STORED_NAMES_MAX && s->name[i].is_used)
        i++;
    must(i < STORED_NAMES_MAX);
    s->name[i] = (struct stored_name){.is_used = true, .dir = dir, .object = object};
    snprintf(s->name[i].name, sizeof s->name[i].name, "%s", name);
    s->object[object].stat.nlink++;
    store_touch(s, &s->object[object], false);
    store_touch(s, &s->object[dir], true);
}

void
store_drop_name(struct store *s, struct stored_name *n)
{
    n->is_used = false;
    s->object[n->object].stat.nlink--;
    store_touch(s, &s->object[n->object], false);
    store_touch(s, &s->object[n->dir], true);
    if (S_ISDIR(s->object[n->object].stat.mode))
        s->object[n->object].stat.mode = 0;
}

struct stored_object *
store_add_object(struct store *s, uint32_t mode, const struct gfid *gfid)
{
    unsigned i = 0;

    while (i < STORED_OBJECTS_MAX && s->object[i].stat.mode)
        i++;
    must(i < STORED_OBJECTS_MAX);
    s->object[i] = (struct stored_object){.stat = {.gfid = *gfid, .mode = mode, .flags = IATT_FLAGS_ALL}};
    s->object[i].stat.blksize = 4096;
    s->object[i].stat.ino = 100 + i;
    s->object[i].stat.mtime = s->object[i].stat.atime = s->object[i].stat.ctime = s->clock++;
    return &s->object[i];
}

struct stored_object *
store_find(struct store *s, const char *path)
{
    char copy[256], *rest = copy, *part;
    unsigned at = 0;

    snprintf(copy, sizeof copy, "%s", path);
    while ((part = strsep(&rest, "/"))) {
        if (!*part)
            continue;
        struct stored_name *n = store_name_of(s, at, part);

        if (!n)
            return NULL;
        at = n->object;
    }
    return &s->object[at];
}

uint64_t
store_scale(void)
{
    return scene.scale ? scene.scale : 1;
}

static size_t
stored_bytes(uint64_t size)
{
    return (size_t)((size + store_scale() - 1) / store_scale());
}

void
store_resize(struct store *s, struct stored_object *o, uint64_t size)
{
    must(stored_bytes(size) <= STORED_DATA_MAX);
    if (size < o->stat.size)
        memset(o->data + stored_bytes(size), 0, stored_bytes(o->stat.size) - stored_bytes(size));
    o->stat.size = size;
    o->stat.blocks = (size + 511) / 512;
    store_touch(s, o, true);
}

struct stored_object *
store_make(unsigned i, const char *path, uint32_t mode, uint8_t number, const char *contents)
{
    struct store *s = &scene.store[i];
    struct gfid gfid = {.b = {0xbb, [15] = number}};
    const char *name = strrchr(path, '/') + 1;
    char dir[256];

    snprintf(dir, sizeof dir, "%.*s", (int)(name - path), path);
    struct stored_object *in = store_find(s, dir);
    int known = store_object_of(s, &gfid);
    struct stored_object *o = known >= 0 ? &s->object[known] : store_add_object(s, mode, &gfid);

    must(in);
    store_add_name(s, (unsigned)(in - s->object), name, (unsigned)(o - s->object));
    if (contents && S_ISLNK(mode)) {
        snprintf(o->target, sizeof o->target, "%s", contents);
    } else if (contents && !s->is_arbiter) {
        memcpy(o->data, contents, strlen(contents));
        store_resize(s, o, strlen(contents) * store_scale());
    }
    return o;
}

void
store_make_all(const char *path, uint32_t mode, uint8_t number, const char *contents)
{
    for (unsigned i = 0; i < scene.count; i++)
        (void)store_make(i, path, mode, number, contents);
}

/* ---- a disk: extended attributes ------------------------------------------------------------- */

struct stored_xattr *
store_xattr(struct stored_object *o, const char *key)
{
    for (unsigned i = 0; i < o->xattr_count; i++) {
        if (strcmp(o->xattr[i].key, key) == 0)
            return &o->xattr[i];
    }
    return NULL;
}

int
store_set_xattr(struct stored_object *o, const char *key, const void *bytes, uint32_t len)
{
    struct stored_xattr *x = store_xattr(o, key);

    if (!x && o->xattr_count == STORED_XATTRS_MAX)
        return -ENOSPC;
    x = x ? x : &o->xattr[o->xattr_count++];
    must(len <= sizeof x->bytes);
    snprintf(x->key, sizeof x->key, "%s", key);
    memcpy(x->bytes, bytes, len);
    x->len = len;
    return 0;
}

bool
pair_has_bytes(const struct dict_pair *p)
{
    return p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED;
}

static bool
is_nonzero(const struct stored_xattr *x)
{
    bool is = false;

    for (unsigned i = 0; i < x->len; i++)
        is |= x->bytes[i] != 0;
    return is;
}

/* The number of objects with counters: the index of the brick. */
int64_t
store_pending(const struct store *s)
{
    int64_t count = 0;

    for (unsigned i = 0; i < STORED_OBJECTS_MAX; i++) {
        const struct stored_object *o = &s->object[i];
        bool is_marked = false;

        for (unsigned k = 0; k < o->xattr_count && o->stat.mode; k++)
            is_marked |= (strncmp(o->xattr[k].key, "trusted.afr.", 12) == 0 ||
                          strcmp(o->xattr[k].key, "trusted.ec.dirty") == 0) &&
                         is_nonzero(&o->xattr[k]);
        count += is_marked;
    }
    return count;
}

/* ---- comparing disks ------------------------------------------------------------------------- */

static const char *
xattrs_difference(struct stored_object *a, struct stored_object *b)
{
    for (unsigned i = 0; i < a->xattr_count; i++) {
        struct stored_xattr *x = &a->xattr[i];
        struct stored_xattr *y = store_xattr(b, x->key);

        if (strncmp(x->key, "trusted.afr.", 12) == 0)
            continue;
        if (!y || y->len != x->len || memcmp(x->bytes, y->bytes, x->len) != 0)
            return x->key;
    }
    return NULL;
}

static const char *
objects_difference(struct stored_object *a, struct stored_object *b, bool has_data)
{
    const char *xattr = xattrs_difference(a, b);

    if (!gfid_equal(&a->stat.gfid, &b->stat.gfid))
        return "gfid";
    if (a->stat.mode != b->stat.mode || a->stat.uid != b->stat.uid || a->stat.gid != b->stat.gid)
        return "mode or owner";
    if (a->stat.nlink != b->stat.nlink)
        return "link count";
    if (has_data && a->stat.size != b->stat.size)
        return "size";
    if (has_data && memcmp(a->data, b->data, stored_bytes(a->stat.size)) != 0)
        return "contents";
    if (strcmp(a->target, b->target) != 0)
        return "target";
    return xattr ? xattr : xattrs_difference(b, a);
}

/* Compares the names of one folder and their objects. */
static const char *
folders_difference(struct store *a, unsigned dir_a, struct store *b, unsigned dir_b, unsigned depth)
{
    static char text[256];
    bool has_data = !a->is_arbiter && !b->is_arbiter;

    for (unsigned i = 0; i < STORED_NAMES_MAX && depth < 8; i++) {
        const struct stored_name *n = &a->name[i];

        if (!n->is_used || n->dir != dir_a || strncmp(n->name, ".glusterfs", 10) == 0)
            continue;
        struct stored_name *m = store_name_of(b, dir_b, n->name);
        const char *why =
            m ? objects_difference(&a->object[n->object], &b->object[m->object], has_data) : "no such name";

        if (why) {
            snprintf(text, sizeof text, "%s: %s", n->name, why);
            return text;
        }
        if (S_ISDIR(a->object[n->object].stat.mode) &&
            folders_difference(a, n->object, b, m->object, depth + 1))
            return text;
    }
    return NULL;
}

const char *
store_difference(struct store *a, struct store *b)
{
    const char *why = objects_difference(&a->object[0], &b->object[0], true);

    why = why ? why : folders_difference(a, 0, b, 0, 0);
    return why ? why : folders_difference(b, 0, a, 0, 0);
}
