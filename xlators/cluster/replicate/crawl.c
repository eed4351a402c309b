/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/replicate/crawl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/replicate/crawl-internal.h"

enum { ROUNDS_MAX = 100, RETRY_FIRST_S = 1, LIST_BYTES = 128 * 1024, LISTED_MAX = 1000000, PART_MAX = 1024 };

/* ---- the bound of the process ---------------------------------------------------------------- */

struct slot_waiter {
    struct cds_list_head link;
    struct coroutine *self;
};

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf; guards the next two */
static struct cds_list_head slot_waiters = CDS_LIST_HEAD_INIT(slot_waiters);
static unsigned slots_used;

static void
slot_take(void)
{
    struct slot_waiter w = {.self = coroutine_self()};

    pthread_mutex_lock(&slots_lock);
    bool waits = slots_used == CRAWL_OBJECTS_MAX;
    if (waits)
        cds_list_add_tail(&w.link, &slot_waiters);
    else
        slots_used++;
    pthread_mutex_unlock(&slots_lock);
    if (waits)
        coroutine_yield();
}

/* Passes the slot on to the coroutine that waits longest. */
static void
slot_give_back(void)
{
    struct slot_waiter *next = NULL;

    pthread_mutex_lock(&slots_lock);
    if (cds_list_empty(&slot_waiters)) {
        slots_used--;
    } else {
        next = cds_list_first_entry(&slot_waiters, struct slot_waiter, link);
        cds_list_del(&next->link);
    }
    pthread_mutex_unlock(&slots_lock);
    if (next)
        coroutine_resume(next->self);
}

/* ---- one object ------------------------------------------------------------------------------ */

enum outcome { NOT_TRIED, HEALED, CLEAN, GONE, NAMELESS, BUSY, SPLIT, FAILED };

bool
crawl_must_stop(const struct crawler *c)
{
    struct replicate *r = c->r;

    return atomic_load(&r->is_stopping) || atomic_load(&r->up) != r->all;
}

unsigned
crawl_width(const struct crawler *c)
{
    const struct replicate_conf *conf = xlator_conf(c->r->xl);
    int64_t width = (conf->healer_threads ? conf->healer_threads : conf->heal_count) / c->share;

    return width < 1 ? 1 : width > CRAWL_OBJECTS_MAX ? CRAWL_OBJECTS_MAX : (unsigned)width;
}

static void
set_under_heal(struct crawler *c, const struct gfid *from, const struct gfid *to)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < sizeof c->under_heal / sizeof c->under_heal[0]; i++) {
        if (gfid_equal(&c->under_heal[i], from)) {
            c->under_heal[i] = *to;
            break;
        }
    }
    pthread_mutex_unlock(&c->lock);
}

/* Forgets the fault of the object, and notes the new one, if `why` is not 0. */
static void
note_fault(struct crawler *c, const struct heal *h, int why)
{
    const struct gfid *gfid = &h->op.inode->gfid;
    struct crawl_fault fault = {.gfid = *gfid, .why = why};
    unsigned n = 0;

    if (why && why == h->why)
        snprintf(fault.child, sizeof fault.child, "%s", c->r->xl->children[h->why_child]->name);
    pthread_mutex_lock(&c->lock);
    while (n < c->fault_count && !gfid_equal(&c->faults[n].gfid, gfid))
        n++;
    bool is_known = n < c->fault_count;
    if (why && n < CRAWL_FAULTS_KEPT) {
        c->faults[n] = fault;
        c->fault_count += !is_known;
    } else if (is_known) {
        c->faults[n] = c->faults[--c->fault_count];
    }
    pthread_mutex_unlock(&c->lock);
}

/* Has the bricks check their index entries of an object without pending counters: an XATTROP that adds
 * nothing. */
static void
recheck_index(const struct heal *h)
{
    struct changelog each[REPLICAS_MAX] = {0};
    struct marks m = {.inode = h->op.inode, .each = each};
    struct fan f;

    fan_begin(&f);
    for_each_child (i, h->op.r->all)
        fan_wind(&f, &h->op, i, marks_call(&h->op, i, &m));
    fan_wait(&f);
    fan_end(&f); /* an entry that stays is met by the next crawl */
}

