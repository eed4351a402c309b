/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/test-children.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>

#include "base/test-must.h"
#include "coro/coroutine.h"
#include "event/timer.h"
#include "event/worker.h"
#include "graph/dir-offset.h"
#include "graph/pools.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "mem/mem-shared.h"
#include "stack/coro-call.h"
#include "xlators/cluster/test-children-internal.h"

struct scene scene;

/* ---- the virtual clock, and the places of workers and timers --------------------------------- */

enum { TIMERS_MAX = 64 };
static struct timer *timers[TIMERS_MAX];
static CDS_LIST_HEAD(jobs);

uint64_t __wrap_clock_mono_ns(void);
void __wrap_worker_post(struct worker_job *job);
void __wrap_worker_post_any(struct worker_job *job);
void __wrap_timer_start(struct timer *t, uint64_t delay_ms);
bool __wrap_timer_stop(struct timer *t);

uint64_t
__wrap_clock_mono_ns(void)
{
    return scene.now_ns;
}

void
__wrap_worker_post(struct worker_job *job)
{
    cds_list_add_tail(&job->link, &jobs);
}

void
__wrap_worker_post_any(struct worker_job *job)
{
    __wrap_worker_post(job);
}

bool
__wrap_timer_stop(struct timer *t)
{
    bool was_armed = false;

    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        was_armed |= timers[i] == t;
        timers[i] = timers[i] == t ? NULL : timers[i];
    }
    t->is_armed = false;
    return was_armed;
}

void
__wrap_timer_start(struct timer *t, uint64_t delay_ms)
{
    unsigned i = 0;

    (void)__wrap_timer_stop(t);
    while (i < TIMERS_MAX && timers[i])
        i++;
    must(i < TIMERS_MAX);
    t->due_ns = scene.now_ns + delay_ms * 1000000;
    t->is_armed = true;
    timers[i] = t;
}

static bool
job_run_next(void)
{
    if (cds_list_empty(&jobs))
        return false;
    struct worker_job *job = cds_list_first_entry(&jobs, struct worker_job, link);

    cds_list_del(&job->link);
    job->run(job);
    return true;
}

static bool
timer_fire_next(uint64_t until_ns)
{
    struct timer *first = NULL;

    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (timers[i] && (!first || timers[i]->due_ns < first->due_ns))
            first = timers[i];
    }
    if (!first || first->due_ns > until_ns)
        return false;
    scene.now_ns = first->due_ns > scene.now_ns ? first->due_ns : scene.now_ns;
    (void)__wrap_timer_stop(first);
    first->fn(first);
    return true;
}

/* ---- a disk: names and objects --------------------------------------------------------------- */

static int
store_object_of(const struct store *s, const struct gfid *gfid)
{
    for (int i = 0; i < STORED_OBJECTS_MAX; i++) {
        if (s->object[i].stat.mode && gfid_equal(&s->object[i].stat.gfid, gfid))
            return i;
    }
    return -1;
}

static struct stored_name *
store_name_of(struct store *s, unsigned dir, const char *name)
{
    for (unsigned i = 0; i < STORED_NAMES_MAX; i++) {
        if (s->name[i].is_used && s->name[i].dir == dir && strcmp(s->name[i].name, name) == 0)
            return &s->name[i];
    }
    return NULL;
}

static bool
store_is_empty(const struct store *s, unsigned dir)
{
    for (unsigned i = 0; i < STORED_NAMES_MAX; i++) {
        if (s->name[i].is_used && s->name[i].dir == dir)
            return false;
    }
    return true;
}

static void
store_touch(struct store *s, struct stored_object *o, bool is_contents)
{
    o->stat.ctime = s->clock++;
    if (is_contents)
        o->stat.mtime = o->stat.ctime;
}

static void
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

static void
store_drop_name(struct store *s, struct stored_name *n)
{
    n->is_used = false;
    s->object[n->object].stat.nlink--;
    store_touch(s, &s->object[n->object], false);
    store_touch(s, &s->object[n->dir], true);
    if (S_ISDIR(s->object[n->object].stat.mode))
        s->object[n->object].stat.mode = 0;
}

static struct stored_object *
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

