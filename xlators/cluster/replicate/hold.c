/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The lock on a file's data, with its mark, shared by this mount's writers and kept for a second after the
 * last of them:
 *
 *      FREE --first writer--> TAKING: lock the whole file, dirty +1 --> HELD --------> ENDING --> FREE
 *                             and +1 about missing children             writers come   FSYNC if needed,
 *                                                                       and go         dirty -1, marks,
 *                                                                                      unlock
 *
 * Writers whose ranges overlap follow one another, so that all children see them in the same order. What ends
 * it: a second without a writer, the close of a file, a change that does not wait (truncate), a child that
 * failed, came or went, another client that waits for the lock, the end of the mount. Only what is wrong is
 * marked: a hold whose writers have all succeeded takes its dirty mark back and leaves nothing.
 *
 * Children that are missing when the hold is taken are accused (pending xattr) with the dirty mark, by copies
 * that are a quorum and of which one is good. So after the death of the mount, or of a brick, at any moment
 * the missing ones are healed from the others, however long each copy is: writes are answered long before
 * the hold ends, and from dirty marks alone a healer would take the longest copy. Of data, dirty beside an
 * accusation does no harm: healers then also compare the copies that nobody accuses, among which a write may
 * be half done. A child that goes during the hold is accused before the write that missed it is answered; the
 * dirty mark on its own disk says nothing against that. If nothing was changed, the accusations are taken
 * back with the dirty mark.
 *
 * Dirty is taken back only when what was written is on stable storage on all children, for then they are
 * promised to be equal: so FSYNC comes before, but for writes that were synchronous, and for those that made
 * the file longer on every child: of such a file healers compare the sizes. Bricks may do writes that follow
 * one another in another order, and say of each that it was not at the end; so many writes count as one
 * append if each began where the one before it ends, and no child had any of it before the first it did.
 *
 * The lock on all names of a folder is kept by the same means, without marks, when this mount changes names
 * there one after the other (entry.c): for NAMES_KEPT_MS after the last one, five times that in all, since
 * bricks tell nobody that another client waits for it. Of those that change the same name one follows the
 * other.
 *
 * So is the lock on an object's attributes (metadata.c): whoever unpacks an archive sets times, owner and
 * mode of each file, one after the other. It ends with the close of the file, too. Changes of attributes all
 * follow one another. Where a child is missing nothing is shared: the marks are told before the answer.
 *
 * Other clients wait for the lock meanwhile, a second at most; if the brick tells us of one that waits
 * (replicate.c), only until the writers that are in have ended. What they read is never behind what a writer
 * of this mount was told is done. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/replicate/replicate-internal.h"

enum { NAMES_KEPT_MS = 10, KEPT_TIMES_MAX = 5, STACK_WAIT_MS = 100 };

static void timer_fired(struct timer *t);
static void job_run(struct worker_job *job);

void
hold_init(struct hold *h, struct repl_inode *ri, bool is_of_attributes)
{
    h->ri = ri;
    h->is_of_attributes = is_of_attributes;
    CDS_INIT_LIST_HEAD(&h->writers);
    CDS_INIT_LIST_HEAD(&h->waiting);
    CDS_INIT_LIST_HEAD(&h->leaving);
    timer_init(&h->timer, timer_fired);
    h->job.run = job_run;
}

