/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/locks: posix locks (fcntl, flock), inodelks and entrylks of a brick (spec: brick 8).
 *
 * The layer sits above access-control, so that lock requests are never permission-checked, and above storage,
 * so that it can add its counts to storage's replies. It stores nothing on disk. Per inode: struct lock_inode
 * (locks-internal.h, which also describes the locking rules). Per fd: the number of its posix locks. Per
 * client: the number of its locks. When a client goes, the layer searches every inode that has locks for the
 * client's locks.
 *
 * This file has the translator's type, the contexts and their mutex, the lock objects, and the events that
 * drop locks.
 */
#include "xlators/features/locks/locks-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/zero.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mem/mem-pool.h"

static struct mem_pool *inode_pool, *lock_pool, *text_pool;

/* ---- contexts -------------------------------------------------------------------------------- */

static void settle_run(struct worker_job *job);

static struct lock_inode *
lock_inode_new(struct xlator *xl, struct inode *inode)
{
    struct lock_inode *li = mem_get0_owner(inode_pool, xl->graph->owner);

    if (!li)
        return NULL;
    pthread_mutex_init(&li->mutex, NULL);
    li->xl = xl;
    li->inode = inode;
    li->settle_job.run = settle_run;
    CDS_INIT_LIST_HEAD(&li->domains);
    CDS_INIT_LIST_HEAD(&li->idle_domains);
    CDS_INIT_LIST_HEAD(&li->removals);
    lock_queue_init(&li->posix, LOCK_POSIX);
    return li;
}

static void
lock_inode_free(struct lock_inode *li)
{
    assert(li->count == 0);
    assert(cds_list_empty(&li->domains));
    pthread_mutex_destroy(&li->mutex);
    mem_put(li);
}

struct lock_inode *
lock_inode_get(struct xlator *xl, struct inode *inode)
{
    struct lock_inode *li = inode_ctx(inode, xl);

    if (li)
        return li;
    struct lock_inode *fresh = lock_inode_new(xl, inode);
    if (!fresh)
        return NULL;
    li = inode_ctx_install(inode, xl, fresh);
    if (li != fresh)
        lock_inode_free(fresh);
    return li;
}

void
lock_inode_enter(struct lock_inode *li, struct lock_batch *b, struct xlator *xl)
{
    b->xl = xl;
    CDS_INIT_LIST_HEAD(&b->waiters);
    b->contentions = NULL;
    b->fd = NULL;
    b->shell = NULL;
    b->unpins = 0;
    b->settles = false;
    arena_init(&b->arena);
    pthread_mutex_lock(&li->mutex);
}

bool
lock_inode_enter_for(struct lock_inode *li, struct lock_batch *b, struct xlator *xl,
                     const struct brick_client *client)
{
    lock_inode_enter(li, b, xl);
    /* client_gone sets is_gone and then visits every context. If it has seen this context, the mutex orders
     * the two; if it searched before the context was installed, these two fences do. */
    atomic_thread_fence(memory_order_seq_cst);
    return !client || !atomic_load(&client->is_gone);
}

static void waiter_run(struct worker_job *job);

static void
waiter_run_again(struct timer *t)
{
    struct call_stub *w = caa_container_of(t, struct call_stub, again);

    w->job = (struct worker_job){.run = waiter_run};
    worker_post_any(&w->job);
}

#define NO_MEMORY_WAIT_MS 100

/* The request has been granted its lock, so it must be answered, if not now then later. */
static void
waiter_unpack_later(struct call_stub *w)
{
    log_event(LOG_ERROR, NULL, "lock-wake-no-memory",
              "no memory to answer a request that has waited for a lock: retried in 100 ms");
    timer_init(&w->again, waiter_run_again);
    timer_start(&w->again, NO_MEMORY_WAIT_MS);
}

/* Unlists a request that continues: each_parked no longer reports it. */
static void
waiter_unlist(struct locks *brick, struct call_stub *w)
{
    pthread_mutex_lock(&brick->parked_mutex);
    cds_list_del(&w->of_brick);
    pthread_mutex_unlock(&brick->parked_mutex);
}

