/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A hold: the lock on a file's data, with its dirty mark, shared by this mount's writers and kept for a
 * second after the last write:
 *
 *      FREE --first writer--> TAKING: lock the whole file, dirty +1 --> HELD --------> ENDING --> FREE
 *                             and +1 about missing children             writers come   FSYNC if needed,
 *                                                                       and go         dirty -1, marks,
 *                                                                                      unlock
 *
 * Writers whose ranges overlap follow one another, so that all children apply the writes in the same order.
 * A hold ends after a second without a writer, at the close of a file, at a change that does not wait
 * (data.c), when a child fails, comes up or goes down, when another client waits for the lock, and at the
 * end of the mount. Only failures leave marks: a hold whose writers have all succeeded clears its dirty
 * mark and leaves nothing.
 *
 * Children that are missing when the hold is taken are accused (pending xattr) together with the dirty
 * mark, by copies that are a quorum and include a good copy. So after the death of the mount or of a brick,
 * at any moment, the missing children are healed from the other copies, even if the copies differ in size:
 * writes are answered long before the hold ends, and from dirty marks alone a healer would take the longest
 * copy. A child that gets the lock and fails in the dirty mark cannot be accused with that mark: then the
 * hold ends with its first writer, and its marks after, which accuse the child, come before the reply. For
 * data, a dirty mark beside an accusation makes healers also compare the unaccused copies, because a write
 * may be on some of these only. With one copy of the data left there is nothing to compare, and no dirty
 * mark: stock's daemon never heals a file that is dirty and shorter on that copy than on the accused one, if
 * the volume has an arbiter. A child that goes down during the hold is accused before
 * the write that it missed is answered; the dirty mark on that child's disk does not contradict the
 * accusation. If the hold changed nothing, the accusations are cleared with the dirty mark.
 *
 * The dirty mark is cleared only when all written bytes are on stable storage on all children, because a
 * clear mark promises equal copies. So FSYNC comes first, except after synchronous writes and after writes
 * that extended the file on every child: healers compare the sizes of such a file. Bricks may run
 * consecutive writes in another order, and then report of each that it was not at the end of the file. So
 * many writes count as one append if each began at the end of the previous one, and no child had any of the
 * bytes before the first write.
 *
 * Where all children are bricks of kilnd, one message to each child takes the lock and sets the mark, and
 * another clears the mark and unlocks (BRICK_SEQUENCES). Both only happen with no child missing or failed;
 * otherwise each step waits for the answers of the step before. Lock and mark of a file that is expected
 * to be written go behind the CREATE or OPEN, in its message (new-files.c). If the file is closed already,
 * its RELEASE goes behind the unlock. A death of any side between any two messages leaves no new state:
 *
 *      create, lock     the new file has a gfid of its own, so lock and mark of a CREATE that opened another
 *      and mark         file find no object. Writes begin when all children have answered. A mount that dies
 *                       between two of the messages leaves one child with a marked file and another child
 *                       without the file. So does a mount that dies between the UNLINKs of a file that it
 *                       has just written; LOOKUP heals the name, and healers clear the mark of a file whose
 *                       copies are equal. A child that fails in the middle has a file without a mark, as
 *                       after a death between two separate marks; the others accuse a child without the
 *                       file before the reply (entry.c), and give lock and mark back
 *      open, lock       OPEN changes nothing, so the state is that of "lock and mark". The session of a mount
 *      and mark         that dies ends with its fds. If a child opens the file and refuses the lock, the file
 *                       is open there for later writes, and the marks and locks of all are taken back before
 *                       the reply
 *      lock and mark    a child marks a locked copy only. Writes begin when all children have answered,
 *                       so all marks are set before any copy is written. If a child fails, or another client
 *                       has its lock, the marks are taken back, then the locks released, and all begins anew
 *                       in separate steps. Some children may be marked, and nothing written, at any moment; a
 *                       mount that dies after separate locks and between two separate marks leaves the same:
 *                       healers compare equal copies and clear the mark
 *      mark and unlock  after all writes, and FSYNC, are answered by all children. One child may be unmarked
 *                       and unlocked while another is still marked and locked. Another client does not change
 *                       the file before it has that lock, too, or counts that child as missing and accuses
 *                       it. A mount that dies between two separate clearings of the mark leaves the same,
 *                       because its locks end with it. A child that fails here keeps its mark, as with
 *                       separate steps
 *      ... and close    no call about the fd follows (repl_fd_is_unused()), so any of the bricks may have
 *                       closed the file. A child that did not unmark or unlock is asked again by the gfid
 *
 * The lock on all names of a folder is kept by the same means, without marks, when this mount changes
 * several names there in a row (entry.c): for names_kept_ms() after the last change, and for five times that
 * in total. Bricks of kilnd report that another client waits for this lock, so the lock is kept for a second,
 * however slowly a busy machine makes the changes follow one another. Other bricks do not report that, and
 * the lock is kept for 10 ms at most. Changes of the same name follow one another.
 *
 * The lock on an object's attributes (metadata.c) is kept in the same way, because programs that unpack
 * archives set times, owner and mode of each file in a row. This hold, too, ends at the close of the file.
 * Changes of attributes always follow one another. Where a child is missing nothing is shared: the marks
 * are set before the reply.
 *
 * Meanwhile other clients wait for the lock, a second at most. If the brick reports a waiting client
 * (replicate.c), the hold ends after the admitted writers. Data that other clients read is never older than
 * a write that this mount has reported as done. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/replicate/replicate-internal.h"

