/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-queue: grants inodelks and entrylks or makes them wait (spec: brick 8.2, 8.3).
 *
 * inodelks and entrylks have the same rules. They differ only in the definitions of a conflict and of an
 * exact match:
 *   - An owner never conflicts with itself. Each of its locks is an entry and needs its own unlock.
 *   - A request that conflicts with a granted lock waits, or gets EAGAIN.
 *   - A request that conflicts only with a waiting lock waits too (otherwise readers would starve a writer),
 *     unless its owner already has a lock or a place in the queue, because the waiting lock may wait for that
 *     very owner.
 *   - Whenever locks are released, the waiting ones are examined in the order of their arrival.
 * Posix locks wait only for granted locks.
 *
 * A lock that hangs on a waiting lock or on a removal (`is_behind`) is also examined when its owner is
 * granted a lock, because that may make it an exception to the third rule. The tree `behind` of the inode
 * finds it. For each owner and queue, at most the oldest lock is behind a waiting one: the others have a
 * place ahead.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "graph/graph.h"
#include "xlators/features/locks/locks-internal.h"

void
lock_queue_init(struct lock_queue *q, enum lock_kind kind)
{
    *q = (struct lock_queue){.kind = kind};
    CDS_INIT_LIST_HEAD(&q->granted);
    CDS_INIT_LIST_HEAD(&q->waiting);
}

/* ---- blockers -------------------------------------------------------------------------------- */

/* True if the owner of `l` has a granted lock in this queue, or a waiting one older than `l`. */
static bool
owner_has_place(const struct lock_inode *li, const struct lock_queue *q, const struct lock *l)
{
    if (lock_tree_of_owner_in(li->held, l, q))
        return true;
    const struct lock *oldest = lock_tree_of_owner_in(li->wanted, l, q);
    return oldest && oldest->seq < l->seq;
}

/* The lock that arrived right before `l`. `l` may be on the waiting list or about to be added. */
static struct lock *
waiting_before(const struct lock_queue *q, const struct lock *l)
{
    struct cds_list_head *before = l->waiter ? l->link.prev : q->waiting.prev;

    return before == &q->waiting ? NULL : caa_container_of(before, struct lock, link);
}

/* Returns the list of the waiters of the object that blocks `l`; NULL: nothing does. */
static struct cds_list_head *
blocker_of(struct lock_inode *li, struct lock_queue *q, const struct lock *l, bool *is_behind)
{
    bool minds_waiting = q->kind != LOCK_POSIX && q->waiting_tree && !owner_has_place(li, q, l);
    struct lock *found = minds_waiting ? waiting_before(q, l) : NULL;

    *is_behind = found && lock_conflicts(found, l);
    if (*is_behind)
        return &found->waiters;
    found = lock_tree_conflict(q->granted_tree, l);
    if (found)
        return &found->waiters;
    struct cds_list_head *removal = q->delays_removals ? removal_ahead_of(li, l) : NULL;
    found = removal || !minds_waiting ? NULL : lock_tree_older_conflict(q->waiting_tree, l);
    *is_behind = removal || found;
    return removal ? removal : found ? &found->waiters : NULL;
}

static void
blocker_attach(struct lock_inode *li, struct lock *l, struct cds_list_head *blocker, bool is_behind)
{
    cds_list_add_tail(&l->wait_link, blocker);
    l->is_behind = is_behind;
    if (is_behind)
        tree_insert(&li->behind, &l->aside, &lock_aside_by_owner);
}

/* Detaches the lock from its blocker and removes it from pending. */
static void
blocker_detach(struct lock_inode *li, struct lock *l)
{
    cds_list_del_init(&l->wait_link);
    if (l->is_behind)
        tree_remove(&li->behind, &l->aside, &lock_aside_by_owner);
    if (l->is_pending)
        tree_remove(&li->pending, &l->aside, &lock_aside_by_age);
    l->is_behind = l->is_pending = false;
}

static void
examine_later(struct lock_inode *li, struct lock *l)
{
    if (l->is_pending)
        return;
    blocker_detach(li, l);
    l->is_pending = true;
    tree_insert(&li->pending, &l->aside, &lock_aside_by_age);
}

void
lock_release_waiters_locked(struct lock_inode *li, struct cds_list_head *waiters)
{
    while (!cds_list_empty(waiters))
        examine_later(li, cds_list_first_entry(waiters, struct lock, wait_link));
}

/* ---- posix locks per fd ---------------------------------------------------------------------- */

_Static_assert(sizeof(void *) == 8, "two counts fit a context");

