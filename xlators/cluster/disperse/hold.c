/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A hold: the lock on an inode, which every operation on its data, attributes or names needs, reads too,
 * because K fragments of two different states decode to garbage:
 *
 *      FREE --first user--> TAKING: INODELK on all --> HELD ------------------> ENDING ------------> FREE
 *                           children                  users come and go;       XATTROP: version,
 *                                                     XATTROP before the       size, dirty +1 or -1;
 *                                                     first that needs it      unlock
 *
 * Bricks of kilnd take several calls in one message. There the lock and the XATTROP before go together, and
 * so do the XATTROP after and the unlock, and a size and an FSYNC. The lock of a file goes with its OPEN or
 * CREATE, because programs use most files that they open or make (enum ec_habit): a small new file takes
 * CREATE, WRITE and the end. A lock that another client has on any child is given back, with the marks, and
 * the hold is taken in steps.
 *
 * The XATTROP before ("info") returns version, size and the length of each fragment. Children whose values
 * differ from those of K children are behind: they get neither reads nor writes in this hold. It also adds
 * the dirty mark: for data always, for attributes and names only if a child is missing or behind. If a child
 * is missing or behind, another XATTROP then raises the versions of the good children. So a child without
 * the next change is behind from before the change on, whenever this mount dies.
 *
 * A version rises only after the replies have told the good children, of which K are needed: a stale child
 * whose version rose with the others' could reach the version of a good child that is away. Versions rise by
 * random steps: two children have equal versions only if both have seen the same raises. Stock clients
 * compare versions for equality only, and raise by 1. While all children are good a version rises once,
 * because an empty copy has the version 0: at the end of the first hold with a change, or by FLUSH of data; a
 * new folder begins with a version. A raise on good children always finds a mark there, or brings the mark.
 *
 * The end of a hold sets no mark of an object that has gone meanwhile: the brick adds the entry to its index
 * first, and the entry would stay. So before a mark the mount asks for the versions. If a client removes the
 * object between the two calls, the entry stays until the next crawl.
 *
 * Users whose ranges overlap follow one another, unless all are readers; so two changes of one stripe are
 * never in flight together. A hold ends after a second without a user, when a child fails, comes up or goes
 * down, when another client waits for the lock, and at the end of the mount. FLUSH and FSYNC write version
 * and size before they are answered. While a file that has grown is used all the time, the size is written
 * after a second, so that a mount that dies loses the extensions of the last two seconds at most.
 *
 * States that a death leaves, on the bricks' disks:
 *
 *      the mount, before a write          dirty, equal fragments: the healer clears the mark
 *      the mount, during a write          dirty, equal versions: stripes of that write, which no caller has
 *                                         seen succeed, may be old on some children and new on others, also
 *                                         in the bytes beside the write in a stripe written in part. The
 *                                         format has no record to tell them apart. Kiln's heal makes them
 *                                         belong together again, by majority where there is one
 *                                         (heal-block.c). A stock healer only clears the mark; Kiln's bricks
 *                                         keep a note of it for Kiln's healers (dead-objects.c)
 *      the mount, in a change of          attributes or names that differ, without a mark if all children
 *      attributes or names                were good: Kiln's bricks note the object for Kiln's healers. On
 *                                         stock's bricks a LOOKUP of the name meets different names
 *      the mount, in a truncation         dirty, fragments shorter than the size: the heal adds zeros. The
 *                                         size is recorded before the caller is answered
 *      the mount, after an extending      dirty, fragments longer than the recorded size, or bytes behind the
 *      write, before its size is written  size in its stripe: the file has its old size. The next mount that
 *                                         changes the file cuts the fragments to that size under the lock
 *                                         (mend_lengths()), because stock's daemon heals no such file, and
 *                                         writes zeros behind it before an extension shows these bytes
 *                                         (write.c); so does Kiln's heal
 *      all children, after an extending   as after the mount's death; but this mount keeps the size, and the
 *      write, before its size is written  next hold goes on with it and records it, if no other client has
 *                                         changed size or fragments; else FSYNC or FLUSH fail once
 *      a child, during a write            the caller gets the reply after the other children have the next
 *                                         version (ec_record()); dirty stays, so the daemon finds the file
 *      a child and the mount, during a    as the mount's death during a write
 *      write
 *      the mount, after a write with a    the others have the next version since before the write
 *      child missing
 *      more than R children               the write fails; what it did stays, dirty stays
 *      more than R children, during a     stripes that do not belong together, and a size that only the mount
 *      write, while the mount lives       knows: the next hold of the mount mends both (debt.c)
 *      a child, so that fewer than        as a child's death during a write, but the caller gets EIO: the
 *      quorum-count made the change       others keep the change, its size and its version, and the heal
 *                                         brings the change to the child. If the mount dies, too: as a
 *                                         child and the mount, during a write. A change is refused before
 *                                         its first mark where too few children are up, and before the
 *                                         change where too few are good
 *      the mount, before the raise, or    children of two versions, with equal fragments: a child that has
 *      during it, before the change       the raise alone is behind, and no later raise meets its version.
 *                                         If no K children have one version, the next operation that needs
 *                                         the versions completes the raise (ec_mend_raise())
 *      a child, before or during the      behind; the raise is sent again to the others if it told nothing
 *      raise                              about that child
 *      a client, while it removes a name  some children keep the file only for open fds: no change is made
 *                                         unless K others have a name (ec_wait_for_names())
 *      a good child, while another one    fewer than K are good: EIO, and no counter but dirty has risen
 *      is stale
 *      a child, before the XATTROP after  it keeps dirty, and the old size if that changed: behind. Where no
 *                                         mark was set, because names changed while all children were good,
 *                                         a version that rises on the others brings them the mark
 *      a child and the mount, during a    if the caller has its answer, the others have the next version and
 *      change without a mark              the mark; else it is a change in which the mount died
 *      the mount, during an XATTROP that  the children with the new version have the mark, or those with the
 *      raises a version after a change    old one still have it: the index names the inode, and the children
 *                                         of the lower version are healed
 *      the mount, before the XATTROP      equal versions and marks: the healer clears the marks
 *      that takes such a mark back
 *      the mount, during a message of     marks on some children, without a change: the healer clears them.
 *      lock and marks                     Of a CREATE or OPEN, the new file or nothing
 *      a child, during a message of       a child's death before or after the XATTROP after; another client
 *      XATTROP after and unlock           that has the lock meanwhile finds the counters of K others
 *      the mount, between the XATTROP     bricks release the locks of a client that is gone
 *      after and the unlock
 *
 *      the mount, during an XATTROP that  versions or sizes may differ so that no K children agree: the heal
 *      records a version or a size        decides by the fragments, where more than K belong together, or by
 *                                         the highest versions (heal-mend.c); a stock healer does not. So a
 *                                         version rises only where that tells a child that is behind from
 *                                         the others
 *
 * A dirty mark is taken back only while all children are up and good, so that of a change that a child
 * missed each good child's index names the inode. If an operation is refused by K children and was done by
 * a few, the versions of the K are raised: those that did it are behind.
 *
 * The lock and its rules are those of stock clients, which alternate with this mount; they raise versions
 * after a change instead of before it, and also at FLUSH while all children are good. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "stack/lock-cmd.h"
