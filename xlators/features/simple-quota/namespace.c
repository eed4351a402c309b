/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* namespace: finds the namespace of an object, and keeps the state of each namespace (gluster11 2.3, 2.4).
 *
 * The namespace of an object is determined at its first change, not at LOOKUP: it is that of the object's
 * folder if the call names a folder whose namespace is known. Otherwise the layer walks the object's path
 * from the root, which the disk stores (handles of folders, gfid2path of files). So clients that continue
 * with gfids after a restart of the brick are counted like others. Renames and links do not cross the border
 * of a namespace, so the namespace of an object stays valid until a folder is marked.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/features/simple-quota/squota-internal.h"

/* ---- internal calls -------------------------------------------------------------------------- */

struct own_call {
    bool is_answered;
};

static void
squota_call_done(struct call_stack *stk)
{
    struct own_call *own = stk->owner;

    own->is_answered = true;
}

struct call_stack *
squota_call(enum fop fop)
{
    struct call_stack *stk = call_stack_new(squota_call_done, NULL);

    if (stk) {
        stk->caller.pid = PID_INTERNAL;
        stk->call.fop = fop;
    }
    return stk;
}

int
squota_run(struct xlator *xl, struct call_stack *stk)
{
    struct own_call own = {false};

    stk->owner = &own;
    call_stack_wind_below(stk, xl);
    /* The layers below answer lookups, stats and changes of xattrs of internal callers at once. */
    if (!own.is_answered)
        abort();
    return stk->reply.op_ret < 0 ? -stk->reply.op_errno : 0;
}

int
squota_stat(struct xlator *xl, struct inode *inode, struct posix_allotted *out)
{
    return posix_allotted(squota_of(xl)->storage, inode, out);
}

int64_t
squota_limit_parse(const struct dict_pair *p)
{
    char text[32] = "", *end;

    if (!p || (p->type != DICT_STR && p->type != DICT_PTR && p->type != DICT_UNTYPED) ||
        p->len >= sizeof text)
        return 0;
    memcpy(text, p->v.bytes, p->len);
    errno = 0;
    long long limit = strtoll(text, &end, 10);
    return end == text || errno || limit < 0 || end[strspn(end, " \n")] != '\0' ? 0 : limit;
}

int
squota_lookup(struct xlator *xl, struct inode *parent, const char *name, const struct gfid *gfid,
              struct iatt *out, struct squota_mark *mark)
{
    struct call_stack *stk = squota_call(FOP_lookup);
    int err = -ENOMEM;

    if (!stk)
        return err;
    if (parent) {
        stk->call.loc = (struct loc){.parent = inode_ref(parent), .name = name};
        stk->call.name = name;
        stk->call.pargfid = parent->gfid;
    } else {
        stk->call.gfid = *gfid;
    }
    stk->call.xdata = dict_new(&stk->arena);
    if (stk->call.xdata && dict_set_text_int(stk->call.xdata, SQUOTA_XATTR_NAMESPACE, 1) == 0 &&
        dict_set_text_int(stk->call.xdata, SQUOTA_XATTR_LIMIT, 1) == 0 &&
        dict_set_text_int(stk->call.xdata, SQUOTA_XATTR_SIZE, 1) == 0)
        err = squota_run(xl, stk);
    *out = stk->reply.stat;
    *mark = (struct squota_mark){
        .is_marked = err == 0 && dict_find_text(stk->reply.xdata, SQUOTA_XATTR_NAMESPACE),
        .limit = err == 0 ? squota_limit_parse(dict_find_text(stk->reply.xdata, SQUOTA_XATTR_LIMIT)) : 0,
        .size = err == 0 ? squota_limit_parse(dict_find_text(stk->reply.xdata, SQUOTA_XATTR_SIZE)) : 0,
    };
    call_stack_free(stk);
    return err;
}

