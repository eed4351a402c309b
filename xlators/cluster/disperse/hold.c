/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A hold: the lock on an inode, which every operation on its data, attributes or names needs, reads too,
 * because K fragments of two different states decode to garbage:
 *
 *      FREE --first user--> TAKING: INODELK on all --> HELD ------------------> ENDING ------------> FREE
 *                           children                  users come and go;       XATTROP: version,
 *                                                     XATTROP before the       size, dirty -1;
 *                                                     first that needs it      unlock
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
 * compare versions for equality only, and raise by 1. A change of names raises without a question, on stale
 * children too: steps keep them apart, and the heal decides about each name by K children.
 *
 * Users whose ranges overlap follow one another, unless all are readers; so two changes of one stripe are
 * never in flight together. A hold ends after a second without a user, when a child fails, comes up or goes
 * down, when another client waits for the lock, and at the end of the mount. FLUSH and FSYNC write version
 * and size before they are answered.
 *
 * States that a death leaves, on the bricks' disks:
 *
 *      the mount, before a write          dirty, equal fragments: the healer clears the mark
 *      the mount, during a write          dirty, equal versions: stripes of that write, which no caller has
 *                                         seen succeed, may be old on some children and new on others, also
 *                                         in the bytes beside the write in a stripe written in part. The
 *                                         format has no record to tell them apart. Kiln's heal makes them
 *                                         belong together again, by majority where there is one
 *                                         (heal-block.c); a stock healer only clears the mark
 *      the mount, in a truncation         dirty, fragments shorter than the size: the heal adds zeros. The
 *                                         size is recorded before the caller is answered
 *      the mount, after an extending      dirty, fragments longer than the recorded size: the file has its
 *      write without FLUSH or FSYNC       old size. The next mount that changes the file cuts the fragments
 *                                         to that size under the lock (mend_lengths()), because the
 *                                         self-heal daemon heals no such file
 *      a child, during a write            the caller gets the reply after the other children have the next
 *                                         version (ec_record()); dirty stays, so the daemon finds the file
 *      a child and the mount, during a    as the mount's death during a write
 *      write
 *      the mount, after a write with a    the others have the next version since before the write
 *      child missing
 *      more than R children               the write fails; what it did stays, dirty stays
 *      the mount, before the raise, or    children of two versions, with equal fragments: a child that has
 *      during it, before the change       the raise alone is behind, and no later raise meets its version
 *      a child, before or during the      behind; the raise is sent again to the others if it told nothing
 *      raise                              about that child
 *      a good child, while another one    fewer than K are good: EIO, and no counter but dirty has risen
 *      is stale
 *      a child, before the XATTROP after  it keeps dirty, and the old size if that changed: behind
 *      the mount, between the XATTROP     bricks release the locks of a client that is gone
 *      after and the unlock
 *
 *      the mount, during an XATTROP that  versions or sizes may differ so that no K children agree: the heal
 *      records a version or a size        decides by the fragments (heal-mend.c), where more than K belong
 *                                         together; a stock healer does not. So a version rises only where
 *                                         that tells a child that is behind from the others
 *
 * A dirty mark is taken back only while all children are up and good, so that of a change that a child
 * missed each good child's index names the inode. If an operation is refused by K children and was done by
 * a few, the versions of the K are raised: those that did it are behind.
 *
 * The lock and its rules are those of stock clients, which alternate with this mount; they raise versions
 * after a change instead of before it, and also at FLUSH while all children are good. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/cluster/disperse/heal.h"

enum { LOCK_AT_ONCE = 1, LOCK_AND_WAIT = 2, STACK_WAIT_MS = 100, WORD_BYTES = 8 };
enum { VERSION_STEP_MAX = 1 << 24 };

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
    pthread_mutex_destroy(&ei->lock);
    mem_put(ei);
}

