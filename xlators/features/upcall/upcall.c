/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/upcall: sends cache invalidations to clients when another client changes an object that they have
 * seen (brick 10.4). With it a mount may cache attributes for minutes instead of a second.
 *
 * The layer sits below io-threads and above all layers that know what an object is. It keeps a list of
 * watching clients per inode (watchers.h), and for the brick the names of the extended attributes that
 * clients cache (xattr-names.h); nothing on disk. When the layer is off, only IPC passes through, so that
 * registered names are known when the layer is switched on.
 *
 * The layer notes a watcher on the call's way down, so a client that changes the object after the disk was
 * read finds the reader in the list. An object that only the reply reveals (by name) is noted on the way up.
 * The layer sends invalidations before the change is answered. So if the changing client tells another client
 * about the change, the other has received its callback already. An inode that leaves the table takes its
 * list along, so its watchers are told to forget the object.
 *
 * Locks: the list's mutex, for a few instructions; nothing is sent under it. Sending takes the graph's
 * clients_lock, also when an inode is forgotten, so no reference to an inode may be dropped under
 * clients_lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "event/timer.h"
#include "fs/brick-client.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "graph/saved-brick.h"
#include "log/dump.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/features/upcall/upcall.h"
#include "xlators/protocol/server/server.h"

/* Wire 7. */
enum {
    CHANGED_NLINK = 0x1,
    CHANGED_MODE = 0x2,
    CHANGED_OWNER = 0x4,
    CHANGED_SIZE = 0x8,
    CHANGED_TIMES = 0x10,
    CHANGED_PERMISSION = 0x40,
    CHANGED_NAME = 0x80,
    FORGOTTEN = 0x100,
    CHANGED_PARENT_TIMES = 0x200,
    CHANGED_XATTR = 0x400,
    REMOVED_XATTR = 0x800,
    CHANGED_CONTENT = CHANGED_SIZE | CHANGED_TIMES,
    CHANGED_ATTRIBUTES = CHANGED_MODE | CHANGED_OWNER | CHANGED_SIZE | CHANGED_TIMES | CHANGED_PERMISSION,
    CHANGED_LINKS = CHANGED_NLINK | CHANGED_TIMES | CHANGED_PARENT_TIMES,
};
#define CACHE_INVALIDATION_EVENT 1

struct upcall_conf {
    bool is_on;
    int64_t timeout; /* seconds */
};

static const struct option upcall_options[] = {
    OPT_BOOL(struct upcall_conf, is_on, "cache-invalidation", "off"),
    OPT_TIME(struct upcall_conf, timeout, "cache-invalidation-timeout", "60", 0, INT32_MAX),
    OPT_END,
};

struct upcall_inode {
    pthread_mutex_t lock; /* guards watchers */
    struct watchers watchers;
};

static struct mem_pool *inode_pool;

static bool
upcall_is_active(const void *conf)
{
    return ((const struct upcall_conf *)conf)->is_on;
}

static uint32_t
timeout_s(const struct xlator *xl)
{
    return (uint32_t)((const struct upcall_conf *)xlator_conf(xl))->timeout;
}

static uint32_t
upcall_now_s(void)
{
    return (uint32_t)(clock_mono_ns() / 1000000000);
}

/* ---- noting watchers ------------------------------------------------------------------------- */

static struct upcall_inode *
upcall_inode_new(struct xlator *xl)
{
    struct upcall_inode *ui = mem_get0_owner(inode_pool, xl->graph->owner);

    if (!ui)
        return NULL;
    pthread_mutex_init(&ui->lock, NULL);
    watchers_init(&ui->watchers);
    return ui;
}

static void
upcall_inode_free(struct upcall_inode *ui)
{
    watchers_fini(&ui->watchers);
    pthread_mutex_destroy(&ui->lock);
    mem_put(ui);
}

static struct upcall_inode *
upcall_inode_of(struct xlator *xl, struct inode *inode)
{
    struct upcall_inode *ui = inode_ctx(inode, xl), *fresh;

    if (ui || !(fresh = upcall_inode_new(xl)))
        return ui;
    ui = inode_ctx_install(inode, xl, fresh);
    if (ui != fresh)
        upcall_inode_free(fresh);
    return ui;
}

