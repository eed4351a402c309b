/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The self-heal daemon's work for a dispersed set, with the option iam-self-heal-daemon: reads the list of
 * pending objects of each brick (features/index), heals folders, then the other objects, and removes the
 * entries of objects that have gone. Repeats while objects were healed and the lists change, because an
 * object can be healed only after the folder that has its name. While a brick is away, objects stay on the
 * lists after each heal. Then walks the whole tree, if a full crawl is due (crawl-tree.c).
 *
 * A crawl runs when a child comes up, some times in the minute after that (crawl_next_pause()), and each
 * `heal-timeout` seconds; sooner, after 1, 2, 4 seconds and so on, if another client or healer kept an object
 * locked. A crawl that dies leaves each object as a heal that stops leaves it (heal.h). One crawl of a set
 * runs at a time, in one coroutine. */
#include "xlators/cluster/disperse/crawl.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/crawl-looks.h"
#include "xlators/cluster/disperse/heal.h"

enum { CRAWL_ROUNDS_MAX = 100, CRAWL_SOON_MS = 1000 };

/* Removes the index entry of an object that has gone; an entry that stays is met by the next crawl. */
static void
pending_remove(const struct ec_heal *h, unsigned i, struct inode *dir, const struct gfid *gfid)
{
    struct call_stack *stk = ec_call(&h->op, FOP_unlink, i, false, NULL, NULL);
    const char *name = GFID(gfid); /* lives until the reply, as the call needs it */

    if (stk)
        stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = name};
    (void)ec_heal_send(h, i, stk);
}

/* ---- objects --------------------------------------------------------------------------------- */

int
ec_crawl_object(struct disperse *d, unsigned i, struct inode *inode, bool is_full, bool *was_whole)
{
    looks_begin_object(d->looks, i, &inode->gfid);
    int err = ec_heal_object(d, inode, is_full ? HEAL_FULL : HEAL_MARKED, was_whole);
    bool has_failed = err && err != -EAGAIN && err != -ENOTCONN && err != -ENOENT;

    looks_end_object(d->looks, i,
                     has_failed ? LOOK_FAILED : !err && !*was_whole ? LOOK_HEALED : LOOK_NOTHING, !is_full);
    if (has_failed)
        log_event(LOG_WARNING, d->xl, "disperse-crawl-failed", "%s is not healed: %s", GFID(&inode->gfid),
                  strerror(-err));
    return err;
}

/* Looks at an object whose type is not known yet, or that has gone since. Removes the index entry of one that
 * no child has. */
static void
pending_look(const struct ec_heal *h, unsigned i, struct inode *dir, struct index_entry *p,
             struct inode *inode)
{
    bool is_gone;

    p->type = ec_heal_type(h->op.d, inode, &is_gone);
    if (!is_gone)
        return;
    pending_remove(h, i, dir, &p->gfid);
    p->is_done = p->is_gone = true;
}

/* A pass over the list of child i: for folders, or for all other objects. */
struct pending_pass {
    const struct ec_heal *h;
    unsigned i;
    struct inode *dir;
    struct index_list *l;
    bool wants_folders;
    atomic_uint healed;
    atomic_bool is_busy; /* another client kept an object locked */
};

static void
pending_heal(void *arg, size_t n)
{
    struct pending_pass *pass = arg;
    struct index_entry *p = &pass->l->at[n];
    struct disperse *d = pass->h->op.d;
    struct iatt a = {.gfid = p->gfid, .mode = p->type};
    bool is_skipped = p->is_done || (p->type && S_ISDIR(p->type) != pass->wants_folders), was_whole;
    struct inode *inode = is_skipped || ec_heal_must_stop(pass->h)
                              ? NULL
                              : inode_link(d->xl->graph->inodes, NULL, NULL, &a);

    if (!inode)
        return;
    if (!p->type)
        pending_look(pass->h, pass->i, pass->dir, p, inode);
    if (!p->is_done && p->type && S_ISDIR(p->type) == pass->wants_folders) {
        int err = ec_crawl_object(d, pass->i, inode, false, &was_whole);

        p->is_done = !err;
        if (err == -EAGAIN || err == -ENOTCONN)
            atomic_store(&pass->is_busy, true);
        if (err == -ENOENT)
            pending_look(pass->h, pass->i, pass->dir, p, inode);
        if (!err && !was_whole)
            atomic_fetch_add(&pass->healed, 1);
    }
    inode_unref(inode);
}

