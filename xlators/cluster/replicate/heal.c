/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Shared functions of heals (heal.h): locks, the look at all children, counting back; and the queue of
 * background heals.
 *
 * A LOOKUP that finds a difference puts the inode into the queue: `background-self-heal-count` heals run at
 * a time, and `heal-wait-queue-length` wait. Further inodes are left to the next LOOKUP, or to the daemon.
 * An inode is in the queue at most once. */
#include "xlators/cluster/replicate/heal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"

enum { LIST_BYTES = 128 * 1024, LIST_NAMES = 1024 };

/* ---- a heal ---------------------------------------------------------------------------------- */

void
heal_begin(struct heal *h, struct replicate *r, struct inode *inode)
{
    uint64_t owner = (uint64_t)(uintptr_t)h;

    memset(h, 0, sizeof *h);
    memcpy(h->owner, &owner, sizeof h->owner);
    h->generation = atomic_load(&r->generation);
    h->op.r = r;
    h->op.inode = inode_ref(inode);
    h->op.caller = (struct caller){
        .pid = PID_SELF_HEAL, .lk_owner = {.len = sizeof h->owner, .bytes = h->owner}};
}

void
heal_copy(struct heal *to, const struct heal *from)
{
    uint64_t owner = (uint64_t)(uintptr_t)to;

    *to = *from;
    memcpy(to->owner, &owner, sizeof to->owner);
    to->op.caller.lk_owner.bytes = to->owner;
}

void
heal_end(struct heal *h)
{
    inode_unref(h->op.inode);
}

bool
heal_must_stop(const struct heal *h)
{
    struct replicate *r = h->op.r;

    return atomic_load(&r->is_stopping) || atomic_load(&r->up) != r->all ||
           atomic_load(&r->generation) != h->generation;
}

/* ---- locks ----------------------------------------------------------------------------------- */

int
heal_lock(struct heal *h, const struct lock_entity *e)
{
    child_set all = h->op.r->all;
    int err = 0;

    if (heal_must_stop(h))
        return -ENOTCONN;
    child_set has = locks_take(&h->op, e, 1, all, &err);

    if (has == all && !heal_must_stop(h))
        return 0;
    locks_drop_one(&h->op, e, has);
    return err ? -err : -ENOTCONN;
}

int
heal_lock_alone(struct heal *h, const struct lock_entity *e)
{
    child_set all = h->op.r->all;

    if (heal_must_stop(h))
        return -ENOTCONN;
    child_set has = locks_try(&h->op, e, all);

    if (has == all && !heal_must_stop(h))
        return 0;
    locks_drop_one(&h->op, e, has);
    return -EAGAIN;
}

void
heal_unlock(struct heal *h, const struct lock_entity *e)
{
    locks_drop_one(&h->op, e, h->op.r->all);
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct call_stack *
heal_call(const struct heal *h, enum fop fop, unsigned i)
{
    return op_call(&h->op, fop, i);
}

struct call_stack *
heal_fd_call(const struct heal *h, enum fop fop, unsigned i)
{
    struct call_stack *stk = op_call(&h->op, fop, i);

    if (stk && !(stk->call.fd = fd_new_anonymous(h->op.inode, NULL))) {
        call_stack_free(stk);
        return NULL;
    }
    return stk;
}

struct call_stack *
heal_name_call(const struct heal *h, enum fop fop, unsigned i, struct inode *dir, const char *name)
{
    struct call_stack *stk = op_call(&h->op, fop, i);

    if (!stk)
        return NULL;
    inode_unref(stk->call.loc.inode);
    stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = name};
    return stk;
}

int
heal_send(const struct heal *h, unsigned i, struct call_stack *stk)
{
    if (!stk)
        return -ENOMEM;
    int ret = coro_call(stk, h->op.r->xl->children[i]);

    call_stack_free(stk);
    return ret;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    struct heal *h;
    unsigned child;
    struct inode *dir;
    heal_name_fn *each;
    uint64_t offset;
    atomic_int first, sum; /* the first error; the sum of the other results of `each` */
    const char *names[LIST_NAMES]; /* to be healed now */
};

