/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Shared functions of heals (heal.h), the heal of attributes, and the queue of background heals.
 *
 * Attributes: lock; owner, mode and xattrs of all children; the largest group of equal children wins and
 * needs K members; the others get the winner's attributes, and then its metadata version. If no K children
 * are equal, the largest group among the children of the highest version wins, which must be K: they have all
 * changes that a caller has seen succeed, and differ by the change in which a mount died. Times
 * (trusted.glusterfs.mdata) decide nothing: a brick merges them with its own, and keeps the later ones, so
 * that a brick whose object was made by a heal may have later times for good. All get the latest times.
 *
 * An operation that meets a child that is up and behind puts the inode into the queue. At most
 * `background-heals` run at a time; an object beyond that is left to the next operation, or to the daemon. */
#include "xlators/cluster/disperse/heal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"

/* The times of an object: a version byte, flags, then seconds and nanoseconds of three times. */
#define TIMES_KEY "trusted.glusterfs.mdata"
enum { TIMES_BYTES = 57, TIMES_AT = 9, TIME_BYTES = 16 };

/* ---- a heal ---------------------------------------------------------------------------------- */

void
ec_heal_begin(struct ec_heal *h, struct disperse *d, struct inode *inode)
{
    uint64_t lock = (uint64_t)(uintptr_t)h->lock_owner, healer = (uint64_t)(uintptr_t)h->healer_owner;

    memset(h, 0, sizeof *h);
    memcpy(h->lock_owner, &lock, sizeof lock);
    memcpy(h->healer_owner, &healer, sizeof healer);
    h->generation = atomic_load(&d->generation);
    h->on = atomic_load(&d->up);
    h->op.d = d;
    h->op.inode = inode_ref(inode);
    h->op.caller = (struct caller){.pid = PID_SELF_HEAL};
}

void
ec_heal_end(struct ec_heal *h)
{
    inode_unref(h->op.inode);
}

bool
ec_heal_must_stop(const struct ec_heal *h)
{
    const struct disperse *d = h->op.d;

    return atomic_load(&d->is_stopping) || atomic_load(&d->generation) != h->generation;
}

int
ec_heal_lock(struct ec_heal *h, struct inode *inode)
{
    int err = 0;

    if (ec_heal_must_stop(h) || children_count(h->on) <= h->op.d->data)
        return -ENOTCONN;
    child_set has = ec_locks_take(&h->op, inode, h->op.d->xl->name, h->lock_owner, h->on, &err);
    if (has == h->on && !ec_heal_must_stop(h))
        return 0;
    ec_locks_drop(&h->op, inode, h->op.d->xl->name, h->lock_owner, has);
    return err ? err : -ENOTCONN;
}

void
ec_heal_unlock(struct ec_heal *h, struct inode *inode)
{
    ec_locks_drop(&h->op, inode, h->op.d->xl->name, h->lock_owner, h->on);
}

int
ec_healer_lock(struct ec_heal *h)
{
    child_set has = ec_locks_try(&h->op, h->op.inode, h->op.d->heal_domain, h->healer_owner, h->on);

    if (has == h->on)
        return 0;
    ec_locks_drop(&h->op, h->op.inode, h->op.d->heal_domain, h->healer_owner, has);
    return -EAGAIN;
}

