/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-tree: the orders of the trees of locks, and their searches.
 *
 * A tree by range answers "which other owner has a lock here?" in O(log n), even when thousands of the locks
 * in the range belong to the searching owner. For that each subtree stores the lock that ends last, and the
 * lock that ends last among all other owners' locks (struct lock_reach). At least one of the two belongs to
 * another owner.
 */
#include <string.h>

#include "xlators/features/locks/locks-internal.h"

static int
compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int
owner_compare(const struct lock *a, const struct lock *b)
{
    if (a->client != b->client)
        return compare_numbers((uintptr_t)a->client, (uintptr_t)b->client);
    if (a->owner.len != b->owner.len)
        return compare_numbers(a->owner.len, b->owner.len);
    return a->owner.len ? memcmp(a->owner.bytes, b->owner.bytes, a->owner.len) : 0;
}

static int
queue_compare(const struct lock_queue *a, const struct lock_queue *b)
{
    return a->kind != b->kind ? compare_numbers(a->kind, b->kind)
                              : compare_numbers((uintptr_t)a, (uintptr_t)b);
}

static int
place_compare(const struct lock *a, const struct lock *b)
{
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end != b->end ? (a->end < b->end ? -1 : 1) : 0;
}

/* ---- by range -------------------------------------------------------------------------------- */

static struct lock *
by_range(const struct tree_node *n)
{
    return n ? caa_container_of(n, struct lock, by_range) : NULL;
}

static int
order_by_range(const struct tree_node *na, const struct tree_node *nb)
{
    const struct lock *a = by_range(na), *b = by_range(nb);

    return a->start != b->start ? (a->start < b->start ? -1 : 1) : compare_numbers(a->seq, b->seq);
}

static void
reach_add(struct lock_reach *r, const struct lock *l)
{
    if (!l)
        return;
    if (!r->far) {
        r->far = l;
    } else if (owner_compare(l, r->far) == 0) {
        if (l->end > r->far->end)
            r->far = l;
    } else if (l->end > r->far->end) {
        r->other = r->far;
        r->far = l;
    } else if (!r->other || l->end > r->other->end) {
        r->other = l;
    }
}

static void
reach_join(struct lock_reach *r, const struct lock_reach *from)
{
    reach_add(r, from->far);
    reach_add(r, from->other);
}

static void
update_by_range(struct tree_node *n)
{
    struct lock *l = by_range(n);
    const struct lock *below[] = {by_range(n->left), by_range(n->right)};

    l->any = (struct lock_reach){l, NULL};
    l->exclusive = (struct lock_reach){l->is_exclusive ? l : NULL, NULL};
    l->seq_min = l->seq;
    for (int i = 0; i < 2; i++) {
        if (!below[i])
            continue;
        reach_join(&l->any, &below[i]->any);
        reach_join(&l->exclusive, &below[i]->exclusive);
        l->seq_min = below[i]->seq_min < l->seq_min ? below[i]->seq_min : l->seq_min;
    }
}

const struct tree_kind lock_by_range = {order_by_range, update_by_range};

/* Returns the end of the last-ending lock in n's subtree that may conflict with `l`; -1: there is none. */
static int64_t
reaches(const struct tree_node *n, const struct lock *l)
{
    if (!n)
        return -1;
    const struct lock_reach *r = l->is_exclusive ? &by_range(n)->any : &by_range(n)->exclusive;
    const struct lock *last = r->far && owner_compare(r->far, l) == 0 ? r->other : r->far;

    return last ? last->end : -1;
}

bool
lock_conflicts(const struct lock *a, const struct lock *b)
{
    return (a->is_exclusive || b->is_exclusive) && lock_overlaps(a, b) && owner_compare(a, b) != 0;
}

struct lock *
lock_tree_conflict(struct tree_node *root, const struct lock *l)
{
    while (root && reaches(root, l) >= l->start) {
        /* If a lock on the left reaches so far and does not overlap, it begins behind l's end, and so do all
         * locks that follow. */
        if (reaches(root->left, l) >= l->start) {
            root = root->left;
            continue;
        }
        if (lock_conflicts(by_range(root), l))
            return by_range(root);
        if (by_range(root)->start > l->end)
            return NULL;
        root = root->right;
    }
    return NULL;
}

struct lock *
lock_tree_older_conflict(struct tree_node *root, const struct lock *l)
{
    if (!root || by_range(root)->seq_min >= l->seq || reaches(root, l) < l->start)
        return NULL;
    struct lock *at = by_range(root), *found = lock_tree_older_conflict(root->left, l);

    if (found || at->start > l->end)
        return found;
    return at->seq < l->seq && lock_conflicts(at, l) ? at : lock_tree_older_conflict(root->right, l);
}

bool
lock_tree_each(struct tree_node *root, int64_t start, int64_t end, lock_each fn, void *arg)
{
    if (!root || by_range(root)->any.far->end < start)
        return true;
    struct lock *at = by_range(root);

    if (!lock_tree_each(root->left, start, end, fn, arg))
        return false;
    if (at->start > end)
        return true;
    if (at->end >= start && !fn(at, arg))
        return false;
    return lock_tree_each(root->right, start, end, fn, arg);
}

/* ---- by owner -------------------------------------------------------------------------------- */

static struct lock *
by_owner(const struct tree_node *n)
{
    return n ? caa_container_of(n, struct lock, by_owner) : NULL;
}

/* An unlock of an entrylk names its type; an unlock of an inodelk means the oldest lock with its range. */
static int
compare_by_owner(const struct lock *a, const struct lock *b)
{
    int c = owner_compare(a, b);

    c = c ? c : queue_compare(a->queue, b->queue);
    c = c ? c : place_compare(a, b);
    return c || a->queue->kind != LOCK_ENTRY ? c : compare_numbers(a->type, b->type);
}