/* Asks for the object's path from the root. The path lies on the arena of *call, which the caller frees. */
static int
ask_path(struct xlator *xl, struct inode *inode, struct call_stack **call, const char **path)
{
    struct call_stack *stk = squota_call(FOP_getxattr);

    *call = stk;
    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(inode);
    stk->call.gfid = inode->gfid;
    stk->call.name = "glusterfs.gfidtopath";
    stk->call.has_name = 1;
    int err = squota_run(xl, stk);
    if (err)
        return err;
    const struct dict_pair *p = dict_find(stk->reply.dict, DICT_KEY_GFID_TO_PATH);
    if (!p || (p->type != DICT_PTR && p->type != DICT_STR))
        return -ENODATA;
    char *copy = arena_alloc(&stk->arena, p->len + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, p->v.bytes, p->len);
    copy[p->len] = '\0';
    *path = copy;
    return 0;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static struct mem_pool *inode_pool;
static pthread_once_t inode_pool_once = PTHREAD_ONCE_INIT;

static void
squota_inode_pool_make(void)
{
    inode_pool = mem_pool_new_opts(&(struct mem_pool_opts){
        .name = "squota-inode", .xlator = "features/simple-quota", .size = sizeof(struct squota_inode)});
}

struct squota_inode *
squota_inode_ctx(struct xlator *xl, struct inode *inode)
{
    struct squota_inode *ctx = inode_ctx(inode, xl), *fresh;

    if (ctx)
        return ctx;
    pthread_once(&inode_pool_once, squota_inode_pool_make);
    if (!inode_pool || !(fresh = mem_get0_owner(inode_pool, xl->graph->owner)))
        return NULL;
    fresh->inode = inode;
    CDS_INIT_LIST_HEAD(&fresh->link);
    CDS_INIT_LIST_HEAD(&fresh->flyers_link);
    ctx = inode_ctx_install(inode, xl, fresh);
    if (ctx != fresh)
        mem_put(fresh);
    return ctx;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

/* Under the lock. */
static struct squota_ns *
find_ns(struct squota *q, const struct gfid *gfid)
{
    struct squota_ns *ns;

    cds_list_for_each_entry(ns, &q->namespaces, link) {
        if (!ns->is_gone && gfid_equal(&ns->gfid, gfid))
            return ns;
    }
    return NULL;
}

/* Returns the namespace of a marked folder. Creates the namespace if necessary, and counts a namespace with
 * unknown usage. NULL: no memory. */
static struct squota_ns *
get_ns(struct xlator *xl, const struct gfid *gfid, const struct squota_mark *mark)
{
    struct squota *q = squota_of(xl);
    struct squota_ns *fresh = calloc(1, sizeof *fresh);
    bool is_counting = true;

    pthread_mutex_lock(&q->lock);
    struct squota_ns *ns = find_ns(q, gfid);
    if (ns || !fresh) {
        pthread_mutex_unlock(&q->lock);
        free(fresh);
        return ns;
    }
    *fresh = (struct squota_ns){.gfid = *gfid, .limit = mark->limit, .listed = -1, .stored = -1};
    fresh->record = squota_state_find(q->state, gfid, &fresh->used, &is_counting);
    fresh->others = squota_state_others(q->state, fresh->record);
    if (is_counting) {
        fresh->floor = fresh->record && fresh->used > 0 ? fresh->used : mark->size;
        fresh->used = 0;
    }
    if (!fresh->record)
        fresh->record = squota_state_add(q->state, gfid);
    cds_list_add_tail(&fresh->link, &q->namespaces);
    q->ns_count++;
    pthread_mutex_unlock(&q->lock);
    if (is_counting)
        squota_walk_start(xl, fresh, false);
    return fresh;
}

/* Sets the namespace that was found for an object. `generation` is squota.generation at the beginning of the
 * search. */
static void
set_ns(struct squota *q, struct squota_inode *ctx, struct squota_ns *ns, unsigned generation)
{
    pthread_mutex_lock(&q->lock);
    if (ctx->flying == 0 && !ctx->is_queued) {
        if (ctx->ns != ns) {
            if (ctx->ns && ctx->is_known)
                squota_settle(q, ctx, 0);
            squota_forget_ahead(ctx);
            ctx->is_known = false;
            ctx->ns = ns;
        }
        ctx->generation = generation;
    }
    pthread_mutex_unlock(&q->lock);
}

static unsigned
generation(struct squota *q)
{
    pthread_mutex_lock(&q->lock);
    unsigned now = q->generation;
    pthread_mutex_unlock(&q->lock);
    return now;
}

static bool
is_found(struct squota *q, const struct squota_inode *ctx)
{
    pthread_mutex_lock(&q->lock);
    bool is_found = ctx->generation == q->generation || ctx->flying > 0 || ctx->is_queued;
    pthread_mutex_unlock(&q->lock);
    return is_found;
}

static struct squota_ns *
namespace_of(struct squota *q, const struct squota_inode *ctx)
{
    pthread_mutex_lock(&q->lock);
    struct squota_ns *ns = ctx->ns;
    pthread_mutex_unlock(&q->lock);
    return ns;
}

/* Determines the namespace of a folder: its own if the folder has the mark, else `outer`. */
static int
find_for_dir(struct xlator *xl, struct inode *dir, struct squota_inode *ctx, struct squota_ns *outer)
{
    struct squota *q = squota_of(xl);
    unsigned now = generation(q);
    struct squota_mark mark;
    struct iatt stat;
    int err = squota_lookup(xl, NULL, NULL, &dir->gfid, &stat, &mark);

    if (err)
        return err;
    struct squota_ns *ns = mark.is_marked ? get_ns(xl, &dir->gfid, &mark) : outer;
    if (mark.is_marked && !ns)
        return -ENOMEM;
    set_ns(q, ctx, ns, now);
    return 0;
}

/* Finds the folder `name` in `dir`. *child has a reference. Returns 0 or -errno. */
static int
child_dir(struct xlator *xl, struct inode *dir, const char *name, struct inode **child)
{
    struct squota_mark mark;
    struct iatt stat;

    *child = inode_find_child(xl->graph->inodes, dir, name);
    if (*child)
        return 0;
    int err = squota_lookup(xl, dir, name, NULL, &stat, &mark);
    if (err)
        return err;
    if (!S_ISDIR(stat.mode))
        return -ENOTDIR;
    *child = inode_link(xl->graph->inodes, dir, name, &stat);
    return *child ? 0 : -ENOMEM;
}

/* Walks down to the folder that contains the object. A file may have several paths, separated by `:`; the
 * first path is walked as far as it leads through folders. *ns: the namespace of the last folder. */
static int
namespace_walk_path(struct xlator *xl, char *path, bool is_dir, struct squota_ns **ns)
{
    struct squota *q = squota_of(xl);
    struct inode *dir = inode_root(xl->graph->inodes), *child;
    char *save = NULL, *name = strtok_r(path, "/", &save);
    int err = 0;

    *ns = NULL;
    for (;;) {
        struct squota_inode *ctx = squota_inode_ctx(xl, dir);
        if (!ctx)
            err = -ENOMEM;
        else if (!is_found(q, ctx))
            err = find_for_dir(xl, dir, ctx, *ns);
        if (err)
            break;
        *ns = namespace_of(q, ctx);
        char *next = name ? strtok_r(NULL, "/", &save) : NULL;
        if (!next) /* `name` is the object itself */
            break;
        err = child_dir(xl, dir, name, &child);
        if (err) {
            err = !is_dir && (err == -ENOENT || err == -ENOTDIR) ? 0 : err;
            break;
        }
        inode_unref(dir);
        dir = child;
        name = next;
    }
    inode_unref(dir);
    return err;
}

static int
find_by_path(struct xlator *xl, struct inode *inode, struct squota_ns **ns)
{
    struct call_stack *stk;
    const char *path;
    int err = ask_path(xl, inode, &stk, &path);

    if (err == 0)
        err = namespace_walk_path(xl, (char *)path, S_ISDIR(inode->type), ns);
    if (stk)
        call_stack_free(stk);
    return err;
}

static int
namespace_find(struct xlator *xl, struct inode *inode, struct squota_inode *ctx, struct inode *parent)
{
    struct squota *q = squota_of(xl);
    unsigned now = generation(q);
    struct squota_ns *outer = NULL;
    int err = 0;

    if (gfid_is_root(&inode->gfid))
        return find_for_dir(xl, inode, ctx, NULL);
    if (parent) {
        const struct squota_inode *of_parent = squota_inode_get(xl, parent, NULL, &err);
        outer = of_parent ? namespace_of(q, of_parent) : NULL;
    } else {
        err = find_by_path(xl, inode, &outer);
    }
    if (err)
        return err;
    if (S_ISDIR(inode->type))
        return find_for_dir(xl, inode, ctx, outer);
    set_ns(q, ctx, outer, now);
    return 0;
}

struct squota_inode *
squota_inode_get(struct xlator *xl, struct inode *inode, struct inode *parent, int *err)
{
    struct squota_inode *ctx = squota_inode_ctx(xl, inode);

    *err = ctx ? 0 : -ENOMEM;
    if (ctx && !is_found(squota_of(xl), ctx))
        *err = namespace_find(xl, inode, ctx, parent);
    return ctx;
}

int
squota_ns_mark(struct xlator *xl, struct inode *dir)
{
    struct squota *q = squota_of(xl);
    struct squota_inode *ctx = squota_inode_ctx(xl, dir);
    struct squota_mark mark;
    struct iatt stat;
    int err = ctx ? squota_lookup(xl, NULL, NULL, &dir->gfid, &stat, &mark) : -ENOMEM;

    if (err || !mark.is_marked)
        return err;
    pthread_mutex_lock(&q->lock);
    bool is_known = find_ns(q, &dir->gfid) != NULL;
    struct squota_ns *outer = ctx->generation == q->generation ? ctx->ns : NULL;
    pthread_mutex_unlock(&q->lock);
    if (is_known)
        return 0;
    /* The contents of the folder belonged to the outer namespace until now. */
    pthread_mutex_lock(&q->lock);
    q->generation++;
    pthread_mutex_unlock(&q->lock);
    if (!get_ns(xl, &dir->gfid, &mark))
        return -ENOMEM;
    if (outer)
        squota_walk_start(xl, outer, true);
    return 0;
}

void
squota_ns_load_all(struct xlator *xl)
{
    struct squota *q = squota_of(xl);
    struct squota_mark mark;
    struct gfid gfid;
    struct iatt stat;
    unsigned record = 0;

    for (;;) {
        pthread_mutex_lock(&q->lock);
        record = squota_state_next(q->state, record, &gfid);
        pthread_mutex_unlock(&q->lock);
        if (!record)
            return;
        int err = squota_lookup(xl, NULL, NULL, &gfid, &stat, &mark);
        if (err == 0 && mark.is_marked && !get_ns(xl, &gfid, &mark))
            err = -ENOMEM;
        if (err == -ENOENT || err == -ESTALE) { /* the folder is gone */
            pthread_mutex_lock(&q->lock);
            squota_state_drop(q->state, record);
            pthread_mutex_unlock(&q->lock);
        }
        /* A namespace that cannot be loaded now is loaded at the next change of an object in it. */
        if (err && err != -ENOENT && err != -ESTALE)
            log_event(LOG_WARNING, xl, "squota-not-loaded", "the limit of namespace %s is not loaded yet: %s",
                      GFID(&gfid), strerror(-err));
    }
}

void
squota_ns_set_limit(struct xlator *xl, struct squota_ns *ns, int64_t limit)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    ns->limit = limit;
    pthread_mutex_unlock(&q->lock);
}

void
squota_ns_is_stale(struct xlator *xl, struct squota_ns *ns)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    ns->stored = -1;
    squota_wake(q);
    pthread_mutex_unlock(&q->lock);
}