#include "xlators/cluster/disperse/heal.h"

enum { STACK_WAIT_MS = 100, SIZE_LATE_NS = 1000 * 1000 * 1000 };

static void ec_hold_timer_fired(struct timer *t);
static void ec_hold_job_run(struct worker_job *job);

/* ---- the context of an inode ----------------------------------------------------------------- */

static struct mem_pool *pool;

int
ec_inode_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct ec_inode, 0);
    return pool ? 0 : -ENOMEM;
}

static void
ec_hold_init(struct ec_hold *h, struct ec_inode *ei)
{
    h->ei = ei;
    CDS_INIT_LIST_HEAD(&h->users);
    CDS_INIT_LIST_HEAD(&h->waiting);
    CDS_INIT_LIST_HEAD(&h->preparing);
    timer_init(&h->timer, ec_hold_timer_fired);
    h->job.run = ec_hold_job_run;
}

struct ec_inode *
ec_inode(struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = inode_ctx(inode, d->xl), *fresh;

    if (ei)
        return ei;
    fresh = mem_get0_owner(pool, d->xl->graph->owner);
    if (!fresh)
        return NULL;
    fresh->d = d;
    pthread_mutex_init(&fresh->lock, NULL);
    ec_hold_init(&fresh->hold, fresh);
    ei = inode_ctx_install(inode, d->xl, fresh);
    if (ei != fresh)
        ec_inode_free(fresh);
    return ei;
}