enum { NAMES_KEPT_UNNOTICED_MS = 10, KEPT_TIMES_MAX = 5, STACK_WAIT_MS = 100 };

static void hold_timer_fired(struct timer *t);
static void hold_job_run(struct worker_job *job);

void
hold_init(struct hold *h, struct repl_inode *ri, bool is_of_attributes)
{
    h->ri = ri;
    h->is_of_attributes = is_of_attributes;
    CDS_INIT_LIST_HEAD(&h->writers);
    CDS_INIT_LIST_HEAD(&h->waiting);
    CDS_INIT_LIST_HEAD(&h->leaving);
    timer_init(&h->timer, hold_timer_fired);
    h->job.run = hold_job_run;
}

static void
resume_writers(struct cds_list_head *list)
{
    while (!cds_list_empty(list)) {
        struct writer *w = cds_list_first_entry(list, struct writer, link);

        cds_list_del(&w->link);
        coroutine_resume(w->self); /* w lies on this coroutine's stack */
    }
}

/* ---- ending a hold --------------------------------------------------------------------------- */

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

/* Sends FSYNC where it is needed. A child that fails is accused. */
static void
sync_data(struct op *op, struct hold *h)
{
    struct fan f;

    fan_insist(&f, op, copies_left(&h->copies), sync_make, NULL);
    h->copies.failed |= f.sent & ~fan_done(&f);
    fan_end(&f);
}

/* If too few or only stale copies are left, these must not accuse others: their dirty marks stay. */
static int
hold_marks_after(struct op *op, struct hold *h)
{
    child_set left = copies_left(&h->copies);
    struct marks m = {.inode = h->inode, .file = h->file};
    struct fan f;

    if (!left || (h->has_changed && !copies_suffice(op, &h->copies, left)))
        return copies_errno(&h->copies);
    copies_accuse_after(op->r, &h->copies, h->has_changed, &m);
    m.dirty.count[CHANGE_DATA] = h->is_dirty ? (uint32_t)-1 : 0;
    int err = copies_mark_after(op, &h->copies, &m, h->has_changed, &f);
    fan_end(&f);
    return err;
}

static bool
is_of_data(const struct hold *h)
{
    return !h->is_of_attributes && !S_ISDIR(h->inode->type);
}

