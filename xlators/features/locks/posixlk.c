/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LK: posix locks, as fcntl and flock take them (spec: brick 8.4).
 *
 * Invariant: the granted locks of one owner do not overlap each other, and locks of different owners overlap only if all are
 * read locks. So at most one granted lock of an owner sticks out of a range on both sides, and no change
 * needs more than one object beyond the new lock itself.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "mem/mem-pool.h"
#include "xlators/features/locks/locks-internal.h"

enum { LK_GETLK = 0, LK_SETLK = 1, LK_SETLKW = 2, LK_RESLK_LCK = 3, LK_GETLK_FD = 6 };

const struct lock *
posixlk_conflict(const struct lock_inode *li, const struct lock *l)
{
    const struct lock *held;

    cds_list_for_each_entry(held, &li->posix_granted, link) {
        if ((held->type == FLOCK_WRITE || l->type == FLOCK_WRITE) && lock_overlaps(held, l) &&
            !lock_same_owner(held, l))
            return held;
    }
    return NULL;
}

static void
posix_count(struct lock_inode *li)
{
    li->posix_count++;
    lock_inode_pin_locked(li);
}

static void
posix_remove(struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    cds_list_del(&l->link);
    li->posix_count--;
    lock_inode_unpin_locked(li, b);
    lock_free(l);
}

/* Cuts the range of `key` out of its owner's granted locks. `spare` becomes the right-hand piece of a lock that is cut in two;
 * there is at most one such. */
static void
cut(struct lock_inode *li, const struct lock *key, struct lock *spare, struct lock_batch *b)
{
    struct lock *held, *next;

    cds_list_for_each_entry_safe(held, next, &li->posix_granted, link) {
        if (!lock_overlaps(held, key) || !lock_same_owner(held, key))
            continue;
        if (held->start < key->start && held->end > key->end) {
            spare->start = key->end + 1;
            held->end = key->start - 1;
            cds_list_add(&spare->link, &held->link);
            posix_count(li);
            return; /* the owner's locks don't overlap: nothing else is in the range */
        }
        if (held->start < key->start)
            held->end = key->start - 1;
        else if (held->end > key->end)
            held->start = key->end + 1;
        else
            posix_remove(li, held, b);
    }
}

/* The copy that cut() will need: *spare stays NULL if it needs none. */
static int
cut_prepare(struct xlator *xl, const struct lock_inode *li, const struct lock *key, struct lock **spare)
{
    const struct lock *held;

    *spare = NULL;
    cds_list_for_each_entry(held, &li->posix_granted, link) {
        if (held->start < key->start && held->end > key->end && lock_same_owner(held, key)) {
            *spare = lock_copy(xl, held);
            return *spare ? 0 : -ENOMEM;
        }
    }
    return 0;
}

int
posixlk_clear_locked(struct xlator *xl, struct lock_inode *li, const struct lock *key, struct lock_batch *b)
{
    struct lock *spare;
    int rc = cut_prepare(xl, li, key, &spare);

    if (!rc)
        cut(li, key, spare, b);
    return rc;
}

/* A lock of the same kind that the owner has there grows into the new one; merely adjacent ones stay apart. */
static void
merge(struct lock_inode *li, struct lock *l)
{
    const struct lock *held;
    int64_t start = l->start, end = l->end;

    cds_list_for_each_entry(held, &li->posix_granted, link) {
        /* Of another fd: that fd's release must take its part only. */
        if (held->type != l->type || held->fd != l->fd || !lock_overlaps(held, l) || !lock_same_owner(held, l))
            continue;
        start = held->start < start ? held->start : start;
        end = held->end > end ? held->end : end;
    }
    l->start = start;
    l->end = end;
}

int
posixlk_set_locked(struct xlator *xl, struct lock_inode *li, struct lock *l, struct lock_batch *b)
{
    merge(li, l); /* before the cut: what sticks out is in the new lock then */
    int rc = posixlk_clear_locked(xl, li, l, b);

    if (rc)
        return rc;
    cds_list_add_tail(&l->link, &li->posix_granted);
    posix_count(li);
    return 0;
}

void
posixlk_grant_locked(struct lock_inode *li, struct lock_batch *b)
{
    struct lock *l, *next;

    cds_list_for_each_entry_safe(l, next, &li->posix_blocked, link) {
        if (posixlk_conflict(li, l))
            continue;
        struct waiter *w = l->waiter;

        cds_list_del(&l->link);
        CDS_INIT_LIST_HEAD(&l->link);
        li->posix_count--;
        lock_inode_unpin_locked(li, b);
        l->waiter = NULL;
        l->since = time(NULL);
        int rc = posixlk_set_locked(b->xl, li, l, b);
        if (rc)
            lock_free(l);
        waiter_wake_locked(w, -rc, b);
    }
}