static void
invalidation_send(struct xlator *xl, const uint64_t *clients, unsigned count, struct cache_invalidation *what)
{
    struct upcall_private *priv = xl->private;

    what->event_type = CACHE_INVALIDATION_EVENT;
    what->expire_seconds = timeout_s(xl);
    atomic_fetch_add_explicit(&priv->sent, count, memory_order_relaxed);
    priv->send(xl->graph, clients, count, what);
}

static int
note_watcher(struct xlator *xl, const struct call_stack *stk, struct inode *inode)
{
    struct brick_client *client = stk->client;

    if (!client || !inode || atomic_load_explicit(&client->is_gone, memory_order_relaxed))
        return 0;
    struct upcall_inode *ui = upcall_inode_of(xl, inode);
    if (!ui)
        return -ENOMEM;
    pthread_mutex_lock(&ui->lock);
    uint64_t gone = watchers_note(&ui->watchers, client->id, upcall_now_s(), timeout_s(xl));
    pthread_mutex_unlock(&ui->lock);
    if (gone)
        invalidation_send(xl, &gone, 1,
                          &(struct cache_invalidation){.gfid = inode->gfid, .flags = FORGOTTEN});
    return 0;
}

/* Notes the watcher of an object that the reply shows. Links the inode before the server does, so that the
 * list has an inode. */
static int
note_shown(struct xlator *xl, const struct call_stack *stk, const struct iatt *shown)
{
    if (gfid_is_null(&shown->gfid) || !(shown->mode & S_IFMT))
        return 0;
    struct inode *inode = inode_link(xl->graph->inodes, NULL, NULL, shown);
    int err = inode ? note_watcher(xl, stk, inode) : -ENOMEM;

    inode_unref(inode);
    return err;
}

/* Fails a call whose client could not be noted, because that client would cache the object too long. */
static xl_verdict
answer_or_fail(struct call_stack *stk, int err)
{
    if (err) {
        stk->reply.op_ret = -1;
        stk->reply.op_errno = -err;
    }
    return XL_PASS;
}

/* ---- sending invalidations ------------------------------------------------------------------- */

static void
invalidate(struct xlator *xl, struct upcall_inode *ui, const struct brick_client *changer,
     struct cache_invalidation *what)
{
    uint64_t clients[WATCHERS_MAX];

    pthread_mutex_lock(&ui->lock);
    unsigned n =
        watchers_collect(&ui->watchers, changer ? changer->id : 0, upcall_now_s(), timeout_s(xl), clients);
    pthread_mutex_unlock(&ui->lock);
    if (n)
        invalidation_send(xl, clients, n, what);
}

static void
invalidate_others(struct xlator *xl, const struct call_stack *stk, struct inode *inode,
            struct cache_invalidation what)
{
    struct upcall_inode *ui = inode ? inode_ctx(inode, xl) : NULL;

    if (!ui)
        return;
    what.gfid = inode->gfid;
    invalidate(xl, ui, stk->client, &what);
}

/* ---- fops ------------------------------------------------------------------------------------ */

static xl_verdict
upcall_want_reply(struct xlator *xl, struct call_stack *stk, frame_cb cb)
{
    return frame_push(stk, xl, cb) ? XL_PASS : -ENOMEM;
}

static xl_verdict
upcall_look(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.inode);

    return err ? err : XL_PASS;
}

static xl_verdict
upcall_looked_up(struct frame *f, struct call_stack *stk)
{
    const struct inode *known = stk->call.loc.inode;

    if (stk->reply.op_ret < 0 || (known && gfid_equal(&known->gfid, &stk->reply.stat.gfid)))
        return XL_PASS;
    return answer_or_fail(stk, note_shown(f->xl, stk, &stk->reply.stat));
}

/* A lookup by name: only the reply says which object it is. */
static xl_verdict
upcall_lookup(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.inode);

    if (err)
        return err;
    return stk->call.loc.name ? upcall_want_reply(xl, stk, upcall_looked_up) : XL_PASS;
}

static xl_verdict
upcall_listed(struct frame *f, struct call_stack *stk)
{
    int err = 0;

    for (const struct dirent_entry *e = stk->reply.entries; e && !err; e = e->next)
        err = note_shown(f->xl, stk, &e->iatt);
    if (err)
        stk->reply.entries = NULL;
    return answer_or_fail(stk, err);
}