struct lock_fd_counts
lock_fd_counts(const struct lock_inode *li, struct fd *fd)
{
    if (!fd)
        return li->anonymous;
    uint64_t both = (uintptr_t)fd_ctx(fd, li->xl);
    return (struct lock_fd_counts){(uint32_t)both, (uint32_t)(both >> 32)};
}

static void
count_fd(struct lock_inode *li, const struct lock *l, uint32_t by)
{
    struct lock_fd_counts n = lock_fd_counts(li, l->fd);

    if (l->waiter)
        n.waiting += by;
    else
        n.granted += by;
    if (l->fd)
        fd_ctx_set(l->fd, li->xl, (void *)(uintptr_t)((uint64_t)n.waiting << 32 | n.granted));
    else
        li->anonymous = n;
}

/* ---- on and off the lists -------------------------------------------------------------------- */

static void
count_in(struct lock_inode *li, struct lock_queue *q, struct lock *l)
{
    l->queue = q;
    q->count++;
    li->counts[q->kind]++;
    if (q->kind == LOCK_POSIX)
        count_fd(li, l, 1);
    if (l->client)
        atomic_fetch_add_explicit(&l->client->locks, 1, memory_order_relaxed);
    lock_inode_pin_locked(li);
}

static void
count_out(struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    struct lock_queue *q = l->queue;

    l->queue = NULL;
    li->counts[q->kind]--;
    if (q->kind == LOCK_POSIX)
        count_fd(li, l, -1u);
    if (l->client)
        atomic_fetch_sub_explicit(&l->client->locks, 1, memory_order_relaxed);
    if (--q->count == 0 && q->kind != LOCK_POSIX)
        lock_domain_idle(li, q);
    lock_inode_unpin_locked(li, b);
}

void
lock_hold_locked(struct lock_inode *li, struct lock_queue *q, struct lock *l)
{
    struct lock *waits;

    count_in(li, q, l);
    cds_list_add_tail(&l->link, &q->granted);
    tree_insert(&q->granted_tree, &l->by_range, &lock_by_range);
    tree_insert(&li->held, &l->by_owner, &lock_held);
    l->is_holder = q->delays_removals && l->pid >= 0;
    if (l->is_holder)
        tree_insert(&li->holders, &l->aside, &lock_aside_by_client);
    while (li->behind && (waits = lock_tree_behind(li->behind, l, q)))
        examine_later(li, waits);
}

void
lock_await_locked(struct lock_inode *li, struct lock_queue *q, struct lock *l, struct cds_list_head *blocker,
                  bool is_behind)
{
    count_in(li, q, l);
    cds_list_add_tail(&l->link, &q->waiting);
    tree_insert(&q->waiting_tree, &l->by_range, &lock_by_range);
    tree_insert(&li->wanted, &l->by_owner, &lock_wanted);
    blocker_attach(li, l, blocker, is_behind);
}

/* Removes the lock from the lists. Its waiters keep hanging on it. */
static void
lock_unlist(struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    struct lock_queue *q = l->queue;

    cds_list_del_init(&l->link);
    tree_remove(l->waiter ? &q->waiting_tree : &q->granted_tree, &l->by_range, &lock_by_range);
    if (l->waiter) {
        tree_remove(&li->wanted, &l->by_owner, &lock_wanted);
        blocker_detach(li, l);
    } else {
        tree_remove(&li->held, &l->by_owner, &lock_held);
        if (l->is_holder)
            tree_remove(&li->holders, &l->aside, &lock_aside_by_client);
        l->is_holder = false;
    }
    count_out(li, l, b);
}

void
lock_take_out_locked(struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    lock_unlist(li, l, b);
    lock_release_waiters_locked(li, &l->waiters);
}

void
lock_drop_locked(struct lock_inode *li, struct lock *l, int error, struct lock_batch *b)
{
    struct call_stub *w = l->waiter;

    lock_take_out_locked(li, l, b);
    if (w)
        waiter_wake_locked(w, error, b);
    lock_free(l);
}

void
lock_resize_locked(struct lock_inode *li, struct lock *l, int64_t start, int64_t end)
{
    struct lock_queue *q = l->queue;

    tree_remove(&q->granted_tree, &l->by_range, &lock_by_range);
    tree_remove(&li->held, &l->by_owner, &lock_held);
    l->start = start;
    l->end = end;
    tree_insert(&q->granted_tree, &l->by_range, &lock_by_range);
    tree_insert(&li->held, &l->by_owner, &lock_held);
    lock_release_waiters_locked(li, &l->waiters);
}

/* ---- waiting locks --------------------------------------------------------------------------- */