void
ec_inode_free(struct ec_inode *ei)
{
    timer_stop(&ei->hold.timer);
    ec_torn_free(ei);
    pthread_mutex_destroy(&ei->lock);
    mem_put(ei);
}

struct ec_hold *
ec_hold_of(struct disperse *d, struct inode *inode)
{
    return &((struct ec_inode *)inode_ctx(inode, d->xl))->hold;
}

/* ---- the state of a hold --------------------------------------------------------------------- */

void
ec_blame(struct ec_hold *h, child_set which)
{
    pthread_mutex_lock(&h->ei->lock);
    if (h->good & which)
        h->must_end = true;
    h->good &= ~which;
    pthread_mutex_unlock(&h->ei->lock);
}

child_set
ec_good(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    child_set good = h->good;

    pthread_mutex_unlock(&h->ei->lock);
    return good;
}

uint64_t
ec_size(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    uint64_t size = h->size;

    pthread_mutex_unlock(&h->ei->lock);
    return size;
}

void
ec_set_size(struct ec_hold *h, uint64_t size)
{
    pthread_mutex_lock(&h->ei->lock);
    h->size = size;
    pthread_mutex_unlock(&h->ei->lock);
}

uint64_t
ec_grow_size(struct ec_hold *h, uint64_t end)
{
    pthread_mutex_lock(&h->ei->lock);
    if (end > h->size && h->size == h->stored_size)
        h->grown_ns = clock_mono_ns();
    h->size = h->size > end ? h->size : end;
    uint64_t size = h->size;

    pthread_mutex_unlock(&h->ei->lock);
    return size;
}

/* Returns whether the bricks lack the size of an extension for too long, because the file is in use all the
 * time. */
static bool
is_size_late(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    bool is = h->size > h->stored_size && clock_mono_ns() - h->grown_ns > SIZE_LATE_NS;

    pthread_mutex_unlock(&h->ei->lock);
    return is;
}

bool
ec_is_size_unsure(struct ec_hold *h, uint64_t end)
{
    pthread_mutex_lock(&h->ei->lock);
    bool is = end > h->sure_size;

    pthread_mutex_unlock(&h->ei->lock);
    return is;
}

bool
ec_has_new_size(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    bool is_new = h->size != h->stored_size;

    pthread_mutex_unlock(&h->ei->lock);
    return is_new;
}

bool
ec_is_unwritten(struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = inode_ctx(inode, d->xl);
    bool is = false;

    if (!ei)
        return false;
    pthread_mutex_lock(&ei->lock);
    struct ec_hold *h = &ei->hold;
    is = ei->owes_size || ei->lost_err;
    if (h->state != EC_FREE)
        is |= h->size != h->stored_size || h->is_unraised[0] || h->is_unraised[1] || h->is_dirty[0] ||
             h->state != EC_HELD || !cds_list_empty(&h->users);
    pthread_mutex_unlock(&ei->lock);
    return is;
}

bool
ec_is_quorum(const struct ec_op *op, child_set set)
{
    return children_count(set) >= op->d->data && children_count(set) >= op->quorum;
}