static bool
is_locked_anywhere(const struct heal *h)
{
    bool is = false;

    for (unsigned i = 0; i < h->op.r->count; i++)
        is |= h->replica[i].is_locked;
    return is;
}

static int
heal_marked_kinds(struct heal *h, uint32_t type, bool is_full)
{
    bool is_locked = is_locked_anywhere(h), is_dir = S_ISDIR(type);
    bool names = is_dir && (is_full || heal_is_marked(h, CHANGE_ENTRY) || heal_is_marked(h, CHANGE_DATA));
    bool data = S_ISREG(type) && (heal_is_marked(h, CHANGE_DATA) || (!is_locked && heal_sizes_differ(h)));
    bool metadata = heal_is_marked(h, CHANGE_METADATA) || (!is_locked && h->attributes_differ);
    int err = 0, ret;

    if (data)
        err = heal_data(h);
    if (metadata && (ret = heal_metadata(h)))
        err = err ? err : ret;
    if (names && (ret = heal_entries(h)))
        err = err ? err : ret;
    return err;
}

bool
crawl_needs_heal(const struct heal *h, uint32_t type)
{
    bool is_locked = is_locked_anywhere(h);

    return heal_is_marked(h, CHANGE_DATA) || heal_is_marked(h, CHANGE_METADATA) ||
           heal_is_marked(h, CHANGE_ENTRY) || (!is_locked && h->attributes_differ) ||
           (S_ISREG(type) && !is_locked && heal_sizes_differ(h));
}

/* After a failed heal: returns whether no copy is good in one of the kinds, as of a new look. */
bool
crawl_is_split_brain(struct heal *h, uint32_t type, struct view *v)
{
    *v = (struct view){.data = 1, .metadata = 1};
    if (heal_look(h, CHANGE_METADATA))
        return false;
    v->metadata = h->way.sources;
    heal_direct(h, CHANGE_DATA);
    child_set able = h->op.r->arbiter < 0 ? h->op.r->all : h->op.r->all & ~CHILD(h->op.r->arbiter);
    if (S_ISREG(type))
        v->data = h->way.sources & able;
    return !v->metadata || !v->data;
}

static enum outcome
outcome_of(struct crawler *c, struct heal *h, uint32_t type, bool is_full, int err)
{
    struct view v;

    if (err == -EIO && !h->why && crawl_is_split_brain(h, type, &v)) {
        if (split_ask_policy(c->r, h->op.inode, &v) && !heal_look(h, CHANGE_METADATA))
            err = heal_marked_kinds(h, type, is_full);
        if (err == -EIO && crawl_is_split_brain(h, type, &v)) {
            note_fault(c, h, 0);
            return SPLIT;
        }
    } else if (err == -EIO && !h->why && S_ISDIR(type)) {
        note_fault(c, h, 0);
        return SPLIT; /* a name that leads to different objects */
    }
    note_fault(c, h, err == -EAGAIN || err == -ENOTCONN ? 0 : -err);
    if (!err)
        return HEALED;
    log_event(err == -EAGAIN ? LOG_DEBUG : LOG_WARNING, c->r->xl, "crawl-heal-failed",
              "%s is not healed%s%s: %s", GFID(&h->op.inode->gfid), h->why ? ": " : "",
              h->why ? c->r->xl->children[h->why_child]->name : "", strerror(-err));
    return err == -EAGAIN ? BUSY : FAILED;
}

static enum outcome
heal_one(struct crawler *c, struct heal *h, bool is_full)
{
    int err = heal_look(h, CHANGE_METADATA);
    uint32_t type = 0;

    if (h->gone == c->r->all)
        return GONE;
    if (h->gone)
        return NAMELESS;
    if (err)
        return FAILED;
    type = h->stat[0].mode & S_IFMT;
    inode_learn_type(h->op.inode, type);
    if (!crawl_needs_heal(h, type) && !(is_full && S_ISDIR(type))) {
        if (!is_full)
            recheck_index(h);
        return CLEAN;
    }
    bool is_marked = crawl_needs_heal(h, type);
    enum outcome outcome = outcome_of(c, h, type, is_full, heal_marked_kinds(h, type, is_full));

    return outcome == HEALED && !is_marked ? CLEAN : outcome;
}

