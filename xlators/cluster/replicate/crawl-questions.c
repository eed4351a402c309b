/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Questions to a crawler: its looks and faults, the objects that need a heal, and the user's choice of a copy
 * in a split-brain. And the crawler's question to the bricks whether clients work. */
#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "xlators/cluster/replicate/crawl-internal.h"

/* ---- answers --------------------------------------------------------------------------------- */

unsigned
crawler_children(const struct crawler *c)
{
    return c->r->count;
}

unsigned
crawler_looks(struct crawler *c, unsigned child, struct crawl_look out[CRAWL_LOOKS_KEPT])
{
    return looks_get(c->looks, child, out);
}

void
crawler_waits_for(struct crawler *c, char *who, size_t size)
{
    pthread_mutex_lock(&c->lock);
    snprintf(who, size, "%s", c->waits_for);
    pthread_mutex_unlock(&c->lock);
}

unsigned
crawler_faults(struct crawler *c, struct crawl_fault out[CRAWL_FAULTS_KEPT])
{
    pthread_mutex_lock(&c->lock);
    unsigned count = c->fault_count;
    memcpy(out, c->faults, count * sizeof out[0]);
    pthread_mutex_unlock(&c->lock);
    return count;
}

/* A question, answered in a coroutine while the caller waits. */
struct question {
    struct crawler *c;
    struct worker_job job;
    void (*answer)(struct question *q);
    sem_t answered;
    int err;
    const struct gfid *gfids;
    size_t count;
    uint8_t *needs;
    const char *name;
    enum crawl_choice how;
    unsigned source;
};

static void
question_go(void *arg)
{
    struct question *q = arg;
    struct graph *graph = q->c->graph;

    q->answer(q);
    sem_post(&q->answered); /* the question may be gone after this */
    graph_unpin(graph);
}

static void
question_run(struct worker_job *job)
{
    struct question *q = caa_container_of(job, struct question, job);
    struct graph *graph = q->c->graph;

    int err = coro_run(question_go, q);

    if (!err)
        return; /* the coroutine answers, or has answered: then the question may be gone */
    q->err = err;
    sem_post(&q->answered);
    graph_unpin(graph);
}

static int
question_ask(struct question *q)
{
    if (!graph_pin(q->c->graph))
        return -ENOTCONN;
    q->job.run = question_run;
    sem_init(&q->answered, 0, 0);
    worker_post_any(&q->job);
    while (sem_wait(&q->answered) < 0)
        continue;
    sem_destroy(&q->answered);
    return q->err;
}

static bool
is_under_heal(struct crawler *c, const struct gfid *gfid)
{
    bool is = false;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < sizeof c->under_heal / sizeof c->under_heal[0]; i++)
        is |= gfid_equal(&c->under_heal[i], gfid);
    pthread_mutex_unlock(&c->lock);
    return is;
}

static void
judge_object(void *arg, size_t n)
{
    struct question *q = arg;
    struct iatt a = {.gfid = q->gfids[n]};
    struct inode *inode = inode_link(q->c->graph->inodes, NULL, NULL, &a);
    struct heal h;
    uint32_t type = 0;
    bool needs = true;

    if (!inode)
        return;
    heal_begin(&h, q->c->r, inode);
    int err = heal_look(&h, CHANGE_METADATA);
    for (unsigned i = 0; i < q->c->r->count; i++)
        type = h.replica[i].is_there ? h.stat[i].mode & S_IFMT : type;
    inode_learn_type(inode, type);
    if (!type)
        needs = h.gone != q->c->r->all;
    else if (!err)
        needs = crawl_needs_heal(&h, type);
    q->needs[n] = !needs                              ? CRAWL_NO_HEAL
                  : is_under_heal(q->c, &q->gfids[n]) ? CRAWL_UNDER_HEAL
                                                      : CRAWL_HEAL;
    heal_end(&h);
    inode_unref(inode);
}

static void
judge_all(struct question *q)
{
    coro_each(crawl_width(q->c), q->count, judge_object, q);
}

int
crawler_judge(struct crawler *c, const struct gfid *gfids, size_t count, uint8_t *needs)
{
    struct question q = {.c = c, .answer = judge_all, .gfids = gfids, .count = count, .needs = needs};

    memset(needs, CRAWL_HEAL, count);
    return question_ask(&q);
}

/* ---- split-brain ----------------------------------------------------------------------------- */

