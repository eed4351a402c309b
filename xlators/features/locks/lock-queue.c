/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-queue: inodelks and entrylks of one domain on one inode (spec: brick 8.2, 8.3).
 *
 * The two have the same rules and differ only in what a conflict and an exact match is:
 *   - an owner never conflicts with itself; each of its locks is an entry of its own and needs its own unlock;
 *   - a request that conflicts with a granted lock waits, or gets EAGAIN;
 *   - so does one that conflicts with a waiting one only (or readers would starve a writer), unless its owner has a lock
 *     or a place in the queue already: whoever waits may be waiting for that very owner;
 *   - whenever locks go away, those that wait are looked at in the order in which they came.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/features/locks/locks-internal.h"

static struct mem_pool *domain_pool;

_Static_assert(FOP_LOCK_DOMAIN_MAX + 1 <= LOCK_TEXT_MAX, "a domain's name fits a long text");

int
lock_queue_pool_init(void)
{
    if (!domain_pool)
        domain_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "lock-domain", .xlator = "features/locks", .size = sizeof(struct lock_domain)});
    return domain_pool ? 0 : -ENOMEM;
}

/* -- domains -------------------------------------------------------------------------------------------------- */

void
lock_queue_init(struct lock_queue *q, bool is_entry)
{
    CDS_INIT_LIST_HEAD(&q->granted);
    CDS_INIT_LIST_HEAD(&q->blocked);
    q->count = 0;
    q->is_entry = is_entry;
}

struct lock_domain *
lock_domain_find(struct lock_inode *li, const char *name)
{
    struct lock_domain *d;

    cds_list_for_each_entry(d, &li->domains, link) {
        if (strcmp(d->name, name) == 0)
            return d;
    }
    return NULL;
}

struct lock_domain *
lock_domain_get(struct lock_inode *li, const char *name, struct xlator *xl)
{
    struct lock_domain *d = lock_domain_find(li, name);
    size_t size = strlen(name) + 1;

    if (d)
        return d;
    d = mem_get_owner(domain_pool, xl->graph->owner);
    if (!d)
        return NULL;
    d->name = size <= sizeof d->inline_name ? d->inline_name : lock_text_new(xl);
    if (!d->name) {
        mem_put(d);
        return NULL;
    }
    memcpy(d->name, name, size);
    lock_queue_init(&d->inodelks, false);
    lock_queue_init(&d->entrylks, true);
    cds_list_add_tail(&d->link, &li->domains);
    return d;
}

void
lock_domain_free(struct lock_domain *d)
{
    cds_list_del(&d->link);
    if (d->name != d->inline_name)
        mem_put(d->name);
    mem_put(d);
}

/* -- rules ------------------------------------------------------------------------------------------------------ */

bool
lock_queue_conflict(const struct lock_queue *q, const struct lock *a, const struct lock *b)
{
    if (lock_same_owner(a, b))
        return false;
    if (q->is_entry) /* the type makes no difference: two readers exclude each other too */
        return !a->name || !b->name || strcmp(a->name, b->name) == 0;
    return (a->type == FLOCK_WRITE || b->type == FLOCK_WRITE) && lock_overlaps(a, b);
}

static bool
is_same_lock(const struct lock_queue *q, const struct lock *a, const struct lock *b)
{
    if (!lock_same_owner(a, b))
        return false;
    if (!q->is_entry)
        return a->start == b->start && a->end == b->end;
    if (a->type != b->type || !a->name != !b->name)
        return false;
    return !a->name || strcmp(a->name, b->name) == 0;
}

static bool
has_owner(const struct cds_list_head *list, const struct cds_list_head *end, const struct lock *l)
{
    for (const struct cds_list_head *at = list->next; at != end; at = at->next) {
        if (lock_same_owner(caa_container_of(at, struct lock, link), l))
            return true;
    }
    return false;
}

static bool
has_conflict(const struct lock_queue *q, const struct cds_list_head *list, const struct cds_list_head *end,
             const struct lock *l)
{
    for (const struct cds_list_head *at = list->next; at != end; at = at->next) {
        if (lock_queue_conflict(q, caa_container_of(at, struct lock, link), l))
            return true;
    }
    return false;
}

/* `end`: the first waiting lock that is not ahead of `l`: l itself, or the end of the list for a new one. */
static bool
must_wait(const struct lock_inode *li, const struct lock_queue *q, const struct lock *l,
          const struct cds_list_head *end)
{
    if (has_conflict(q, &q->granted, &q->granted, l))
        return true;
    if (!q->is_entry && removal_is_ahead_of(li, l))
        return true;
    if (!has_conflict(q, &q->blocked, end, l))
        return false;
    return !has_owner(&q->granted, &q->granted, l) && !has_owner(&q->blocked, end, l);
}

/* -- what the inode counts ------------------------------------------------------------------------------------------ */

static void
queue_count(struct lock_inode *li, struct lock_queue *q)
{
    q->count++;
    if (q->is_entry)
        li->entrylk_count++;
    else
        li->inodelk_count++;
    lock_inode_pin_locked(li);
}