uint64_t
names_kept_ms(const struct replicate *r)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    bool is_noticed = xlator_brick_facts(r->xl) & BRICK_NAMES_NOTICES;

    return is_noticed || conf->names_kept_ms < NAMES_KEPT_UNNOTICED_MS ? (uint64_t)conf->names_kept_ms
                                                                       : NAMES_KEPT_UNNOTICED_MS;
}

/* Returns how long the lock is kept after the last writer. */
static uint64_t
kept_ms(const struct hold *h)
{
    const struct replicate_conf *conf = xlator_conf(h->ri->r->xl);

    if (is_of_data(h))
        return conf->eager_lock ? (uint64_t)conf->post_op_delay_s * 1000 : 0;
    return h->is_of_attributes ? (uint64_t)conf->metadata_kept_ms : names_kept_ms(h->ri->r);
}

/* Returns the range or names that the hold locks. For a folder, that is all names. */
static struct lock_entity
entity_of(const struct hold *h)
{
    if (h->is_of_attributes)
        return (struct lock_entity){.inode = h->inode, .start = METADATA_START};
    return (struct lock_entity){.is_entry = !is_of_data(h), .inode = h->inode};
}

/* Returns whether all unsynced writes are one append on every child. The arbiter stores no bytes. */
static bool
is_one_append(const struct replicate *r, const struct hold *h)
{
    child_set keepers = copies_left(&h->copies);

    if (r->arbiter >= 0)
        keepers &= ~CHILD(r->arbiter);
    return h->is_one_append && !(keepers & (h->had_less | ~h->had_none));
}

/* Returns whether the marks after are the same on all children, and need no word of the others first. */
static bool
ends_alike(const struct replicate *r, const struct hold *h)
{
    return is_of_data(h) && h->copies.locked == r->all && !h->copies.failed && !h->copies.accused &&
           fan_takes_joined(r->xl, h->copies.locked);
}

/* Clears the dirty mark and unlocks, in one message to each child. A file that is closed here is closed there
 * with the same message. */
static int
unmark_joined(struct op *op, const struct hold *h, const struct lock_entity *e)
{
    struct marks m = {.inode = h->inode, .file = h->file, .dirty.count[CHANGE_DATA] = (uint32_t)-1};
    struct fan mark, unlock;

    bool closes = h->file && repl_fd_is_unused(h->file);

    fan_begin(&mark);
    fan_begin(&unlock);
    for_each_child (i, h->copies.locked) {
        const struct fan_step steps[] = {{&mark, marks_call(op, i, &m), false},
                                         {&unlock, lock_drop_make(op, i, e), true}};

        if (steps[1].stk)
            steps[1].stk->closes_fd = closes;
        fan_wind_joined(steps, 2, op->r->xl, i);
    }
    fan_wait(&mark);
    fan_wait(&unlock);
    child_set done = fan_done(&mark), unmarked = mark.unsent, left = h->copies.locked & ~fan_done(&unlock);
    int err = fan_errno(&mark);

    fan_end(&mark);
    fan_end(&unlock);
    if (closes) /* the bricks may have closed their fds */
        op->file = m.file = NULL;
    if (unmarked) { /* there was no memory: these calls wait for it */
        fan_insist(&mark, op, unmarked, marks_make, &m);
        done |= fan_done(&mark);
        err = fan_errno(&mark);
        fan_end(&mark);
    }
    if (left) /* not sent, or refused by a brick that has been replaced by another program meanwhile */
        locks_drop_one(op, e, left);
    return op_has_quorum(op, done) ? 0 : err ? -err : -ENOTCONN;
}

static int
mark_and_unlock(struct replicate *r, struct hold *h)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct op op = {.r = r, .inode = h->inode, .file = h->file, .caller = h->caller};
    struct lock_entity e = entity_of(h);

    if (h->is_unsynced && !is_one_append(r, h) && conf->ensure_durability)
        sync_data(&op, h);
    if (ends_alike(r, h))
        return unmark_joined(&op, h, &e);
    int err = is_of_data(h) ? hold_marks_after(&op, h) : 0;
    locks_drop_one(&op, &e, h->copies.locked);
    return err;
}