struct ec_hold *
ec_hold_of(struct disperse *d, struct inode *inode)
{
    return &((struct ec_inode *)inode_ctx(inode, d->xl))->hold;
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct ec_lock {
    struct inode *inode;
    const char *domain;
    const uint8_t *owner; /* 8 bytes */
    uint32_t cmd, type;
};

static struct call_stack *
ec_lock_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_lock *l = arg;
    struct call_stack *stk = ec_call(op, FOP_inodelk, i, is_spare, l->inode, NULL);

    if (!stk)
        return NULL;
    stk->caller.lk_owner = (struct lk_owner){.len = 8, .bytes = l->owner};
    stk->call.volume = l->domain;
    stk->call.cmd = l->cmd;
    stk->call.type = l->type;
    stk->call.flock = (struct fop_flock){.type = l->type};
    return stk;
}

void
ec_locks_drop(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
              child_set on)
{
    struct ec_lock l = {
        .inode = inode, .domain = domain, .owner = owner, .cmd = LOCK_AT_ONCE, .type = FLOCK_UNLOCK};
    struct fan f;

    ec_insist(&f, op, on, ec_lock_make, &l);
    fan_end(&f);
}

child_set
ec_locks_try(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
             child_set on)
{
    struct ec_lock l = {
        .inode = inode, .domain = domain, .owner = owner, .cmd = LOCK_AT_ONCE, .type = FLOCK_WRITE};
    struct fan f;

    if (ec_ask(&f, op, on, ec_lock_make, &l))
        return 0;
    child_set has = fan_done(&f);
    fan_end(&f);
    return has;
}

/* Locks child after child, waiting: of two clients one gets the lock of the first child, and the other
 * waits there. */
static child_set
lock_in_turn(const struct ec_op *op, struct ec_lock *l, child_set on, int *err)
{
    child_set has = 0;
    struct fan f;

    l->cmd = LOCK_AND_WAIT;
    for_each_child (i, on) {
        if (ec_ask(&f, op, CHILD(i), ec_lock_make, l)) {
            *err = -ENOMEM;
            break;
        }
        has |= fan_done(&f);
        *err = fan_done(&f) ? *err : f.ret[i];
        fan_end(&f);
    }
    if (*err != -ENOMEM && children_count(has) >= op->d->data)
        return has;
    ec_locks_drop(op, l->inode, l->domain, l->owner, has);
    return 0;
}

/* Returns the errno of a lock that too few children granted. */
static int
lock_error(const struct ec_op *op, const struct fan *f)
{
    int ret;
    child_set winner = answers_winner(f, false, &ret);

    if (ret < 0 && children_count(winner) > op->d->redundancy)
        return ret;
    int err = answers_too_few(op, f);
    return err == -EIO && ret == -ENOTCONN ? -ENOTCONN : err;
}

child_set
ec_locks_take(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
              child_set on, int *err)
{
    struct ec_lock l = {
        .inode = inode, .domain = domain, .owner = owner, .cmd = LOCK_AT_ONCE, .type = FLOCK_WRITE};
    child_set has, taken = 0;
    struct fan f;

    *err = 0;
    if (ec_ask(&f, op, on, ec_lock_make, &l)) {
        *err = -ENOMEM;
        return 0;
    }
    has = fan_done(&f);
    for_each_child (i, f.sent)
        taken |= f.ret[i] == -EAGAIN ? CHILD(i) : 0;
    bool may_wait = taken && children_count(has | taken) >= op->d->data;
    bool is_enough = !taken && children_count(has) >= op->d->data;
    if (!may_wait && !is_enough)
        *err = taken ? answers_too_few(op, &f) : lock_error(op, &f);
    fan_end(&f);
    if (is_enough)
        return has;
    ec_locks_drop(op, inode, domain, owner, has);
    return may_wait ? lock_in_turn(op, &l, has | taken, err) : 0;
}

/* ---- XATTROP --------------------------------------------------------------------------------- */