static void
waiter_run(struct worker_job *job)
{
    struct call_stub *w = caa_container_of(job, struct call_stub, job);
    struct call_stack *stk = call_stub_unpack(w);
    int error = w->error;

    if (!stk) {
        waiter_unpack_later(w);
        return;
    }
    bool goes_on = w->mark == WAITER_GOES_ON;

    waiter_unlist(stk->xl->private, w);
    call_stub_free(w);
    if (error)
        call_stack_fail(stk, error);
    else if (goes_on)
        call_stack_unpark(stk);
    else
        call_stack_unwind(stk);
}

void
lock_inode_leave(struct lock_inode *li, struct lock_batch *b)
{
    struct inode *inode = li->inode;
    /* once the mutex is free, a parked request may end and free the inode */
    struct gfid gfid = inode->gfid;
    struct call_stub *w, *next;

    if (!cds_list_empty(&li->idle_domains))
        lock_domains_prune(li);
    pthread_mutex_unlock(&li->mutex);
    if (b->settles) /* the inode is pinned for the job */
        worker_post_any(&li->settle_job);
    /* Posted, not run, because a reply can lead to the next unlock, and so on without bound. */
    cds_list_for_each_entry_safe(w, next, &b->waiters, link) {
        cds_list_del(&w->link);
        worker_post(&w->job);
    }
    if (b->contentions)
        contention_send(b, &gfid);
    arena_release(&b->arena);
    fd_unref(b->fd);
    if (b->shell)
        call_stack_drop_shell(b->shell);
    for (; b->unpins; b->unpins--)
        inode_unref(inode);
}

void
lock_inode_pin_locked(struct lock_inode *li)
{
    if (li->count++ == 0)
        inode_ref(li->inode);
}

void
lock_inode_unpin_locked(struct lock_inode *li, struct lock_batch *b)
{
    assert(li->count > 0);
    if (--li->count == 0)
        b->unpins++;
}

#define SETTLE_MAX 64

void
lock_inode_settle_locked(struct lock_inode *li, struct lock_batch *b)
{
    removal_settle_locked(li, b);
    lock_examine_locked(li, SETTLE_MAX, b);
    if (!li->pending || li->is_settling)
        return;
    li->is_settling = b->settles = true;
    lock_inode_pin_locked(li);
}

