/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls that an operation needs, and its locks.
 *
 * The locks of an operation are requested in parallel, without waiting. If one is taken, the granted locks
 * are released, and all are taken one after the other in an order that all clients keep: by the subvolume's
 * name, then by the locked object; each request waits before the next is sent. So no waiting client holds a
 * lock that comes later in that order. The locks are taken as pid -4. A brick delays the removal of an
 * object while another client has a lock on the object, but ignores locks of pid -4: otherwise a removal
 * that waits for this operation's lock, while its client holds a lock that this operation waits for, would
 * wait for ever (client 2.24). */
#include <errno.h>
#include <string.h>

#include "event/timer.h"
#include "event/worker.h"
#include "stack/lock-cmd.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum lock_how { TAKE_WAITING, TAKE_NOW, GIVE_BACK };

struct op
dist_op_of(struct xlator *xl, struct call_stack *stk)
{
    /* Not an address, because an unlock may be under way when the next operation has the same memory. */
    static _Atomic uint64_t owners;
    struct op o = {.d = xl->private, .stk = stk};
    uint64_t mine = atomic_fetch_add_explicit(&owners, 1, memory_order_relaxed) + 1;

    memcpy(o.owner, &mine, sizeof o.owner);
    return o;
}

/* ---- making calls ---------------------------------------------------------------------------- */

struct call_stack *
dist_call_new(const struct op *o, enum fop fop)
{
    struct call_stack *stk = o->is_pressing ? coro_call_new_spare() : coro_call_new();

    if (!stk)
        return NULL;
    stk->caller = o->stk->caller; /* borrows data from the caller's call */
    stk->call.fop = fop;
    return stk;
}

struct call_stack *
dist_call_new_internal(const struct op *o, enum fop fop)
{
    struct call_stack *stk = dist_call_new(o, fop);

    if (!stk)
        return NULL;
    stk->caller.pid = PID_INTERNAL;
    stk->caller.uid = stk->caller.gid = stk->caller.group_count = 0;
    return stk;
}

struct call_stack *
dist_call_copy(const struct op *o)
{
    return coro_call_fork(o->stk);
}

struct call_stack *
dist_call_for_inode(struct call_stack *stk, struct inode *inode)
{
    if (stk)
        stk->call.loc.inode = inode_ref(inode);
    return stk;
}

struct call_stack *
dist_call_for_name(struct call_stack *stk, struct inode *parent, const char *name)
{
    if (stk) {
        stk->call.loc.parent = inode_ref(parent);
        stk->call.loc.name = name;
    }
    return stk;
}

/* Returns the call's xdata, made on first use. */
static struct dict *
xdata_of(struct call_stack *stk)
{
    if (!stk->call.xdata)
        stk->call.xdata = dict_new(&stk->arena);
    return stk->call.xdata;
}

static struct call_stack *
unless_short(struct call_stack *stk, int err)
{
    if (!err)
        return stk;
    call_stack_free(stk);
    return NULL;
}

#define PUT(stk, set) ((stk) ? unless_short((stk), xdata_of(stk) ? (set) : -ENOMEM) : NULL)

struct call_stack *
dist_call_put_int(struct call_stack *stk, enum dict_key key, int64_t value)
{
    return PUT(stk, dict_set_int(stk->call.xdata, key, value));
}

struct call_stack *
dist_call_put_uint(struct call_stack *stk, enum dict_key key, uint64_t value)
{
    return PUT(stk, dict_set_uint(stk->call.xdata, key, value));
}

struct call_stack *
dist_call_put_str(struct call_stack *stk, enum dict_key key, const char *text)
{
    return PUT(stk, dict_set_str(stk->call.xdata, key, text));
}

struct call_stack *
dist_call_put_bytes(struct call_stack *stk, enum dict_key key, const void *bytes, size_t len)
{
    return PUT(stk, dict_set_bytes(stk->call.xdata, key, bytes, (uint32_t)len));
}

