/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-domain: the names that separate the inodelks and entrylks of an inode. */
#include <errno.h>
#include <string.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/features/locks/locks-internal.h"

#define OPVERSION_NEEDS_OWNER 70000

static struct mem_pool *domain_pool;

_Static_assert(FOP_LOCK_DOMAIN_MAX + 1 <= LOCK_TEXT_MAX, "a domain's name fits a long text");

int
lock_domain_pool_init(void)
{
    if (!domain_pool)
        domain_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "lock-domain", .xlator = "features/locks", .size = sizeof(struct lock_domain)});
    return domain_pool ? 0 : -ENOMEM;
}

int
lock_domain_check(const struct call_stack *stk)
{
    const struct caller *who = &stk->caller;

    if (!stk->call.volume || strlen(stk->call.volume) > FOP_LOCK_DOMAIN_MAX)
        return -EINVAL;
    if (!who->lk_owner.len && stk->client && stk->client->opversion >= OPVERSION_NEEDS_OWNER)
        return -EINVAL;
    return who->lk_owner.len > LK_OWNER_MAX ? -EINVAL : 0;
}

static struct lock_domain *
by_name(const struct tree_node *n)
{
    return n ? caa_container_of(n, struct lock_domain, by_name) : NULL;
}

static int
order_by_name(const struct tree_node *a, const struct tree_node *b)
{
    return strcmp(by_name(a)->name, by_name(b)->name);
}

static const struct tree_kind domain_by_name = {order_by_name, NULL};

static int
side_of_name(const struct tree_node *n, const void *name)
{
    return strcmp(by_name(n)->name, name);
}

struct lock_domain *
lock_domain_find(const struct lock_inode *li, const char *name)
{
    struct lock_domain *d = by_name(tree_lower(li->domains_tree, side_of_name, name));

    return d && strcmp(d->name, name) == 0 ? d : NULL;
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
    lock_queue_init(&d->inodelks, LOCK_INODE);
    lock_queue_init(&d->entrylks, LOCK_ENTRY);
    d->inodelks.delays_removals = strncmp(name, "dht.", 4) != 0; /* see removal.c */
    cds_list_add_tail(&d->link, &li->domains);
    CDS_INIT_LIST_HEAD(&d->idle_link);
    tree_insert(&li->domains_tree, &d->by_name, &domain_by_name);
    return d;
}

struct lock_domain *
lock_queue_domain(const struct lock_queue *q)
{
    return q->kind == LOCK_INODE ? caa_container_of(q, struct lock_domain, inodelks)
                                 : caa_container_of(q, struct lock_domain, entrylks);
}

void
lock_domain_idle(struct lock_inode *li, struct lock_queue *q)
{
    struct lock_domain *d = lock_queue_domain(q);

    if (!d->inodelks.count && !d->entrylks.count && cds_list_empty(&d->idle_link))
        cds_list_add(&d->idle_link, &li->idle_domains);
}

void
lock_domains_prune(struct lock_inode *li)
{
    struct lock_domain *d, *next;

    cds_list_for_each_entry_safe(d, next, &li->idle_domains, idle_link) {
        cds_list_del_init(&d->idle_link);
        if (d->inodelks.count || d->entrylks.count)
            continue; /* the domain has a lock again */
        tree_remove(&li->domains_tree, &d->by_name, &domain_by_name);
        cds_list_del(&d->link);
        if (d->name != d->inline_name)
            mem_put(d->name);
        mem_put(d);
    }
}