/* Values to add; all zero asks for the present ones. */
struct ec_delta {
    struct ec_hold *h;
    bool asks;          /* for version, size and configuration */
    bool has_version, has_dirty, has_size;
    uint64_t version[2], dirty[2], size; /* negative values in two's complement */
};

static int
add_words(struct dict *d, const char *key, const uint64_t *words, unsigned count)
{
    unsigned char bytes[2 * WORD_BYTES];

    for (unsigned w = 0; w < count; w++) {
        uint64_t be = htobe64(words[w]);

        memcpy(bytes + w * WORD_BYTES, &be, WORD_BYTES);
    }
    return dict_set_text(d, key, DICT_PTR, bytes, count * WORD_BYTES);
}

static int
ec_fill_delta(struct call_stack *stk, const struct ec_delta *x, bool is_file)
{
    static const uint64_t zeros[2];
    struct dict *d = stk->call.dict = dict_new(&stk->arena);
    int err = d ? 0 : -ENOMEM;

    if (!err && (x->asks || x->has_version))
        err = add_words(d, "trusted.ec.version", x->version, 2);
    if (!err && is_file && (x->asks || x->has_size))
        err = add_words(d, "trusted.ec.size", &x->size, 1);
    if (!err && is_file && x->asks)
        err = add_words(d, "trusted.ec.config", zeros, 1);
    if (!err && x->has_dirty)
        err = add_words(d, "trusted.ec.dirty", x->dirty, 2);
    if (!err && is_file && x->asks)
        err = call_xdata(stk) ? dict_set_int(stk->call.xdata, DICT_KEY_GET_SIZE, 1) : -ENOMEM;
    return err;
}

static struct call_stack *
delta_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_delta *x = arg;
    struct ec_hold *h = x->h;
    struct fd *fd = h->file ? ec_fd_child(h->file, i) : NULL;
    struct call_stack *stk = ec_call(op, fd ? FOP_fxattrop : FOP_xattrop, i, is_spare, h->inode, h->file);

    if (!stk)
        return NULL;
    stk->caller.uid = stk->caller.gid = 0;
    stk->call.flags = 1; /* add arrays of 64 bits */
    if (!ec_fill_delta(stk, x, S_ISREG(h->inode->type)))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* ---- before an operation --------------------------------------------------------------------- */

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
    if (h->state != EC_FREE)
        is = h->size != h->stored_size || h->is_unraised[0] || h->is_unraised[1] || h->is_dirty[0] ||
             h->state != EC_HELD || !cds_list_empty(&h->users);
    pthread_mutex_unlock(&ei->lock);
    return is;
}

static struct call_stack *
mend_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_hold *h = arg;
    struct call_stack *stk = ec_call(op, FOP_truncate, i, is_spare, h->inode, NULL);

    if (!stk)
        return NULL;
    stk->caller.uid = stk->caller.gid = 0;
    stk->call.offset = fragment_length(op->d, h->stored_size);
    return stk;
}

/* Fragments longer than the size says, with a dirty mark on all children: a client died after an extending
 * write. Bytes behind the size would come back to life at the next extension. Failure leaves them. */
static void
mend_lengths(struct ec_op *op, struct ec_hold *h, const struct fan *info, child_set good, uint64_t own_mark)
{
    const struct call_stack *first = info->stk[child_first(good)];
    uint64_t dirty[2];
    int64_t length = 0;
    struct fan f;

    ec_get_words(first->reply.dict, "trusted.ec.dirty", dirty);
    if (!S_ISREG(h->inode->type) || good != op->d->all || dirty[WORD_DATA] <= own_mark ||
        dict_get_int(first->reply.xdata, DICT_KEY_GET_SIZE, &length) ||
        (uint64_t)length <= fragment_length(op->d, h->stored_size))
        return;
    log_event(LOG_INFO, op->d->xl, "disperse-length-mended",
              "%s: a client died before it recorded a new size: cut to %llu bytes", GFID(&h->inode->gfid),
              (unsigned long long)h->stored_size);
    if (ec_ask(&f, op, good, mend_make, h))
        return;
    ec_blame(h, f.sent & ~fan_done(&f));
    fan_end(&f);
}

