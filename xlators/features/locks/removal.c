/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Unlink, rmdir and rename-over wait until no other client holds an inodelk on the victim (spec: brick 8.7).
 *
 * The holder is told at once (contention.c) and gets to finish what it does under the lock. New inodelks queue behind
 * the removal, or it might wait for ever. Not so those of an owner that holds one already: the removal waits
 * for that owner anyway, and it may need the second lock to get done with the first.
 */
#include <errno.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/features/locks/locks-internal.h"

struct removal {
    struct cds_list_head link;
    struct inode *inode; /* the victim; a reference */
    const struct client *client;
    struct waiter *waiter; /* NULL: it runs */
};

static struct mem_pool *removal_pool;

int
removal_pool_init(void)
{
    if (!removal_pool)
        removal_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "lock-removal", .xlator = "features/locks", .size = sizeof(struct removal)});
    return removal_pool ? 0 : -ENOMEM;
}

static bool
delays(const struct lock *l, const struct removal *r)
{
    return l->client != r->client && l->pid >= 0;
}

static bool
must_wait(const struct lock_inode *li, const struct removal *r)
{
    const struct lock_domain *d;
    const struct lock *l;

    cds_list_for_each_entry(d, &li->domains, link) {
        cds_list_for_each_entry(l, &d->inodelks.granted, link) {
            if (delays(l, r))
                return true;
        }
    }
    return false;
}

bool
removal_is_ahead_of(const struct lock_inode *li, const struct lock *l)
{
    const struct lock_domain *d;
    const struct lock *held;
    const struct removal *r;
    bool is_ahead = false;

    cds_list_for_each_entry(r, &li->removals, link)
        is_ahead |= delays(l, r);
    if (!is_ahead)
        return false;
    cds_list_for_each_entry(d, &li->domains, link) {
        cds_list_for_each_entry(held, &d->inodelks.granted, link) {
            if (lock_same_owner(held, l))
                return false;
        }
    }
    return true;
}

void
removal_settle_locked(struct lock_inode *li, struct lock_batch *b)
{
    struct removal *r;

    cds_list_for_each_entry(r, &li->removals, link) {
        if (!r->waiter || must_wait(li, r))
            continue;
        waiter_wake_locked(r->waiter, 0, b);
        r->waiter = NULL;
    }
}

void
removal_drop_client_locked(struct lock_inode *li, const struct client *client, struct lock_batch *b)
{
    struct removal *r;

    cds_list_for_each_entry(r, &li->removals, link) {
        if (r->client != client || !r->waiter)
            continue;
        waiter_wake_locked(r->waiter, ENOTCONN, b); /* nothing was done yet; removal_cb takes it off the list */
        r->waiter = NULL;
    }
}

unsigned
removal_count(const struct lock_inode *li)
{
    const struct removal *r;
    unsigned n = 0;

    cds_list_for_each_entry(r, &li->removals, link)
        n++;
    return n;
}

/* Done, or failed: those that queued behind it may go on. */
static int
removal_cb(struct frame *f, struct call_stack *stk)
{
    struct removal *r = f->local.ptr;
    struct inode *inode = r->inode;
    struct lock_inode *li = inode_ctx(inode, f->xl);
    struct lock_batch b;

    (void)stk;
    lock_inode_enter(li, &b, f->xl);
    cds_list_del(&r->link);
    lock_inode_unpin_locked(li, &b);
    lock_inode_settle_locked(li, &b);
    lock_inode_leave(li, &b);
    mem_put(r);
    inode_unref(inode);
    return XL_PASS;
}

static void
note_contentions(struct lock_inode *li, const struct removal *r, struct lock_batch *b)
{
    struct lock_domain *d;
    struct lock *l;

    cds_list_for_each_entry(d, &li->domains, link) {
        cds_list_for_each_entry(l, &d->inodelks.granted, link) {
            if (delays(l, r))
                contention_note_locked(li, l, d->name, b);
        }
    }
}

static int
remove_object(struct xlator *xl, struct call_stack *stk, struct inode *victim)
{
    struct lock_inode *li = victim ? inode_ctx(victim, xl) : NULL;
    struct lock_batch b;
    int rc = locks_counts_prepare(xl, stk);

    if (rc || !li) /* never locked: nobody to wait for */
        return rc ? rc : XL_PASS;
    struct removal *r = mem_get0_owner(removal_pool, xl->graph->owner);
    struct waiter *w = waiter_new(xl, stk);
    struct frame *f = r && w ? frame_push(stk, xl, removal_cb) : NULL;
    if (!f) {
        mem_put(w);
        mem_put(r);
        return -ENOMEM;
    }
    f->local.ptr = r;
    r->inode = inode_ref(victim);
    r->client = stk->client;
    w->is_removal = true;

    bool is_client_here = lock_inode_enter_for(li, &b, xl, stk->client);
    cds_list_add_tail(&r->link, &li->removals);
    lock_inode_pin_locked(li);
    rc = !is_client_here ? -ENOTCONN : must_wait(li, r) ? XL_OWNED : XL_PASS;
    if (rc == XL_OWNED) {
        r->waiter = w;
        note_contentions(li, r, &b);
    }
    lock_inode_leave(li, &b); /* if parked, stk may be gone from here on */
    if (rc != XL_OWNED)
        mem_put(w);
    return rc;
}

int
locks_unlink(struct xlator *xl, struct call_stack *stk)
{
    return remove_object(xl, stk, stk->call.loc.inode);
}

int
locks_rename(struct xlator *xl, struct call_stack *stk)
{
    struct inode *victim = stk->call.loc2.inode;

    return remove_object(xl, stk, victim == stk->call.loc.inode ? NULL : victim);
}