void
ec_healer_unlock(struct ec_heal *h)
{
    ec_locks_drop(&h->op, h->op.inode, h->op.d->heal_domain, h->healer_owner, h->on);
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct call_stack *
ec_heal_call(const struct ec_heal *h, enum fop fop, unsigned i)
{
    return ec_call(&h->op, fop, i, false, h->op.inode, NULL);
}

int
ec_heal_send(const struct ec_heal *h, unsigned i, struct call_stack *stk)
{
    int ret = stk ? coro_call(stk, h->op.d->xl->children[i]) : -ENOMEM;

    if (stk)
        call_stack_free(stk);
    return ret;
}

static struct call_stack *
see_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_call(op, FOP_lookup, i, is_spare, op->inode, NULL);
    struct dict *d = stk ? call_xdata(stk) : NULL;

    (void)unused;
    if (d && !dict_set_text_int(d, "trusted.ec.size", 0) && !dict_set_text_int(d, "trusted.ec.version", 0) &&
        !dict_set_text_int(d, "trusted.ec.dirty", 0))
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

int
ec_heal_see(struct ec_heal *h)
{
    uint64_t size[2];
    struct fan f;
    int err = ec_ask(&f, &h->op, h->on, see_make, NULL);

    h->has = h->lacks = 0;
    if (err)
        return err;
    for_each_child (i, f.sent) {
        struct ec_copy *c = &h->copy[i];
        const struct dict *x = f.good & CHILD(i) ? f.stk[i]->reply.xdata : NULL;

        h->has |= f.good & CHILD(i);
        h->lacks |= f.ret[i] == -ENOENT || f.ret[i] == -ESTALE ? CHILD(i) : 0;
        *c = (struct ec_copy){0};
        if (!(f.good & CHILD(i)))
            continue;
        c->stat = f.stk[i]->reply.stat;
        ec_get_words(x, "trusted.ec.version", c->version);
        ec_get_words(x, "trusted.ec.dirty", c->dirty);
        ec_get_words(x, "trusted.ec.size", size);
        c->size = size[0];
    }
    err = fan_is_short(&f) ? -ENOMEM : 0;
    fan_end(&f);
    if (!err && children_count(h->has) <= h->op.d->data)
        err = h->lacks ? -ENOENT : -ENOTCONN;
    if (!err && children_count(h->has & ~h->lacks) > h->op.d->data)
        inode_learn_type(h->op.inode, h->copy[child_first(h->has)].stat.mode);
    return err;
}

static int
add_change(struct dict *d, const char *key, const uint64_t *words, unsigned count)
{
    uint64_t be[2] = {htobe64(words[0]), count > 1 ? htobe64(words[1]) : 0};

    return dict_set_text(d, key, DICT_PTR, be, count * sizeof be[0]);
}

struct counter_changes {
    struct inode *inode;
    const struct ec_change *of; /* by child */
};

static struct call_stack *
counters_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct counter_changes *all = arg;
    const struct ec_change *c = &all->of[i];
    struct call_stack *stk = ec_call(op, FOP_xattrop, i, is_spare, all->inode, NULL);
    struct dict *d = stk ? stk->call.dict = dict_new(&stk->arena) : NULL;
    int err = d ? 0 : -ENOMEM;

    if (!err)
        err = add_change(d, "trusted.ec.dirty", c->dirty, 2);
    if (!err && (c->version[0] | c->version[1]))
        err = add_change(d, "trusted.ec.version", c->version, 2);
    if (!err && c->size)
        err = add_change(d, "trusted.ec.size", &c->size, 1);
    if (err) {
        if (stk)
            call_stack_free(stk);
        return NULL;
    }
    stk->call.flags = 1; /* add arrays of 64 bits */
    return stk;
}

int
ec_heal_add(const struct ec_heal *h, child_set on, struct inode *inode, const struct ec_change of[],
            child_set *done)
{
    struct counter_changes all = {.inode = inode, .of = of};
    struct fan f;

    if (done)
        *done = 0;
    int err = on ? ec_ask(&f, &h->op, on, counters_make, &all) : 0;
    if (err || !on)
        return err;
    for_each_child (i, f.sent & ~fan_done(&f))
        err = err ? err : f.ret[i];
    if (done)
        *done = fan_done(&f);
    fan_end(&f);
    return err;
}

/* An XATTROP that adds nothing makes the brick check its index entry, so it is sent in any case. */
int
ec_heal_clear_dirty(struct ec_heal *h, child_set of, unsigned word)
{
    bool is_whole = h->on == h->op.d->all && h->has == h->on;
    struct ec_change c[FAN_CHILDREN_MAX] = {0};

    for_each_child (i, of)
        c[i].dirty[word] = is_whole ? -h->copy[i].dirty[word] : 0;
    return ec_heal_add(h, of, h->op.inode, c, NULL);
}

/* ---- attributes ------------------------------------------------------------------------------ */

struct attributes {
    struct ec_heal *h;
    struct fan lists; /* GETXATTR of all names */
};

/* Returns the xattrs of child i, which has the object. */
static const struct dict *
xattrs_of(const struct attributes *a, unsigned i)
{
    return a->lists.stk[i]->reply.dict;
}

/* Xattrs that belong to each brick alone, or are no attributes. */
static bool
is_healed_xattr(const struct dict_pair *p)
{
    static const char *const spaces[] = {"user.", "trusted.", "security.", "system."};
    static const char *const own[] = {"trusted.ec.",
                                      "trusted.afr.",
                                      "trusted.gfid",
                                      "trusted.pgfid.",
                                      "trusted.glusterfs.volume-id",
                                      TIMES_KEY,
                                      "security.selinux",
                                      "trusted.glusterfs.selinux",
                                      "trusted.glusterfs.quota.size",
                                      "trusted.gfs.squota.size"};
    bool is = false;

    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        is |= strncmp(p->key, spaces[i], strlen(spaces[i])) == 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        is &= strncmp(p->key, own[i], strlen(own[i])) != 0;
    return is && (p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR);
}

