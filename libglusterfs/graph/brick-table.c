/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The bricks of this process by name. One mutex, taken when a client logs in and when bricks come and go; never per request:
 * a session keeps the graph pinned, and a request keeps its session. */
#include <errno.h>
#include <string.h>

#include "graph/graph.h"
#include "log/log.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static struct cds_list_head bricks = CDS_LIST_HEAD_INIT(bricks);

static struct graph *
find_locked(const char *name)
{
    struct graph *g;

    cds_list_for_each_entry(g, &bricks, link)
    {
        if (strcmp(g->name, name) == 0)
            return g;
    }
    return NULL;
}

int
graph_publish(struct graph *g)
{
    int err = 0;

    pthread_mutex_lock(&table_lock);
    if (find_locked(g->name)) {
        err = -EEXIST;
    } else {
        cds_list_add_tail(&g->link, &bricks);
        g->is_published = true;
    }
    pthread_mutex_unlock(&table_lock);
    return err;
}

bool
graph_pin(struct graph *g)
{
    atomic_fetch_add(&g->pins, 1);
    if (!atomic_load(&g->is_draining))
        return true;
    graph_unpin(g);
    return false;
}

void
graph_unpin(struct graph *g)
{
    /* Whoever drains waits until only the first pin is left; after the subtraction `g` may be gone. */
    if (atomic_fetch_sub(&g->pins, 1) > 2)
        return;
    pthread_mutex_lock(&table_lock);
    pthread_cond_broadcast(&unpinned);
    pthread_mutex_unlock(&table_lock);
}

struct graph *
graph_find(const char *brick_name)
{
    pthread_mutex_lock(&table_lock);
    struct graph *g = find_locked(brick_name);
    if (g)
        atomic_fetch_add(&g->pins, 1); /* still in the table, so not draining: that changes under this mutex */
    pthread_mutex_unlock(&table_lock);
    return g;
}

void
graph_each(void (*fn)(struct graph *g, void *arg), void *arg)
{
    struct graph *pinned[4096];
    unsigned count = 0;
    struct graph *g;

    pthread_mutex_lock(&table_lock);
    cds_list_for_each_entry(g, &bricks, link)
    {
        if (count < sizeof pinned / sizeof pinned[0]) {
            atomic_fetch_add(&g->pins, 1);
            pinned[count++] = g;
        }
    }
    pthread_mutex_unlock(&table_lock);
    for (unsigned i = 0; i < count; i++) {
        fn(pinned[i], arg);
        graph_unpin(pinned[i]);
    }
}

int
graph_detach(const char *brick_name)
{
    pthread_mutex_lock(&table_lock);
    struct graph *g = find_locked(brick_name);
    if (g) {
        cds_list_del(&g->link);
        g->is_published = false;
        atomic_store(&g->is_draining, true);
    }
    pthread_mutex_unlock(&table_lock);
    if (!g)
        return -ENOENT;

    graph_stop(g);
    pthread_mutex_lock(&table_lock);
    while (atomic_load(&g->pins) > 1)
        pthread_cond_wait(&unpinned, &table_lock);
    pthread_mutex_unlock(&table_lock);
    log_event(LOG_INFO, NULL, "brick-detached", "brick %s is detached", g->name);
    graph_free(g);
    return 0;
}