/* ---- admitting writers, under the inode's lock ----------------------------------------------- */

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
must_hold_end(const struct replicate *r, const struct hold *h)
{
    return h->must_end || h->generation != atomic_load(&r->generation) || atomic_load(&r->is_stopping);
}

/* Resets the record of unsynced writes, after all known writes have reached the disks. */
static void
forget_writes(struct hold *h)
{
    h->is_unsynced = false;
    h->is_one_append = true;
    h->append_start = h->append_end = 0;
    h->had_none = h->had_less = 0;
}

static void
admit_writer(struct hold *h, struct writer *w)
{
    if (w->is_write && !h->append_end)
        h->append_start = h->append_end = w->start;
    if (w->is_write) {
        h->is_one_append &= w->start == h->append_end;
        h->append_end = w->end;
    }
    w->append_start = h->append_start;
    w->has_fd = h->file && !(h->copies.locked & ~repl_fd_open(h->file));
    w->children = copies_left(&h->copies);
    w->unrecorded = h->copies.locked & h->copies.failed;
    w->readable = h->copies.readable;
    cds_list_add_tail(&w->link, &h->writers);
}

/* Moves writers that need not wait any more to *g, in order. If the hold is free, the first one must take
 * it. An admitted writer is linked in the list of writers, so *g records coroutines in an array, and one
 * pass admits at most GRANTS_MAX. */
enum { GRANTS_MAX = 32 };
struct grants {
    unsigned count;
    struct coroutine *self[GRANTS_MAX];
};

static void
admit_waiting(struct hold *h, struct grants *g)
{
    while (!cds_list_empty(&h->waiting) && g->count < GRANTS_MAX) {
        struct writer *w = cds_list_first_entry(&h->waiting, struct writer, link);
        bool takes = h->state == HOLD_FREE;

        if (!takes && (h->state != HOLD_HELD || must_hold_end(h->ri->r, h) || overlaps(h, w)))
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
            admit_writer(h, w);
        }
    }
}

/* Resumes the admitted writers. Returns true if `me`, which is running, is among them. */
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

/* ---- taking the lock ------------------------------------------------------------------------- */

static void
list_hold(struct replicate *r, struct hold *h)
{
    pthread_mutex_lock(&r->lock);
    cds_list_add(&h->link, &r->holds);
    r->hold_count++;
    pthread_mutex_unlock(&r->lock);
}

/* Marks the hold as free and wakes writers that wait. The hold's fields must not be used afterwards. */
static void
hold_set_free(struct hold *h, int err)
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
    admit_waiting(h, &g);
    pthread_mutex_unlock(&ri->lock);
    resume_writers(&leaving);
    resume_granted(&g, NULL);
    if (file)
        repl_fd_unref(file);
    inode_unref(inode); /* this may free ri */
    if (is_pinned)
        graph_unpin(graph);
}

/* Checks whether the locked and marked copies are good enough to write to, by the counters in the replies to
 * the marks. */
static int
check_marked(const struct op *op, struct copies *c, const struct fan *f)
{
    struct replica replicas[REPLICAS_MAX];
    child_set left = copies_left(c), arbiter = op->r->arbiter >= 0 ? CHILD(op->r->arbiter) : 0;

    if (!op_has_quorum(op, left))
        return copies_errno(c);
    marks_read(op->r, f, replicas);
    left &= ~changelog_accused(replicas, op->r->count, CHANGE_DATA);
    /* The arbiter would be the only copy to accuse the others of missing this write. */
    if (left & arbiter && children_count(left) < 2)
        return -ENOTCONN;
    c->readable = left & ~arbiter & (c->readable ? c->readable : op->r->all);
    return c->readable ? 0 : -EIO;
}