static bool
xattrs_are_within(const struct dict *a, const struct dict *b)
{
    dict_for_each (p, a) {
        if (!is_healed_xattr(p))
            continue;
        const struct dict_pair *q = dict_find_text(b, p->key);
        if (!q || q->len != p->len || (p->len && memcmp(q->v.bytes, p->v.bytes, p->len) != 0))
            return false;
    }
    return true;
}

static bool
attributes_are_equal(const struct attributes *a, unsigned i, unsigned k)
{
    const struct iatt *x = &a->h->copy[i].stat, *y = &a->h->copy[k].stat;
    const struct dict *xx = xattrs_of(a, i), *yy = xattrs_of(a, k);

    return gfid_equal(&x->gfid, &y->gfid) && x->mode == y->mode && x->uid == y->uid && x->gid == y->gid &&
           xattrs_are_within(xx, yy) && xattrs_are_within(yy, xx);
}

static struct call_stack *
list_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    (void)unused;
    return ec_call(op, FOP_getxattr, i, is_spare, op->inode, NULL);
}

/* Returns 0 if each child that has the object has answered, or -errno. fan_end() is due in any case. */
static int
attributes_list(struct attributes *a)
{
    int err = ec_ask(&a->lists, &a->h->op, a->h->has, list_make, NULL);

    for_each_child (i, err ? 0 : a->h->has & ~a->lists.good)
        err = err ? err : a->lists.unread & CHILD(i) ? -ENOMEM : a->lists.ret[i];
    return err;
}

/* Returns the largest group of children of `left` with equal attributes. */
static child_set
attributes_group(const struct attributes *a, child_set left)
{
    child_set best = 0;

    while (left) {
        unsigned first = child_first(left);
        child_set same = 0;

        for_each_child (i, left)
            same |= attributes_are_equal(a, first, i) ? CHILD(i) : 0;
        left &= ~same;
        if (children_count(same) > children_count(best))
            best = same;
    }
    return best;
}

/* Returns the children of the highest metadata version, if they are K at least; else 0. */
static child_set
newest_attributes(const struct ec_heal *h)
{
    unsigned best = child_first(h->has);
    child_set newest = 0;

    for_each_child (i, h->has)
        best = h->copy[i].version[WORD_METADATA] > h->copy[best].version[WORD_METADATA] ? i : best;
    for_each_child (i, h->has)
        newest |= h->copy[i].version[WORD_METADATA] == h->copy[best].version[WORD_METADATA] ? CHILD(i) : 0;
    return children_count(newest) >= h->op.d->data ? newest : 0;
}

static int
set_xattrs_on(const struct attributes *a, unsigned sink, const struct dict *wanted)
{
    struct ec_heal *h = a->h;
    int ret = 0;

    dict_for_each (p, xattrs_of(a, sink)) {
        if (ret < 0 || !is_healed_xattr(p) || dict_find_text(wanted, p->key))
            continue;
        struct call_stack *stk = ec_heal_call(h, FOP_removexattr, sink);
        if (stk)
            stk->call.name = p->key;
        ret = ec_heal_send(h, sink, stk);
        ret = ret == -ENODATA ? 0 : ret;
    }
    struct call_stack *stk = ret < 0 ? NULL : ec_heal_call(h, FOP_setxattr, sink);
    struct dict *d = stk ? stk->call.dict = dict_new(&stk->arena) : NULL;
    int err = ret < 0 ? ret : d ? 0 : -ENOMEM;
    dict_for_each (p, wanted) {
        if (!err && is_healed_xattr(p))
            err = dict_set_text(d, p->key, DICT_PTR, p->v.bytes, p->len);
    }
    if (err || !d->count) {
        if (stk)
            call_stack_free(stk);
        return err;
    }
    ret = ec_heal_send(h, sink, stk);
    return ret < 0 ? ret : 0;
}

static int
set_attributes_on(const struct attributes *a, unsigned sink, unsigned source)
{
    struct call_stack *stk = ec_heal_call(a->h, FOP_setattr, sink);

    if (stk) {
        stk->call.stbuf = a->h->copy[source].stat;
        stk->call.valid = SETATTR_MODE | SETATTR_UID | SETATTR_GID;
    }
    int ret = ec_heal_send(a->h, sink, stk);
    return ret < 0 ? ret : set_xattrs_on(a, sink, xattrs_of(a, source));
}