/* Returns the child of `set` that the user's rule selects, or -1. */
static int
choose_copy(const struct question *q, const struct heal *h, child_set set)
{
    int best = -1;
    bool is_tie = false;

    if (q->how == CRAWL_SOURCE)
        return set & CHILD(q->source) ? (int)q->source : -1;
    for_each_child (i, set) {
        const struct iatt *a = &h->stat[i], *b = best < 0 ? NULL : &h->stat[best];
        int by = !b                            ? 1
                 : q->how == CRAWL_BIGGER_FILE ? (a->size > b->size) - (a->size < b->size)
                 : a->mtime != b->mtime        ? (a->mtime > b->mtime ? 1 : -1)
                                        : (a->mtime_nsec > b->mtime_nsec) - (a->mtime_nsec < b->mtime_nsec);

        is_tie = by == 0 || (is_tie && by < 0);
        best = by > 0 ? (int)i : best;
    }
    return is_tie ? -1 : best;
}

static child_set
copies_with_data(const struct replicate *r)
{
    return r->arbiter < 0 ? r->all : r->all & ~CHILD(r->arbiter);
}

static int
resolve_object(const struct question *q, struct heal *h)
{
    struct view v;
    int err = heal_look(h, CHANGE_METADATA);

    if (err)
        return err;
    uint32_t type = h->stat[0].mode & S_IFMT;
    inode_learn_type(h->op.inode, type);
    if (!crawl_is_split_brain(h, type, &v))
        return -EINVAL;
    int child = choose_copy(q, h, copies_with_data(q->c->r));
    if (child < 0)
        return -ENODATA;
    h->has_chosen = true;
    h->chosen = (unsigned)child;
    if (S_ISREG(type))
        err = heal_data(h);
    return err ? err : heal_metadata(h);
}

/* Looks up the name on all children: attributes in h->stat[]. Returns the children that have it. */
static child_set
look_at_name(struct heal *h, const char *name)
{
    child_set has = 0;
    struct fan f;

    fan_begin(&f);
    for_each_child (i, h->op.r->all)
        fan_wind(&f, &h->op, i, heal_name_call(h, FOP_lookup, i, h->op.inode, name));
    fan_wait(&f);
    for_each_child (i, f.good) {
        h->stat[i] = f.stk[i]->reply.stat;
        has |= CHILD(i);
    }
    fan_end(&f);
    return has;
}

static int
resolve_name(const struct question *q, struct heal *h)
{
    struct lock_entity e = {.is_entry = true, .inode = h->op.inode, .name = q->name};
    int err = heal_lock(h, &e);

    if (err)
        return err;
    child_set has = look_at_name(h, q->name);
    bool differs = false;

    for_each_child (i, has)
        differs |= !gfid_equal(&h->stat[i].gfid, &h->stat[child_first(has)].gfid);
    int child = differs ? choose_copy(q, h, has & copies_with_data(q->c->r)) : -1;
    if (child >= 0) {
        h->has_chosen = true;
        h->chosen = (unsigned)child;
        err = heal_look(h, CHANGE_ENTRY);
        err = err ? err : heal_name_locked(h, q->name);
    }
    heal_unlock(h, &e);
    return !differs ? -EINVAL : child < 0 ? -ENODATA : err < 0 ? err : 0;
}

static void
resolve(struct question *q)
{
    struct iatt a = {.gfid = *q->gfids, .mode = q->name ? S_IFDIR : 0};
    struct inode *inode = inode_link(q->c->graph->inodes, NULL, NULL, &a);
    struct heal h;

    q->err = -ENOMEM;
    if (!inode)
        return;
    heal_begin(&h, q->c->r, inode);
    q->err = q->name ? resolve_name(q, &h) : resolve_object(q, &h);
    heal_end(&h);
    inode_unref(inode);
}

int
crawler_resolve(struct crawler *c, const struct gfid *gfid, const char *name, enum crawl_choice how,
                unsigned source)
{
    struct question q = {
        .c = c, .answer = resolve, .gfids = gfid, .count = 1, .name = name, .how = how, .source = source};
    int err = question_ask(&q);

    if (!err) { /* an object that has got its name is still empty on the other children */
        pthread_mutex_lock(&c->lock);
        crawl_want(c, WANTS_INDEX);
        pthread_mutex_unlock(&c->lock);
    }
    return err;
}