static xl_verdict
upcall_readdirp(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.inode);

    return err ? err : upcall_want_reply(xl, stk, upcall_listed);
}

static xl_verdict
content_changed(struct frame *f, struct call_stack *stk)
{
    struct inode *inode = stk->call.fop == FOP_copy_file_range ? stk->call.loc2.inode : stk->call.loc.inode;

    if (stk->reply.op_ret >= 0)
        invalidate_others(f->xl, stk, inode,
                    (struct cache_invalidation){.flags = CHANGED_CONTENT, .stat = stk->reply.post});
    return XL_PASS;
}

static xl_verdict
upcall_write(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk,
                           stk->call.fop == FOP_copy_file_range ? stk->call.loc2.inode : stk->call.loc.inode);

    return err ? err : upcall_want_reply(xl, stk, content_changed);
}

/* A change of the mode changes the ACL too. */
static xl_verdict
attributes_changed(struct frame *f, struct call_stack *stk)
{
    uint32_t acl = stk->reply.pre.mode != stk->reply.post.mode ? CHANGED_XATTR : 0;

    if (stk->reply.op_ret >= 0)
        invalidate_others(f->xl, stk, stk->call.loc.inode,
                    (struct cache_invalidation){.flags = CHANGED_ATTRIBUTES | acl, .stat = stk->reply.post});
    return XL_PASS;
}

static xl_verdict
upcall_setattr(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.inode);

    return err ? err : upcall_want_reply(xl, stk, attributes_changed);
}

/* ---- extended attributes --------------------------------------------------------------------- */

/* A frame's `local`: ptr: a dict on the arena with the cached xattrs that this call changes; u64[1]: flags.
 */
static xl_verdict
xattrs_changed(struct frame *f, struct call_stack *stk)
{
    const struct dict_pair *stat = dict_find(stk->reply.xdata, DICT_KEY_POSTSTAT);
    struct cache_invalidation what = {.flags = (uint32_t)f->local.u64[1], .xdata = f->local.ptr};

    if (stat && stat->type == DICT_IATT)
        what.stat = *stat->v.iatt;
    if (stk->reply.op_ret >= 0)
        invalidate_others(f->xl, stk, stk->call.loc.inode, what);
    return XL_PASS;
}

/* `names` NULL: no client caches any of the call's xattrs. */
static xl_verdict
want_xattr_reply(struct xlator *xl, struct call_stack *stk, struct dict *names, uint32_t flags)
{
    int err = names ? note_watcher(xl, stk, stk->call.loc.inode) : 0;

    if (err || !names)
        return err ? err : XL_PASS;
    struct frame *f = frame_push(stk, xl, xattrs_changed);
    if (!f)
        return -ENOMEM;
    f->local.ptr = names;
    f->local.u64[1] = flags;
    return XL_PASS;
}

static xl_verdict
upcall_setxattr(struct xlator *xl, struct call_stack *stk)
{
    const struct upcall_private *priv = xl->private;
    struct dict *names;
    int err = xattr_names_pick(&priv->names, stk->call.dict, false, &stk->arena, &names);

    return err ? err : want_xattr_reply(xl, stk, names, CHANGED_XATTR | CHANGED_TIMES);
}

static xl_verdict
upcall_xattrop(struct xlator *xl, struct call_stack *stk)
{
    const struct upcall_private *priv = xl->private;
    struct dict *names;
    int err = xattr_names_pick(&priv->names, stk->call.dict, false, &stk->arena, &names);

    return err ? err : want_xattr_reply(xl, stk, names, CHANGED_XATTR);
}

/* Removes one name, or, if the name is empty, the keys of xdata. */
static xl_verdict
upcall_removexattr(struct xlator *xl, struct call_stack *stk)
{
    const struct upcall_private *priv = xl->private;
    const char *name = stk->call.name;
    struct dict *names = stk->call.xdata, *one = NULL;

    if (name && *name) {
        one = dict_new(&stk->arena);
        if (!one || dict_set_text(one, name, DICT_STR, "", 1) != 0)
            return -ENOMEM;
        names = one;
    }
    int err = xattr_names_pick(&priv->names, names, true, &stk->arena, &names);
    return err ? err : want_xattr_reply(xl, stk, names, REMOVED_XATTR | CHANGED_TIMES);
}