static bool
is_dot_name(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Each of several heals at a time has its own look and its own lock owner. */
static int
heal_listed_alone(struct listing *l, const char *name)
{
    struct heal own;

    heal_copy(&own, l->h);
    return l->each(&own, l->child, l->dir, name);
}

static void
heal_listed_name(void *arg, size_t n)
{
    struct listing *l = arg;
    bool is_alone = l->h->width <= 1;
    int none = 0, ret = -ENOTCONN;

    if (!heal_must_stop(l->h))
        ret = is_alone ? l->each(l->h, l->child, l->dir, l->names[n]) : heal_listed_alone(l, l->names[n]);
    if (ret < 0)
        atomic_compare_exchange_strong(&l->first, &none, ret);
    else
        atomic_fetch_add(&l->sum, ret);
}

static void
heal_listed(struct listing *l, const struct dirent_entry *entries)
{
    size_t count = 0;

    for (const struct dirent_entry *e = entries; e; e = e->next) {
        if (!is_dot_name(e->name))
            l->names[count++] = e->name;
        l->offset = e->off;
        if (count < LIST_NAMES && e->next)
            continue;
        coro_each(l->h->width, count, heal_listed_name, l);
        count = 0;
    }
}

/* Reads a part of the list, from l->offset on. Returns 1: there is more; 0: the end; or -errno. */
static int
heal_part(struct listing *l, struct fd *fd)
{
    struct call_stack *stk = heal_call(l->h, FOP_readdir, l->child);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = l->offset;
    stk->call.size = LIST_BYTES;
    int ret = coro_call(stk, l->h->op.r->xl->children[l->child]);

    if (ret >= 0) {
        heal_listed(l, stk->reply.entries);
        ret = stk->reply.entries != NULL && !heal_must_stop(l->h);
    }
    call_stack_free(stk);
    return ret;
}

int
heal_list(struct heal *h, unsigned i, struct inode *dir, heal_name_fn *each)
{
    struct listing *l = calloc(1, sizeof *l); /* too large for a coroutine's stack */
    struct call_stack *stk = l ? heal_call(h, FOP_opendir, i) : NULL;

    if (!stk) {
        free(l);
        return -ENOMEM;
    }
    l->h = h;
    l->child = i;
    l->dir = dir;
    l->each = each;
    inode_unref(stk->call.loc.inode);
    stk->call.loc.inode = inode_ref(dir);
    int ret = coro_call(stk, h->op.r->xl->children[i]);

    while (ret >= 0) {
        ret = heal_part(l, stk->reply.fd);
        if (ret == 0)
            break;
    }
    call_stack_free(stk);
    if (ret >= 0)
        ret = l->first ? l->first : l->sum;
    free(l);
    return ret;
}

/* ---- the look at all children ---------------------------------------------------------------- */

void
heal_direct(struct heal *h, enum change what)
{
    struct replicate *r = h->op.r;
    bool needs_data = what == CHANGE_DATA && r->arbiter >= 0;
    child_set able = needs_data ? r->all & ~CHILD(r->arbiter) : r->all;

    changelog_direction(h->replica, r->count, what, &h->way);
    if (h->has_chosen && !(h->way.sources & able)) {
        h->way.sources = CHILD(h->chosen);
        h->way.sinks = r->all & ~CHILD(h->chosen);
    }
}

int
heal_look(struct heal *h, enum change what)
{
    struct replicate *r = h->op.r;
    struct fan f;

    memset(h->replica, 0, sizeof h->replica);
    h->gone = 0;
    fan_begin(&f);
    for_each_child (i, r->all) {
        struct call_stack *stk = heal_call(h, FOP_lookup, i);

        if (stk && (!call_xdata(stk) || view_ask(r, stk->call.xdata, true))) {
            call_stack_free(stk);
            stk = NULL;
        }
        fan_wind(&f, &h->op, i, stk);
    }
    fan_wait(&f);
    int err = f.good == r->all ? 0 : fan_errno(&f) ? -fan_errno(&f) : -ENOTCONN;
    for_each_child (i, f.good) {
        replica_read(r, f.stk[i], &h->replica[i]);
        h->stat[i] = f.stk[i]->reply.stat;
    }
    for_each_child (i, f.sent & ~f.good)
        h->gone |= f.ret[i] == -ENOENT || f.ret[i] == -ESTALE ? CHILD(i) : 0;
    h->attributes_differ = !err && heal_attributes_differ(&f);
    fan_end(&f);
    if (!err)
        heal_direct(h, what);
    return err;
}

void
heal_note(struct heal *h, unsigned child, int why)
{
    if (h->why || !why)
        return;
    h->why = why;
    h->why_child = child;
}

/* ---- the end of a heal ----------------------------------------------------------------------- */

/* Computes the changes of child i's counters about each child, to add. Returns false if there is no change.
 * For a directory's entries, the data counter (compare all names) is subtracted too, because that was done.
 */
static bool
fill_delta(const struct heal *h, enum change what, unsigned i, child_set failed, struct marks *m,
           struct changelog each[REPLICAS_MAX])
{
    const struct replica *own = &h->replica[i];
    bool is_any = false;

    memset(each, 0, REPLICAS_MAX * sizeof *each);
    for (unsigned w = 0; w < CHANGES; w++) {
        if (w != what && !(what == CHANGE_ENTRY && w == CHANGE_DATA))
            continue;
        for (unsigned k = 0; k < h->op.r->count; k++) {
            bool is_bad = failed & CHILD(k);

            each[k].count[w] = is_bad ? w == what && !own->about[k].count[w] : 0u - own->about[k].count[w];
            is_any |= each[k].count[w] != 0;
        }
        m->dirty.count[w] = failed ? 0 : 0u - own->dirty.count[w];
        is_any |= m->dirty.count[w] != 0;
    }
    return is_any;
}

int
heal_count_back(struct heal *h, enum change what, child_set failed)
{
    struct replicate *r = h->op.r;
    struct changelog each[REPLICAS_MAX];
    struct fan f;

    fan_begin(&f);
    for_each_child (i, r->all & ~failed) {
        struct marks m = {
            .inode = h->op.inode, .each = each, .purges_names = what == CHANGE_ENTRY && !failed};

        if (fill_delta(h, what, i, failed, &m, each))
            fan_wind(&f, &h->op, i, marks_call(&h->op, i, &m));
    }
    fan_wait(&f);
    int err = f.good == f.sent ? 0 : -fan_errno(&f);
    fan_end(&f);
    view_forget(r, h->op.inode);
    return err ? err : !failed ? 0 : h->why ? -h->why : -EIO;
}

/* ---- heals in the background ----------------------------------------------------------------- */

/* Differences without a mark, which no other healer finds: healed even if the options are off. */
struct unmarked {
    bool attributes, names;
};

struct heal_job {
    struct cds_list_head link; /* in the layer's `heals`, under the layer's lock */
    struct worker_job job;
    struct replicate *r;
    struct inode *inode; /* a reference */
    struct unmarked unmarked;
};

static void
heal_job_done(struct heal_job *job)
{
    struct repl_inode *ri = inode_ctx(job->inode, job->r->xl);

    atomic_store(&ri->is_in_heal, false);
    inode_unref(job->inode);
    free(job);
}

static int
heal_kinds(struct heal *h, const struct unmarked *unmarked)
{
    const struct replicate_conf *conf = xlator_conf(h->op.r->xl);
    const struct {
        bool is_on;
        int (*heal)(struct heal *h);
    } kinds[] = {
        {conf->heals_data && S_ISREG(h->op.inode->type), heal_data},
        {conf->heals_metadata || unmarked->attributes, heal_metadata},
        {(conf->heals_entries || unmarked->names) && S_ISDIR(h->op.inode->type), heal_entries},
    };
    int first = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int err = kinds[i].is_on ? kinds[i].heal(h) : 0;

        first = first ? first : err;
    }
    return first;
}