/* Checks whether the locked children may accuse the others. */
static int
check_locked(const struct op *op, const struct copies *c)
{
    child_set left = copies_left(c);

    if (copies_suffice(op, c, left))
        return 0;
    return op_has_quorum(op, left) ? -EIO : copies_errno(c);
}

/* Reads the replies to locks and marks that went in one message, and frees them. Returns true, with the
 * result of check_marked() in *err, if all children have both; else gives back the locks and marks of single
 * children. */
static bool
take_joined(struct op *op, struct hold *h, struct fan *lock, struct fan *mark, int *err)
{
    struct marks m = {.inode = h->inode, .file = h->file, .dirty.count[CHANGE_DATA] = (uint32_t)-1};
    struct lock_entity e = entity_of(h);
    child_set all = op->r->all, has = fan_done(lock), marked = fan_done(mark);
    bool is_whole = marked == all && has == all;

    if (is_whole) {
        h->copies.locked = all;
        *err = check_marked(op, &h->copies, mark);
    }
    fan_end(lock);
    fan_end(mark);
    if (is_whole)
        return true;
    fan_insist(mark, op, marked, marks_make, &m);
    fan_end(mark);
    locks_drop_one(op, &e, has);
    return false;
}

/* Takes the lock and the dirty mark on all children, in one message to each. Returns false, with neither, if
 * a child is missing, fails, or the lock is not free. */
static bool
lock_and_mark_joined(struct op *op, struct hold *h, const struct lock_entity *e, int *err)
{
    struct marks m = {.inode = h->inode, .file = h->file, .dirty.count[CHANGE_DATA] = 1};
    child_set all = op->r->all;
    struct fan lock, mark;

    if (atomic_load(&op->r->up) != all || !is_of_data(h) || !fan_takes_joined(op->r->xl, all))
        return false;
    fan_begin(&lock);
    fan_begin(&mark);
    for_each_child (i, all) {
        const struct fan_step steps[] = {{&lock, lock_now_make(op, i, e), false},
                                         {&mark, marks_call(op, i, &m), false}};

        fan_wind_joined(steps, 2, op->r->xl, i);
    }
    fan_wait(&lock);
    fan_wait(&mark);
    return take_joined(op, h, &lock, &mark, err);
}

/* Returns whether a single copy of the data takes part, and the others are accused. */
static bool
is_lone_copy(const struct replicate *r, child_set takes_part)
{
    child_set keepers = r->arbiter >= 0 ? takes_part & ~CHILD(r->arbiter) : takes_part;

    return takes_part != r->all && children_count(keepers) == 1;
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
    if (lock_and_mark_joined(op, h, &e, &err))
        return err;
    h->copies.locked = locks_take(op, &e, 1, up, &h->copies.why);
    err = check_locked(op, &h->copies);
    if (err || !is_of_data(h)) {
        h->copies.failed = err ? h->copies.locked : 0; /* no mark to take back */
        return err;
    }
    h->copies.why = 0; /* from here, of children that have the lock */
    h->is_dirty = !is_lone_copy(op->r, h->copies.locked);
    m.accused = op->r->all & ~h->copies.locked;
    m.about.count[CHANGE_DATA] = 1;
    m.dirty.count[CHANGE_DATA] = h->is_dirty;
    if (copies_mark_before(op, &h->copies, &m, false, &f)) {
        h->copies.failed = h->copies.locked;
        return -ENOMEM;
    }
    err = check_marked(op, &h->copies, &f);
    fan_end(&f);
    return err;
}