/* A client registers the names that it caches. Storage answers the call. */
static xl_verdict
upcall_ipc(struct xlator *xl, struct call_stack *stk)
{
    enum { IPC_WATCH_XATTRS = 2 };
    struct upcall_private *priv = xl->private;
    int err = stk->call.cmd == IPC_WATCH_XATTRS ? xattr_names_add(&priv->names, stk->call.xdata) : 0;

    return err ? err : XL_PASS;
}

/* ---- names ----------------------------------------------------------------------------------- */

static xl_verdict
upcall_made(struct frame *f, struct call_stack *stk)
{
    if (stk->reply.op_ret < 0)
        return XL_PASS;
    invalidate_others(f->xl, stk, stk->call.loc.parent,
                (struct cache_invalidation){.flags = CHANGED_TIMES, .stat = stk->reply.post});
    /* The object exists, so the reply cannot be failed any more. */
    if (note_shown(f->xl, stk, &stk->reply.stat) != 0)
        log_event(LOG_WARNING, f->xl, "upcall-maker-not-noted",
                  "no memory: the client that created an object gets no invalidations of it");
    return XL_PASS;
}

static xl_verdict
upcall_make(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.parent);

    return err ? err : upcall_want_reply(xl, stk, upcall_made);
}

static xl_verdict
upcall_removed(struct frame *f, struct call_stack *stk)
{
    if (stk->reply.op_ret >= 0)
        invalidate_others(f->xl, stk, stk->call.loc.inode,
                    (struct cache_invalidation){.flags = CHANGED_LINKS, .parent = stk->reply.post});
    return XL_PASS;
}

static xl_verdict
upcall_remove(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.parent);

    if (!err)
        err = note_watcher(xl, stk, stk->call.loc.inode);
    return err ? err : upcall_want_reply(xl, stk, upcall_removed);
}

static xl_verdict
upcall_linked(struct frame *f, struct call_stack *stk)
{
    if (stk->reply.op_ret >= 0)
        invalidate_others(f->xl, stk, stk->call.loc.inode, (struct cache_invalidation){
            .flags = CHANGED_LINKS, .stat = stk->reply.stat, .parent = stk->reply.post});
    return XL_PASS;
}

static xl_verdict
upcall_link(struct xlator *xl, struct call_stack *stk)
{
    int err = note_watcher(xl, stk, stk->call.loc.inode);

    if (!err)
        err = note_watcher(xl, stk, stk->call.loc2.parent);
    return err ? err : upcall_want_reply(xl, stk, upcall_linked);
}

static xl_verdict
upcall_renamed(struct frame *f, struct call_stack *stk)
{
    if (stk->reply.op_ret >= 0)
        invalidate_others(f->xl, stk, stk->call.loc.inode, (struct cache_invalidation){
            .flags = CHANGED_NAME | CHANGED_PARENT_TIMES, .stat = stk->reply.stat,
            .parent = stk->reply.post2, .old_parent = stk->reply.post});
    return XL_PASS;
}

static xl_verdict
upcall_rename(struct xlator *xl, struct call_stack *stk)
{
    struct inode *const seen[] = {stk->call.loc.inode, stk->call.loc.parent, stk->call.loc2.parent};
    int err = 0;

    for (unsigned i = 0; i < sizeof seen / sizeof seen[0] && !err; i++)
        err = note_watcher(xl, stk, seen[i]);
    return err ? err : upcall_want_reply(xl, stk, upcall_renamed);
}

/* ---- the type -------------------------------------------------------------------------------- */

static int
upcall_init(struct xlator *xl, struct reason *why)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    (void)why;
    pthread_mutex_lock(&once);
    if (!inode_pool)
        inode_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "upcall-inode", .xlator = "features/upcall", .size = sizeof(struct upcall_inode)});
    pthread_mutex_unlock(&once);
    struct upcall_private *priv = inode_pool ? calloc(1, sizeof *priv) : NULL;
    if (!priv)
        return -ENOMEM;
    xattr_names_init(&priv->names);
    priv->send = brick_clients_callback_cache_invalidation;
    xl->private = priv;
    return 0;
}