static void
heal_inode(struct replicate *r, struct inode *inode, const struct unmarked *unmarked)
{
    struct heal h;

    heal_begin(&h, r, inode);
    h.wants_all_names = unmarked->names;
    int err = heal_kinds(&h, unmarked);

    if (err)
        view_forget(r, inode); /* the next access refreshes the view, and tries again */
    log_event(LOG_INFO, r->xl, "heal-done", "%s: %s", GFID(&inode->gfid), err ? strerror(-err) : "healed");
    heal_end(&h);
}

/* Returns the next waiting job, which takes the slot of the finished one; NULL: no job waits. *is_last: no
 * other job is running, either. */
static struct heal_job *
next_heal_job(struct replicate *r, bool *is_last)
{
    struct heal_job *job = NULL;

    pthread_mutex_lock(&r->lock);
    if (cds_list_empty(&r->heals)) {
        *is_last = --r->heals_running == 0;
    } else {
        job = cds_list_first_entry(&r->heals, struct heal_job, link);
        cds_list_del(&job->link);
        r->heals_waiting--;
    }
    pthread_mutex_unlock(&r->lock);
    return job;
}

static void
heal_jobs_go(void *arg)
{
    struct heal_job *job = arg;
    struct replicate *r = job->r;
    struct graph *graph = r->xl->graph;
    bool is_last = false;

    for (; job; job = next_heal_job(r, &is_last)) {
        heal_inode(r, job->inode, &job->unmarked);
        heal_job_done(job);
    }
    if (is_last && atomic_load(&r->may_be_parked))
        heal_clear_parked(r);
    graph_unpin(graph);
}