/* ---- many objects ---------------------------------------------------------------------------- */

struct object {
    struct gfid gfid;
    uint32_t type;   /* S_IFMT bits as the list tells; 0: unknown */
    uint8_t outcome; /* enum outcome */
};

struct pass {
    struct crawler *c;
    struct object *objects;
    unsigned child; /* whose looks count */
    bool is_full;
    unsigned names; /* names of a folder healed at a time */
    atomic_uint healed, failed;
};

static enum look_result
look_result_of(const struct object *o)
{
    return o->outcome == HEALED   ? LOOK_HEALED
           : o->outcome == SPLIT  ? LOOK_SPLIT
           : o->outcome == FAILED ? LOOK_FAILED
                                  : LOOK_NOTHING;
}

static void
object_begin(struct pass *p, const struct object *o)
{
    looks_begin_object(p->c->looks, p->child, &o->gfid);
    set_under_heal(p->c, &gfid_null, &o->gfid);
}

static void
object_end(struct pass *p, const struct object *o)
{
    set_under_heal(p->c, &o->gfid, &gfid_null);
    looks_end_object(p->c->looks, p->child, look_result_of(o), !p->is_full);
    if (o->outcome == HEALED)
        atomic_fetch_add(&p->healed, 1);
    if (o->outcome == FAILED || o->outcome == BUSY)
        atomic_fetch_add(&p->failed, 1);
}

static void
heal_object(void *arg, size_t n)
{
    struct pass *p = arg;
    struct crawler *c = p->c;
    struct object *o = &p->objects[n];
    struct iatt a = {.gfid = o->gfid, .mode = o->type};
    struct heal h;

    if (crawl_must_stop(c) || (o->outcome != NOT_TRIED && o->outcome != NAMELESS))
        return;
    struct inode *inode = inode_link(c->graph->inodes, NULL, NULL, &a);
    if (!inode)
        return;
    slot_take();
    object_begin(p, o);
    heal_begin(&h, c->r, inode);
    h.wants_all_names = p->is_full;
    h.gives_gfids = true;
    h.width = p->names;
    h.unit_ns = heal_unit_begin(&c->r->throttle);
    o->outcome = (uint8_t)heal_one(c, &h, p->is_full);
    heal_unit_end(&c->r->throttle, h.unit_ns);
    object_end(p, o);
    heal_end(&h);
    inode_unref(inode);
    slot_give_back();
}

/* Heals the objects. The names of folders share the width with the folders. */
static void
heal_objects(struct pass *p, size_t count)
{
    unsigned width = crawl_width(p->c);

    p->names = count < width ? width / (count ? (unsigned)count : 1) : 1;
    coro_each(width, count, heal_object, p);
}

/* ---- the index of a brick -------------------------------------------------------------------- */

struct list {
    struct object *at;
    size_t count, room;
};

static int
list_add(struct list *l, const struct gfid *gfid, uint32_t type)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        struct object *at = realloc(l->at, room * sizeof *at);

        if (!at)
            return -ENOMEM;
        l->at = at;
        l->room = room;
    }
    l->at[l->count++] = (struct object){.gfid = *gfid, .type = type};
    return 0;
}

/* Returns the virtual directory of an index of child i: a reference; NULL: the brick has none. */
static struct inode *
index_directory(const struct heal *h, unsigned i, enum dict_key key)
{
    struct call_stack *stk = heal_call(h, FOP_getxattr, i);
    struct iatt a = {.mode = S_IFDIR | 0600};
    struct inode *dir = NULL;

    if (!stk)
        return NULL;
    stk->call.name = dict_key_text(key);
    stk->call.has_name = 1;
    if (coro_call(stk, h->op.r->xl->children[i]) >= 0 && !dict_get_gfid(stk->reply.dict, key, &a.gfid) &&
        !gfid_is_null(&a.gfid))
        dir = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, &a);
    call_stack_free(stk);
    return dir;
}