/* Checks that enough children are good for the needs of a user. Returns 0 or -EIO. */
static int
check_good(const struct ec_op *op, struct ec_hold *h, unsigned needs)
{
    child_set good = ec_good(h);

    if (children_count(good) < op->d->data)
        return -EIO;
    if (!(needs & (COUNTS_DATA | COUNTS_METADATA)) || ec_is_quorum(op, good))
        return 0;
    log_event(LOG_WARNING, op->d->xl, "disperse-quorum-refused",
              "%s of %s fails with EIO: %u bricks are online and not behind, and quorum-count is %u",
              fop_info[op->fop].name, GFID(&h->inode->gfid), children_count(good), op->quorum);
    return -EIO;
}

/* ---- admitting users, under the inode's lock ------------------------------------------------- */

static bool
ec_conflicts(const struct ec_hold *h, const struct ec_user *u)
{
    struct ec_user *other;

    cds_list_for_each_entry(other, &h->users, link)
    {
        if (u->start < other->end && other->start < u->end && !(u->is_shared && other->is_shared))
            return true;
    }
    return false;
}

static bool
ec_must_end(const struct disperse *d, const struct ec_hold *h)
{
    return h->must_end || h->generation != atomic_load(&d->generation) || atomic_load(&d->is_stopping);
}

/* Coroutines to resume without the lock; one pass admits at most EC_GRANTS_MAX. */
enum { EC_GRANTS_MAX = 32 };
struct ec_grants {
    unsigned count;
    struct coroutine *self[EC_GRANTS_MAX];
};

/* Admits waiting users in their order. If the hold is free, the first one must take it. */
static void
ec_admit(struct ec_hold *h, struct ec_grants *g)
{
    while (!cds_list_empty(&h->waiting) && g->count < EC_GRANTS_MAX) {
        struct ec_user *u = cds_list_first_entry(&h->waiting, struct ec_user, link);
        bool takes = h->state == EC_FREE;

        if (!takes && (h->state != EC_HELD || ec_must_end(h->ei->d, h) || ec_conflicts(h, u)))
            return;
        cds_list_del(&u->link);
        g->self[g->count++] = u->self;
        u->takes = takes;
        if (takes) {
            h->state = EC_TAKING;
            h->must_end = false;
        } else {
            cds_list_add_tail(&u->link, &h->users);
            h->is_unused = false;
        }
    }
}

/* Resumes the admitted users. Returns true if `me`, which is running, is among them. */
static bool
ec_resume_granted(const struct ec_grants *g, const struct coroutine *me)
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
ec_hold_list(struct disperse *d, struct ec_hold *h)
{
    pthread_mutex_lock(&d->lock);
    cds_list_add(&h->link, &d->holds);
    d->hold_count++;
    pthread_mutex_unlock(&d->lock);
}

static void
drop_stripes(struct ec_hold *h)
{
    for (unsigned i = 0; i < STRIPES_CACHED_MAX; i++) {
        iobuf_unref(h->stripe[i].bytes);
        h->stripe[i].bytes = NULL;
        h->stripe[i].used = 0;
    }
}

/* Marks the hold as free and wakes users that wait. The hold's fields must not be used afterwards. */
static void
ec_hold_set_free(struct ec_hold *h)
{
    struct ec_inode *ei = h->ei;
    struct disperse *d = ei->d;
    struct graph *graph = d->xl->graph;
    struct inode *inode = h->inode;
    struct ec_fd *file = h->file;
    bool is_pinned = h->is_pinned;
    struct ec_grants g = {0};

    drop_stripes(h);
    pthread_mutex_lock(&d->lock);
    cds_list_del(&h->link);
    if (--d->hold_count == 0)
        pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_mutex_lock(&ei->lock);
    h->state = EC_FREE;
    h->file = NULL;
    h->inode = NULL;
    ec_admit(h, &g);
    pthread_mutex_unlock(&ei->lock);
    ec_resume_granted(&g, NULL);
    if (file)
        ec_fd_unref(file);
    inode_unref(inode); /* this may free ei */
    if (is_pinned)
        graph_unpin(graph);
}