static void
upcall_fini(struct xlator *xl)
{
    struct upcall_private *priv = xl->private;

    xattr_names_fini(&priv->names);
    free(priv);
    xl->private = NULL;
}

/* Watchers would get no further messages about this object. */
static void
upcall_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    struct upcall_inode *ui = ctx;

    if (xlator_is_on(xl))
        invalidate(xl, ui, NULL, &(struct cache_invalidation){.gfid = inode->gfid, .flags = FORGOTTEN});
    upcall_inode_free(ui);
}

static void
forget_saved(struct inode *inode, void *ctx, void *arg)
{
    invalidate(arg, ctx, NULL, &(struct cache_invalidation){.gfid = inode->gfid, .flags = FORGOTTEN});
}

/* The next program does not know the watchers, so each watcher is told to drop its cache. The messages are
 * sent before the end of this program, or saved with the connections. */
static int
upcall_save(struct xlator *xl, struct brick_saver *saver)
{
    struct upcall_private *priv = xl->private;
    unsigned count = atomic_load(&priv->names.count);

    parcel_put_u32(saver->to, count);
    for (unsigned i = 0; i < count; i++)
        parcel_put_text(saver->to, priv->names.names[i]);
    if (xlator_is_on(xl))
        inode_table_each(xl->graph->inodes, xl, forget_saved, xl);
    return 0;
}

static int
upcall_restore(struct xlator *xl, struct brick_restorer *r)
{
    struct upcall_private *priv = xl->private;
    uint32_t count = parcel_get_u32(r->from);
    struct arena arena;

    arena_init(&arena);
    struct dict *names = dict_new(&arena);
    int err = names ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < count && !err && !r->from->is_broken; i++) {
        const char *name = parcel_get_text(r->from);

        err = name ? dict_set_text(names, name, DICT_STR, "", 1) : -EBADMSG;
    }
    err = err ? err : xattr_names_add(&priv->names, names);
    arena_release(&arena);
    return err;
}

static void
upcall_dump(struct xlator *xl, struct dump *dump)
{
    struct upcall_private *priv = xl->private;

    dump_line(dump, "callbacks", "%llu", (unsigned long long)atomic_load(&priv->sent));
    dump_line(dump, "xattr-names", "%u", atomic_load(&priv->names.count));
}

static const struct xlator_ops upcall_ops = {
    .stat = upcall_look,
    .fstat = upcall_look,
    .access = upcall_look,
    .readlink = upcall_look,
    .open = upcall_look,
    .readv = upcall_look,
    .opendir = upcall_look,
    .readdir = upcall_look,
    .getxattr = upcall_look,
    .fgetxattr = upcall_look,
    .statfs = upcall_look,
    .lk = upcall_look,
    .lookup = upcall_lookup,
    .readdirp = upcall_readdirp,
    .writev = upcall_write,
    .truncate = upcall_write,
    .ftruncate = upcall_write,
    .fallocate = upcall_write,
    .discard = upcall_write,
    .zerofill = upcall_write,
    .copy_file_range = upcall_write,
    .setattr = upcall_setattr,
    .fsetattr = upcall_setattr,
    .setxattr = upcall_setxattr,
    .fsetxattr = upcall_setxattr,
    .xattrop = upcall_xattrop,
    .fxattrop = upcall_xattrop,
    .removexattr = upcall_removexattr,
    .fremovexattr = upcall_removexattr,
    .create = upcall_make,
    .mknod = upcall_make,
    .mkdir = upcall_make,
    .symlink = upcall_make,
    .unlink = upcall_remove,
    .rmdir = upcall_remove,
    .link = upcall_link,
    .rename = upcall_rename,
    .ipc = upcall_ipc,
};

const struct xlator_type features_upcall_xlator = {
    .name = "features/upcall",
    .conf_size = sizeof(struct upcall_conf),
    .options = upcall_options,
    .is_active = upcall_is_active,
    .stays_for = 1ull << FOP_ipc,
    .keeps = KEEPS(CTX_INODE),
    .ops = &upcall_ops,
    .init = upcall_init,
    .fini = upcall_fini,
    .inode_forget = upcall_inode_forget,
    .save = upcall_save,
    .restore = upcall_restore,
    .dump = upcall_dump,
};
