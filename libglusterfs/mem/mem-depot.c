/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-depot: the exchange of whole magazines between the threads of a pool.
 *
 * One visit moves M objects, so the lock is taken for one operation in M. M follows the traffic: it
 * doubles when the lock was found busy or the pool visits its depot more than 5000 times a second, and
 * halves again at a sweep after a quiet period. */
#include "mem/mem-internal.h"

#include <time.h>

enum { ADAPT_VISITS = 256, ADAPT_BUSY = 16, VISITS_PER_SECOND = 5000, SLACK_MAX = 16 };

uint64_t
mem_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
depot_lock(struct mem_depot *d)
{
    if (mem_trylock(&d->lock))
        return;
    mem_lock(&d->lock);
    d->contended++;
}

static void
depot_adapt(struct mem_depot *d)
{
    bool grow = d->contended >= ADAPT_BUSY;

    d->visits_total++;
    if (++d->visits < ADAPT_VISITS && !grow)
        return;
    uint64_t now = mem_now_us();
    if (d->visits >= ADAPT_VISITS && now - d->mark_us < (uint64_t)d->visits * 1000000 / VISITS_PER_SECOND)
        grow = true;
    if (grow && d->m < d->m_max)
        MEM_WRITE(d->m, d->m * 2);
    d->visits = d->contended = 0;
    d->mark_us = now;
}

static struct mem_magazine *
magazine_pop(struct mem_magazine **list, uint32_t *n)
{
    struct mem_magazine *m = *list;

    if (m) {
        *list = m->next;
        --*n;
        m->next = NULL;
    }
    return m;
}

static void
magazine_push(struct mem_magazine **list, uint32_t *n, struct mem_magazine *m)
{
    m->next = *list;
    *list = m;
    ++*n;
}

/* Does this depot alone hold more than the process may cache? Lock held. */
static bool
is_over_cap(const struct mem_pool *p)
{
    return mem_set.cap &&
           (size_t)(p->depot.nhot + p->depot.ncold) * p->depot.m * p->class.stride > mem_set.cap;
}

static void
sweep_soon(void)
{
    if (!__atomic_exchange_n(&mem_over_cap, 1, __ATOMIC_RELAXED))
        mem_sweeper_kick();
}

/* Returns a magazine with objects in exchange for an empty one (or NULL); NULL if there is none, and the
 * caller keeps the empty one. */
struct mem_magazine *
mem_depot_get(struct mem_pool *p, struct mem_magazine *empty)
{
    struct mem_depot *d = &p->depot;
    struct mem_magazine *m;

    depot_lock(d);
    depot_adapt(d);
    m = magazine_pop(&d->hot, &d->nhot);
    if (!m)
        m = magazine_pop(&d->cold, &d->ncold);
    if (m && empty) {
        empty->count = 0; /* it was loaded, so its count is stale */
        magazine_push(&d->empty, &d->nempty, empty);
    }
    mem_unlock(&d->lock);
    return m;
}

/* Takes a full magazine (or NULL); returns an empty one of the present size, or NULL when memory is
 * exhausted. */
struct mem_magazine *
mem_depot_put(struct mem_pool *p, struct mem_magazine *full)
{
    struct mem_depot *d = &p->depot;
    struct mem_magazine *m, *stale = NULL;
    uint32_t want;
    bool over = false;

    depot_lock(d);
    depot_adapt(d);
    if (full) {
        magazine_push(&d->hot, &d->nhot, full);
        over = is_over_cap(p);
    }
    want = d->m;
    while ((m = magazine_pop(&d->empty, &d->nempty)) && m->cap != want) {
        m->next = stale;
        stale = m;
    }
    mem_unlock(&d->lock);
    while (stale) {
        struct mem_magazine *next = stale->next;

        mem_magazine_free(stale);
        stale = next;
    }
    if (over)
        sweep_soon();
    return m ? m : mem_magazine_new(want);
}

void
mem_depot_put_empty(struct mem_pool *p, struct mem_magazine *empty)
{
    empty->count = 0;
    mem_lock(&p->depot.lock);
    magazine_push(&p->depot.empty, &p->depot.nempty, empty);
    mem_unlock(&p->depot.lock);
}