struct call_stack *
dist_call_put_gfid(struct call_stack *stk, enum dict_key key, const struct gfid *gfid)
{
    return PUT(stk, dict_set_gfid(stk->call.xdata, key, gfid));
}

/* ---- sending to one child -------------------------------------------------------------------- */

int
dist_call_at(const struct op *o, unsigned i, struct call_stack *stk)
{
    return stk ? coro_call(stk, o->d->child[i].xl) : -ENOMEM;
}

int
dist_call_once(const struct op *o, unsigned i, struct call_stack *stk)
{
    return coro_call_once(stk, o->d->child[i].xl);
}

xl_verdict
dist_op_answer_with(const struct op *o, struct call_stack *stk)
{
    coro_call_take_reply(o->stk, stk);
    return XL_DONE;
}

/* ---- sending to several children ------------------------------------------------------------- */

int
dist_fan_begin(struct fan *f, const struct op *o)
{
    *f = (struct fan){.o = o, .count = o->d->count};
    f->call = arena_zalloc(&o->stk->arena, f->count * sizeof *f->call);
    if (f->call)
        return 0;
    f->count = 0;
    return -ENOMEM;
}

void
dist_fan_add(struct fan *f, unsigned i, struct call_stack *stk)
{
    f->call[i] = stk;
    if (!stk)
        f->is_short = true;
}

void
dist_fan_wind(struct fan *f, struct coro_group *g)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (f->call[i] && f->call[i]->state == CALL_NEW)
            coro_group_wind(g, f->call[i], f->o->d->child[i].xl);
    }
}

int
dist_fan_go(struct fan *f)
{
    struct coro_group g;

    if (f->is_short)
        return -ENOMEM;
    coro_group_begin(&g);
    dist_fan_wind(f, &g);
    coro_group_wait(&g);
    return 0;
}

int
dist_fan_result(const struct fan *f, unsigned i)
{
    return f->call[i] ? coro_call_result(f->call[i]) : -ENOTCONN;
}

void
dist_fan_end(struct fan *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (f->call[i])
            call_stack_free(f->call[i]);
        f->call[i] = NULL;
    }
}

/* ---- locks ----------------------------------------------------------------------------------- */

static struct call_stack *
lock_call_make(const struct op *o, const struct dist_lock *l, enum lock_how how)
{
    struct call_stack *stk =
        dist_call_for_inode(dist_call_new_internal(o, l->name ? FOP_entrylk : FOP_inodelk), l->inode);

    if (!stk)
        return NULL;
    stk->caller.lk_owner = (struct lk_owner){.len = sizeof o->owner, .bytes = o->owner};
    stk->call.volume = l->domain;
    if (l->name) {
        stk->call.name = l->name;
        stk->call.has_name = 1;
        stk->call.cmd = how == GIVE_BACK ? ENTRYLK_UNLOCK : how == TAKE_NOW ? ENTRYLK_TRY : ENTRYLK_WAIT;
        stk->call.type = FLOCK_WRITE;
    } else {
        stk->call.cmd = how == TAKE_WAITING ? LK_SET_WAIT : LK_SET;
        stk->call.type = how == GIVE_BACK ? FLOCK_UNLOCK : l->type;
        stk->call.flock.type = stk->call.type;
        if (how == GIVE_BACK && l->note_done)
            stk = dist_call_put_str(stk, DICT_KEY_NAME_NOTE_DONE, l->note_done);
    }
    return stk;
}