/* Examines the next slice of pending locks. Between slices other threads can take the mutex. */
static void
settle_run(struct worker_job *job)
{
    struct lock_inode *li = caa_container_of(job, struct lock_inode, settle_job);
    struct lock_batch b;

    lock_inode_enter(li, &b, li->xl);
    li->is_settling = false;
    lock_inode_settle_locked(li, &b);
    lock_inode_unpin_locked(li, &b);
    lock_inode_leave(li, &b);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

int
lock_inode_has_room(const struct lock_inode *li, const struct brick_client *client)
{
    const struct locks_conf *conf = xlator_conf(li->xl);

    if (!client)
        return 0;
    if (atomic_load_explicit(&client->locks, memory_order_relaxed) >= conf->client_limit)
        return -ENOLCK;
    if (li->count < conf->client_inode_limit)
        return 0;
    uint32_t has =
        lock_tree_count_of_client(li->held, client) + lock_tree_count_of_client(li->wanted, client);
    return has < conf->client_inode_limit ? 0 : -ENOLCK;
}

/* ---- locks and waiters ----------------------------------------------------------------------- */

char *
lock_text_new(struct xlator *xl)
{
    return mem_get_owner(text_pool, xl->graph->owner);
}

/* Stores the owner, the flock's owner and the name one after another, inside the object if they fit. */
static int
lock_set_text(struct xlator *xl, struct lock *l, const struct lk_owner *owner,
              const struct lk_owner *flock_owner, const char *name)
{
    size_t name_size = name ? strlen(name) + 1 : 0;
    size_t size = owner->len + flock_owner->len + name_size;
    char *at = l->text;

    if (size > sizeof l->text) {
        assert(size <= LOCK_TEXT_MAX);
        at = l->long_text = lock_text_new(xl);
        if (!at)
            return -ENOMEM;
    }
    if (owner->len)
        memcpy(at, owner->bytes, owner->len);
    l->owner = (struct lk_owner){owner->len, (uint8_t *)at};
    at += owner->len;
    if (flock_owner->len)
        memcpy(at, flock_owner->bytes, flock_owner->len);
    l->flock.owner = (struct lk_owner){flock_owner->len, (uint8_t *)at};
    at += flock_owner->len;
    if (name)
        l->name = memcpy(at, name, name_size);
    return 0;
}

static void
lock_init(struct lock *l, const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    zero(l, offsetof(struct lock, text));
    CDS_INIT_LIST_HEAD(&l->link);
    CDS_INIT_LIST_HEAD(&l->waiters);
    CDS_INIT_LIST_HEAD(&l->wait_link);
    l->client = stk->client;
    l->fd = c->fd && !c->fd->is_anonymous ? c->fd : NULL;
    l->fd_nr = c->fd_nr;
    l->type = c->type;
    l->pid = stk->caller.pid;
    l->is_exclusive = c->type != FLOCK_READ;
}

void
lock_key(struct lock *key, const struct call_stack *stk, const char *name)
{
    lock_init(key, stk);
    key->owner = stk->caller.lk_owner;
    key->name = name;
}

struct lock *
lock_new(struct xlator *xl, const struct call_stack *stk, const char *name)
{
    struct lock *l = mem_get_owner(lock_pool, xl->graph->owner);

    if (!l)
        return NULL;
    lock_init(l, stk);
    l->flock = stk->call.flock;
    l->flock.type = stk->call.type;
    l->since = time(NULL);
    if (lock_set_text(xl, l, &stk->caller.lk_owner, &stk->call.flock.owner, name)) {
        mem_put(l);
        return NULL;
    }
    return l;
}

struct lock *
lock_copy(struct xlator *xl, const struct lock *from)
{
    struct lock *l = mem_get_owner(lock_pool, xl->graph->owner);

    if (!l)
        return NULL;
    memcpy(l, from, offsetof(struct lock, text));
    CDS_INIT_LIST_HEAD(&l->link);
    CDS_INIT_LIST_HEAD(&l->waiters);
    CDS_INIT_LIST_HEAD(&l->wait_link);
    l->long_text = NULL;
    l->waiter = NULL;
    l->queue = NULL;
    l->is_pending = l->is_behind = l->is_holder = false;
    if (lock_set_text(xl, l, &from->owner, &from->flock.owner, from->name)) {
        mem_put(l);
        return NULL;
    }
    return l;
}

void
lock_free(struct lock *l)
{
    if (!l)
        return;
    mem_put(l->long_text);
    mem_put(l);
}

bool
lock_overlaps(const struct lock *a, const struct lock *b)
{
    return a->start <= b->end && b->start <= a->end;
}

int
lock_range(int64_t start, int64_t len, int64_t *first, int64_t *last)
{
    if (len < 0) { /* the bytes before start, as in fcntl */
        if (start < 0 || start + len < 0)
            return -EINVAL;
        *first = start + len;
        *last = start - 1;
        return 0;
    }
    if (start < 0)
        return -EINVAL;
    if (len && start > INT64_MAX - (len - 1))
        return -EOVERFLOW;
    *first = start;
    *last = len ? start + (len - 1) : INT64_MAX;
    return 0;
}

struct call_stub *
waiter_new(struct xlator *xl, struct call_stack *stk)
{
    struct call_stub *w = call_stub_new(stk, xl, NULL);

    if (w)
        w->job.run = waiter_run;
    return w;
}

void
waiter_pack_locked(struct call_stub *w, struct lock_batch *b)
{
    struct call_stack *shell = call_stub_pack(w);

    if (shell)
        b->shell = shell;
}

void
waiter_park_locked(struct call_stub *w)
{
    struct locks *brick = w->xl->private;

    call_stack_park(w->stk);
    pthread_mutex_lock(&brick->parked_mutex);
    cds_list_add_tail(&w->of_brick, &brick->parked);
    pthread_mutex_unlock(&brick->parked_mutex);
}

void
lock_park_locked(struct call_stub *w, struct lock_batch *b)
{
    waiter_park_locked(w);
    b->fd = w->stk->call.fd;
    w->stk->call.fd = NULL;
    waiter_pack_locked(w, b);
}

void
waiter_wake_locked(struct call_stub *w, int error, struct lock_batch *b)
{
    w->error = error;
    cds_list_add_tail(&w->link, &b->waiters);
}

/* ---- events that drop locks ------------------------------------------------------------------ */

struct gone {
    struct xlator *xl;
    struct brick_client *client;
    unsigned unfinished; /* inodes, so far, on which the client held a lock for a change */
};

/* Kinds of changes that the client held a lock for. */
struct unfinished {
    bool attributes, noted; /* noted: names, or any of a dispersed object */
};

#define DROP_MAX 256 /* locks to drop before other threads get the mutex */
/* Bound on the unfinished changes of one client that are marked: more than a mount has under way, and few
 * enough that a client with very many locks does not fill the brick's memory with calls. */
#define MARKS_MAX 4096

/* Returns true if locks are left. (The client is marked gone, so none are added.) */
static bool
drop_some(struct lock_inode *li, const struct gone *gone, struct unfinished *u)
{
    struct lock_batch b;
    struct lock *l;
    unsigned n = 0;

    lock_inode_enter(li, &b, gone->xl);
    removal_drop_client_locked(li, gone->client, &b);
    for (; n < DROP_MAX && (l = lock_tree_of_client(li->held, gone->client)); n++) {
        u->attributes |= lock_is_of_attributes(l);
        u->noted |= lock_is_of_names(l) || lock_is_of_fragments(l);
        lock_drop_locked(li, l, 0, &b);
    }
    for (; n < DROP_MAX && (l = lock_tree_of_client(li->wanted, gone->client)); n++)
        lock_drop_locked(li, l, EAGAIN, &b);
    if (n)
        lock_inode_settle_locked(li, &b);
    lock_inode_leave(li, &b);
    return n == DROP_MAX;
}

static void
drop_client(struct inode *inode, void *ctx, void *arg)
{
    struct gone *gone = arg;
    struct unfinished u = {0};

    while (drop_some(ctx, gone, &u))
        ;
    if (!u.attributes && !u.noted)
        return;
    bool is_marked = gone->unfinished++ < MARKS_MAX;

    if (is_marked && u.attributes)
        unfinished_mark(gone->xl, inode, false);
    if (is_marked && u.noted)
        unfinished_mark(gone->xl, inode, true);
}

static void
locks_client_gone(struct xlator *xl, struct brick_client *client)
{
    struct gone gone = {.xl = xl, .client = client};

    atomic_store(&client->is_gone, true);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with lock_inode_enter_for */
    inode_table_each(xl->graph->inodes, xl, drop_client, &gone);
    if (gone.unfinished > MARKS_MAX)
        log_event(
            LOG_WARNING, xl, "unfinished-changes-not-marked",
            "%s is gone and held locks for changes of %u objects; marked %u of them for heal. If they differ "
            "between bricks, run a full heal of the volume",
            client->uid, gone.unfinished, MARKS_MAX);
}

static bool
is_of_fd(const struct lock *l, const void *fd)
{
    return l->fd == fd;
}

static void
locks_fd_closed(struct xlator *xl, struct fd *fd)
{
    struct lock_inode *li = inode_ctx(fd->inode, xl);
    unsigned granted = 0, waiting = 0;
    struct lock_batch b;

    if (!li)
        return;
    lock_inode_enter(li, &b, xl);
    /* tested under the mutex, because a lock is not counted while it changes from waiting to granted */
    if (fd_ctx(fd, xl)) {
        lock_queue_drop_locked(li, &li->posix, is_of_fd, fd, EAGAIN, &b, &granted, &waiting);
        lock_inode_settle_locked(li, &b);
    }
    lock_inode_leave(li, &b);
}

/* Drops posix locks of the caller's owner. Returns true if locks are left. */
static bool
flush_some(struct xlator *xl, struct lock_inode *li, const struct call_stack *stk)
{
    struct lock_batch b;
    struct lock key, *l;
    unsigned n = 0;

    lock_key(&key, stk, NULL);
    lock_inode_enter(li, &b, xl);
    for (; n < DROP_MAX && (l = lock_tree_of_owner_in(li->held, &key, &li->posix)); n++)
        lock_drop_locked(li, l, 0, &b);
    if (n)
        lock_inode_settle_locked(li, &b);
    lock_inode_leave(li, &b);
    return n == DROP_MAX;
}

static xl_verdict
locks_flush(struct xlator *xl, struct call_stack *stk)
{
    struct lock_inode *li = stk->call.fd ? inode_ctx(stk->call.fd->inode, xl) : NULL;

    while (li && flush_some(xl, li, stk))
        ;
    return locks_counts(xl, stk);
}

/* ---- lock migration -------------------------------------------------------------------------- */

static xl_verdict
locks_getactivelk(struct xlator *xl, struct call_stack *stk)
{
    struct lock_inode *li = stk->call.loc.inode ? inode_ctx(stk->call.loc.inode, xl) : NULL;
    struct active_lock **tail = &stk->reply.locks;
    struct lock_batch b;
    const struct lock *l;
    int count = 0;

    *tail = NULL;
    if (li) {
        lock_inode_enter(li, &b, xl);
        cds_list_for_each_entry(l, &li->posix.granted, link) {
            struct active_lock *a = arena_zalloc(&stk->arena, sizeof *a);
            const char *uid = l->client ? l->client->uid : "";
            const char *uid_copy = arena_dup(&stk->arena, uid, strlen(uid));
            const char *owner = arena_dup(&stk->arena, l->owner.bytes, l->owner.len);

            if (!a || !uid_copy || !owner) {
                count = -ENOMEM;
                break;
            }
            a->flock = l->flock;
            a->flock.type = l->type;
            a->flock.start = l->start;
            a->flock.len = l->end == INT64_MAX ? 0 : l->end - l->start + 1;
            a->flock.owner = (struct lk_owner){l->owner.len, (const uint8_t *)owner};
            a->client_uid = uid_copy;
            *tail = a;
            tail = &a->next;
            count++;
        }
        lock_inode_leave(li, &b);
    }
    if (count < 0)
        return count;
    stk->reply.op_ret = count;
    return XL_DONE;
}

/* Moving locks needs the inode frozen meanwhile (the meta-lock), which Kiln does not implement. A stock brick
 * crashes here when it doesn't know the client. */
static xl_verdict
locks_setactivelk(struct xlator *xl, struct call_stack *stk)
{
    (void)stk;
    log_event(LOG_DEBUG, xl, "locks-migration-refused", "SETACTIVELK: lock migration is not built");
    return -EOPNOTSUPP;
}

static xl_verdict
locks_setxattr(struct xlator *xl, struct call_stack *stk)
{
    dict_for_each (p, stk->call.dict) {
        if (p->key_id == DICT_KEY_META_LOCK || p->key_id == DICT_KEY_META_UNLOCK) {
            log_event(LOG_DEBUG, xl, "locks-meta-lock-refused", "%s: lock migration is not built", p->key);
            return -EOPNOTSUPP;
        }
        if (p->key_id == DICT_KEY_LOCKINFO && stk->call.fop == FOP_fsetxattr)
            return lockinfo_set(xl, stk, p);
    }
    return locks_counts(xl, stk);
}

/* ---- the type -------------------------------------------------------------------------------- */

static int
pool_make(struct mem_pool **pool, size_t size, const char *name)
{
    if (!*pool)
        *pool = mem_pool_new_opts(
            &(struct mem_pool_opts){.name = name, .xlator = "features/locks", .size = size});
    return *pool ? 0 : -ENOMEM;
}

static int
locks_pools_init(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    int rc = pool_make(&inode_pool, sizeof(struct lock_inode), "lock-inode");
    rc = rc ? rc : pool_make(&lock_pool, sizeof(struct lock), "lock");
    rc = rc ? rc : pool_make(&text_pool, LOCK_TEXT_MAX, "lock-text");
    rc = rc ? rc : lock_domain_pool_init();
    rc = rc ? rc : removal_pool_init();
    pthread_mutex_unlock(&once);
    return rc;
}

static int
locks_init(struct xlator *xl, struct reason *why)
{
    struct locks *brick = calloc(1, sizeof *brick);

    (void)why;
    if (!brick || locks_pools_init()) {
        free(brick);
        return -ENOMEM;
    }
    pthread_mutex_init(&brick->parked_mutex, NULL);
    CDS_INIT_LIST_HEAD(&brick->parked);
    xl->private = brick;
    return 0;
}

static void
locks_fini(struct xlator *xl)
{
    struct locks *brick = xl->private;

    assert(cds_list_empty(&brick->parked));
    pthread_mutex_destroy(&brick->parked_mutex);
    free(brick);
    xl->private = NULL;
}

static void
locks_each_parked(struct xlator *xl, bool (*fn)(const struct parked_call *call, void *arg), void *arg)
{
    struct locks *brick = xl->private;
    struct call_stub *w;

    pthread_mutex_lock(&brick->parked_mutex);
    cds_list_for_each_entry(w, &brick->parked, of_brick) {
        const struct parked_call c = {.fop = w->fop, .uid = w->uid, .gid = w->gid, .pid = w->pid};

        if (!fn(&c, arg))
            break;
    }
    pthread_mutex_unlock(&brick->parked_mutex);
}

static void
locks_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    lock_inode_free(ctx);
}