/* ---- the size xattr -------------------------------------------------------------------------- */

static int
set_size(struct xlator *xl, const struct gfid *gfid, int64_t used)
{
    struct inode *dir = inode_find(xl->graph->inodes, gfid);
    struct call_stack *stk = NULL;
    char text[32];
    int err = 0;

    if (!dir) {
        struct squota_mark mark;
        struct iatt stat;
        err = squota_lookup(xl, NULL, NULL, gfid, &stat, &mark);
        if (err == 0)
            dir = inode_link(xl->graph->inodes, NULL, NULL, &stat);
    }
    if (!dir || !(stk = squota_call(FOP_setxattr))) {
        inode_unref(dir);
        return err ? err : -ENOMEM;
    }
    stk->call.loc.inode = dir;
    stk->call.gfid = *gfid;
    stk->call.dict = dict_new(&stk->arena);
    unsigned len = (unsigned)snprintf(text, sizeof text, "%lld", (long long)(used > 0 ? used : 0)) + 1;
    err = stk->call.dict ? dict_set_text(stk->call.dict, SQUOTA_XATTR_SIZE, DICT_PTR, text, len) : -ENOMEM;
    if (err == 0)
        err = squota_run(xl, stk);
    call_stack_free(stk);
    return err;
}

void
squota_ns_store(struct xlator *xl, struct squota_ns *ns)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    int64_t used = squota_used(ns), stored = ns->stored;
    bool is_old = !ns->is_gone && used != stored;
    ns->stored = used;
    pthread_mutex_unlock(&q->lock);
    int err = is_old ? set_size(xl, &ns->gfid, used) : 0;
    if (err == 0)
        return;
    pthread_mutex_lock(&q->lock);
    ns->stored = stored;
    pthread_mutex_unlock(&q->lock);
    if (err != -ENOENT && err != -ESTALE)
        log_event(LOG_WARNING, xl, "squota-size-not-stored", "the usage of namespace %s cannot be stored in "
                  SQUOTA_XATTR_SIZE ": %s", GFID(&ns->gfid), strerror(-err));
}

void
squota_ns_store_all(struct xlator *xl)
{
    struct squota *q = squota_of(xl);
    struct squota_ns *ns;

    /* Namespaces are appended and never removed, so the list may be walked while it grows. */
    pthread_mutex_lock(&q->lock);
    unsigned count = q->ns_count;
    struct cds_list_head *at = q->namespaces.next;
    pthread_mutex_unlock(&q->lock);
    while (count-- > 0) {
        ns = caa_container_of(at, struct squota_ns, link);
        squota_ns_store(xl, ns);
        pthread_mutex_lock(&q->lock);
        at = at->next;
        pthread_mutex_unlock(&q->lock);
    }
}