static void
heal_job_run(struct worker_job *work)
{
    struct heal_job *job = caa_container_of(work, struct heal_job, job);
    struct replicate *r = job->r;
    struct graph *graph = r->xl->graph;
    int err = coro_run(heal_jobs_go, job);
    bool is_last = false;

    if (!err)
        return;
    log_event(LOG_WARNING, r->xl, "heal-waits", "cannot heal %s now: %s", GFID(&job->inode->gfid),
              strerror(-err));
    while (job) { /* drops the waiting jobs, too; a LOOKUP finds these inodes again */
        heal_job_done(job);
        job = next_heal_job(r, &is_last);
    }
    graph_unpin(graph);
}

/* Returns true if the job may run now. */
static bool
enqueue_heal(struct replicate *r, struct heal_job *job, bool *is_full)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    bool runs = false;

    pthread_mutex_lock(&r->lock);
    runs = r->heals_running < (unsigned)conf->heal_count;
    *is_full = !runs && (!r->heals_running || r->heals_waiting >= (unsigned)conf->heal_queue);
    if (runs) {
        r->heals_running++;
    } else if (!*is_full) {
        cds_list_add_tail(&job->link, &r->heals);
        r->heals_waiting++;
    }
    pthread_mutex_unlock(&r->lock);
    return runs;
}

static void
heal_soon(struct replicate *r, struct inode *inode, struct unmarked unmarked)
{
    struct repl_inode *ri = repl_inode(r, inode);
    bool is_full = false;

    if (!ri || atomic_exchange(&ri->is_in_heal, true))
        return;
    struct heal_job *job = calloc(1, sizeof *job);

    if (!job || !graph_pin(r->xl->graph)) {
        atomic_store(&ri->is_in_heal, false);
        free(job);
        return;
    }
    job->job.run = heal_job_run;
    job->r = r;
    job->inode = inode_ref(inode);
    job->unmarked = unmarked;
    if (enqueue_heal(r, job, &is_full)) {
        worker_post(&job->job); /* the job now owns the pin */
        return;
    }
    if (is_full)
        heal_job_done(job);
    graph_unpin(r->xl->graph);
}

void
heal_all_names_soon(struct replicate *r, struct inode *dir)
{
    heal_soon(r, dir, (struct unmarked){.names = true});
}

void
heal_new_object_soon(struct replicate *r, struct inode *inode)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    if (conf->heals_metadata || (conf->heals_data && S_ISREG(inode->type)) ||
        (conf->heals_entries && S_ISDIR(inode->type)))
        heal_soon(r, inode, (struct unmarked){0});
}

/* ---- checking whether an object needs a heal ------------------------------------------------- */

static bool
sizes_differ(const struct replicate *r, const struct replica *replica)
{
    unsigned first = r->arbiter == 0;

    for (unsigned i = 0; i < r->count; i++) {
        if ((int)i != r->arbiter && replica[i].size != replica[first].size)
            return true;
    }
    return false;
}

static bool
is_marked(const struct replica *replica, unsigned count, enum change what)
{
    bool is_locked = false, is_dirty = false;

    for (unsigned i = 0; i < count; i++) {
        is_locked |= replica[i].is_locked;
        is_dirty |= replica[i].dirty.count[what] != 0;
    }
    return changelog_accused(replica, count, what) || (is_dirty && !is_locked);
}

bool
heal_is_marked(const struct heal *h, enum change what)
{
    return is_marked(h->replica, h->op.r->count, what);
}

bool
heal_sizes_differ(const struct heal *h)
{
    return sizes_differ(h->op.r, h->replica);
}

static bool
has_to_heal(const struct replicate *r, const struct fan *f, uint32_t type, struct unmarked *unmarked)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct replica replica[REPLICAS_MAX] = {0};
    bool is_locked = false;

    for_each_child (i, f->good) {
        replica_read(r, f->stk[i], &replica[i]);
        is_locked |= replica[i].is_locked;
    }
    bool is_accused = changelog_accused(replica, r->count, CHANGE_METADATA);

    unmarked->attributes = !is_accused && !is_locked && heal_attributes_differ(f);
    if (unmarked->attributes || (conf->heals_metadata && is_marked(replica, r->count, CHANGE_METADATA)))
        return true;
    if (conf->heals_entries && S_ISDIR(type) && is_marked(replica, r->count, CHANGE_ENTRY))
        return true;
    return conf->heals_data && S_ISREG(type) &&
           (is_marked(replica, r->count, CHANGE_DATA) || (!is_locked && sizes_differ(r, replica)));
}

void
heal_consider(struct replicate *r, struct inode *inode, const struct fan *f)
{
    struct unmarked unmarked = {0};

    if (f->good == r->all && has_to_heal(r, f, inode->type, &unmarked))
        heal_soon(r, inode, unmarked);
}