static void
take_listed(struct list *l, const struct dirent_entry *entries, uint64_t *offset)
{
    for (const struct dirent_entry *e = entries; e; e = e->next) {
        struct gfid gfid;

        *offset = e->off;
        if (!gfid_parse(e->name, e->name_len, &gfid) && !gfid_is_null(&gfid) && l->count < LISTED_MAX)
            (void)list_add(l, &gfid, DTTOIF(e->type)); /* without memory: the next round lists the rest */
    }
}

/* Returns 1: there is more; 0: the end; or -errno. */
static int
index_part(const struct heal *h, unsigned i, struct fd *fd, uint64_t *offset, struct list *l)
{
    struct call_stack *stk = heal_call(h, FOP_readdir, i);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = LIST_BYTES;
    int ret = call_xdata(stk) ? dict_set_int(stk->call.xdata, DICT_KEY_GET_GFID_TYPE, 1) : -ENOMEM;

    if (!ret)
        ret = coro_call(stk, h->op.r->xl->children[i]);
    if (ret >= 0) {
        take_listed(l, stk->reply.entries, offset);
        ret = stk->reply.entries != NULL && !heal_must_stop(h);
    }
    call_stack_free(stk);
    return ret;
}

static int
index_list(const struct heal *h, unsigned i, struct inode *dir, struct list *l)
{
    struct call_stack *stk = heal_call(h, FOP_opendir, i);
    uint64_t offset = 0;

    if (!stk)
        return -ENOMEM;
    inode_unref(stk->call.loc.inode);
    stk->call.loc.inode = inode_ref(dir);
    int ret = coro_call(stk, h->op.r->xl->children[i]);

    while (ret >= 0) {
        ret = index_part(h, i, stk->reply.fd, &offset, l);
        if (ret == 0)
            break;
    }
    call_stack_free(stk);
    return ret;
}

/* Removes an entry: a file, or with FOP_rmdir a folder with all names in it. */
static void
index_remove(const struct heal *h, unsigned i, struct inode *dir, const struct gfid *gfid, enum fop fop)
{
    struct call_stack *stk = heal_name_call(h, fop, i, dir, GFID(gfid));

    if (stk && fop == FOP_rmdir)
        stk->call.flags = 1;
    (void)heal_send(h, i, stk); /* an entry that stays is met by the next crawl */
}

/* Removes the index entries of objects that have gone from all children. */
static void
index_remove_gone(const struct heal *h, unsigned i, struct inode *dir, const struct list *l)
{
    for (size_t n = 0; n < l->count && !heal_must_stop(h); n++) {
        if (l->at[n].outcome == GONE)
            index_remove(h, i, dir, &l->at[n].gfid, FOP_unlink);
    }
}

static void
put_folders_first(struct list *l, size_t *folders)
{
    *folders = 0;
    for (size_t n = 0; n < l->count; n++) {
        if (!S_ISDIR(l->at[n].type))
            continue;
        struct object o = l->at[n];

        l->at[n] = l->at[*folders];
        l->at[(*folders)++] = o;
    }
}

/* Heals the listed objects: folders again and again while a folder was healed and another one still has no
 * name on a child, then all others. */
static void
heal_list_of_index(struct pass *p, struct list *l)
{
    size_t folders;
    unsigned before;

    put_folders_first(l, &folders);
    looks_set_left(p->c->looks, p->child, l->count);
    p->objects = l->at;
    do {
        before = atomic_load(&p->healed);
        heal_objects(p, folders);
    } while (atomic_load(&p->healed) > before && !crawl_must_stop(p->c));
    p->objects = l->at + folders;
    heal_objects(p, l->count - folders);
}

/* Names that clients have changed in folders are kept below the index; those of removed folders go. */
static void
clear_name_index(const struct heal *h, unsigned i)
{
    struct inode *dir = index_directory(h, i, DICT_KEY_XATTROP_ENTRY_CHANGES_GFID);
    struct list l = {0};

    if (dir)
        (void)index_list(h, i, dir, &l); /* after a failure: the names listed so far */
    for (size_t n = 0; n < l.count && !heal_must_stop(h); n++) {
        struct iatt a = {.gfid = l.at[n].gfid, .mode = S_IFDIR};
        struct inode *folder = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, &a);

        if (folder && heal_look_by_gfid(h, i, folder, NULL) == -ENOENT)
            index_remove(h, i, dir, &a.gfid, FOP_rmdir);
        inode_unref(folder);
    }
    free(l.at);
    inode_unref(dir);
}