/* Heals folders, one after another, or all other objects. Returns the number of healed ones; sets l->is_busy
 * if another client kept an object locked. */
static unsigned
heal_pending(struct ec_heal *h, unsigned i, struct inode *dir, struct index_list *l, bool wants_folders)
{
    struct pending_pass pass = {.h = h, .i = i, .dir = dir, .l = l, .wants_folders = wants_folders};

    coro_each(wants_folders ? 1 : HEAL_LANES, l->count, pending_heal, &pass);
    l->is_busy |= atomic_load(&pass.is_busy);
    return atomic_load(&pass.healed);
}

/* A pass over the lists of all bricks. */
struct crawl_round {
    struct index_list of[FAN_CHILDREN_MAX];
    struct inode *dir[FAN_CHILDREN_MAX]; /* of the index; NULL: none */
    uint64_t sum; /* of the objects on the lists, to tell whether the lists have changed */
    unsigned healed;
    bool is_busy;
};

static void
read_list(struct ec_heal *h, unsigned i, struct crawl_round *r)
{
    struct index_list *l = &r->of[i];

    r->dir[i] = ec_index_directory(h, i);
    if (r->dir[i])
        (void)ec_index_read(h, i, r->dir[i], l); /* the next crawl reads the rest */
    for (size_t n = 0; n < l->count; n++) {
        uint64_t half[2];

        memcpy(half, &l->at[n].gfid, sizeof half);
        r->sum += (half[0] ^ half[1]) * (2 * i + 1);
    }
}

/* Objects that were healed from the lists of earlier children are done. */
static void
skip_healed(struct crawl_round *r, unsigned i)
{
    for (size_t n = 0; n < r->of[i].count; n++) {
        struct index_entry *p = &r->of[i].at[n];

        for (unsigned k = 0; k < i && !p->is_done; k++) {
            const struct index_entry *e = ec_index_find(&r->of[k], &p->gfid);

            p->is_done = e && e->is_done && !e->is_gone;
        }
    }
}

static void
crawl_brick(struct ec_heal *h, unsigned i, struct crawl_round *r)
{
    struct index_list *l = &r->of[i];
    unsigned some;

    skip_healed(r, i);
    looks_begin(h->op.d->looks, i, false);
    looks_set_left(h->op.d->looks, i, l->count);
    do {
        some = heal_pending(h, i, r->dir[i], l, true);
        r->healed += some;
    } while (some && !ec_heal_must_stop(h));
    r->healed += heal_pending(h, i, r->dir[i], l, false);
    looks_end(h->op.d->looks, i);
    r->is_busy |= l->is_busy;
}

/* Returns false, and heals nothing, if the lists name the same objects as in the round before, of the sum
 * `before` (0: there was none). */
static bool
crawl_bricks(struct disperse *d, struct inode *root, uint64_t before, struct crawl_round *r)
{
    struct ec_heal h;

    *r = (struct crawl_round){0};
    ec_heal_begin(&h, d, root);
    child_set on = children_count(h.on) > d->data ? h.on : 0;
    for_each_child (i, on)
        read_list(&h, i, r);
    bool has_news = !before || r->sum != before;
    for_each_child (i, has_news ? on : 0) {
        if (r->dir[i] && !ec_heal_must_stop(&h))
            crawl_brick(&h, i, r);
    }
    for_each_child (i, on) {
        free(r->of[i].at);
        inode_unref(r->dir[i]);
    }
    ec_heal_end(&h);
    return has_news;
}

/* ---- a crawl --------------------------------------------------------------------------------- */

static void
ec_crawl_go(void *arg)
{
    struct disperse *d = arg;
    struct graph *graph = d->xl->graph;
    const struct disperse_conf *conf = xlator_conf(d->xl);
    struct inode *root = inode_root(graph->inodes);
    uint64_t timeout_ms = (uint64_t)conf->heal_timeout_s * 1000;
    struct crawl_round r = {.healed = 1};
    bool is_busy = false;

    dead_changes_ask(&d->dead_changes);
    for (unsigned round = 0; round < CRAWL_ROUNDS_MAX && r.healed; round++) {
        if (!crawl_bricks(d, root, r.sum, &r))
            break;
        is_busy = r.is_busy;
    }
    inode_unref(root);
    ec_crawl_tree(d, &is_busy);
    pthread_mutex_lock(&d->lock);
    d->is_crawling = false;
    uint64_t pause_ms = d->crawls_again ? CRAWL_SOON_MS : is_busy ? d->crawl_pause_ms : timeout_ms;
    pause_ms = pause_ms < timeout_ms ? pause_ms : timeout_ms;
    d->crawl_pause_ms = is_busy ? 2 * pause_ms : CRAWL_SOON_MS;
    if (!atomic_load(&d->is_stopping))
        timer_start(&d->crawl_timer, crawl_next_pause(&d->crawl_follow_ups, pause_ms));
    d->crawls_again = false;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    graph_unpin(graph);
}