static int
order_by_owner(const struct tree_node *na, const struct tree_node *nb)
{
    const struct lock *a = by_owner(na), *b = by_owner(nb);
    int c = compare_by_owner(a, b);

    return c ? c : compare_numbers(a->seq, b->seq);
}

static int
order_by_age(const struct tree_node *na, const struct tree_node *nb)
{
    const struct lock *a = by_owner(na), *b = by_owner(nb);
    int c = owner_compare(a, b);

    c = c ? c : queue_compare(a->queue, b->queue);
    return c ? c : compare_numbers(a->seq, b->seq);
}

const struct tree_kind lock_held = {order_by_owner, NULL};
const struct tree_kind lock_wanted = {order_by_age, NULL};

struct place {
    const struct lock *l; /* gives the owner */
    const struct lock_queue *q;
    int64_t at;
};

static int
side_owner(const struct tree_node *n, const void *arg)
{
    return owner_compare(by_owner(n), ((const struct place *)arg)->l);
}

static int
side_owner_in(const struct tree_node *n, const void *arg)
{
    const struct place *p = arg;
    int c = owner_compare(by_owner(n), p->l);

    return c ? c : queue_compare(by_owner(n)->queue, p->q);
}

static int
side_owner_at(const struct tree_node *n, const void *arg)
{
    int c = side_owner_in(n, arg);

    return c ? c : by_owner(n)->end < ((const struct place *)arg)->at ? -1 : 0;
}

static int
side_same(const struct tree_node *n, const void *arg)
{
    return compare_by_owner(by_owner(n), arg);
}

static int
side_client(const struct tree_node *n, const void *client)
{
    return compare_numbers((uintptr_t)by_owner(n)->client, (uintptr_t)client);
}

static int
side_behind_client(const struct tree_node *n, const void *client)
{
    return (uintptr_t)by_owner(n)->client <= (uintptr_t)client ? -1 : 0;
}

struct lock *
lock_tree_of_owner(struct tree_node *root, const struct lock *l)
{
    struct lock *found = by_owner(tree_lower(root, side_owner, &(struct place){.l = l}));

    return found && owner_compare(found, l) == 0 ? found : NULL;
}

static struct lock *
if_of_owner_in(struct lock *found, const struct lock *l, const struct lock_queue *q)
{
    return found && found->queue == q && owner_compare(found, l) == 0 ? found : NULL;
}

struct lock *
lock_tree_of_owner_in(struct tree_node *root, const struct lock *l, const struct lock_queue *q)
{
    return if_of_owner_in(by_owner(tree_lower(root, side_owner_in, &(struct place){l, q, 0})), l, q);
}

struct lock *
lock_tree_of_owner_at(struct tree_node *root, const struct lock *l, const struct lock_queue *q, int64_t at)
{
    return if_of_owner_in(by_owner(tree_lower(root, side_owner_at, &(struct place){l, q, at})), l, q);
}

struct lock *
lock_tree_same(struct tree_node *root, const struct lock *l)
{
    struct lock *found = by_owner(tree_lower(root, side_same, l));

    if (!found || compare_by_owner(found, l) != 0)
        return NULL;
    return !l->name || strcmp(found->name, l->name) == 0 ? found : NULL;
}

struct lock *
lock_tree_of_client(struct tree_node *root, const struct brick_client *client)
{
    struct lock *found = by_owner(tree_lower(root, side_client, client));

    return found && found->client == client ? found : NULL;
}

uint32_t
lock_tree_count_of_client(const struct tree_node *root, const struct brick_client *client)
{
    return tree_rank(root, side_behind_client, client) - tree_rank(root, side_client, client);
}

/* ---- aside ----------------------------------------------------------------------------------- */

static int
order_aside_by_owner(const struct tree_node *na, const struct tree_node *nb)
{
    const struct lock *a = caa_container_of(na, struct lock, aside),
                      *b = caa_container_of(nb, struct lock, aside);
    int c = owner_compare(a, b);

    c = c ? c : queue_compare(a->queue, b->queue);
    return c ? c : compare_numbers(a->seq, b->seq);
}

static int
order_aside_by_client(const struct tree_node *na, const struct tree_node *nb)
{
    const struct lock *a = caa_container_of(na, struct lock, aside),
                      *b = caa_container_of(nb, struct lock, aside);

    return a->client != b->client ? compare_numbers((uintptr_t)a->client, (uintptr_t)b->client)
                                  : compare_numbers(a->seq, b->seq);
}

static int
order_aside_by_age(const struct tree_node *na, const struct tree_node *nb)
{
    return compare_numbers(caa_container_of(na, struct lock, aside)->seq,
                   caa_container_of(nb, struct lock, aside)->seq);
}

const struct tree_kind lock_aside_by_owner = {order_aside_by_owner, NULL};
const struct tree_kind lock_aside_by_client = {order_aside_by_client, NULL};
const struct tree_kind lock_aside_by_age = {order_aside_by_age, NULL};

/* A granted inodelk affects locks of all domains, because removals examine all domains. */
static int
side_behind(const struct tree_node *n, const void *arg)
{
    const struct place *p = arg;
    const struct lock *at = caa_container_of(n, struct lock, aside);
    int c = owner_compare(at, p->l);

    if (c)
        return c;
    return p->q->kind == LOCK_INODE ? compare_numbers(at->queue->kind, LOCK_INODE)
                                    : queue_compare(at->queue, p->q);
}

struct lock *
lock_tree_behind(struct tree_node *root, const struct lock *l, const struct lock_queue *q)
{
    struct place place = {l, q, 0};
    struct tree_node *found = tree_lower(root, side_behind, &place);

    return found && side_behind(found, &place) == 0 ? lock_aside(found) : NULL;
}