/* Grants a lock that no longer has a blocker. */
static void
lock_grant(struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    struct lock_queue *q = l->queue;
    struct call_stub *w = l->waiter;
    int err = 0;

    lock_unlist(li, l, b); /* its waiters keep hanging on it */
    l->waiter = NULL;
    l->since = time(NULL);
    if (q->kind == LOCK_POSIX)
        err = posixlk_set_locked(li, l, b);
    else
        lock_hold_locked(li, q, l);
    if (err)
        lock_free(l);
    waiter_wake_locked(w, -err, b);
}

void
lock_examine_locked(struct lock_inode *li, unsigned most, struct lock_batch *b)
{
    struct cds_list_head *blocker;
    struct lock *l;
    bool is_behind;

    for (; most && (l = lock_aside(tree_first(li->pending))); most--) {
        blocker_detach(li, l);
        blocker = blocker_of(li, l->queue, l, &is_behind);
        if (blocker)
            blocker_attach(li, l, blocker, is_behind);
        else
            lock_grant(li, l, b);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct lock_queue *
queue_of(struct lock_domain *d, enum lock_kind kind)
{
    return kind == LOCK_ENTRY ? &d->entrylks : &d->inodelks;
}

static xl_verdict
request_locked(struct lock_inode *li, struct call_stack *stk, struct lock_domain *d, enum lock_kind kind,
               struct lock *l, bool may_wait, struct lock_batch *b)
{
    struct lock_queue *q = queue_of(d, kind);
    bool is_behind;
    int err = lock_inode_has_room(li, stk->client);

    if (err)
        return err;
    l->seq = ++li->last_seq;
    struct cds_list_head *blocker = blocker_of(li, q, l, &is_behind);
    if (!blocker) {
        lock_hold_locked(li, q, l);
        if (li->pending)
            lock_inode_settle_locked(li, b);
        return XL_DONE;
    }
    contention_note_all_locked(li, q, l, b);
    if (!may_wait)
        return -EAGAIN;
    if (!(l->waiter = waiter_new(b->xl, stk)))
        return -ENOMEM;
    stk->reply.op_ret = 0;
    lock_park_locked(l->waiter, b);
    lock_await_locked(li, q, l, blocker, is_behind);
    return XL_OWNED;
}

xl_verdict
lock_queue_request(struct xlator *xl, struct call_stack *stk, struct inode *inode, const char *domain,
                   enum lock_kind kind, struct lock *l, bool may_wait)
{
    struct lock_inode *li = lock_inode_get(xl, inode);
    xl_verdict verdict = -ENOTCONN;
    struct lock_batch b;

    if (!li) {
        lock_free(l);
        return -ENOMEM;
    }
    if (lock_inode_enter_for(li, &b, xl, stk->client)) {
        struct lock_domain *d = lock_domain_get(li, domain, xl);

        verdict = d ? request_locked(li, stk, d, kind, l, may_wait, &b) : -ENOMEM;
        if (d && verdict < 0)
            lock_domain_idle(li, queue_of(d, kind));
    }
    if (verdict < 0)
        lock_free(l);
    lock_inode_leave(li, &b); /* if parked, stk may be freed from here on */
    return verdict;
}

xl_verdict
lock_queue_unlock(struct xlator *xl, struct inode *inode, const char *domain, enum lock_kind kind,
                  struct lock *key)
{
    struct lock_inode *li = inode_ctx(inode, xl);
    struct lock *found = NULL;
    struct lock_batch b;

    if (!li)
        return -EINVAL;
    lock_inode_enter(li, &b, xl);
    struct lock_domain *d = lock_domain_find(li, domain);
    if (d) {
        key->queue = queue_of(d, kind);
        found = lock_tree_same(li->held, key);
    }
    if (found) {
        lock_drop_locked(li, found, 0, &b);
        lock_inode_settle_locked(li, &b);
    }
    lock_inode_leave(li, &b);
    return found ? XL_DONE : -EINVAL;
}

static void
drop_from(struct lock_inode *li, struct cds_list_head *list, lock_match match, const void *arg, int error,
          struct lock_batch *b, unsigned *dropped)
{
    struct lock *l, *next;

    cds_list_for_each_entry_safe(l, next, list, link) {
        if (!match(l, arg))
            continue;
        lock_drop_locked(li, l, error, b);
        (*dropped)++;
    }
}

void
lock_queue_drop_locked(struct lock_inode *li, struct lock_queue *q, lock_match match, const void *arg,
                       int error, struct lock_batch *b, unsigned *granted, unsigned *waiting)
{
    drop_from(li, &q->granted, match, arg, error, b, granted);
    drop_from(li, &q->waiting, match, arg, error, b, waiting);
}