static void
crawl_child(struct pass *p, const struct heal *h)
{
    static const enum dict_key keys[] = {DICT_KEY_XATTROP_INDEX_GFID, DICT_KEY_XATTROP_DIRTY_GFID};

    looks_begin(p->c->looks, p->child, false);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0] && !crawl_must_stop(p->c); k++) {
        struct inode *dir = index_directory(h, p->child, keys[k]);
        struct list l = {0};

        if (dir && index_list(h, p->child, dir, &l) >= 0) {
            heal_list_of_index(p, &l);
            index_remove_gone(h, p->child, dir, &l);
        }
        free(l.at);
        inode_unref(dir);
    }
    if (!crawl_must_stop(p->c))
        clear_name_index(h, p->child);
    looks_end(p->c->looks, p->child);
}

/* Returns the number of objects that could not be healed in the last round, though that may change. */
static unsigned
crawl_index(struct crawler *c)
{
    struct pass p = {.c = c};
    struct inode *root = inode_root(c->graph->inodes);
    struct heal h;

    if (!c->has_made_hidden && !crawl_must_stop(c)) {
        heal_begin(&h, c->r, root);
        heal_make_hidden(&h);
        heal_end(&h);
        c->has_made_hidden = true;
    }
    dead_changes_ask(&c->r->dead_changes);
    for (unsigned round = 0; round < ROUNDS_MAX && !crawl_must_stop(c); round++) {
        atomic_store(&p.healed, 0);
        atomic_store(&p.failed, 0);
        for (p.child = 0; p.child < c->r->count && !crawl_must_stop(c); p.child++) {
            heal_begin(&h, c->r, root);
            crawl_child(&p, &h);
            heal_end(&h);
        }
        if (!atomic_load(&p.healed))
            break;
    }
    inode_unref(root);
    return atomic_load(&p.failed);
}

/* ---- the whole tree -------------------------------------------------------------------------- */

struct walk {
    struct pass p;
    struct list folders; /* still to be walked; a stack */
    struct object part[PART_MAX];
    size_t count;
};

static void
walk_part(struct walk *w)
{
    w->p.objects = w->part;
    heal_objects(&w->p, w->count);
    w->count = 0;
}

static void
walk_entries(struct walk *w, const struct inode *dir, const struct dirent_entry *entries, uint64_t *offset)
{
    for (const struct dirent_entry *e = entries; e; e = e->next) {
        uint32_t type = e->iatt.mode & S_IFMT;

        *offset = e->off;
        if (gfid_is_null(&e->iatt.gfid) || strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0 ||
            heal_is_reserved_name(dir, e->name))
            continue;
        if (S_ISDIR(type)) {
            (void)list_add(&w->folders, &e->iatt.gfid, S_IFDIR);
            continue;
        }
        w->part[w->count++] = (struct object){.gfid = e->iatt.gfid, .type = type};
        if (w->count == PART_MAX)
            walk_part(w);
    }
    walk_part(w);
}

static int
walk_listing(struct walk *w, const struct heal *h, struct fd *fd, uint64_t *offset)
{
    struct call_stack *stk = heal_call(h, FOP_readdirp, 0);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = LIST_BYTES;
    int ret = coro_call(stk, h->op.r->xl->children[0]);

    if (ret >= 0) {
        walk_entries(w, h->op.inode, stk->reply.entries, offset);
        ret = stk->reply.entries != NULL && !heal_must_stop(h);
    }
    call_stack_free(stk);
    return ret;
}

/* A folder that has gone needs no heal. */
static void
walk_judge_listing(struct walk *w, int ret)
{
    if (ret >= 0 || ret == -ENOENT || ret == -ESTALE || crawl_must_stop(w->p.c))
        return;
    atomic_fetch_add(&w->p.failed, 1);
    looks_end_object(w->p.c->looks, 0, LOOK_FAILED, false);
}

