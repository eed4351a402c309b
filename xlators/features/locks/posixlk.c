/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LK: posix locks, as fcntl and flock request them (spec: brick 8.4).
 *
 * Invariant: the granted locks of one owner do not overlap each other, and locks of different owners overlap
 * only if all are read locks. So at most one granted lock of an owner extends beyond a range on both sides,
 * and no change needs more than one object in addition to the new lock. Sorted by start, an owner's locks are
 * also sorted by end, so the tree `held` finds the first one in a range.
 */
#include <errno.h>
#include <string.h>

#include "mem/mem-pool.h"
#include "stack/lock-cmd.h"
#include "xlators/features/locks/locks-internal.h"

enum { LK_RESLK_LCK = 3, LK_GETLK_FD = 6 }; /* not built, like the commands between them */

/* Cuts the range of `key` out of its owner's granted locks. `spare` becomes the right-hand piece of a lock
 * that is split in two; at most one lock is split. */
static void
posixlk_cut(struct lock_inode *li, const struct lock *key, struct lock *spare, struct lock_batch *b)
{
    int64_t at = key->start;
    struct lock *held;

    while ((held = lock_tree_of_owner_at(li->held, key, &li->posix, at)) && held->start <= key->end) {
        int64_t end = held->end;

        if (held->start < key->start && end > key->end) {
            lock_resize_locked(li, held, held->start, key->start - 1);
            spare->start = key->end + 1;
            spare->end = end;
            lock_hold_locked(li, &li->posix, spare);
        } else if (held->start < key->start) {
            lock_resize_locked(li, held, held->start, key->start - 1);
        } else if (end > key->end) {
            lock_resize_locked(li, held, key->end + 1, end);
        } else {
            lock_drop_locked(li, held, 0, b);
        }
        if (end >= key->end) /* the owner's locks don't overlap: no other lock is in the range */
            return;
        at = end + 1;
    }
}

/* Prepares the copy that posixlk_cut() will need: *spare stays NULL if posixlk_cut() needs none. */
static int
posixlk_cut_prepare(struct lock_inode *li, const struct lock *key, struct lock **spare)
{
    const struct lock *held = lock_tree_of_owner_at(li->held, key, &li->posix, key->start);

    *spare = NULL;
    if (!held || held->start >= key->start || held->end <= key->end)
        return 0;
    int err = lock_inode_has_room(li, key->client);
    if (err)
        return err;
    *spare = lock_copy(li->xl, held);
    if (!*spare)
        return -ENOMEM;
    (*spare)->seq = ++li->last_seq;
    return 0;
}

/* Removes the range of `key` from its owner's granted locks. Returns 0, -ENOMEM or -ENOLCK. */
static int
posixlk_clear_range(struct lock_inode *li, const struct lock *key, struct lock_batch *b)
{
    struct lock *spare;
    int err = posixlk_cut_prepare(li, key, &spare);

    if (!err)
        posixlk_cut(li, key, spare, b);
    return err;
}

/* Extends the new lock by overlapping locks of the same owner and type. Locks that are merely adjacent stay
 * separate.
 */
static void
posixlk_merge(struct lock_inode *li, struct lock *l)
{
    const struct lock *held;
    int64_t start = l->start, end = l->end, at = l->start;

    while ((held = lock_tree_of_owner_at(li->held, l, &li->posix, at)) && held->start <= l->end) {
        /* A lock of another fd stays separate, because the release of an fd must remove only that fd's part.
         */
        if (held->type == l->type && held->fd == l->fd) {
            start = held->start < start ? held->start : start;
            end = held->end > end ? held->end : end;
        }
        if (held->end >= l->end)
            break;
        at = held->end + 1;
    }
    l->start = start;
    l->end = end;
}

int
posixlk_set_locked(struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    posixlk_merge(li, l); /* before the cut, so the parts beyond the range are in the new lock */
    int err = posixlk_clear_range(li, l, b);

    if (!err)
        lock_hold_locked(li, &li->posix, l);
    return err;
}

/* ---- the fop --------------------------------------------------------------------------------- */

static int
posixlk_check(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (c->cmd >= LK_RESLK_LCK && c->cmd <= LK_GETLK_FD)
        /* lock reservation and recovery: no client of this protocol sends these commands */
        return -EOPNOTSUPP;
    if (c->cmd > LK_SET_WAIT)
        return -EINVAL;
    if (c->type != FLOCK_READ && c->type != FLOCK_WRITE && (c->type != FLOCK_UNLOCK || c->cmd == LK_GET))
        return -EINVAL;
    return stk->caller.lk_owner.len > LK_OWNER_MAX ? -EINVAL : 0;
}