/* Reads version and size from the replies of K equal children. Returns 0 or -errno. */
static int
take_info(struct ec_op *op, struct ec_hold *h, const struct fan *f)
{
    uint64_t size[2];
    int ret;
    child_set good = answers_judge(op, f, false, &ret);

    h->is_split = ret == -EIO && children_count(fan_done(f)) > op->d->data;
    if (ret < 0)
        return ret == -EIO ? answers_too_few(op, f) : ret;
    const struct dict *d = f->stk[child_first(good)]->reply.dict;
    if (S_ISREG(h->inode->type)) {
        const struct dict_pair *config = dict_find_text(d, "trusted.ec.config");

        if (!config || config->len != sizeof op->d->config || config->type == DICT_INT ||
            memcmp(config->v.bytes, op->d->config, sizeof op->d->config) != 0) {
            log_event(LOG_ERROR, op->d->xl, "disperse-config", "%s: trusted.ec.config is not that of %u+%u",
                      GFID(&h->inode->gfid), op->d->data, op->d->redundancy);
            return -EIO;
        }
    }
    ec_get_words(d, "trusted.ec.version", h->version);
    ec_get_words(d, "trusted.ec.size", size);
    if (h->version[WORD_DATA] >> 62 || size[0] > INT64_MAX)
        return -EIO; /* K children that are being healed, or a size of no file */
    h->stored_size = h->size = size[0];
    ec_blame(h, f->sent & ~good);
    return 0;
}

/* Returns a difference of versions that no other change has: a child whose version rose by another change,
 * or by the attempt of a mount that died, never has the version of this change by accident. */
static uint64_t
version_step(void)
{
    struct gfid drawn;
    uint32_t word;

    gfid_random(&drawn);
    memcpy(&word, drawn.b, sizeof word);
    return 1 + word % VERSION_STEP_MAX;
}

/* Returns the children that are not good, and whose lag no version of the good ones tells yet. */
static child_set
unrecorded_locked(const struct ec_hold *h, unsigned w)
{
    return h->ei->d->all & ~h->good & ~h->recorded[w];
}

/* Chooses the values of the XATTROP before. A question goes alone while a child is missing: the replies tell
 * which of the others are good, and only their versions may rise. */
static void
fill_before(struct ec_hold *h, unsigned needs, struct ec_delta *x)
{
    bool marks[2] = {needs & COUNTS_DATA, needs & (COUNTS_DATA | COUNTS_METADATA)};
    uint64_t step = version_step();

    *x = (struct ec_delta){.h = h, .asks = needs & NEEDS_INFO && !h->has_info};
    pthread_mutex_lock(&h->ei->lock);
    bool only_asks = x->asks && h->good != h->ei->d->all;
    for (unsigned w = 0; w < 2 && !only_asks; w++) {
        x->dirty[w] = marks[w] && !h->is_dirty[w];
        x->version[w] = marks[w] && unrecorded_locked(h, w) ? step : 0;
        x->has_dirty |= x->dirty[w] != 0;
        x->has_version |= x->version[w] != 0;
    }
    pthread_mutex_unlock(&h->ei->lock);
}

/* Sends the XATTROP before: asks for version and size, or sets dirty marks and raises versions, or asks and
 * sets marks. Returns 0 or -errno. */
