/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/crawl-looks.h"

#include <pthread.h>
#include <stdlib.h>

struct looks_of_child {
    struct crawl_look at[CRAWL_LOOKS_KEPT]; /* a ring */
    unsigned count;                         /* looks so far */
};

struct crawl_looks {
    pthread_mutex_t lock; /* a leaf; guards the looks */
    struct looks_of_child child[];
};

struct crawl_looks *
looks_new(unsigned children)
{
    struct crawl_looks *l = calloc(1, sizeof *l + children * sizeof l->child[0]);

    if (l)
        pthread_mutex_init(&l->lock, NULL);
    return l;
}

void
looks_free(struct crawl_looks *l)
{
    if (l)
        pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct crawl_look *
look_latest(struct crawl_looks *l, unsigned child)
{
    struct looks_of_child *c = &l->child[child];

    return &c->at[(c->count - 1) % CRAWL_LOOKS_KEPT];
}

void
looks_begin(struct crawl_looks *l, unsigned child, bool is_full)
{
    pthread_mutex_lock(&l->lock);
    l->child[child].count++;
    *look_latest(l, child) =
        (struct crawl_look){.is_full = is_full, .is_running = true, .started = time(NULL)};
    pthread_mutex_unlock(&l->lock);
}

void
looks_end(struct crawl_looks *l, unsigned child)
{
    pthread_mutex_lock(&l->lock);
    struct crawl_look *look = look_latest(l, child);
    look->is_running = false;
    look->ended = time(NULL);
    look->left = 0;
    pthread_mutex_unlock(&l->lock);
}

void
looks_set_left(struct crawl_looks *l, unsigned child, uint64_t left)
{
    pthread_mutex_lock(&l->lock);
    look_latest(l, child)->left = left;
    pthread_mutex_unlock(&l->lock);
}

void
looks_begin_object(struct crawl_looks *l, unsigned child, const struct gfid *gfid)
{
    pthread_mutex_lock(&l->lock);
    look_latest(l, child)->current = *gfid;
    pthread_mutex_unlock(&l->lock);
}

void
looks_end_object(struct crawl_looks *l, unsigned child, enum look_result result, bool is_listed)
{
    pthread_mutex_lock(&l->lock);
    struct crawl_look *look = look_latest(l, child);
    look->healed += result == LOOK_HEALED;
    look->split += result == LOOK_SPLIT;
    look->failed += result == LOOK_FAILED;
    look->left -= is_listed && look->left > 0;
    pthread_mutex_unlock(&l->lock);
}

unsigned
looks_get(struct crawl_looks *l, unsigned child, struct crawl_look out[CRAWL_LOOKS_KEPT])
{
    pthread_mutex_lock(&l->lock);
    const struct looks_of_child *c = &l->child[child];
    unsigned kept = c->count < CRAWL_LOOKS_KEPT ? c->count : CRAWL_LOOKS_KEPT;
    for (unsigned n = 0; n < kept; n++)
        out[n] = c->at[(c->count - kept + n) % CRAWL_LOOKS_KEPT];
    pthread_mutex_unlock(&l->lock);
    return kept;
}

/* Clients try to connect every three seconds; a try at a host without an answer takes longer. */
uint64_t
crawl_next_pause(unsigned *done, uint64_t pause_ms)
{
    static const uint64_t follow_up_ms[CRAWL_FOLLOW_UPS] = {5000, 20000, 60000};

    if (*done == CRAWL_FOLLOW_UPS || follow_up_ms[*done] >= pause_ms)
        return pause_ms;
    return follow_up_ms[(*done)++];
}