static void
queue_uncount(struct lock_inode *li, struct lock_queue *q, struct lock_batch *b)
{
    q->count--;
    if (q->is_entry)
        li->entrylk_count--;
    else
        li->inodelk_count--;
    lock_inode_unpin_locked(li, b);
}

/* -- requests --------------------------------------------------------------------------------------------------------- */

static void
note_contentions(struct lock_inode *li, struct lock_domain *d, struct lock_queue *q, const struct lock *l,
                 struct lock_batch *b)
{
    struct lock *held;

    if (q->is_entry)
        return;
    cds_list_for_each_entry(held, &q->granted, link) {
        if (lock_queue_conflict(q, held, l))
            contention_note_locked(li, held, d->name, b);
    }
}

static int
request_locked(struct lock_inode *li, struct call_stack *stk, const char *domain, bool is_entry, struct lock *l,
               bool may_wait, struct lock_batch *b)
{
    struct lock_domain *d = lock_domain_get(li, domain, b->xl);

    if (!d)
        return -ENOMEM;
    struct lock_queue *q = is_entry ? &d->entrylks : &d->inodelks;
    if (!must_wait(li, q, l, &q->blocked)) {
        cds_list_add_tail(&l->link, &q->granted);
        queue_count(li, q);
        return XL_DONE;
    }
    note_contentions(li, d, q, l, b);
    if (may_wait)
        l->waiter = waiter_new(b->xl, stk);
    if (l->waiter) {
        stk->reply.op_ret = 0;
        lock_park_locked(stk, b);
        cds_list_add_tail(&l->link, &q->blocked);
        queue_count(li, q);
        return XL_OWNED;
    }
    if (!d->inodelks.count && !d->entrylks.count)
        lock_domain_free(d);
    return may_wait ? -ENOMEM : -EAGAIN;
}

int
lock_queue_request(struct xlator *xl, struct call_stack *stk, struct inode *inode, const char *domain,
                   bool is_entry, struct lock *l, bool may_wait)
{
    struct lock_inode *li = lock_inode_get(xl, inode);
    struct lock_batch b;
    int rc = -ENOTCONN;

    if (!li) {
        lock_free(l);
        return -ENOMEM;
    }
    if (lock_inode_enter_for(li, &b, xl, stk->client))
        rc = request_locked(li, stk, domain, is_entry, l, may_wait, &b);
    if (rc < 0)
        lock_free(l);
    lock_inode_leave(li, &b); /* if parked, stk may be gone from here on */
    return rc;
}

int
lock_queue_unlock(struct xlator *xl, struct call_stack *stk, struct inode *inode, const char *domain,
                  bool is_entry, struct lock *key)
{
    struct lock_inode *li = inode_ctx(inode, xl);
    struct lock *l, *found = NULL;
    struct lock_batch b;

    (void)stk;
    if (!li)
        return -EINVAL;
    lock_inode_enter(li, &b, xl);
    struct lock_domain *d = lock_domain_find(li, domain);
    struct lock_queue *q = !d ? NULL : is_entry ? &d->entrylks : &d->inodelks;
    if (q) {
        cds_list_for_each_entry(l, &q->granted, link) {
            if (is_same_lock(q, l, key)) {
                found = l;
                break;
            }
        }
    }
    if (found) {
        cds_list_del(&found->link);
        queue_uncount(li, q, &b);
        lock_free(found);
        lock_inode_settle_locked(li, &b);
    }
    lock_inode_leave(li, &b);
    return found ? XL_DONE : -EINVAL;
}

void
lock_queue_grant_locked(struct lock_inode *li, struct lock_queue *q, struct lock_batch *b)
{
    struct lock *l, *next;

    cds_list_for_each_entry_safe(l, next, &q->blocked, link) {
        if (must_wait(li, q, l, &l->link))
            continue;
        cds_list_del(&l->link);
        cds_list_add_tail(&l->link, &q->granted);
        l->since = time(NULL);
        waiter_wake_locked(l->waiter, 0, b);
        l->waiter = NULL;
    }
}

static void
drop_from(struct lock_inode *li, struct lock_queue *q, struct cds_list_head *list, lock_match match, const void *arg,
          int error, struct lock_batch *b, unsigned *dropped)
{
    struct lock *l, *next;

    cds_list_for_each_entry_safe(l, next, list, link) {
        if (!match(l, arg))
            continue;
        cds_list_del(&l->link);
        if (l->waiter)
            waiter_wake_locked(l->waiter, error, b);
        queue_uncount(li, q, b);
        lock_free(l);
        (*dropped)++;
    }
}

void
lock_queue_drop_locked(struct lock_inode *li, struct lock_queue *q, lock_match match, const void *arg, int error,
                       struct lock_batch *b, unsigned *granted, unsigned *blocked)
{
    drop_from(li, q, &q->granted, match, arg, error, b, granted);
    drop_from(li, q, &q->blocked, match, arg, error, b, blocked);
}