static xl_verdict
getlk(struct lock_inode *li, struct call_stack *stk, const struct lock *key)
{
    const struct lock *held = lock_tree_conflict(li->posix.granted_tree, key);
    struct fop_flock *out = &stk->reply.flock;

    if (!held) {
        out->type = FLOCK_UNLOCK;
        return XL_DONE;
    }
    const char *owner = arena_dup(&stk->arena, held->owner.bytes, held->owner.len);
    if (!owner)
        return -ENOMEM;
    *out = (struct fop_flock){
        .type = held->type,
        .start = held->start,
        .len = held->end == INT64_MAX ? 0 : held->end - held->start + 1,
        .pid = held->flock.pid,
        .owner = {held->owner.len, (const uint8_t *)owner},
    };
    return XL_DONE;
}

static xl_verdict
posixlk_unlock(struct lock_inode *li, struct call_stack *stk, const struct lock *key, struct lock_batch *b)
{
    int err = posixlk_clear_range(li, key, b);

    if (err)
        return err;
    lock_inode_settle_locked(li, b);
    stk->reply.flock.type = lock_fd_counts(li, key->fd).granted ? FLOCK_READ : FLOCK_UNLOCK;
    return XL_DONE;
}

/* Takes ownership of *l unless it returns an error. */
static xl_verdict
setlk(struct lock_inode *li, struct call_stack *stk, struct lock *l, struct lock_batch *b)
{
    int err = lock_inode_has_room(li, stk->client);

    if (err)
        return err;
    l->seq = ++li->last_seq;
    struct lock *held = lock_tree_conflict(li->posix.granted_tree, l);
    if (!held) {
        err = posixlk_set_locked(li, l, b);
        if (!err && li->pending) /* a write lock may have become a read lock */
            lock_inode_settle_locked(li, b);
        return err ? err : XL_DONE;
    }
    if (stk->call.cmd != LK_SET_WAIT)
        return -EAGAIN;
    /* Two readers that both want to become writers would wait for each other unless each gives up its read
     * lock first. */
    struct call_stub *w = waiter_new(b->xl, stk);
    err = w ? posixlk_clear_range(li, l, b) : -ENOMEM;
    if (err) {
        call_stub_free(w);
        return err;
    }
    l->waiter = w;
    lock_park_locked(w, b);
    lock_await_locked(li, &li->posix, l, &held->waiters, false);
    lock_inode_settle_locked(li, b);
    return XL_OWNED;
}

xl_verdict
locks_lk(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct inode *inode = c->fd ? c->fd->inode : c->loc.inode;
    struct lock_inode *li;
    struct lock_batch b;
    int64_t start, end;
    int err = posixlk_check(stk);

    if (!err)
        err = lock_range(c->flock.start, c->flock.len, &start, &end);
    if (err)
        return err;
    if (!inode)
        return -EBADF;
    if (!(li = lock_inode_get(xl, inode)))
        return -ENOMEM;
    stk->reply.op_ret = 0;
    stk->reply.xdata = c->xdata; /* echoed */
    stk->reply.flock = c->flock;
    stk->reply.flock.type = c->type;
    if (c->flock.len < 0) { /* as the layer interprets it */
        stk->reply.flock.start = start;
        stk->reply.flock.len = -c->flock.len;
    }
    bool is_kept = c->cmd != LK_GET && c->type != FLOCK_UNLOCK;
    struct lock key, *l = is_kept ? lock_new(xl, stk, NULL) : &key;
    xl_verdict verdict = -ENOTCONN;

    if (!l)
        return -ENOMEM;
    if (!is_kept)
        lock_key(l, stk, NULL);
    l->start = start;
    l->end = end;
    if (lock_inode_enter_for(li, &b, xl, stk->client))
        verdict = c->cmd == LK_GET         ? getlk(li, stk, l)
                  : c->type == FLOCK_UNLOCK ? posixlk_unlock(li, stk, l, &b)
                                            : setlk(li, stk, l, &b);
    if (verdict < 0 && is_kept)
        lock_free(l);
    lock_inode_leave(li, &b); /* if parked, stk may be freed from here on */
    return verdict;
}