static void
ec_crawl_job_run(struct worker_job *job)
{
    struct disperse *d = caa_container_of(job, struct disperse, crawl_job);
    struct graph *graph = d->xl->graph;

    if (!coro_run(ec_crawl_go, d))
        return;
    pthread_mutex_lock(&d->lock);
    d->is_crawling = false;
    timer_start(&d->crawl_timer, CRAWL_SOON_MS);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    graph_unpin(graph);
}

static void
ec_crawl_timer_fired(struct timer *t)
{
    struct disperse *d = caa_container_of(t, struct disperse, crawl_timer);

    pthread_mutex_lock(&d->lock);
    if (!d->is_crawling && !atomic_load(&d->is_stopping) && graph_pin(d->xl->graph)) {
        d->is_crawling = true;
        worker_post_any(&d->crawl_job);
    }
    pthread_mutex_unlock(&d->lock);
}

static bool
is_healer(const struct disperse *d)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);

    return conf->is_daemon && conf->daemon_heals;
}

void
ec_crawl_start(struct disperse *d)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);

    if (is_healer(d) && conf->throttles_heals)
        heal_throttle_by_bricks(&d->throttle, d->xl);
    timer_init(&d->crawl_timer, ec_crawl_timer_fired);
    d->crawl_pause_ms = CRAWL_SOON_MS;
    d->crawl_follow_ups = CRAWL_FOLLOW_UPS;
    d->crawl_job.run = ec_crawl_job_run;
}

static void
ec_crawl_soon(struct disperse *d)
{
    if (!is_healer(d))
        return;
    pthread_mutex_lock(&d->lock);
    d->crawls_again = d->is_crawling;
    if (!d->is_crawling && !atomic_load(&d->is_stopping))
        timer_start(&d->crawl_timer, CRAWL_SOON_MS);
    pthread_mutex_unlock(&d->lock);
}

void
ec_crawl_child_up(struct disperse *d)
{
    pthread_mutex_lock(&d->lock);
    d->crawl_follow_ups = 0;
    pthread_mutex_unlock(&d->lock);
    ec_crawl_soon(d);
}

int
disperse_crawl_ask(struct graph *g, bool is_full)
{
    struct disperse *d = g->top->private;

    if (!is_healer(d))
        return -EPERM;
    pthread_mutex_lock(&d->lock);
    d->full_asked += is_full;
    pthread_mutex_unlock(&d->lock);
    ec_crawl_soon(d);
    child_set up = atomic_load(&d->up);
    return (is_full ? up == d->all : children_count(up) > d->data) ? 0 : -ENOTCONN;
}

bool
disperse_crawl_full_is_due(struct graph *g)
{
    struct disperse *d = g->top->private;

    pthread_mutex_lock(&d->lock);
    bool is = d->full_asked != d->full_done;
    pthread_mutex_unlock(&d->lock);
    return is;
}

void
disperse_crawl_stop_full(struct graph *g)
{
    struct disperse *d = g->top->private;

    pthread_mutex_lock(&d->lock);
    d->full_done = d->full_asked;
    pthread_mutex_unlock(&d->lock);
}

unsigned
disperse_crawl_looks(struct graph *g, unsigned child, struct crawl_look out[CRAWL_LOOKS_KEPT])
{
    const struct disperse *d = g->top->private;

    return d->looks ? looks_get(d->looks, child, out) : 0;
}

/* is_stopping is set: running heals and crawls end soon. */
void
ec_crawl_stop(struct disperse *d)
{
    timer_stop(&d->crawl_timer);
    pthread_mutex_lock(&d->lock);
    while (d->is_crawling || d->heals_running)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    timer_stop(&d->crawl_timer);
}