static int
prepare_now(struct ec_op *op, struct ec_hold *h, unsigned needs)
{
    child_set good = ec_good(h);
    struct ec_delta x;
    struct fan f;
    int err = 0;

    fill_before(h, needs, &x);
    if (!x.asks && !x.has_dirty && !x.has_version)
        return 0;
    if (ec_ask(&f, op, good, delta_make, &x))
        return -ENOMEM;
    if (x.asks) {
        err = take_info(op, h, &f);
    } else {
        child_set done = fan_done(&f);

        ec_blame(h, f.sent & ~done);
        if (children_count(done) < op->d->data)
            err = answers_too_few(op, &f);
    }
    for (unsigned w = 0; w < 2; w++)
        h->is_dirty[w] |= fan_done(&f) && x.dirty[w];
    for (unsigned w = 0; w < 2; w++) {
        h->recorded[w] |= !err && x.version[w] ? op->d->all & ~good : 0;
        h->version[w] += err ? 0 : x.version[w];
    }
    if (!err && x.asks) {
        h->has_info = true;
        if (x.dirty[WORD_DATA])
            mend_lengths(op, h, &f, ec_good(h), x.dirty[WORD_DATA]);
    }
    fan_end(&f);
    return err;
}

/* Returns the needs that want an XATTROP before. MUST_MARK: data is always marked. */
static unsigned
missing_needs(const struct disperse *d, const struct ec_hold *h, unsigned needs)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    bool is_whole = h->good == d->all && conf->is_optimistic;
    unsigned missing = h->has_info ? 0 : needs & NEEDS_INFO;

    if (is_whole && !(needs & MUST_MARK))
        return missing;
    if (needs & COUNTS_DATA && (!h->is_dirty[WORD_DATA] || unrecorded_locked(h, WORD_DATA)))
        missing |= COUNTS_DATA;
    if (needs & (COUNTS_DATA | COUNTS_METADATA) &&
        (!h->is_dirty[WORD_METADATA] || unrecorded_locked(h, WORD_METADATA)))
        missing |= COUNTS_METADATA;
    return missing;
}

static void
resume_users(struct cds_list_head *list)
{
    struct ec_user *u, *next;

    cds_list_for_each_entry_safe(u, next, list, link)
    {
        struct coroutine *self = u->self;

        cds_list_del(&u->link);
        coroutine_resume(self);
    }
}

/* A user waits in `preparing` in a record of its own, because its `link` is in `users`. */
static int
ec_prepare(struct ec_op *op, struct ec_hold *h, unsigned needs)
{
    struct ec_inode *ei = h->ei;
    int err = 0;

    for (;;) {
        struct ec_user waiter = {.self = coroutine_self()};
        CDS_LIST_HEAD(woken);

        pthread_mutex_lock(&ei->lock);
        unsigned missing = missing_needs(op->d, h, needs);
        bool waits = missing && h->is_busy;
        if (waits)
            cds_list_add_tail(&waiter.link, &h->preparing);
        else if (missing)
            h->is_busy = true;
        pthread_mutex_unlock(&ei->lock);
        if (waits) {
            coroutine_yield();
            continue;
        }
        if (!missing)
            return 0;
        err = prepare_now(op, h, missing);
        pthread_mutex_lock(&ei->lock);
        h->is_busy = false;
        h->must_end |= err != 0;
        cds_list_splice(&h->preparing, &woken);
        CDS_INIT_LIST_HEAD(&h->preparing);
        pthread_mutex_unlock(&ei->lock);
        resume_users(&woken);
        if (err)
            return err;
        /* again: children that turned out to be behind make a mark necessary */
    }
}

/* ---- after an operation ---------------------------------------------------------------------- */

static bool
ec_is_zero(const struct ec_delta *x)
{
    return !(x->version[0] | x->version[1] | x->dirty[0] | x->dirty[1] | x->size);
}

/* Returns whether all children say that the object does not exist. */
static bool
ec_is_gone(const struct fan *f)
{
    for_each_child (i, f->sent) {
        if (f->ret[i] != -ENOENT && f->ret[i] != -ESTALE)
            return false;
    }
    return true;
}