static const struct dict_pair *
times_on(const struct attributes *a, unsigned i)
{
    const struct dict_pair *p = dict_find_text(xattrs_of(a, i), TIMES_KEY);

    return p && p->len == TIMES_BYTES && (p->type == DICT_PTR || p->type == DICT_UNTYPED) ? p : NULL;
}

static int
set_times_on(const struct attributes *a, unsigned i, const unsigned char *times)
{
    struct call_stack *stk = ec_heal_call(a->h, FOP_setxattr, i);
    struct dict *d = stk ? stk->call.dict = dict_new(&stk->arena) : NULL;
    int err = d ? dict_set_text(d, TIMES_KEY, DICT_PTR, times, TIMES_BYTES) : -ENOMEM;

    if (err) {
        if (stk)
            call_stack_free(stk);
        return err;
    }
    int ret = ec_heal_send(a->h, i, stk);
    return ret < 0 ? ret : 0;
}

/* Gives all children the latest of each time. */
static int
level_times(const struct attributes *a)
{
    unsigned char latest[TIMES_BYTES];
    bool has_any = false;
    int err = 0;

    for_each_child (i, a->h->has) {
        const struct dict_pair *p = times_on(a, i);

        if (p && !has_any)
            memcpy(latest, p->v.bytes, TIMES_BYTES);
        for (unsigned at = TIMES_AT; p && at < TIMES_BYTES; at += TIME_BYTES) {
            if (memcmp((const char *)p->v.bytes + at, latest + at, TIME_BYTES) > 0) /* big-endian */
                memcpy(latest + at, (const char *)p->v.bytes + at, TIME_BYTES);
        }
        has_any |= p != NULL;
    }
    for_each_child (i, has_any ? a->h->has : 0) {
        const struct dict_pair *p = times_on(a, i);
        int ret = p && memcmp(p->v.bytes, latest, TIMES_BYTES) == 0 ? 0 : set_times_on(a, i, latest);

        err = ret ? ret : err;
    }
    return err;
}

static int
heal_attributes(struct attributes *a)
{
    struct ec_heal *h = a->h;
    int err = attributes_list(a);

    if (err)
        return err;
    child_set good = attributes_group(a, h->has);
    if (children_count(good) < h->op.d->data)
        good = attributes_group(a, newest_attributes(h));
    if (!good)
        return -EIO;
    unsigned source = child_first(good);
    for_each_child (i, good)
        source = h->copy[i].version[WORD_METADATA] > h->copy[source].version[WORD_METADATA] ? i : source;
    struct ec_change c[FAN_CHILDREN_MAX] = {0};
    child_set raised = 0;
    for_each_child (i, h->has) {
        int ret = good & CHILD(i) ? 0 : set_attributes_on(a, i, source);

        c[i].version[WORD_METADATA] =
            h->copy[source].version[WORD_METADATA] - h->copy[i].version[WORD_METADATA];
        raised |= !ret && c[i].version[WORD_METADATA] ? CHILD(i) : 0;
        err = ret ? ret : err;
    }
    int add_err = ec_heal_add(h, raised, h->op.inode, c, NULL), times_err = level_times(a);
    err = err ? err : add_err ? add_err : times_err;
    return err ? err : ec_heal_clear_dirty(h, h->has, WORD_METADATA);
}

int
ec_heal_metadata(struct ec_heal *h)
{
    struct attributes a = {.h = h};
    int err = ec_heal_lock(h, h->op.inode);

    if (err)
        return err;
    fan_begin(&a.lists);
    err = ec_heal_see(h);
    if (!err)
        err = heal_attributes(&a);
    fan_end(&a.lists);
    ec_heal_unlock(h, h->op.inode);
    return err;
}

/* ---- an object ------------------------------------------------------------------------------- */

/* Returns whether all children have the same counters and no mark. */
static bool
is_whole(const struct ec_heal *h)
{
    const struct ec_copy *first = &h->copy[child_first(h->has)];
    bool is = h->has == h->op.d->all;

    for_each_child (i, h->has) {
        const struct ec_copy *c = &h->copy[i];

        is &= c->version[0] == first->version[0] && c->version[1] == first->version[1];
        is &= !c->dirty[0] && !c->dirty[1] && c->size == first->size && c->stat.size == first->stat.size;
    }
    return is;
}