/* Takes the magazines of an exiting thread; magazines without objects become empties. */
void
mem_depot_put_chain(struct mem_pool *p, struct mem_magazine *chain, bool cold)
{
    struct mem_depot *d = &p->depot;

    if (!chain)
        return;
    mem_lock(&d->lock);
    for (struct mem_magazine *m = chain, *next; m; m = next) {
        next = m->next;
        if (!m->count)
            magazine_push(&d->empty, &d->nempty, m);
        else if (cold)
            magazine_push(&d->cold, &d->ncold, m);
        else
            magazine_push(&d->hot, &d->nhot, m);
    }
    mem_unlock(&d->lock);
}

void
mem_depot_doom(struct mem_pool *p, struct mem_magazine *chain)
{
    struct mem_magazine *last = chain;

    if (!chain)
        return;
    while (last->next)
        last = last->next;
    mem_lock(&p->depot.lock);
    last->next = p->depot.doomed;
    p->depot.doomed = chain;
    mem_unlock(&p->depot.lock);
}

/* Returns a single object, for threads that must not use their lines; or NULL. */
void *
mem_depot_get_one(struct mem_pool *p)
{
    struct mem_depot *d = &p->depot;
    struct mem_magazine **list;
    void *object = NULL;

    mem_lock(&d->lock);
    list = d->hot ? &d->hot : &d->cold;
    if (*list) {
        struct mem_magazine *m = *list;

        object = m->slot[--m->count];
        if (!m->count) {
            magazine_pop(list, list == &d->hot ? &d->nhot : &d->ncold);
            magazine_push(&d->empty, &d->nempty, m);
        }
    }
    mem_unlock(&d->lock);
    return object;
}

/* Puts a single object into a magazine that has room; false if there is none and none can be allocated. */
bool
mem_depot_put_one(struct mem_pool *p, void *object)
{
    struct mem_depot *d = &p->depot;
    bool over = false;

    mem_lock(&d->lock);
    if (!d->hot || d->hot->count == d->hot->cap) {
        struct mem_magazine *m = magazine_pop(&d->empty, &d->nempty);

        if (!m) {
            uint32_t want = d->m;

            mem_unlock(&d->lock);
            m = mem_magazine_new(want);
            if (!m)
                return false;
            mem_lock(&d->lock);
        }
        magazine_push(&d->hot, &d->nhot, m);
        over = is_over_cap(p);
    }
    d->hot->slot[d->hot->count++] = object;
    mem_unlock(&d->lock);
    if (over)
        sweep_soon();
    else
        mem_sweeper_rouse(); /* an unattached thread may be the only one at work */
    return true;
}

/* Returns the number of cold magazines that an age leaves in a busy pool. Repetitions of the same load
 * need a magazine more or less each time, because surplus objects in one thread's loaded magazine must be
 * replaced elsewhere when the depot is empty. Without this slack that magazine would be freed after one
 * burst and allocated for the next. The first age that finds the pool idle takes the slack, too. */
static uint32_t
cold_slack(uint64_t visits)
{
    uint64_t n = 2 * MEM_READ(mem_threads_attached);

    if (n > SLACK_MAX)
        n = SLACK_MAX;
    return visits >= 2 * n ? (uint32_t)n : 0;
}

/* Ages the depot by one step: returns the cold and doomed magazines and the spare empties to the caller,
 * to be freed; hot becomes cold; with all set, hot is returned, too. lean: memory is short, no slack. */
struct mem_magazine *
mem_depot_age(struct mem_pool *p, bool all, bool lean)
{
    struct mem_depot *d = &p->depot;
    struct mem_magazine *lists[4], *out = NULL;
    uint64_t visits;

    mem_lock(&d->lock);
    visits = d->visits_total - d->visits_swept;
    d->visits_swept = d->visits_total;
    for (uint32_t n = all || lean ? 0 : cold_slack(visits); n && d->cold; n--)
        magazine_push(&d->hot, &d->nhot, magazine_pop(&d->cold, &d->ncold));
    lists[0] = d->cold;
    lists[1] = d->doomed;
    lists[2] = d->empty;
    lists[3] = all ? d->hot : NULL;
    d->cold = all ? NULL : d->hot;
    d->ncold = all ? 0 : d->nhot;
    d->hot = d->doomed = d->empty = NULL;
    d->nhot = d->nempty = 0;
    if (d->m > d->m_base && visits * 1000 < (uint64_t)VISITS_PER_SECOND / 10 * mem_set.sweep_ms)
        MEM_WRITE(d->m, d->m / 2);
    mem_unlock(&d->lock);

    for (int i = 0; i < 4; i++) {
        for (struct mem_magazine *m = lists[i], *next; m; m = next) {
            next = m->next;
            m->next = out;
            out = m;
        }
    }
    return out;
}