static bool
walk_goes_on(struct crawler *c)
{
    pthread_mutex_lock(&c->lock);
    bool is_wanted = c->doing & WANTS_FULL;
    pthread_mutex_unlock(&c->lock);
    return is_wanted && !crawl_must_stop(c);
}

/* Heals a folder, so that all children have the same names, and then the objects behind the names. */
static void
walk_folder(struct walk *w, const struct object *folder)
{
    struct crawler *c = w->p.c;
    struct iatt a = {.gfid = folder->gfid, .mode = S_IFDIR};
    struct inode *dir = inode_link(c->graph->inodes, NULL, NULL, &a);
    uint64_t offset = 0;
    struct heal h;

    w->part[0] = *folder;
    w->count = 1;
    walk_part(w);
    if (!dir)
        return;
    heal_begin(&h, c->r, dir);
    struct call_stack *stk = heal_call(&h, FOP_opendir, 0);
    int ret = stk ? coro_call(stk, c->r->xl->children[0]) : -ENOMEM;

    while (ret >= 0 && walk_goes_on(c)) {
        ret = walk_listing(w, &h, stk->reply.fd, &offset);
        if (ret == 0)
            break;
    }
    walk_judge_listing(w, ret);
    if (stk)
        call_stack_free(stk);
    heal_end(&h);
    inode_unref(dir);
}

static unsigned
crawl_full(struct crawler *c)
{
    struct walk *w = walk_goes_on(c) ? calloc(1, sizeof *w) : NULL;

    if (!w)
        return walk_goes_on(c);
    w->p = (struct pass){.c = c, .is_full = true};
    looks_begin(c->looks, 0, true);
    (void)list_add(&w->folders, &gfid_root, S_IFDIR);
    while (w->folders.count > 0 && walk_goes_on(c)) {
        struct object folder = w->folders.at[--w->folders.count];

        walk_folder(w, &folder);
        looks_set_left(c->looks, 0, w->folders.count);
    }
    looks_end(c->looks, 0);
    unsigned failed = atomic_load(&w->p.failed);
    free(w->folders.at);
    free(w);
    return failed;
}

/* ---- a crawl --------------------------------------------------------------------------------- */

static unsigned
next_wanted(struct crawler *c)
{
    pthread_mutex_lock(&c->lock);
    unsigned wanted = c->is_stopped ? 0 : c->wanted;
    c->wanted = 0;
    c->doing = wanted;
    pthread_mutex_unlock(&c->lock);
    return wanted;
}

/* A walk that the loss of a child has cut begins anew when the child is back; one that has not begun, at the
 * next crawl. */
static void
crawl_done(struct crawler *c, bool has_begun)
{
    pthread_mutex_lock(&c->lock);
    c->wanted |= !has_begun || crawl_must_stop(c) ? c->doing & WANTS_FULL : 0;
    c->doing = 0;
    pthread_mutex_unlock(&c->lock);
}

/* Arms the timer, and returns true: the crawler may be freed. Returns false, unless `must_end`, if another
 * crawl was asked for after the last look at the wishes. */
static bool
crawl_end(struct crawler *c, bool has_failed, bool must_end)
{
    const struct replicate_conf *conf = xlator_conf(c->r->xl);
    uint64_t retry_s = RETRY_FIRST_S, most_s = (uint64_t)conf->heal_timeout_s;

    pthread_mutex_lock(&c->lock);
    if (!must_end && c->wanted && !c->is_stopped && !crawl_must_stop(c)) {
        pthread_mutex_unlock(&c->lock);
        return false;
    }
    c->retries = has_failed ? c->retries + 1 : 0;
    for (unsigned n = 1; n < c->retries && retry_s < most_s; n++)
        retry_s *= 2;
    c->is_running = false;
    if (!c->is_stopped)
        timer_start(&c->timer, crawl_next_pause(&c->follow_ups,
                                                1000 * (has_failed && retry_s < most_s ? retry_s : most_s)));
    pthread_cond_broadcast(&c->ended);
    pthread_mutex_unlock(&c->lock);
    return true;
}