static void
resume_all(struct cds_list_head *list)
{
    while (!cds_list_empty(list)) {
        struct writer *w = cds_list_first_entry(list, struct writer, link);

        cds_list_del(&w->link);
        coroutine_resume(w->self); /* w lies on its stack */
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool
fill_sync(struct call_stack *stk, struct inode *inode)
{
    if (!stk->call.fd)
        stk->call.fd = fd_new_anonymous(inode, NULL);
    stk->call.flags = 1; /* data only */
    return stk->call.fd && call_xdata(stk) && !dict_set_uint(stk->call.xdata, DICT_KEY_BATCH_FSYNC, 1) &&
           !dict_set_str(stk->call.xdata, DICT_KEY_INTERNAL_FOP, "yes");
}

static struct call_stack *
sync_make(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_call(op, FOP_fsync, i);

    (void)unused;
    if (!stk || fill_sync(stk, op->inode))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* FSYNC where it is owed; who fails is accused. */
static void
sync_data(struct op *op, struct hold *h)
{
    struct fan f;

    fan_insist(&f, op, h->locked & ~h->failed, sync_make, NULL);
    h->failed |= f.sent & ~fan_done(&f);
    fan_end(&f);
}

static int
marks_after(struct op *op, struct hold *h)
{
    child_set good = h->locked & ~h->failed;
    struct marks m = {.inode = h->inode, .file = h->file};
    struct fan f;

    if (!good)
        return -ENOTCONN;
    if (h->has_changed && !(op_has_quorum(op, good) && good & h->readable))
        return -ENOTCONN; /* who is left may not accuse the others: both dirty marks stay */
    m.accused = h->has_changed ? op->r->all & ~good & ~h->accused : h->accused;
    m.about.count[CHANGE_DATA] = h->has_changed ? 1 : (uint32_t)-1;
    m.dirty.count[CHANGE_DATA] = (uint32_t)-1;
    if (h->has_changed)
        view_drop(op->r, h->inode, CHANGE_DATA, m.accused);
    fan_insist(&f, op, good, marks_make, &m);
    int err = op_has_quorum(op, fan_done(&f)) ? 0 : -ENOTCONN;
    if (err && fan_errno(&f))
        err = -fan_errno(&f);
    fan_end(&f);
    return err;
}

static bool
is_of_data(const struct hold *h)
{
    return !h->is_of_attributes && !S_ISDIR(h->inode->type);
}

/* After the last writer. */
static uint64_t
kept_ms(const struct hold *h)
{
    const struct replicate_conf *conf = xlator_conf(h->ri->r->xl);

    if (is_of_data(h))
        return conf->eager_lock ? (uint64_t)conf->post_op_delay_s * 1000 : 0;
    return h->is_of_attributes ? (uint64_t)conf->metadata_kept_ms : NAMES_KEPT_MS;
}

/* A folder's is on its names. */
static struct lock_entity
entity_of(const struct hold *h)
{
    if (h->is_of_attributes)
        return (struct lock_entity){.inode = h->inode, .start = METADATA_START};
    return (struct lock_entity){.is_entry = !is_of_data(h), .inode = h->inode};
}

/* The arbiter keeps no bytes. */
static bool
is_one_append(const struct replicate *r, const struct hold *h)
{
    child_set keepers = h->locked & ~h->failed;

    if (r->arbiter >= 0)
        keepers &= ~CHILD(r->arbiter);
    return h->is_one_append && !(keepers & (h->had_less | ~h->had_none));
}

static int
mark_and_unlock(struct replicate *r, struct hold *h)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct op op = {.r = r, .inode = h->inode, .file = h->file, .caller = h->caller};
    struct lock_entity e = entity_of(h);

    if (h->is_unsynced && !is_one_append(r, h) && conf->ensure_durability)
        sync_data(&op, h);
    int err = is_of_data(h) ? marks_after(&op, h) : 0;
    locks_drop_one(&op, &e, h->locked);
    return err;
}

/* ---- who may go on, under the lock ----------------------------------------------------------- */

static bool
overlaps(const struct hold *h, const struct writer *w)
{
    struct writer *other;

    cds_list_for_each_entry(other, &h->writers, link)
    {
        if (w->start < other->end && other->start < w->end)
            return true;
    }
    return false;
}

static bool
is_over(const struct replicate *r, const struct hold *h)
{
    return h->must_end || h->generation != atomic_load(&r->generation) || atomic_load(&r->is_stopping);
}

/* All that is known to be written is on disks. */
static void
forget_writes(struct hold *h)
{
    h->is_unsynced = false;
    h->is_one_append = true;
    h->append_start = h->append_end = 0;
    h->had_none = h->had_less = 0;
}

static void
let_in(struct hold *h, struct writer *w)
{
    if (w->is_write && !h->append_end)
        h->append_start = h->append_end = w->start;
    if (w->is_write) {
        h->is_one_append &= w->start == h->append_end;
        h->append_end = w->end;
    }
    w->append_start = h->append_start;
    w->children = h->locked & ~h->failed;
    w->readable = h->readable;
    cds_list_add_tail(&w->link, &h->writers);
}

/* Moves to *go those that wait no more, in order. One that finds the hold free has to take it. A writer
 * that is let in is in the list of writers, so *go has it by its place in an array: no more than that at a
 * time. */
enum { GRANTS_MAX = 32 };
struct grants {
    unsigned count;
    struct coroutine *self[GRANTS_MAX];
};

static void
grant(struct hold *h, struct grants *g)
{
    while (!cds_list_empty(&h->waiting) && g->count < GRANTS_MAX) {
        struct writer *w = cds_list_first_entry(&h->waiting, struct writer, link);
        bool takes = h->state == HOLD_FREE;

        if (!takes && (h->state != HOLD_HELD || is_over(h->ri->r, h) || overlaps(h, w)))
            return;
        cds_list_del(&w->link);
        g->self[g->count++] = w->self;
        if (takes && w->only_ends) {
            w->result = -EALREADY;
            continue;
        }
        w->takes = takes;
        if (takes) {
            h->state = HOLD_TAKING;
            h->must_end = false;
        } else {
            let_in(h, w);
        }
    }
}

/* True: `me`, who runs already, is one of them. */
static bool
resume_granted(const struct grants *g, const struct coroutine *me)
{
    bool has_me = false;

    for (unsigned i = 0; i < g->count; i++) {
        if (g->self[i] == me)
            has_me = true;
        else
            coroutine_resume(g->self[i]);
    }
    return has_me;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void
list_hold(struct replicate *r, struct hold *h)
{
    pthread_mutex_lock(&r->lock);
    cds_list_add(&h->link, &r->holds);
    r->hold_count++;
    pthread_mutex_unlock(&r->lock);
}

/* From now on nothing of it is used any more. */
static void
give_up(struct hold *h, int err)
{
    struct repl_inode *ri = h->ri;
    struct replicate *r = ri->r;
    struct graph *graph = r->xl->graph;
    struct inode *inode = h->inode;
    struct repl_fd *file = h->file;
    bool is_pinned = h->is_pinned;
    struct grants g = {0};
    struct writer *w;
    CDS_LIST_HEAD(leaving);

    pthread_mutex_lock(&r->lock);
    cds_list_del(&h->link);
    if (--r->hold_count == 0)
        pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&ri->lock);
    h->state = HOLD_FREE;
    h->file = NULL;
    h->inode = NULL;
    cds_list_splice(&h->leaving, &leaving);
    CDS_INIT_LIST_HEAD(&h->leaving);
    cds_list_for_each_entry(w, &leaving, link) w->result = err;
    grant(h, &g);
    pthread_mutex_unlock(&ri->lock);
    resume_all(&leaving);
    resume_granted(&g, NULL);
    if (file)
        repl_fd_unref(file);
    inode_unref(inode); /* ri may be gone */
    if (is_pinned)
        graph_unpin(graph);
}

/* Is what this hold has locked good enough to write to? */
static int
check_marked(const struct op *op, struct hold *h, const struct fan *f)
{
    struct replica replicas[REPLICAS_MAX];
    child_set good = h->locked & ~h->failed;

    if (!op_has_quorum(op, good))
        return fan_errno(f) ? -fan_errno(f) : -ENOTCONN;
    marks_read(op->r, f, replicas);
    good &= ~changelog_accused(replicas, op->r->count, CHANGE_DATA);
    /* The arbiter would be the only witness of what is written. */
    if (op->r->arbiter >= 0 && good & CHILD(op->r->arbiter) && children_count(good) < 2)
        return -ENOTCONN;
    h->readable = op->r->arbiter >= 0 ? good & ~CHILD(op->r->arbiter) : good;
    if (op->readable)
        h->readable &= op->readable;
    return h->readable ? 0 : -EIO;
}

/* May those that have given the lock accuse the others? `err`: why these have not. */
static int
check_locked(const struct op *op, const struct hold *h, int err)
{
    if (!op_has_quorum(op, h->locked))
        return err ? -err : -ENOTCONN;
    return is_of_data(h) && op->readable && !(h->locked & op->readable) ? -EIO : 0;
}

static int
lock_and_mark(struct op *op, struct hold *h)
{
    struct lock_entity e = entity_of(h);
    struct marks m = {.inode = h->inode, .file = h->file, .dirty.count[CHANGE_DATA] = 1};
    child_set up = atomic_load(&op->r->up);
    struct fan f;
    int err = 0;

    if (!op_has_quorum(op, up))
        return -ENOTCONN;
    h->locked = locks_take(op, &e, 1, up, &err);
    if (!h->locked)
        return err ? -err : -ENOTCONN;
    err = check_locked(op, h, err);
    if (err || !is_of_data(h)) {
        h->failed = err ? h->locked : 0; /* no mark is to be taken back */
        return err;
    }
    m.accused = op->r->all & ~h->locked;
    m.about.count[CHANGE_DATA] = 1;
    if (fan_ask(&f, op, h->locked, marks_make, &m)) {
        h->failed = h->locked;
        return -ENOMEM;
    }
    h->accused = m.accused;
    view_drop(op->r, h->inode, CHANGE_DATA, m.accused);
    h->failed = f.sent & ~fan_done(&f);
    err = check_marked(op, h, &f);
    fan_end(&f);
    return err;
}

/* In the coroutine of the first writer. */
static int
take(struct op *op, struct inode *inode, struct hold *h, struct writer *w)
{
    struct replicate *r = op->r;
    uint64_t owner = (uint64_t)(uintptr_t)h;
    struct grants g = {0};

    h->has_changed = false;
    forget_writes(h);
    h->locked = h->failed = h->accused = h->readable = 0;
    h->generation = atomic_load(&r->generation);
    h->inode = inode_ref(inode);
    h->until_ns = clock_mono_ns() + kept_ms(h) * KEPT_TIMES_MAX * UINT64_C(1000000);
    h->file = op->file ? repl_fd_ref(op->file) : NULL;
    h->is_pinned = graph_pin(r->xl->graph);
    memcpy(h->owner, &owner, sizeof owner);
    h->caller = op->caller;
    h->caller.lk_owner = (struct lk_owner){.len = sizeof h->owner, .bytes = h->owner};
    op->caller.lk_owner = h->caller.lk_owner;
    list_hold(r, h);
    int err = lock_and_mark(op, h);

    if (err) {
        if (h->locked)
            (void)mark_and_unlock(r, h); /* takes the mark back: nothing was changed */
        give_up(h, err);
        return err;
    }
    pthread_mutex_lock(&h->ri->lock);
    h->state = HOLD_HELD;
    let_in(h, w);
    grant(h, &g);
    pthread_mutex_unlock(&h->ri->lock);
    resume_granted(&g, NULL);
    return 0;
}

/* Under the lock: nobody writes, and nobody shall any more. */
static void
end_soon(struct hold *h)
{
    h->state = HOLD_ENDING;
    worker_post(&h->job);
}

bool
hold_is_taken(struct hold *h)
{
    pthread_mutex_lock(&h->ri->lock);
    bool is_taken = h->state != HOLD_FREE;

    pthread_mutex_unlock(&h->ri->lock);
    return is_taken;
}

int
hold_join(struct op *op, struct inode *inode, struct hold *h, struct writer *w)
{
    struct repl_inode *ri = h->ri;
    struct grants g = {0};

    w->self = coroutine_self();
    w->takes = false;
    w->result = 0;
    pthread_mutex_lock(&ri->lock);
    cds_list_add_tail(&w->link, &h->waiting);
    grant(h, &g);
    if (h->state == HOLD_HELD && cds_list_empty(&h->writers) && is_over(ri->r, h))
        end_soon(h);
    pthread_mutex_unlock(&ri->lock);
    if (!resume_granted(&g, w->self))
        coroutine_yield();
    if (w->takes)
        return take(op, inode, h, w);
    return w->result;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void
note(struct replicate *r, struct hold *h, const struct hold_outcome *o)
{
    h->failed |= o->failed;
    h->has_changed |= o->has_changed;
    if (o->was_synced && cds_list_empty(&h->writers))
        forget_writes(h);
    h->is_unsynced |= o->is_unsynced;
    h->is_one_append &= !o->breaks_append;
    h->had_none |= o->had_none;
    h->had_less |= o->had_less;
    h->must_end |= !o->may_wait || o->failed || is_over(r, h) || !h->is_pinned;
    h->must_end |= !is_of_data(h) && clock_mono_ns() >= h->until_ns;
}

static int
finish(struct hold *h)
{
    int err = mark_and_unlock(h->ri->r, h);

    give_up(h, err);
    return err;
}

int
hold_leave(struct op *op, struct hold *h, struct writer *w, const struct hold_outcome *o, bool waits)
{
    struct repl_inode *ri = h->ri;
    uint64_t delay_ms = kept_ms(h);
    struct grants g = {0};
    bool ends = false;

    pthread_mutex_lock(&ri->lock);
    cds_list_del(&w->link);
    note(op->r, h, o);
    grant(h, &g);
    if (cds_list_empty(&h->writers)) {
        ends = h->must_end || !delay_ms;
        if (ends)
            h->state = HOLD_ENDING;
        else
            timer_start(&h->timer, delay_ms);
    } else if (waits) {
        cds_list_add_tail(&w->link, &h->leaving);
    }
    bool must_sleep = waits && !ends && !cds_list_empty(&h->writers);
    pthread_mutex_unlock(&ri->lock);
    resume_granted(&g, NULL);
    if (ends)
        return finish(h);
    if (must_sleep)
        coroutine_yield();
    return w->result;
}

/* ---- ended by others ------------------------------------------------------------------------- */

void
hold_hurry(struct hold *h)
{
    pthread_mutex_lock(&h->ri->lock);
    if (h->state == HOLD_HELD || h->state == HOLD_TAKING)
        h->must_end = true;
    if (h->state == HOLD_HELD && cds_list_empty(&h->writers))
        end_soon(h);
    pthread_mutex_unlock(&h->ri->lock);
}

void
hold_end(struct op *op, struct inode *inode, struct hold *h)
{
    struct writer all = {.end = UINT64_MAX, .only_ends = true};

    if (hold_is_taken(h) && !hold_join(op, inode, h, &all))
        (void)hold_leave(op, h, &all, &(struct hold_outcome){.may_wait = false}, true);
}

static void
timer_fired(struct timer *t)
{
    struct hold *h = caa_container_of(t, struct hold, timer);

    pthread_mutex_lock(&h->ri->lock);
    if (h->state == HOLD_HELD && cds_list_empty(&h->writers))
        end_soon(h);
    pthread_mutex_unlock(&h->ri->lock);
}

static void
finish_go(void *arg)
{
    struct hold *h = arg;

    int err = finish(h);
    if (err) /* nobody is told any more: the dirty marks stay, and healers compare */
        log_event(LOG_WARNING, NULL, "replicate-marks-stay", "a file's marks could not be taken back: %s",
                  strerror(-err));
}

static void
job_run(struct worker_job *job)
{
    struct hold *h = caa_container_of(job, struct hold, job);
    struct repl_inode *ri = h->ri;
    int err = op_run(finish_go, h);

    if (!err)
        return;
    log_event(LOG_WARNING, ri->r->xl, "replicate-hold-waits", "a file's lock cannot be given back yet: %s",
              strerror(-err));
    pthread_mutex_lock(&ri->lock);
    h->state = HOLD_HELD; /* and must_end: whoever comes waits for it */
    timer_start(&h->timer, STACK_WAIT_MS);
    pthread_mutex_unlock(&ri->lock);
}

void
holds_stop(struct replicate *r)
{
    struct hold *h;

    atomic_store(&r->is_stopping, true);
    pthread_mutex_lock(&r->lock);
    cds_list_for_each_entry(h, &r->holds, link) hold_hurry(h);
    while (r->hold_count)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}