/* Sends the XATTROP after. Returns 0 or -errno. */
static int
send_delta(struct ec_op *op, struct ec_hold *h, struct ec_delta *x)
{
    child_set good = ec_good(h);
    struct fan f;

    x->has_version = x->version[0] | x->version[1];
    x->has_dirty = x->dirty[0] | x->dirty[1];
    x->has_size = x->size;
    if (ec_is_zero(x))
        return 0;
    if (children_count(good) < op->d->data)
        return -EIO; /* no group of K would have the new values */
    ec_insist(&f, op, good, delta_make, x);
    child_set done = fan_done(&f);
    bool is_removed = ec_is_gone(&f);
    fan_end(&f);
    if (is_removed)
        return 0; /* the object has no name and no open file any more, and nothing is left to record */
    ec_blame(h, good & ~done);
    return children_count(done) < op->d->data ? -EIO : 0;
}

/* Fills in the changes of version and size, and forgets them. A version rises only if that tells a child
 * that is behind from the good ones, or if it has never risen: an XATTROP that reaches some children only,
 * because the mount dies, leaves no K equal versions. */
static void
take_deltas(struct ec_hold *h, struct ec_delta *x)
{
    uint64_t step = version_step();

    pthread_mutex_lock(&h->ei->lock);
    bool is_whole = h->good == h->ei->d->all;
    for (unsigned w = 0; w < 2; w++) {
        bool rises = is_whole ? !h->has_info || !h->version[w] : unrecorded_locked(h, w);

        x->version[w] = rises && h->is_unraised[w] ? step : 0;
        h->version[w] += x->version[w];
        h->recorded[w] |= x->version[w] ? unrecorded_locked(h, w) : 0;
        h->is_unraised[w] = false;
    }
    x->size = h->size - h->stored_size;
    h->stored_size = h->size;
    pthread_mutex_unlock(&h->ei->lock);
}

int
ec_hold_write_back(struct ec_op *op, struct ec_hold *h)
{
    struct ec_delta x = {.h = h};

    take_deltas(h, &x);
    int err = send_delta(op, h, &x);
    pthread_mutex_lock(&h->ei->lock);
    h->post_err = h->post_err ? h->post_err : err;
    err = h->post_err;
    pthread_mutex_unlock(&h->ei->lock);
    return err;
}

/* The XATTROP at the end of the hold. */
static int
write_back_last(struct ec_op *op, struct ec_hold *h)
{
    bool is_whole = h->good == op->d->all && atomic_load(&op->d->up) == op->d->all && !h->is_torn;
    struct ec_delta x = {.h = h};

    take_deltas(h, &x);
    for (unsigned w = 0; w < 2; w++) {
        if (is_whole)
            x.dirty[w] = h->is_dirty[w] ? (uint64_t)-1 : 0;
        else
            x.dirty[w] = !h->is_dirty[w] && h->has_changed[w];
    }
    int err = send_delta(op, h, &x);
    return h->post_err ? h->post_err : err;
}