/* Prepares the hold for its lock and marks. */
static void
hold_begin(const struct op *op, struct inode *inode, struct hold *h)
{
    struct replicate *r = op->r;
    uint64_t owner = (uint64_t)(uintptr_t)h;

    h->has_changed = false;
    h->is_dirty = true;
    forget_writes(h);
    h->inode = inode_ref(inode);
    h->copies = (struct copies){.what = CHANGE_DATA, .readable = is_of_data(h) ? op->readable : 0};
    h->generation = atomic_load(&r->generation);
    h->until_ns = clock_mono_ns() + kept_ms(h) * KEPT_TIMES_MAX * UINT64_C(1000000);
    h->file = op->file ? repl_fd_ref(op->file) : NULL;
    h->is_pinned = graph_pin(r->xl->graph);
    memcpy(h->owner, &owner, sizeof owner);
    h->caller = op->caller;
    h->caller.lk_owner = (struct lk_owner){.len = sizeof h->owner, .bytes = h->owner};
    list_hold(r, h);
}

/* Gives up a hold that was not taken: clears the mark, because nothing was changed. */
static void
hold_not_taken(struct hold *h, int err)
{
    if (h->copies.locked)
        (void)mark_and_unlock(h->ri->r, h);
    hold_set_free(h, err);
}

/* Takes the lock and the marks, in the coroutine of the first writer. */
static int
hold_take(struct op *op, struct inode *inode, struct hold *h, struct writer *w)
{
    struct grants g = {0};

    hold_begin(op, inode, h);
    op->caller.lk_owner = h->caller.lk_owner;
    int err = lock_and_mark(op, h);

    if (err) {
        hold_not_taken(h, err);
        return err;
    }
    pthread_mutex_lock(&h->ri->lock);
    h->state = HOLD_HELD;
    admit_writer(h, w);
    admit_waiting(h, &g);
    pthread_mutex_unlock(&h->ri->lock);
    resume_granted(&g, NULL);
    return 0;
}

/* Ends the hold in a worker. Under the lock, without writers; admits no new writer. */
static void
hold_end_soon(struct hold *h)
{
    h->state = HOLD_ENDING;
    worker_post(&h->job);
}

/* ---- taking the lock with the CREATE or OPEN of the file -------------------------------------- */

bool
hold_early_begin(const struct op *op, struct inode *inode, struct hold *h)
{
    pthread_mutex_lock(&h->ri->lock);
    bool is_free = h->state == HOLD_FREE;

    if (is_free) {
        h->state = HOLD_TAKING;
        h->must_end = false;
    }
    pthread_mutex_unlock(&h->ri->lock);
    if (is_free)
        hold_begin(op, inode, h);
    return is_free;
}

/* Returns an operation for the hold's own calls. The file is not open yet, so they go by gfid. */
static struct op
early_op(const struct op *op, const struct hold *h)
{
    return (struct op){.r = op->r, .inode = h->inode, .caller = h->caller};
}

/* Makes a call by gfid one by the fd that the OPEN in its message opens. */
static void
take_opened_fd(struct call_stack *stk, enum fop fop)
{
    if (!stk)
        return;
    stk->call.fop = fop;
    stk->takes_fd = true;
}

void
hold_early_step(const struct op *op, struct hold *h, unsigned i, struct fan_step out[2])
{
    const struct marks m = {.inode = h->inode, .dirty.count[CHANGE_DATA] = 1};
    const struct lock_entity e = entity_of(h);
    const struct op own = early_op(op, h);

    out[0].stk = lock_now_make(&own, i, &e);
    out[1].stk = marks_call(&own, i, &m);
    if (op->fop == FOP_open) {
        take_opened_fd(out[0].stk, FOP_finodelk);
        take_opened_fd(out[1].stk, FOP_fxattrop);
    }
}

bool
hold_early_end(const struct op *op, struct hold *h, struct fan *lock, struct fan *mark)
{
    struct op own = early_op(op, h);
    struct grants g = {0};
    int err = 0;

    if (!take_joined(&own, h, lock, mark, &err) || err || !h->is_pinned) {
        hold_not_taken(h, err);
        return false;
    }
    uint64_t delay_ms = kept_ms(h);

    pthread_mutex_lock(&h->ri->lock);
    h->state = HOLD_HELD;
    admit_waiting(h, &g);
    if (cds_list_empty(&h->writers) && must_hold_end(op->r, h))
        hold_end_soon(h);
    else if (cds_list_empty(&h->writers))
        timer_start(&h->timer, delay_ms);
    pthread_mutex_unlock(&h->ri->lock);
    resume_granted(&g, NULL);
    return true;
}