/* Orders locks: negative if `a` is taken first. */
static int
compare_locks(const struct dist *d, const struct dist_lock *a, const struct dist_lock *b)
{
    int by_child = strcmp(d->child[a->child].xl->name, d->child[b->child].xl->name);

    if (by_child)
        return by_child;
    int by_gfid = memcmp(&a->inode->gfid, &b->inode->gfid, sizeof a->inode->gfid);

    return by_gfid ? by_gfid : strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

/* Returns the number of locks sorted as a unit: the inodelk of a name precedes its entrylk and is sorted
 * with it. */
static unsigned
group_size(const struct dist_lock *l)
{
    return !l->name && l->type == FLOCK_READ ? 2 : 1;
}

static void
sort_locks(const struct dist *d, struct dist_lock *lock, unsigned count)
{
    unsigned size = count ? group_size(&lock[0]) : 1;

    for (unsigned i = size; i < count; i += size) {
        for (unsigned k = i; k >= size && compare_locks(d, &lock[k + size - 1], &lock[k - 1]) < 0;
             k -= size) {
            for (unsigned m = 0; m < size; m++) {
                struct dist_lock swap = lock[k + m];

                lock[k + m] = lock[k + m - size];
                lock[k + m - size] = swap;
            }
        }
    }
}

static bool
is_missing_errno(int err)
{
    return err == -ENOENT || err == -ESTALE;
}

static bool
is_allowed(const struct dist_lock *l, int ret)
{
    return ret >= 0 || (l->may_miss && (is_missing_errno(ret) || ret == -EIO));
}

static int
take_locks_in_turn(const struct op *o, struct dist_lock *lock, unsigned count)
{
    sort_locks(o->d, lock, count);
    for (unsigned i = 0; i < count; i++) {
        int ret = dist_call_once(o, lock[i].child, lock_call_make(o, &lock[i], TAKE_WAITING));

        if (!is_allowed(&lock[i], ret)) {
            dist_locks_drop(o, lock, i);
            return ret;
        }
        lock[i].is_held = ret >= 0;
    }
    return 0;
}

int
dist_locks_try_begin(const struct op *o, struct lock_try *t, struct dist_lock *lock, unsigned count)
{
    *t = (struct lock_try){.lock = lock, .count = count};
    t->calls = arena_zalloc(&o->stk->arena, count * sizeof(*t->calls));
    bool is_short = !t->calls;

    for (unsigned i = 0; i < count && !is_short; i++) {
        t->calls[i] = lock_call_make(o, &lock[i], TAKE_NOW);
        is_short = !t->calls[i];
    }
    for (unsigned i = 0; t->calls && is_short && i < count && t->calls[i]; i++)
        call_stack_free(t->calls[i]);
    if (is_short)
        return -ENOMEM;
    coro_group_begin(&t->group);
    for (unsigned i = 0; i < count; i++)
        coro_group_wind(&t->group, t->calls[i], o->d->child[lock[i].child].xl);
    return 0;
}

int
dist_locks_try_end(const struct op *o, struct lock_try *t)
{
    int err = 0;

    coro_group_wait(&t->group);
    for (unsigned i = 0; i < t->count; i++) {
        int ret = coro_call_result(t->calls[i]);

        t->lock[i].is_held = ret >= 0;
        if (!is_allowed(&t->lock[i], ret) && (!err || ret == -EAGAIN))
            err = ret;
        call_stack_free(t->calls[i]);
    }
    if (err)
        dist_locks_drop(o, t->lock, t->count);
    return err;
}

int
dist_locks_try(const struct op *o, struct dist_lock *lock, unsigned count)
{
    struct lock_try t;
    int err = dist_locks_try_begin(o, &t, lock, count);

    return err ? err : dist_locks_try_end(o, &t);
}

int
dist_locks_take_parts(const struct op *o, struct dist_lock *lock, unsigned first, unsigned count)
{
    int err = count > 1 ? dist_locks_try(o, lock, count) : -EAGAIN;

    if (err != -EAGAIN)
        return err;
    err = take_locks_in_turn(o, lock, first);
    if (!err && (err = take_locks_in_turn(o, lock + first, count - first)))
        dist_locks_drop(o, lock, first);
    return err;
}

int
dist_locks_take(const struct op *o, struct dist_lock *lock, unsigned count)
{
    return dist_locks_take_parts(o, lock, count, count);
}

/* An unlock without a waiting caller, on the arena of its call. */
struct unlock {
    struct call_stack *stk;
    struct xlator *top;
    struct graph *graph;
    struct timer timer; /* delay until the next attempt */
    struct worker_job job;
};

enum { MEMORY_WAIT_MS = 20 };

static void
unlock_done(struct call_stack *stk)
{
    struct unlock *u = stk->owner;
    struct graph *graph = u->graph;

    if (stk->reply.shortage == SHORTAGE_UNSENT) {
        timer_start(&u->timer, MEMORY_WAIT_MS);
        return;
    }
    call_stack_free(stk);
    graph_unpin(graph);
}

static void
unlock_retry(struct worker_job *job)
{
    struct unlock *u = caa_container_of(job, struct unlock, job);

    call_stack_again(u->stk);
    call_stack_wind(u->stk, u->top);
}

static void
unlock_due(struct timer *t)
{
    worker_post_any(&caa_container_of(t, struct unlock, timer)->job);
}

/* Copies the operation's data to the call, which may outlive the operation. Returns NULL when out of
 * memory, after freeing the call. */
static struct unlock *
copy_unlock_data(struct call_stack *stk)
{
    struct lk_owner *owner = &stk->caller.lk_owner;
    uint8_t *bytes = arena_alloc(&stk->arena, owner->len);
    char *name = stk->call.has_name ? arena_alloc(&stk->arena, strlen(stk->call.name) + 1) : NULL;
    struct unlock *u = arena_zalloc(&stk->arena, sizeof *u);

    if (!u || !bytes || (stk->call.has_name && !name)) {
        call_stack_free(stk);
        return NULL;
    }
    owner->bytes = memcpy(bytes, owner->bytes, owner->len);
    if (name)
        stk->call.name = strcpy(name, stk->call.name);
    timer_init(&u->timer, unlock_due);
    u->job.run = unlock_retry;
    u->stk = stk;
    return u;
}

/* Makes the call that releases the lock; waits for memory. */
static struct unlock *
unlock_of(const struct op *o, const struct dist_lock *l)
{
    struct op pressing = *o;
    struct call_stack *stk = lock_call_make(o, l, GIVE_BACK);
    struct unlock *u = stk ? copy_unlock_data(stk) : NULL;

    pressing.is_pressing = true;
    while (!u) {
        stk = lock_call_make(&pressing, l, GIVE_BACK);
        u = stk ? copy_unlock_data(stk) : NULL;
        if (!u)
            coro_pause(MEMORY_WAIT_MS);
    }
    u->top = o->d->child[l->child].xl;
    u->graph = o->d->xl->graph;
    return u;
}

/* Does not wait for the replies. Unlocks on one subvolume arrive in the order in which they are sent. If an
 * unlock cannot be sent, the lost connection releases the lock; without memory, the unlock is sent later.
 * Locks of one owner are counted (brick 8.2): a new lock of the operation stays, even if a brick grants it
 * before it has processed the unlock. */
void
dist_locks_drop(const struct op *o, struct dist_lock *lock, unsigned count)
{
    struct graph *graph = o->d->xl->graph;

    for (unsigned i = count; i-- > 0;) {
        struct unlock *u = lock[i].is_held ? unlock_of(o, &lock[i]) : NULL;

        lock[i].is_held = false;
        if (!u)
            continue;
        if (graph_pin(graph)) {
            u->stk->done = unlock_done;
            u->stk->owner = u;
            call_stack_wind(u->stk, u->top);
        } else { /* the graph is ending */
            (void)dist_call_once(o, lock[i].child, u->stk);
        }
    }
}

unsigned
dist_locks_namespace(struct dist_lock *out, unsigned child, struct inode *parent, const char *name)
{
    out[0] = (struct dist_lock){.child = child, .inode = parent, .domain = DOMAIN_LAYOUT, .type = FLOCK_READ};
    out[1] = (struct dist_lock){
        .child = child, .inode = parent, .domain = DOMAIN_ENTRY, .name = name, .type = FLOCK_WRITE};
    return 2;
}