void
ec_record(struct ec_op *op, struct inode *inode, unsigned needs, child_set sent, child_set good, bool is_done)
{
    struct ec_hold *h = ec_hold_of(op->d, inode);
    child_set odd = good ? sent & ~good : 0;
    bool counts = is_done || odd;

    pthread_mutex_lock(&h->ei->lock);
    h->is_torn |= !good;
    h->good &= ~odd;
    h->must_end |= odd || !good;
    h->is_unraised[WORD_DATA] |= counts && needs & COUNTS_DATA;
    h->is_unraised[WORD_METADATA] |= counts && needs & (COUNTS_DATA | COUNTS_METADATA);
    for (unsigned w = 0; w < 2; w++)
        h->has_changed[w] |= h->is_unraised[w];
    bool records = false;
    for (unsigned w = 0; w < 2; w++)
        records |= counts && h->is_unraised[w] && h->good != op->d->all && unrecorded_locked(h, w);
    pthread_mutex_unlock(&h->ei->lock);
    if (records)
        (void)ec_hold_write_back(op, h); /* its error is kept for FLUSH and FSYNC */
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

static int
ec_hold_take(struct ec_op *op, struct inode *inode, struct ec_hold *h, struct ec_user *u)
{
    struct disperse *d = op->d;
    uint64_t owner = (uint64_t)(uintptr_t)h;
    struct ec_grants g = {0};
    int err = 0;

    h->is_busy = h->has_info = h->is_torn = h->is_split = false;
    h->post_err = 0;
    h->stored_size = h->size = 0;
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
    child_set up = atomic_load(&d->up);
    h->locked = h->good = children_count(up) < d->data
                              ? 0
                              : ec_locks_take(op, inode, d->xl->name, h->owner, up, &err);
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

/* Ends the hold in a worker. Under the lock, without users; admits no new user. */
static void
ec_end_soon(struct ec_hold *h)
{
    h->state = EC_ENDING;
    worker_post(&h->job);
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
    int err = u->takes ? ec_hold_take(op, inode, h, u) : u->result;
    if (err)
        return err;
    pthread_mutex_lock(&ei->lock);
    if (!h->file && op->file && op->inode == inode)
        h->file = ec_fd_ref(op->file);
    pthread_mutex_unlock(&ei->lock);
    err = ec_prepare(op, h, needs);
    if (!err && children_count(ec_good(h)) < op->d->data)
        err = -EIO;
    *is_split = err == -EIO && h->is_split;
    if (err)
        ec_leave(op, inode, u);
    return err;
}

/* If no K children have the same counters, because a client died while it recorded them, the heal decides by
 * the fragments, and the user joins anew. */
int
ec_join(struct ec_op *op, struct inode *inode, struct ec_user *u, unsigned needs)
{
    bool is_split = false, was_whole;
    int err = join_once(op, inode, u, needs, &is_split);

    if (err != -EIO || !is_split || !S_ISREG(inode_type(inode)))
        return err;
    (void)ec_heal_object(op->d, inode, &was_whole); /* if it fails, so does the next attempt */
    return join_once(op, inode, u, needs, &is_split);
}

/* ---- leaving a hold -------------------------------------------------------------------------- */

/* Returns how long the lock is kept after the last user. */
static uint64_t
ec_kept_ms(const struct ec_hold *h)
{
    const struct disperse_conf *conf = xlator_conf(h->ei->d->xl);

    if (S_ISREG(h->inode->type))
        return conf->eager_lock ? (uint64_t)conf->kept_s * 1000 : 0;
    return conf->other_eager_lock ? (uint64_t)conf->other_kept_s * 1000 : 0;
}

/* No caller is left to report an error to: the dirty marks stay, and healers compare. */
static void
ec_hold_finish(struct ec_hold *h)
{
    struct ec_op op = {.d = h->ei->d, .inode = h->inode, .caller = h->caller};
    int err = write_back_last(&op, h);

    if (err)
        log_event(LOG_WARNING, op.d->xl, "disperse-marks-stay",
                  "%s: cannot record the end of changes on enough bricks: %s", GFID(&h->inode->gfid),
                  strerror(-err));
    bool has_laggards = atomic_load(&op.d->up) & ~h->good;
    ec_locks_drop(&op, h->inode, op.d->xl->name, h->owner, h->locked);
    if (has_laggards)
        ec_heal_soon(op.d, h->inode);
    ec_hold_set_free(h);
}

void
ec_leave(struct ec_op *op, struct inode *inode, struct ec_user *u)
{
    struct ec_hold *h = ec_hold_of(op->d, inode);
    struct ec_inode *ei = h->ei;
    uint64_t delay_ms = ec_kept_ms(h);
    struct ec_grants g = {0};
    bool ends = false;

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
        ec_hold_finish(h);
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
    *out = h->size;
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
    ec_hold_finish(arg);
}

static void
ec_hold_job_run(struct worker_job *job)
{
    struct ec_hold *h = caa_container_of(job, struct ec_hold, job);
    struct ec_inode *ei = h->ei;
    int err = ec_run(ec_hold_finish_go, h);

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