void
hold_use_file(struct hold *h, struct repl_fd *file)
{
    pthread_mutex_lock(&h->ri->lock);
    if (h->state == HOLD_HELD && !h->file)
        h->file = repl_fd_ref(file);
    pthread_mutex_unlock(&h->ri->lock);
}

/* ---- joining a hold -------------------------------------------------------------------------- */

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
    admit_waiting(h, &g);
    if (h->state == HOLD_HELD && cds_list_empty(&h->writers) && must_hold_end(ri->r, h))
        hold_end_soon(h);
    pthread_mutex_unlock(&ri->lock);
    if (!resume_granted(&g, w->self))
        coroutine_yield();
    if (w->takes)
        return hold_take(op, inode, h, w);
    return w->result;
}

/* ---- leaving a hold -------------------------------------------------------------------------- */

static void
note_outcome(struct replicate *r, struct hold *h, const struct hold_outcome *o)
{
    h->copies.failed |= o->failed;
    h->copies.why = o->why ? replica_worse_errno(h->copies.why, o->why) : h->copies.why;
    h->has_changed |= o->has_changed;
    if (o->was_synced && cds_list_empty(&h->writers))
        forget_writes(h);
    if (o->empties && !h->is_unsynced)
        forget_writes(h);
    h->is_one_append &= !(o->empties && h->is_unsynced);
    h->is_unsynced |= o->is_unsynced;
    h->is_one_append &= !o->breaks_append;
    h->had_none |= o->had_none;
    h->had_less |= o->had_less;
    h->must_end |= !o->may_wait || o->failed || must_hold_end(r, h) || !h->is_pinned;
    h->must_end |= !is_of_data(h) && clock_mono_ns() >= h->until_ns;
}

static int
hold_finish(struct hold *h)
{
    int err = mark_and_unlock(h->ri->r, h);

    hold_set_free(h, err);
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
    note_outcome(op->r, h, o);
    admit_waiting(h, &g);
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
        return hold_finish(h);
    if (must_sleep)
        coroutine_yield();
    return w->result;
}

/* ---- ending from outside --------------------------------------------------------------------- */

void
hold_hurry(struct hold *h)
{
    pthread_mutex_lock(&h->ri->lock);
    if (h->state == HOLD_HELD || h->state == HOLD_TAKING)
        h->must_end = true;
    if (h->state == HOLD_HELD && cds_list_empty(&h->writers))
        hold_end_soon(h);
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
hold_timer_fired(struct timer *t)
{
    struct hold *h = caa_container_of(t, struct hold, timer);

    pthread_mutex_lock(&h->ri->lock);
    if (h->state == HOLD_HELD && cds_list_empty(&h->writers))
        hold_end_soon(h);
    pthread_mutex_unlock(&h->ri->lock);
}

static void
hold_finish_go(void *arg)
{
    struct hold *h = arg;

    int err = hold_finish(h);
    if (err) /* no caller is left to report to: the dirty marks stay, and healers compare */
        log_event(LOG_WARNING, NULL, "replicate-marks-stay", "cannot clear a file's pending marks: %s",
                  strerror(-err));
}

static void
hold_job_run(struct worker_job *job)
{
    struct hold *h = caa_container_of(job, struct hold, job);
    struct repl_inode *ri = h->ri;
    int err = coro_run(hold_finish_go, h);

    if (!err)
        return;
    log_event(LOG_WARNING, ri->r->xl, "replicate-hold-waits", "cannot release a file's lock yet: %s",
              strerror(-err));
    pthread_mutex_lock(&ri->lock);
    h->state = HOLD_HELD; /* must_end is set: new writers wait for the end */
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