static const struct option locks_options[] = {
    OPT_BOOL(struct locks_conf, notify_contention, "notify-contention", "yes"),
    OPT_TIME(struct locks_conf, notify_contention_delay, "notify-contention-delay", "5", 0, 60),
    OPT_INT(struct locks_conf, client_limit, "client-lock-limit", "262144", 1, 1 << 30),
    OPT_INT(struct locks_conf, client_inode_limit, "client-inode-lock-limit", "32768", 1, 1 << 30),
    OPT_STR(struct locks_conf, asked[0], "mandatory-locking", NULL),
    OPT_STR(struct locks_conf, asked[1], "enforce-mandatory-lock", NULL),
    OPT_STR(struct locks_conf, asked[2], "monkey-unlocking", NULL),
    OPT_STR(struct locks_conf, asked[3], "revocation-secs", NULL),
    OPT_STR(struct locks_conf, asked[4], "revocation-clear-all", NULL),
    OPT_STR(struct locks_conf, asked[5], "revocation-max-blocked", NULL),
    OPT_STR(struct locks_conf, asked[6], "trace", NULL),
    OPT_END,
};

static const struct xlator_ops locks_ops = {
    .inodelk = locks_inodelk,
    .finodelk = locks_inodelk,
    .entrylk = locks_entrylk,
    .fentrylk = locks_entrylk,
    .lk = locks_lk,
    .flush = locks_flush,
    .unlink = locks_unlink,
    .rmdir = locks_unlink,
    .rename = locks_rename,
    .getxattr = locks_getxattr,
    .fgetxattr = locks_getxattr,
    .setxattr = locks_setxattr,
    .fsetxattr = locks_setxattr,
    .getactivelk = locks_getactivelk,
    .setactivelk = locks_setactivelk,
    /* These fops pass here only because they may ask for counts in the reply. */
    .lookup = locks_counts,
    .create = locks_counts,
    .mkdir = locks_counts,
    .mknod = locks_counts,
    .symlink = locks_counts,
    .link = locks_counts,
    .fstat = locks_counts,
    .readdirp = locks_counts,
    .fxattrop = locks_counts,
    .readv = locks_counts,
    .writev = locks_counts,
    .fsync = locks_counts,
    .fsyncdir = locks_counts,
    .ftruncate = locks_counts,
    .fsetattr = locks_counts,
    .fremovexattr = locks_counts,
    .fallocate = locks_counts,
    .discard = locks_counts,
    .zerofill = locks_counts,
    .seek = locks_counts,
    .rchecksum = locks_counts,
};

const struct xlator_type features_locks_xlator = {
    .name = "features/locks",
    .traits = LAYER_SKIPS_PLAIN_WRITES,
    .options = locks_options,
    .conf_size = sizeof(struct locks_conf),
    .ops = &locks_ops,
    .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD),
    .init = locks_init,
    .fini = locks_fini,
    .each_parked = locks_each_parked,
    .inode_forget = locks_inode_forget,
    .fd_closed = locks_fd_closed,
    .client_gone = locks_client_gone,
    .save = locks_save,
    .restore = locks_restore,
    .dump = locks_dump,
};