uint32_t
ec_heal_type(struct disperse *d, struct inode *inode, bool *is_gone)
{
    uint64_t begun = heal_unit_begin(&d->throttle);
    struct ec_heal h;

    ec_heal_begin(&h, d, inode);
    (void)ec_heal_see(&h);
    *is_gone = h.lacks == d->all;
    uint32_t type = h.has ? h.copy[child_first(h.has)].stat.mode & S_IFMT : 0;
    if (type)
        inode_learn_type(inode, type);
    ec_heal_end(&h);
    heal_unit_end(&d->throttle, begun);
    return type;
}

int
ec_heal_object(struct disperse *d, struct inode *inode, enum ec_heal_how how, bool *was_whole)
{
    uint64_t begun = heal_unit_begin(&d->throttle);
    struct ec_heal h;

    ec_heal_begin(&h, d, inode);
    h.unit_ns = begun;
    h.compares_all = how == HEAL_DEAD_WRITE;
    h.is_patient = how != HEAL_FOR_CALL;
    int ret = 0, err = ec_heal_see(&h);
    *was_whole = !err && is_whole(&h);
    bool compares = !*was_whole || (how != HEAL_MARKED && how != HEAL_FOR_CALL);
    if (*was_whole)
        err = ec_heal_clear_dirty(&h, h.has, WORD_DATA);
    if (!err && (!*was_whole || h.compares_all) && S_ISREG(inode_type(inode)))
        err = ec_heal_data(&h);
    if (!err && compares && S_ISDIR(inode_type(inode))) {
        h.names = *was_whole && how == HEAL_DEAD ? name_sets_new(d->count) : NULL; /* NULL, too: no memory */
        err = ec_heal_entries(&h);
        name_sets_free(h.names);
    }
    if (compares && err != -EAGAIN && err != -ENOENT && err != -ENOTCONN)
        ret = ec_heal_metadata(&h);
    heal_unit_end(&d->throttle, h.unit_ns);
    ec_heal_end(&h);
    return err ? err : ret;
}

/* ---- background heals ------------------------------------------------------------------------ */

struct ec_heal_job {
    struct worker_job job;
    struct disperse *d;
    struct inode *inode;
};

static void
heal_job_end(struct ec_heal_job *j)
{
    struct disperse *d = j->d;
    struct graph *graph = d->xl->graph;
    struct ec_inode *ei = inode_ctx(j->inode, d->xl);

    atomic_store(&ei->is_in_heal, false);
    inode_unref(j->inode);
    free(j);
    pthread_mutex_lock(&d->lock);
    if (--d->heals_running == 0)
        pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    graph_unpin(graph);
}

static void
heal_job_go(void *arg)
{
    struct ec_heal_job *j = arg;
    bool was_whole;
    int err = ec_heal_object(j->d, j->inode, HEAL_MARKED, &was_whole);

    /* ENOENT: the object's folder has to be healed first */
    if (err && err != -EAGAIN && err != -ENOTCONN && err != -ENOENT)
        log_event(LOG_WARNING, j->d->xl, "disperse-heal-failed", "%s is not healed: %s",
                  GFID(&j->inode->gfid), strerror(-err));
    heal_job_end(j);
}

static void
heal_job_start(struct worker_job *job)
{
    struct ec_heal_job *j = caa_container_of(job, struct ec_heal_job, job);

    if (coro_run(heal_job_go, j))
        heal_job_end(j);
}

void
ec_heal_soon(struct disperse *d, struct inode *inode)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    struct ec_inode *ei = ec_inode(d, inode);

    if (!ei || !conf->heal_count || children_count(atomic_load(&d->up)) <= d->data ||
        atomic_load(&d->is_stopping) || atomic_exchange(&ei->is_in_heal, true))
        return;
    struct ec_heal_job *j = calloc(1, sizeof *j);
    bool runs = j && graph_pin(d->xl->graph);

    pthread_mutex_lock(&d->lock);
    bool has_room = d->heals_running < (unsigned)conf->heal_count;
    d->heals_running += runs && has_room;
    pthread_mutex_unlock(&d->lock);
    if (!runs || !has_room) {
        if (runs)
            graph_unpin(d->xl->graph);
        free(j);
        atomic_store(&ei->is_in_heal, false);
        return;
    }
    j->job.run = heal_job_start;
    j->d = d;
    j->inode = inode_ref(inode);
    worker_post(&j->job);
}