static void
store_resize(struct store *s, struct stored_object *o, uint64_t size)
{
    must(size <= STORED_DATA_MAX);
    if (size < o->stat.size)
        memset(o->data + size, 0, (size_t)(o->stat.size - size));
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
    char dir[STORED_TEXT_MAX];

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
        store_resize(s, o, strlen(contents));
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

static bool
has_bytes(const struct dict_pair *p)
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
static int64_t
store_pending(const struct store *s)
{
    int64_t count = 0;

    for (unsigned i = 0; i < STORED_OBJECTS_MAX; i++) {
        const struct stored_object *o = &s->object[i];
        bool is_marked = false;

        for (unsigned k = 0; k < o->xattr_count && o->stat.mode; k++)
            is_marked |= strncmp(o->xattr[k].key, "trusted.afr.", 12) == 0 && is_nonzero(&o->xattr[k]);
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
    if (has_data && memcmp(a->data, b->data, (size_t)a->stat.size) != 0)
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

/* ---- lack of memory -------------------------------------------------------------------------- */

void
scene_init_starving(void)
{
    must(mem_pools_set_option("bypass", "*") == 0); /* each object is an allocation */
}

void
scene_starve(int64_t n)
{
    scene.starve_at = n;
    mem_test_fail_at = n;
}

bool
scene_has_starved(void)
{
    return scene.starve_at && mem_test_fail_at <= 0;
}

/* Gives memory to the code of bricks and tests until starving_resume(). The counter is written atomically,
 * because a compiler may assume that malloc() does not read the counter. */
static int64_t
starving_pause(void)
{
    return __atomic_exchange_n(&mem_test_fail_at, 0, __ATOMIC_SEQ_CST);
}

static void
starving_resume(int64_t left)
{
    __atomic_store_n(&mem_test_fail_at, left, __ATOMIC_SEQ_CST);
}

/* ---- serving a call: looking up -------------------------------------------------------------- */

/* A call on its way to a child. */
struct child_call {
    struct cds_list_head link;
    struct call_stack *stk;
    struct xlator *xl;
    unsigned child;
    bool is_late, is_held;
    /* while it is served */
    struct store *s;
    unsigned dir, dir2; /* indexes of loc.parent and loc2.parent */
};
static CDS_LIST_HEAD(calls);

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

        if (has_bytes(p) && is_stored && !is_of_parent)
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
    if (!left) /* the end of the folder */
        c->stk->reply.op_errno = ENOENT;
    return count;
}

/* ---- serving a call: contents ---------------------------------------------------------------- */

static int
serve_write(struct child_call *c, struct stored_object *o)
{
    const struct fop_call *call = &c->stk->call;
    bool appends = call->fd && call->fd->flags & O_APPEND;
    uint64_t offset = appends ? o->stat.size : call->offset, end = offset + call->payload_bytes;
    bool is_append = o->stat.size == offset;

    c->stk->reply.pre = o->stat;
    if (end > STORED_DATA_MAX || end < offset)
        return -EFBIG;
    if (!c->s->is_arbiter) {
        for (int i = 0; i < call->payload_count; i++) {
            memcpy(o->data + offset, call->payload[i].iov_base, call->payload[i].iov_len);
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
    if (c->stk->call.offset > STORED_DATA_MAX)
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

static int
serve_read(struct child_call *c, struct stored_object *o)
{
    uint64_t offset = c->stk->call.offset, left = offset < o->stat.size ? o->stat.size - offset : 0;
    size_t len = (size_t)(left < c->stk->call.size ? left : c->stk->call.size);

    c->stk->reply.iobuf = iobuf_get(len ? len : 1);
    memcpy(c->stk->reply.iobuf->bytes, o->data + (len ? offset : 0), len);
    c->stk->reply.payload = (struct iovec){c->stk->reply.iobuf->bytes, len};
    reply_stats(c, o);
    return (int)len;
}

/* The sum is the block itself as far as it fits, and a hash of the block. */
static int
serve_checksum(struct child_call *c, struct stored_object *o)
{
    uint64_t hash = 14695981039346656037u, from = c->stk->call.offset, end = from + c->stk->call.size;

    for (uint64_t i = from; i < end && i < o->stat.size; i++)
        hash = (hash ^ o->data[i]) * 1099511628211u;
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
        if (has_bytes(p) && !err && p->key_id != DICT_KEY_LOCKINFO) /* moves locks, and is not stored */
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

/* Writes the path of a folder. */
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

    if (name && strcmp(name, "glusterfs.ancestry.path") == 0) {
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
static int
call_serve(struct child_call *c)
{
    const struct fop_call *call = &c->stk->call;
    struct inode *inode = call->fd ? call->fd->inode : call->loc.inode;

    c->s = &scene.store[c->child];
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
        if (!o || (!o->stat.nlink && (!call->fd || call->fd->is_anonymous)))
            return inode ? -ESTALE : -EINVAL;
        return serve_by_object(c, o);
    }
}

void
child_call_answer(struct call_stack *stk, int ret)
{
    scene.answered++;
    if (ret < 0 && stk->reply.shortage) { /* as protocol/client answers without memory for the reply */
        fd_unref(stk->reply.fd);
        iobuf_unref(stk->reply.iobuf);
        stk->reply =
            (struct fop_reply){.op_ret = -1, .op_errno = ENOMEM, .shortage = stk->reply.shortage};
        call_stack_unwind(stk);
        return;
    }
    if (ret < 0) {
        call_stack_fail(stk, -ret);
        return;
    }
    stk->reply.op_ret = ret;
    call_stack_unwind(stk);
}

/* ---- faults and events ----------------------------------------------------------------------- */

static struct fault *
fault_of(unsigned child)
{
    for (unsigned i = 0; i < scene.fault_count; i++) {
        struct fault *f = &scene.fault[i];

        if ((f->child == child || f->child == ANY_CHILD) && f->at == scene.calls[f->child] && !f->has_struck)
            return f;
    }
    return NULL;
}

/* Answers a call and the calls that are joined behind it as those of a lost connection. */
static void
fail_call(struct call_stack *stk)
{
    for (struct call_stack *next; stk; stk = next) {
        next = stk->joined;
        stk->joined = NULL;
        child_call_answer(stk, -ENOTCONN);
    }
}

static void
fail_queued(unsigned i)
{
    struct child_call *c, *next;
    CDS_LIST_HEAD(gone);

    cds_list_for_each_entry_safe(c, next, &calls, link)
    {
        if (c->child == i)
            cds_list_move(&c->link, &gone);
    }
    cds_list_for_each_entry_safe(c, next, &gone, link)
    {
        fail_call(c->stk);
        free(c);
    }
}

void
scene_child_down(unsigned i)
{
    if (!scene.is_up[i])
        return;
    scene.is_up[i] = false;
    if (!scene.tells_late)
        xlator_tell_parent(scene.child[i], CHILD_DOWN);
    locks_drop_child(i);
    fail_queued(i);
    locks_grant_waiting();
    if (scene.tells_late)
        xlator_tell_parent(scene.child[i], CHILD_DOWN);
}

void
scene_child_up(unsigned i)
{
    scene.is_up[i] = true;
    atomic_store(&scene.child[i]->brick_facts, scene.takes_sequences ? BRICK_SEQUENCES : 0);
    xlator_tell_parent(scene.child[i], CHILD_UP);
}

static void
scene_cut(void)
{
    scene.is_cut = true;
    for (unsigned i = 0; i < scene.count; i++)
        locks_drop_child(i);
}

/* With CHILDREN_TRACE in the environment: prints the calls. */
static void
call_trace(const struct child_call *c, int ret, enum fault_kind kind)
{
    const struct fop_call *call = &c->stk->call;
    const struct inode *dir = call->loc.parent ? call->loc.parent : call->loc2.parent;
    const struct inode *inode = call->fd ? call->fd->inode : call->loc.inode;
    const char *name = call->loc.parent ? call->loc.name : call->loc2.parent ? call->loc2.name : call->name;

    if (!getenv("CHILDREN_TRACE"))
        return;
    fprintf(stderr, "  c%u #%u %s object %02x..%u in %02x..%u %s cmd %u type %u flock %u %llx: %d%s\n",
            c->child, scene.calls[c->child] - 1, fop_info[call->fop].name, inode ? inode->gfid.b[0] : 0,
            inode ? inode->gfid.b[15] : 0, dir ? dir->gfid.b[0] : 0, dir ? dir->gfid.b[15] : 0,
            name ? name : "-", call->cmd, call->type, call->flock.type, (unsigned long long)call->flock.start,
            ret, kind < FAULT_KINDS ? " (fault)" : "");
}

/* Serves one call with the fault at its number, if there is any. Returns the result or -errno; 1 of a lock:
 * the call waits. */
static int
step_run(struct child_call *c, struct fault *f)
{
    enum fault_kind kind = f ? f->kind : FAULT_KINDS;
    unsigned child = c->child;
    int ret = -ENOTCONN;

    if (kind == FAULT_REFUSED && is_unlock(&c->stk->call))
        kind = FAULT_KINDS;
    if (f)
        f->has_struck = true;
    if (kind == FAULT_CUT)
        scene_cut();
    if (kind == FAULT_UNSENT)
        scene_child_down(child);
    int64_t starve_at = starving_pause();

    if (kind == FAULT_REFUSED)
        ret = -f->err;
    else if (scene.is_up[child] && !scene.is_cut)
        ret = call_serve(c);
    if (scene.lie)
        scene.lie(child, c->stk, &ret);
    starving_resume(starve_at);
    bool waits = is_lock_call(c->stk->call.fop) && ret == 1;

    call_trace(c, ret, kind);
    if (kind == FAULT_CUT_AFTER)
        scene_cut();
    if (kind == FAULT_UNANSWERED)
        scene_child_down(child);
    return !waits && (kind == FAULT_UNANSWERED || kind == FAULT_CUT_AFTER) ? -ENOTCONN : ret;
}

/* Runs joined calls as a brick runs a message, and then answers all. Each has a number of its own, so a fault
 * may come between two of them: a lost connection loses the answers of the calls before, too. */
static void
sequence_run(struct child_call *c, struct fault *f)
{
    struct call_stack *steps[8], *next = c->stk;
    int ret[8];
    unsigned count = 0, child = c->child;
    bool has_failed = false, is_lost = false;

    scene.sequences++;
    do {
        must(count < 8);
        if (count && !is_lost) {
            f = fault_of(child);
            f = f && f->kind < FAULT_KINDS && f->kind != FAULT_LATE ? f : NULL;
            scene.calls[child]++;
            scene.calls[ANY_CHILD]++;
        }
        steps[count] = c->stk = next;
        next = next->joined;
        c->stk->joined = NULL;
        bool runs = !is_lost && (!has_failed || c->stk->joins_always);

        ret[count] = runs ? step_run(c, f) : -ECANCELED;
        must(ret[count] != 1 || !is_lock_call(c->stk->call.fop)); /* no call of a sequence waits */
        has_failed |= ret[count++] < 0;
        is_lost |= !scene.is_up[child] || scene.is_cut;
    } while (next);
    free(c);
    for (unsigned k = 0; k < count; k++) {
        if (is_lost || ret[k] != -ECANCELED) {
            child_call_answer(steps[k], is_lost ? -ENOTCONN : ret[k]);
            continue;
        }
        steps[k]->reply =
            (struct fop_reply){.op_ret = -1, .op_errno = ECANCELED, .shortage = SHORTAGE_UNSENT};
        call_stack_unwind(steps[k]);
    }
}

static void
call_run(struct child_call *c, struct fault *f)
{
    struct call_stack *stk = c->stk;

    if (stk->joined) {
        sequence_run(c, f);
        return;
    }
    bool is_lock = is_lock_call(stk->call.fop);
    int ret = step_run(c, f);

    free(c);
    if (!is_lock || ret != 1)
        child_call_answer(stk, ret);
}

static bool
call_run_next(bool is_late)
{
    struct child_call *c;

    cds_list_for_each_entry(c, &calls, link)
    {
        if (c->is_late != is_late || c->is_held)
            continue;
        struct fault *f = is_late ? NULL : fault_of(c->child);

        scene.calls[c->child] += !is_late;
        scene.calls[ANY_CHILD] += !is_late;
        if (f && (f->kind == FAULT_LATE || f->kind == FAULT_HELD)) {
            f->has_struck = true;
            c->is_late = f->kind == FAULT_LATE;
            c->is_held = f->kind == FAULT_HELD;
            return true;
        }
        cds_list_del(&c->link);
        call_run(c, f);
        return true;
    }
    return false;
}

void
scene_release_held(int err)
{
    struct fault refusal = {.kind = FAULT_REFUSED, .err = err};
    struct child_call *c, *next;
    CDS_LIST_HEAD(held);

    cds_list_for_each_entry_safe(c, next, &calls, link)
    {
        if (c->is_held)
            cds_list_move(&c->link, &held);
    }
    cds_list_for_each_entry_safe(c, next, &held, link) call_run(c, err ? &refusal : NULL);
}

void
scene_run(uint64_t ms)
{
    uint64_t until = scene.now_ns + ms * 1000000;
    unsigned steps = 0;

    while (call_run_next(false) || job_run_next() || call_run_next(true) || timer_fire_next(until)) {
        steps++;
        must(steps < 100000); /* else the scene runs for ever */
    }
    scene.now_ns = scene.now_ns > until ? scene.now_ns : until;
}

void
scene_run_job(void)
{
    must(job_run_next());
}

void
scene_arm(const struct fault *faults, unsigned count)
{
    memset(scene.calls, 0, sizeof scene.calls);
    scene.answered = 0;
    scene.fault_count = count;
    for (unsigned i = 0; i < count; i++)
        scene.fault[i] = faults[i];
}

/* ---- the layers ------------------------------------------------------------------------------ */

struct child_conf {
    int64_t number;
};

static const struct option child_options[] = {OPT_INT(struct child_conf, number, "number", "0", 0, 100),
                                              OPT_END};
static const struct option top_options[] = {OPT_END};

static xl_verdict
child_any(struct xlator *xl, struct call_stack *stk)
{
    const struct child_conf *conf = xlator_conf(xl);
    int64_t starve_at = starving_pause();
    struct child_call *c = malloc(sizeof *c);

    starving_resume(starve_at);
    *c = (struct child_call){.stk = stk, .xl = xl, .child = (unsigned)conf->number};
    cds_list_add_tail(&c->link, &calls);
    return XL_OWNED;
}

static const struct xlator_type child_type = {.name = "test/child",
                                              .options = child_options,
                                              .conf_size = sizeof(struct child_conf),
                                              .ops = &(const struct xlator_ops){.any = child_any}};
static const struct xlator_type early_child_type = {.name = "test/early-child",
                                                    .options = child_options,
                                                    .conf_size = sizeof(struct child_conf),
                                                    .traits = LAYER_ANSWERS_EARLY,
                                                    .ops = &(const struct xlator_ops){.any = child_any}};
static const struct xlator_type top_type = {.name = "test/top", .options = top_options};
static const struct xlator_type *tested_type;

static const struct xlator_type *
scene_type_find(const char *name)
{
    if (strcmp(name, child_type.name) == 0)
        return &child_type;
    if (strcmp(name, early_child_type.name) == 0)
        return &early_child_type;
    if (strcmp(name, top_type.name) == 0)
        return &top_type;
    return strcmp(name, tested_type->name) == 0 ? tested_type : NULL;
}

/* ---- a scene --------------------------------------------------------------------------------- */

static void
scene_watch(struct graph *g, const struct layer_event *e)
{
    (void)g;
    (void)e;
}

void
scene_clear(unsigned count, bool has_arbiter)
{
    memset(&scene, 0, sizeof scene);
    scene.now_ns = UINT64_C(1000000000000);
    scene.count = count;
    for (unsigned i = 0; i < count; i++) {
        struct stored_object *root = &scene.store[i].object[0];

        scene.store[i].is_arbiter = has_arbiter && i + 1 == count;
        scene.store[i].clock = 1000;
        root->stat = (struct iatt){.mode = S_IFDIR | 0755, .nlink = 1, .flags = IATT_FLAGS_ALL, .ino = 1};
        root->stat.gfid.b[15] = 1;
    }
}

static size_t
scene_volfile(char *text, size_t size, const struct xlator_type *type, const char *options, bool is_top)
{
    size_t at = 0;

    for (unsigned i = 0; i < scene.count; i++)
        at += (size_t)snprintf(text + at, size - at,
                               "volume c%u\n type test/%s\n option number %u\nend-volume\n", i,
                               scene.answers_early ? "early-child" : "child", i);
    at += (size_t)snprintf(text + at, size - at, "volume v\n type %s\n%s subvolumes", type->name, options);
    for (unsigned i = 0; i < scene.count; i++)
        at += (size_t)snprintf(text + at, size - at, " c%u", i);
    at += (size_t)snprintf(text + at, size - at, "\nend-volume\n");
    if (!is_top)
        at += (size_t)snprintf(text + at, size - at,
                               "volume top\n type test/top\n subvolumes v\nend-volume\n");
    must(at < size);
    return at;
}

static void
scene_init_once(void)
{
    static bool is_done;

    if (is_done)
        return;
    is_done = true;
    must(graph_pools_init() == 0);
    must(coro_stacks_init() == 0);
    if (!getenv("CHILDREN_TRACE"))
        log_set_level(LOG_ERROR);
    rcu_register_thread();
}

/* Returns NULL with the reason in *error. */
static struct graph *
scene_graph_new(const struct xlator_type *type, const char *options, bool is_top, char *error, size_t size)
{
    char text[4096];

    scene_init_once();
    tested_type = type;
    size_t len = scene_volfile(text, sizeof text, type, options, is_top);
    struct volfile *v = volfile_parse("scene.vol", text, len, error, size);
    struct graph *g = v ? graph_new(scene_type_find, v, NULL, error, size) : NULL;

    if (g)
        g->watch = scene_watch;
    return g;
}

/* Makes `g` the graph of the scene. */
static void
scene_take_graph(struct graph *g)
{
    const struct xlator *tested = g->top->type == tested_type ? g->top : g->top->children[0];

    scene.graph = g;
    for (unsigned i = 0; i < scene.count; i++)
        scene.child[i] = tested->children[i];
}

static void
scene_begin_at(const struct xlator_type *type, const char *options, bool is_top)
{
    char error[256] = "";
    struct graph *g = scene_graph_new(type, options, is_top, error, sizeof error);

    if (!g)
        ck_abort_msg("%s", error);
    scene_take_graph(g);
    scene.is_cut = false;
    scene_arm(NULL, 0);
    must(graph_start(scene.graph) == 0);
    for (unsigned i = 0; i < scene.count; i++)
        scene_child_up(i);
    scene_run(0);
}

const char *
scene_refusal(const struct xlator_type *type, const char *options, bool is_top)
{
    static char error[256];

    error[0] = '\0';
    struct graph *g = scene_graph_new(type, options, is_top, error, sizeof error);

    if (!g)
        return error;
    scene_take_graph(g);
    int err = graph_start(g);

    if (!err)
        graph_drain(g);
    graph_free(g);
    scene.graph = NULL;
    if (!err)
        return NULL;
    snprintf(error, sizeof error, "start: %s", strerror(-err));
    return error;
}

int
scene_reconfigure(const char *options)
{
    char text[4096], error[256] = "";
    bool is_top = scene.graph->top->type == tested_type;
    size_t len = scene_volfile(text, sizeof text, tested_type, options, is_top);
    struct volfile *v = volfile_parse("scene.vol", text, len, error, sizeof error);

    return v ? graph_reconfigure(scene.graph, v, error, sizeof error) : -EINVAL;
}

void
scene_begin_beside(const char *options)
{
    char error[256] = "";
    bool is_top = scene.graph->top->type == tested_type;
    struct graph *g = scene_graph_new(tested_type, options, is_top, error, sizeof error);

    if (!g)
        ck_abort_msg("%s", error);
    scene.beside = scene.graph;
    scene_take_graph(g);
    must(graph_start(g) == 0);
    for (unsigned i = 0; i < scene.count; i++) {
        if (scene.is_up[i])
            scene_child_up(i);
    }
    scene_run(0);
}

void
scene_end_beside(bool ends_serving)
{
    struct graph *g = ends_serving ? scene.graph : scene.beside;
    uint16_t owner = g->owner;

    if (ends_serving)
        scene_take_graph(scene.beside);
    scene.beside = NULL;
    must(atomic_load(&g->pins) == 1);
    graph_drain(g);
    graph_free(g);
    must(mem_owner_balance(owner, NULL) == 0);
}

void
scene_begin(const struct xlator_type *type, const char *options)
{
    scene_begin_at(type, options, false);
}

void
scene_begin_top(const struct xlator_type *type, const char *options)
{
    scene_begin_at(type, options, true);
}

void
scene_end(void)
{
    uint16_t owner = scene.graph->owner;

    scene_arm(NULL, 0);
    fd_unref(scene.fd);
    scene.fd = NULL;
    scene_run(5000); /* holds end */
    must(atomic_load(&scene.graph->pins) == 1);
    graph_drain(scene.graph);
    graph_free(scene.graph);
    must(mem_owner_balance(owner, NULL) == 0);
    scene.graph = NULL;
    for (unsigned i = 0; i < scene.count; i++) {
        locks_drop_child(i);
        scene.is_up[i] = false;
    }
}

/* ---- calls from the top ---------------------------------------------------------------------- */

static void
keep_reply(struct fop_reply *r)
{
    const char *path = scene.ret >= 0 ? r->path : NULL;
    size_t at = 0;

    scene.stat = r->stat;
    scene.text_len = 0;
    if (path)
        scene.text_len = (unsigned)snprintf(scene.text, sizeof scene.text, "%s", path);
    if (r->iobuf && scene.ret > 0) {
        scene.text_len = (unsigned)scene.ret;
        memcpy(scene.text, r->payload.iov_base, scene.text_len);
    }
    scene.names[0] = '\0';
    for (const struct dirent_entry *e = scene.ret > 0 ? r->entries : NULL; e; e = e->next) {
        at += (size_t)snprintf(scene.names + at, sizeof scene.names - at, "%s/", e->name);
        scene.next_offset = e->off;
    }
    if (r->fd && scene.ret >= 0) {
        fd_unref(scene.fd);
        scene.fd = fd_ref(r->fd);
    }
}

static void
scene_answered(struct call_stack *stk)
{
    int64_t starve_at = starving_pause();

    must(!scene.is_answered);
    scene.is_answered = true;
    scene.was_dead = scene.is_cut;
    scene.ret = stk->reply.op_ret < 0 ? -stk->reply.op_errno : stk->reply.op_ret;
    keep_reply(&stk->reply);
    call_stack_free(stk);
    starving_resume(starve_at);
}

int
scene_call(enum fop fop, void (*fill)(struct call_stack *stk), uint64_t ms)
{
    int64_t starve_at = starving_pause();
    struct call_stack *stk = call_stack_new(scene_answered, NULL);

    scene.is_answered = false;
    stk->caller.pid = 1000;
    stk->call.fop = fop;
    stk->call.xdata = dict_new(&stk->arena);
    if (fill)
        fill(stk);
    starving_resume(starve_at);
    call_stack_wind(stk, scene.graph->top);
    scene_run(ms);
    if (!scene.is_answered)
        ck_abort_msg("%s hangs; locks: %s", fop_info[fop].name, store_locks_text());
    return scene.ret;
}

struct inode *
scene_inode(unsigned i, const char *path)
{
    struct stored_object *o = store_find(&scene.store[i], path);

    return o ? inode_link(scene.graph->inodes, NULL, NULL, &o->stat) : NULL;
}

/* ---- looking up every name ------------------------------------------------------------------- */

static const struct stored_name *looked_for;
static const struct store *looked_in;

static void
fill_lookup(struct call_stack *stk)
{
    struct gfid fresh = {.b = {0xdd, [15] = 1}};

    if (looked_for) {
        stk->call.loc.parent =
            inode_link(scene.graph->inodes, NULL, NULL, &looked_in->object[looked_for->dir].stat);
        stk->call.loc.name = looked_for->name;
        must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &fresh) == 0);
    } else {
        stk->call.loc.inode = inode_root(scene.graph->inodes);
    }
}

void
scene_lookup_all(void)
{
    looked_for = NULL;
    (void)scene_call(FOP_lookup, fill_lookup, 0);
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned n = 0; n < STORED_NAMES_MAX; n++) {
            struct stored_name name = scene.store[i].name[n];

            if (!name.is_used || strncmp(name.name, ".glusterfs", 10) == 0)
                continue;
            looked_in = &scene.store[i];
            looked_for = &name;
            (void)scene_call(FOP_lookup, fill_lookup, 0);
        }
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

char run_text[RUN_TEXT_BYTES];
unsigned findings;

void
finding_add(const char *fmt, ...)
{
    va_list ap;

    if (++findings > 25)
        return;
    fprintf(stderr, "%s: ", run_text);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
}