/* Ends the hold in a worker. Under the lock, without users; admits no new user. */
static void
ec_end_soon(struct ec_hold *h)
{
    h->state = EC_ENDING;
    worker_post(&h->job);
}

/* Returns how long the lock is kept after the last user. */
static uint64_t
ec_kept_ms(const struct ec_hold *h, const struct inode *inode)
{
    const struct disperse_conf *conf = xlator_conf(h->ei->d->xl);

    if (S_ISREG(inode->type))
        return conf->eager_lock ? (uint64_t)conf->kept_s * 1000 : 0;
    return conf->other_eager_lock ? (uint64_t)conf->other_kept_s * 1000 : 0;
}

/* Prepares a hold in the state TAKING for its lock. */
static void
ec_hold_begin(const struct ec_op *op, struct inode *inode, struct ec_hold *h)
{
    struct disperse *d = op->d;
    uint64_t owner = (uint64_t)(uintptr_t)h;

    h->is_busy = h->has_info = h->is_torn = h->is_split = h->is_unused = false;
    h->habits = 0;
    h->post_err = 0;
    h->stored_size = h->size = h->sure_size = h->length = 0;
    h->has_rest = false;
    h->nameless = h->locked = h->good = 0;
    for (unsigned w = 0; w < 2; w++) {
        h->version[w] = h->recorded[w] = 0;
        h->is_dirty[w] = h->has_changed[w] = h->is_unraised[w] = false;
    }
    h->generation = atomic_load(&d->generation);
    h->inode = inode_ref(inode);
    h->file = op->file && op->inode == inode ? ec_fd_ref(op->file) : NULL;
    h->is_pinned = graph_pin(d->xl->graph);
    memcpy(h->owner, &owner, sizeof h->owner);
    h->caller = (struct caller){.pid = op->caller.pid, .uid = op->caller.uid, .gid = op->caller.gid};
    ec_hold_list(d, h);
}

/* Takes the lock and sends the XATTROP before, in one message to each child. Returns false, with neither, if
 * the hold has to be taken in steps. */
static bool
take_in_one_message(struct ec_op *op, struct ec_hold *h, unsigned needs)
{
    struct ec_early e;

    if (!ec_early_begin(op, h, needs, &e))
        return false;
    for_each_child (i, op->d->all) {
        struct fan_step steps[2];

        ec_early_steps(op, h, &e, i, steps);
        fan_wind_joined(steps, 2, op->d->xl, i);
    }
    return ec_early_end(op, h, &e);
}

/* Takes the hold with the OPEN or CREATE of the file, in one message, because programs use most files that
 * they open. The states that deaths leave are those of the calls one by one: an OPEN leaves nothing, and a
 * new file without contents may have a mark. */
struct ec_hold *
ec_early_hold(struct ec_op *op, struct inode *inode, struct ec_early *e)
{
    unsigned habits = atomic_load_explicit(&op->d->habits, memory_order_relaxed), flags = op->stk->call.flags;
    bool is_new = op->fop == FOP_create, is_read_only = (flags & O_ACCMODE) == O_RDONLY;
    bool is_written = habits & (is_new ? WRITES_NEW : WRITES_OPENED) && !is_read_only;
    struct ec_inode *ei = NULL;

    is_written |= !is_new && flags & O_TRUNC;
    if (is_written || (habits & USES_OPENED && !is_new))
        ei = ec_inode(op->d, inode);
    if (!ei)
        return NULL;
    struct ec_hold *h = &ei->hold;
    pthread_mutex_lock(&ei->lock);
    bool is_free = h->state == EC_FREE && ec_kept_ms(h, inode);
    if (is_free) {
        h->state = EC_TAKING;
        h->must_end = false;
    }
    pthread_mutex_unlock(&ei->lock);
    if (!is_free)
        return NULL;
    ec_hold_begin(op, inode, h);
    h->habits = is_new ? WRITES_NEW : USES_OPENED | (is_written ? WRITES_OPENED : 0);
    if (h->is_pinned &&
        ec_early_begin(op, h, is_written ? NEEDS_INFO | COUNTS_DATA | MUST_MARK : NEEDS_INFO, e))
        return h;
    ec_hold_set_free(h);
    return NULL;
}

