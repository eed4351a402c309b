/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Unlink, rmdir and rename-over wait until no other client holds an inodelk on the victim (spec: brick 8.7).
 *
 * The holder gets a contention callback at once (contention.c) and may finish its work under the lock. New
 * inodelks queue behind the removal, because it might wait for ever otherwise. The exception is a request of
 * an owner that already holds an inodelk: the removal waits for that owner anyway, and the owner may need the
 * second lock to finish its work under the first.
 *
 * Locks of distribute's domains ("dht.") neither delay a removal nor queue behind one. Distribute's clients
 * take them before the locks of replicate, which a removal holds already. So `rename x y` and `unlink y`, or
 * `mkdir d/x` and `rmdir d`, of two mounts would deadlock, as they do on stock bricks (brick 8.7).
 */
#include <errno.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/features/locks/locks-internal.h"

struct removal {
    struct cds_list_head link;
    struct inode *inode; /* the victim; a reference */
    const struct brick_client *client;
    struct call_stub *waiter; /* NULL: the removal runs */
    struct cds_list_head waiters; /* inodelks that hang on the removal, by their wait_link */
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

/* True if another client has a lock that delays the removal. (The holders are sorted by client.) */
static bool
must_wait(const struct lock_inode *li, const struct removal *r)
{
    const struct lock *first = lock_aside(tree_first(li->holders)),
                      *last = lock_aside(tree_last(li->holders));

    return first && (first->client != r->client || last->client != r->client);
}

struct cds_list_head *
removal_ahead_of(struct lock_inode *li, const struct lock *l)
{
    struct removal *r;

    if (l->pid < 0)
        return NULL;
    cds_list_for_each_entry_reverse(r, &li->removals, link) {
        if (r->client == l->client)
            continue;
        /* among an owner's locks, inodelks come first */
        const struct lock *held = lock_tree_of_owner(li->held, l);
        return held && held->queue->kind == LOCK_INODE ? NULL : &r->waiters;
    }
    return NULL;
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
removal_drop_client_locked(struct lock_inode *li, const struct brick_client *client, struct lock_batch *b)
{
    struct removal *r;

    cds_list_for_each_entry(r, &li->removals, link) {
        if (r->client != client || !r->waiter)
            continue;
        /* no work was done yet; removal_cb takes the removal off the list */
        waiter_wake_locked(r->waiter, ENOTCONN, b);
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

unsigned
removal_waiting(const struct lock_inode *li)
{
    const struct removal *r;
    unsigned n = 0;

    cds_list_for_each_entry(r, &li->removals, link)
        n += r->waiter != NULL;
    return n;
}

/* The removal has ended: the locks that queued behind it are examined. */
static xl_verdict
removal_cb(struct frame *f, struct call_stack *stk)
{
    struct removal *r = f->local.ptr;
    struct inode *inode = r->inode;
    struct lock_inode *li = inode_ctx(inode, f->xl);
    struct lock_batch b;

    (void)stk;
    lock_inode_enter(li, &b, f->xl);
    cds_list_del(&r->link);
    lock_release_waiters_locked(li, &r->waiters);
    lock_inode_unpin_locked(li, &b);
    lock_inode_settle_locked(li, &b);
    lock_inode_leave(li, &b);
    mem_put(r);
    inode_unref(inode);
    return XL_PASS;
}

static void
note_contentions(struct lock_inode *li, struct tree_node *holders, const struct removal *r, unsigned *left,
                 struct lock_batch *b)
{
    if (!holders || !*left)
        return;
    struct lock *l = lock_aside(holders);

    note_contentions(li, holders->left, r, left, b);
    if (l->client != r->client && *left) {
        const struct lock_domain *d = caa_container_of(l->queue, struct lock_domain, inodelks);

        contention_note_locked(li, l, d->name, b);
        --*left;
    }
    note_contentions(li, holders->right, r, left, b);
}

static xl_verdict
remove_object(struct xlator *xl, struct call_stack *stk, struct inode *victim)
{
    struct lock_inode *li = victim ? inode_ctx(victim, xl) : NULL;
    struct lock_batch b;
    int err = locks_counts_prepare(xl, stk);

    if (err || !li) /* no lock was ever requested on the victim */
        return err ? err : XL_PASS;
    struct removal *r = mem_get0_owner(removal_pool, xl->graph->owner);
    struct call_stub *w = waiter_new(xl, stk);
    struct frame *f = r && w ? frame_push(stk, xl, removal_cb) : NULL;
    if (!f) {
        call_stub_free(w);
        mem_put(r);
        return -ENOMEM;
    }
    f->local.ptr = r;
    r->inode = inode_ref(victim);
    r->client = stk->client;
    CDS_INIT_LIST_HEAD(&r->waiters);
    w->mark = WAITER_GOES_ON;

    bool is_client_here = lock_inode_enter_for(li, &b, xl, stk->client);
    cds_list_add_tail(&r->link, &li->removals);
    lock_inode_pin_locked(li);
    xl_verdict verdict = !is_client_here ? -ENOTCONN : must_wait(li, r) ? XL_OWNED : XL_PASS;
    if (verdict == XL_OWNED) {
        r->waiter = w;
        waiter_park_locked(w); /* the lock's holder may need a place of io-threads to finish its work */
        waiter_pack_locked(w, &b);
        note_contentions(li, li->holders, r, &(unsigned){CONTENTIONS_MAX}, &b);
    }
    lock_inode_leave(li, &b); /* if parked, stk may be freed from here on */
    if (verdict != XL_OWNED)
        call_stub_free(w);
    return verdict;
}

xl_verdict
locks_unlink(struct xlator *xl, struct call_stack *stk)
{
    return remove_object(xl, stk, stk->call.loc.inode);
}

xl_verdict
locks_rename(struct xlator *xl, struct call_stack *stk)
{
    struct inode *victim = stk->call.loc2.inode;

    return remove_object(xl, stk, victim == stk->call.loc.inode ? NULL : victim);
}
