/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* INODELK_CONTENTION, ENTRYLK_CONTENTION: tell the holder of a lock that another client waits for it (spec:
 * brick 8.8). Replicate and disperse keep locks beyond the end of an operation, and release such locks early
 * when they get this callback. Of entrylks only those on all names of a folder are kept, so a lock on a
 * single name brings no callback. */
#include "event/timer.h"
#include "xlators/features/locks/locks-internal.h"

/* A copy on the batch's arena, because the lock may be freed before the callback is sent. */
struct contention {
    struct contention *next;
    struct brick_client *client; /* a reference */
    struct fop_flock flock;
    uint32_t pid;
    const char *domain;
    bool is_of_names; /* an entrylk on all names */
};

void
contention_note_locked(struct lock_inode *li, struct lock *l, const char *domain, struct lock_batch *b)
{
    const struct locks_conf *conf = xlator_conf(b->xl);
    uint64_t now = clock_mono_ns();

    (void)li;
    if (!conf->notify_contention || !l->client)
        return;
    if (l->contended_ns && now - l->contended_ns < (uint64_t)conf->notify_contention_delay * 1000000000)
        return;
    struct contention *c = arena_alloc(&b->arena, sizeof *c);
    const char *name = arena_dup(&b->arena, domain, strlen(domain));
    const char *owner = arena_dup(&b->arena, l->flock.owner.bytes, l->flock.owner.len);
    if (!c || !name || !owner)
        return; /* only a hint: the next request that meets the lock sends it again */
    l->contended_ns = now;
    *c = (struct contention){.next = b->contentions,
                             .client = brick_client_ref(l->client),
                             .flock = l->flock,
                             .pid = (uint32_t)l->pid,
                             .domain = name,
                             .is_of_names = l->queue->kind == LOCK_ENTRY};
    c->flock.owner.bytes = (const uint8_t *)owner;
    b->contentions = c;
}

struct noting {
    struct lock_inode *li;
    const struct lock *l;
    const char *domain;
    struct lock_batch *b;
    unsigned left;
};

static bool
note_one(struct lock *held, void *arg)
{
    struct noting *n = arg;

    if (lock_conflicts(held, n->l) && !held->name)
        contention_note_locked(n->li, held, n->domain, n->b);
    return --n->left > 0;
}

void
contention_note_all_locked(struct lock_inode *li, const struct lock_queue *q, const struct lock *l,
                           struct lock_batch *b)
{
    struct noting n = {li, l, lock_queue_domain(q)->name, b, CONTENTIONS_MAX};

    lock_tree_each(q->granted_tree, l->start, l->end, note_one, &n);
}

void
contention_send(struct lock_batch *b, const struct gfid *gfid)
{
    for (struct contention *c = b->contentions; c; c = c->next) {
        if (c->is_of_names)
            brick_client_callback_entrylk_contention(c->client, gfid, c->flock.type, c->pid, c->domain);
        else
            brick_client_callback_inodelk_contention(c->client, gfid, &c->flock, c->pid, c->domain);
        brick_client_unref(c->client);
    }
    b->contentions = NULL;
}