/* The next OPEN or CREATE takes no hold if another client has this lock. */
void
ec_early_keep(struct ec_op *op, struct ec_hold *h, struct ec_early *e)
{
    struct ec_grants g = {0};

    if (!ec_early_end(op, h, e)) {
        atomic_fetch_and(&op->d->habits, ~h->habits);
        ec_hold_set_free(h);
        return;
    }
    uint64_t delay_ms = ec_kept_ms(h, h->inode);

    pthread_mutex_lock(&h->ei->lock);
    h->state = EC_HELD;
    h->is_unused = true;
    ec_admit(h, &g);
    if (cds_list_empty(&h->users) && ec_must_end(op->d, h))
        ec_end_soon(h);
    else if (cds_list_empty(&h->users))
        timer_start(&h->timer, delay_ms);
    pthread_mutex_unlock(&h->ei->lock);
    ec_resume_granted(&g, NULL);
}

bool
ec_is_unused(struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = inode_ctx(inode, d->xl);
    bool is = false;

    if (!ei)
        return false;
    pthread_mutex_lock(&ei->lock);
    is = ei->hold.state == EC_HELD && ei->hold.is_unused;
    pthread_mutex_unlock(&ei->lock);
    return is;
}

/* Learns from a user that a program's open file has, or from the end of a hold. */
static void
learn_habits(struct disperse *d, unsigned habits, bool has)
{
    unsigned known = atomic_load_explicit(&d->habits, memory_order_relaxed);

    if (has && (known & habits) != habits)
        atomic_fetch_or(&d->habits, habits);
    else if (!has && known & habits)
        atomic_fetch_and(&d->habits, ~habits);
}

static int
ec_hold_take(struct ec_op *op, struct inode *inode, struct ec_hold *h, struct ec_user *u, unsigned needs)
{
    struct disperse *d = op->d;
    struct ec_grants g = {0};
    int err = 0;

    ec_hold_begin(op, inode, h);
    child_set up = atomic_load(&d->up);
    if (children_count(up) >= d->data && !take_in_one_message(op, h, needs))
        h->locked = h->good = ec_locks_take(op, inode, d->xl->name, h->owner, up, &err);
    if (!h->locked) {
        ec_hold_set_free(h);
        return err ? err : -ENOTCONN;
    }
    pthread_mutex_lock(&h->ei->lock);
    h->state = EC_HELD;
    cds_list_add_tail(&u->link, &h->users);
    ec_admit(h, &g);
    pthread_mutex_unlock(&h->ei->lock);
    ec_resume_granted(&g, NULL);
    return 0;
}

static int
join_once(struct ec_op *op, struct inode *inode, struct ec_user *u, unsigned needs, bool *is_split)
{
    struct ec_inode *ei = ec_inode(op->d, inode);
    struct ec_grants g = {0};

    if (!ei)
        return -ENOMEM;
    struct ec_hold *h = &ei->hold;
    u->self = coroutine_self();
    u->takes = false;
    u->result = 0;
    pthread_mutex_lock(&ei->lock);
    cds_list_add_tail(&u->link, &h->waiting);
    ec_admit(h, &g);
    if (h->state == EC_HELD && cds_list_empty(&h->users) && ec_must_end(op->d, h))
        ec_end_soon(h);
    pthread_mutex_unlock(&ei->lock);
    if (!ec_resume_granted(&g, u->self))
        coroutine_yield();
    int err = u->takes ? ec_hold_take(op, inode, h, u, needs) : u->result;
    if (err)
        return err;
    pthread_mutex_lock(&ei->lock);
    if (!h->file && op->file && op->inode == inode)
        h->file = ec_fd_ref(op->file);
    pthread_mutex_unlock(&ei->lock);
    if (op->file && S_ISREG(inode->type))
        learn_habits(op->d, USES_OPENED | (needs & MUST_MARK ? WRITES_OPENED | WRITES_NEW : 0), true);
    /* also before the XATTROP, so that a change that is refused leaves no mark */
    err = op->quorum ? check_good(op, h, needs) : 0;
    if (!err)
        err = ec_prepare(op, h, needs);
    if (!err)
        err = check_good(op, h, needs);
    if (!err && needs & (COUNTS_DATA | COUNTS_METADATA))
        err = ec_wait_for_names(op, h);
    *is_split = err == -EIO && h->is_split;
    if (err)
        ec_leave(op, inode, u);
    return err;
}