static void
crawl_go(void *arg)
{
    struct crawler *c = arg;
    struct graph *graph = c->graph;
    unsigned wanted, failed = 0;
    int err = 0;

    do {
        while (!err && !crawl_must_stop(c) && (wanted = next_wanted(c))) {
            err = crawl_prepare(c);
            failed = !err && wanted & WANTS_INDEX ? crawl_index(c) : 0;
            failed += !err && wanted & WANTS_FULL ? crawl_full(c) : 0;
            crawl_done(c, !err);
            if (!err && !crawl_must_stop(c))
                heal_clear_parked(c->r);
        }
    } while (!crawl_end(c, failed > 0 || err, err));
    graph_unpin(graph);
}

static void
crawl_job_run(struct worker_job *job)
{
    struct crawler *c = caa_container_of(job, struct crawler, job);
    struct graph *graph = c->graph;

    if (!coro_run(crawl_go, c))
        return;
    (void)crawl_end(c, true, true);
    graph_unpin(graph);
}

/* `lock` is held. */
void
crawl_want(struct crawler *c, unsigned what)
{
    c->wanted |= what;
    if (c->is_running || c->is_stopped || !c->heals || !graph_pin(c->graph))
        return;
    c->is_running = true;
    worker_post_any(&c->job);
}

static void
crawl_timer_fired(struct timer *t)
{
    struct crawler *c = caa_container_of(t, struct crawler, timer);

    pthread_mutex_lock(&c->lock);
    crawl_want(c, WANTS_INDEX);
    pthread_mutex_unlock(&c->lock);
}

void
crawler_child_up(struct crawler *c)
{
    if (atomic_load(&c->r->up) != c->r->all)
        return;
    pthread_mutex_lock(&c->lock);
    c->retries = 0;
    c->follow_ups = 0;
    crawl_want(c, WANTS_INDEX);
    pthread_mutex_unlock(&c->lock);
}

int
crawler_ask(struct crawler *c, bool is_full)
{
    if (!c->heals)
        return -EPERM;
    pthread_mutex_lock(&c->lock);
    c->retries = 0;
    crawl_want(c, is_full ? WANTS_FULL : WANTS_INDEX);
    pthread_mutex_unlock(&c->lock);
    return atomic_load(&c->r->up) == c->r->all ? 0 : -ENOTCONN;
}

bool
crawler_full_is_due(struct crawler *c)
{
    pthread_mutex_lock(&c->lock);
    bool is = (c->wanted | c->doing) & WANTS_FULL;
    pthread_mutex_unlock(&c->lock);
    return is;
}

void
crawler_stop_full(struct crawler *c)
{
    pthread_mutex_lock(&c->lock);
    c->wanted &= ~(unsigned)WANTS_FULL;
    c->doing &= ~(unsigned)WANTS_FULL;
    pthread_mutex_unlock(&c->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct crawler *
crawler_new(struct graph *g, unsigned share, bool heals)
{
    struct crawler *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->graph = g;
    c->r = g->top->private;
    const struct replicate_conf *conf = xlator_conf(c->r->xl);
    c->looks = looks_new(c->r->count);
    if (!c->looks) {
        free(c);
        return NULL;
    }
    c->share = share;
    c->heals = heals;
    c->follow_ups = CRAWL_FOLLOW_UPS;
    if (conf->throttles_heals)
        heal_throttle_by_bricks(&c->r->throttle, c->r->xl);
    c->job.run = crawl_job_run;
    timer_init(&c->timer, crawl_timer_fired);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
    atomic_store(&c->r->crawler, c);
    return c;
}

void
crawler_free(struct crawler *c)
{
    atomic_store(&c->r->crawler, NULL);
    atomic_store(&c->r->is_stopping, true); /* heals end */
    pthread_mutex_lock(&c->lock);
    c->is_stopped = true;
    while (c->is_running)
        pthread_cond_wait(&c->ended, &c->lock);
    pthread_mutex_unlock(&c->lock);
    timer_stop(&c->timer);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    looks_free(c->looks);
    free(c);
}