static void
drop_from(struct lock_inode *li, struct cds_list_head *list, lock_match match, const void *arg, int error,
          struct lock_batch *b, unsigned *dropped)
{
    struct lock *l, *next;

    cds_list_for_each_entry_safe(l, next, list, link) {
        if (!match(l, arg))
            continue;
        if (l->waiter)
            waiter_wake_locked(l->waiter, error, b);
        posix_remove(li, l, b);
        (*dropped)++;
    }
}

void
posixlk_drop_locked(struct lock_inode *li, lock_match match, const void *arg, int error, struct lock_batch *b,
                    unsigned *granted, unsigned *blocked)
{
    drop_from(li, &li->posix_granted, match, arg, error, b, granted);
    drop_from(li, &li->posix_blocked, match, arg, error, b, blocked);
}

/* -- the fop --------------------------------------------------------------------------------------------------------- */

static int
check(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (c->cmd >= LK_RESLK_LCK && c->cmd <= LK_GETLK_FD)
        return -EOPNOTSUPP; /* lock reservation and recovery: no client of this protocol sends them */
    if (c->cmd > LK_SETLKW)
        return -EINVAL;
    if (c->type != FLOCK_READ && c->type != FLOCK_WRITE && (c->type != FLOCK_UNLOCK || c->cmd == LK_GETLK))
        return -EINVAL;
    return stk->caller.lk_owner.len > LK_OWNER_MAX ? -EINVAL : 0;
}

static int
getlk(struct lock_inode *li, struct call_stack *stk, const struct lock *key)
{
    const struct lock *held = posixlk_conflict(li, key);
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

static bool
fd_has_locks(const struct lock_inode *li, const struct fd *fd)
{
    const struct lock *l;

    cds_list_for_each_entry(l, &li->posix_granted, link) {
        if (l->fd == fd)
            return true;
    }
    return false;
}

static int
unlock(struct lock_inode *li, struct call_stack *stk, const struct lock *key, struct lock_batch *b)
{
    int rc = posixlk_clear_locked(b->xl, li, key, b);

    if (rc)
        return rc;
    lock_inode_settle_locked(li, b);
    stk->reply.flock.type = fd_has_locks(li, key->fd) ? FLOCK_READ : FLOCK_UNLOCK;
    return XL_DONE;
}

/* Takes *l over unless the answer is an error. */
static int
setlk(struct lock_inode *li, struct call_stack *stk, struct lock *l, struct lock_batch *b)
{
    int rc;

    if (!posixlk_conflict(li, l)) {
        rc = posixlk_set_locked(b->xl, li, l, b);
        if (!rc) /* a write lock may have become a read lock */
            posixlk_grant_locked(li, b);
        return rc ? rc : XL_DONE;
    }
    if (stk->call.cmd != LK_SETLKW)
        return -EAGAIN;
    if (!(l->waiter = waiter_new(b->xl, stk)))
        return -ENOMEM;
    /* Two readers that both want to become writers would wait for each other, unless each gives up what it has. */
    if ((rc = posixlk_clear_locked(b->xl, li, l, b)))
        return rc;
    lock_park_locked(stk, b);
    cds_list_add_tail(&l->link, &li->posix_blocked);
    posix_count(li);
    posixlk_grant_locked(li, b);
    return XL_OWNED;
}

int
locks_lk(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct inode *inode = c->fd ? c->fd->inode : c->loc.inode;
    struct lock_inode *li;
    struct lock_batch b;
    int64_t start, end;
    int rc = check(stk);

    if (!rc)
        rc = lock_range(c->flock.start, c->flock.len, &start, &end);
    if (rc)
        return rc;
    if (!inode)
        return -EBADF;
    if (!(li = lock_inode_get(xl, inode)))
        return -ENOMEM;
    struct lock *l = lock_new(xl, stk, NULL);
    if (!l)
        return -ENOMEM;
    l->start = start;
    l->end = end;
    stk->reply.op_ret = 0;
    stk->reply.xdata = c->xdata; /* echoed */
    stk->reply.flock = c->flock;
    stk->reply.flock.type = c->type;
    if (c->flock.len < 0) { /* as it was understood */
        stk->reply.flock.start = start;
        stk->reply.flock.len = -c->flock.len;
    }
    bool is_kept = c->cmd != LK_GETLK && c->type != FLOCK_UNLOCK;

    if (!lock_inode_enter_for(li, &b, xl, stk->client))
        rc = -ENOTCONN;
    else if (c->cmd == LK_GETLK)
        rc = getlk(li, stk, l);
    else if (c->type == FLOCK_UNLOCK)
        rc = unlock(li, stk, l, &b);
    else
        rc = setlk(li, stk, l, &b);
    if (rc < 0 && l->waiter)
        mem_put(l->waiter);
    if (rc < 0 || !is_kept)
        lock_free(l);
    lock_inode_leave(li, &b); /* if parked, stk may be gone from here on */
    return rc;
}