/* If no K children have the same counters, because a client died while it recorded them, the heal of a file
 * decides by the fragments; with K children, and for other objects, a raise alone is completed. Then the user
 * joins anew. */
static int
join_or_mend(struct ec_op *op, struct inode *inode, struct ec_user *u, unsigned needs)
{
    bool is_split = false, was_whole;
    int err = join_once(op, inode, u, needs, &is_split);

    if (err != -EIO || !is_split)
        return err;
    if (S_ISREG(inode_type(inode)) && children_count(atomic_load(&op->d->up)) > op->d->data)
        /* if it fails, so does the next attempt */
        (void)ec_heal_object(op->d, inode, HEAL_FOR_CALL, &was_whole);
    else if (ec_mend_raise(op->d, inode, op->d->all))
        return err;
    return join_once(op, inode, u, needs, &is_split);
}

/* Stripes that an earlier hold has lost the bricks in are mended first. */
int
ec_join(struct ec_op *op, struct inode *inode, struct ec_user *u, unsigned needs)
{
    const struct ec_user as_given = *u;

    for (;;) {
        int err = op->settles ? 0 : ec_torn_settle(op->d, inode);

        err = err ? err : join_or_mend(op, inode, u, needs);
        if (err || op->settles || !ec_has_torn(op->d, inode))
            return err;
        ec_leave(op, inode, u);
        *u = as_given;
    }
}

/* ---- leaving a hold -------------------------------------------------------------------------- */

/* `flush` (may be NULL): the FLUSH that gets the result. Without one no caller is left to report an error to:
 * the dirty marks stay, and healers compare. */
static void
ec_hold_finish(struct ec_hold *h, struct ec_op *flush)
{
    struct ec_op op = {.d = h->ei->d, .inode = h->inode, .caller = h->caller};
    child_set unlocked = 0;
    unsigned writes = h->habits & (WRITES_OPENED | WRITES_NEW);

    learn_habits(op.d, h->is_unused ? h->habits : h->has_changed[WORD_DATA] ? 0 : writes, false);
    int err = ec_write_back_last(&op, h, &unlocked);

    if (!err)
        ec_torn_end(h->ei);
    if (err || ec_has_torn(op.d, h->inode))
        ec_note_debt(h);
    if (flush)
        ec_finish(flush, err);
    if (err)
        log_event(LOG_WARNING, op.d->xl, "disperse-marks-stay",
                  "%s: cannot record the end of changes on enough bricks: %s", GFID(&h->inode->gfid),
                  strerror(-err));
    bool has_laggards = atomic_load(&op.d->up) & ~h->good;
    if (h->locked & ~unlocked)
        ec_locks_drop(&op, h->inode, op.d->xl->name, h->owner, h->locked & ~unlocked);
    if (has_laggards)
        ec_heal_soon(op.d, h->inode);
    ec_hold_set_free(h);
}

/* Lets the hold admit no further user. Returns whether the present one is alone. */
static bool
stop_admission(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    h->must_end = true;
    bool is_alone = h->users.next == h->users.prev;

    pthread_mutex_unlock(&h->ei->lock);
    return is_alone;
}

/* `ends_flush`: `op` is a FLUSH without an answer. */
static void
leave_hold(struct ec_op *op, struct inode *inode, struct ec_user *u, bool ends_flush)
{
    struct ec_hold *h = ec_hold_of(op->d, inode);
    struct ec_inode *ei = h->ei;
    uint64_t delay_ms = ec_kept_ms(h, inode);
    struct ec_grants g = {0};
    bool ends = false;

    if (ends_flush && !stop_admission(h)) { /* a read of 0 bytes is beside it */
        ec_finish(op, ec_hold_write_back(op, h));
        ends_flush = false;
    }
    if (!ends_flush && is_size_late(h))
        (void)ec_hold_write_back(op, h); /* its error is kept for FLUSH and FSYNC */
    pthread_mutex_lock(&ei->lock);
    cds_list_del(&u->link);
    h->must_end |= ec_must_end(op->d, h) || !h->is_pinned;
    ec_admit(h, &g);
    if (cds_list_empty(&h->users)) {
        ends = h->must_end || !delay_ms;
        if (ends)
            h->state = EC_ENDING;
        else
            timer_start(&h->timer, delay_ms);
    }
    pthread_mutex_unlock(&ei->lock);
    ec_resume_granted(&g, NULL);
    if (ends)
        ec_hold_finish(h, ends_flush ? op : NULL);
}

void
ec_leave(struct ec_op *op, struct inode *inode, struct ec_user *u)
{
    leave_hold(op, inode, u, false);
}

void
ec_leave_flushed(struct ec_op *op, struct inode *inode, struct ec_user *u)
{
    leave_hold(op, inode, u, true);
}

bool
ec_size_held(struct disperse *d, struct inode *inode, uint64_t *out)
{
    struct ec_inode *ei = inode ? inode_ctx(inode, d->xl) : NULL;
    bool is_held = false;

    if (!ei)
        return false;
    pthread_mutex_lock(&ei->lock);
    const struct ec_hold *h = &ei->hold;
    is_held = (h->state == EC_HELD || h->state == EC_ENDING) && h->has_info && S_ISREG(inode->type);
    *out = is_held ? h->size : ei->owed_size;
    is_held |= ei->owes_size;
    pthread_mutex_unlock(&ei->lock);
    return is_held;
}

/* ---- ending from outside --------------------------------------------------------------------- */

void
ec_hurry(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    if (h->state == EC_HELD || h->state == EC_TAKING)
        h->must_end = true;
    if (h->state == EC_HELD && cds_list_empty(&h->users))
        ec_end_soon(h);
    pthread_mutex_unlock(&h->ei->lock);
}

static void
ec_hold_timer_fired(struct timer *t)
{
    struct ec_hold *h = caa_container_of(t, struct ec_hold, timer);

    pthread_mutex_lock(&h->ei->lock);
    if (h->state == EC_HELD && cds_list_empty(&h->users))
        ec_end_soon(h);
    pthread_mutex_unlock(&h->ei->lock);
}

static void
ec_hold_finish_go(void *arg)
{
    ec_hold_finish(arg, NULL);
}

static void
ec_hold_job_run(struct worker_job *job)
{
    struct ec_hold *h = caa_container_of(job, struct ec_hold, job);
    struct ec_inode *ei = h->ei;
    int err = coro_run(ec_hold_finish_go, h);

    if (!err)
        return;
    log_event(LOG_WARNING, ei->d->xl, "disperse-hold-waits", "cannot release a lock yet: %s",
              strerror(-err));
    pthread_mutex_lock(&ei->lock);
    h->state = EC_HELD;
    h->must_end = true;
    timer_start(&h->timer, STACK_WAIT_MS);
    pthread_mutex_unlock(&ei->lock);
}

void
ec_holds_stop(struct disperse *d)
{
    struct ec_hold *h;

    atomic_store(&d->is_stopping, true);
    pthread_mutex_lock(&d->lock);
    cds_list_for_each_entry(h, &d->holds, link) ec_hurry(h);
    while (d->hold_count)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}
