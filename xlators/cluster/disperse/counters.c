/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The counters of a hold, on the bricks: versions, size and dirty marks, changed by an XATTROP before the
 * first operation that needs it, and by an XATTROP after. hold.c says why they change when they do, and which
 * states the death of a mount or a brick between two of these calls leaves. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "stack/lock-cmd.h"
#include "xlators/cluster/disperse/disperse-internal.h"

enum { WORD_BYTES = 8, VERSION_STEP_MAX = 1 << 24, NAMES_ASKED_MAX = 5, NAMES_PAUSE_MS = 100 };

/* ---- XATTROP --------------------------------------------------------------------------------- */

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
    if (!err && is_file && x->asks)
        err = dict_set_int(stk->call.xdata, DICT_KEY_REQUEST_LINK_COUNT, 1);
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

static struct call_stack *
mend_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_hold *h = arg;
    struct call_stack *stk = ec_call(op, FOP_truncate, i, is_spare, h->inode, NULL);

    if (!stk)
        return NULL;
    stk->caller.uid = stk->caller.gid = 0;
    stk->call.offset = fragment_length(op->d, h->size);
    return stk;
}

/* Cuts fragments that are longer than the size says, before the first change of data: a client died after an
 * extending write, or a stock client has punched a hole across the file's end. Bytes behind the size would
 * come back to life at the next extension. A child that fails is behind. Returns 0 or -ENOMEM. */
static int
mend_lengths(struct ec_op *op, struct ec_hold *h)
{
    struct fan f;

    if (!S_ISREG(h->inode->type) || h->length <= fragment_length(op->d, h->size))
        return 0;
    log_event(LOG_INFO, op->d->xl, "disperse-length-mended",
              "%s: a client died before it recorded a new size: cut to %llu bytes", GFID(&h->inode->gfid),
              (unsigned long long)h->size);
    if (ec_ask(&f, op, ec_good(h), mend_make, h))
        return -ENOMEM;
    ec_blame(h, f.sent & ~fan_done(&f));
    fan_end(&f);
    h->length = fragment_length(op->d, h->size);
    h->has_rest = true;
    return 0;
}

/* Returns whether a child had a mark of data before this hold's own. */
static bool
has_foreign_mark(const struct fan *f, uint64_t own)
{
    uint64_t dirty[2] = {0, 0};
    bool has = false;

    for_each_child (i, fan_done(f) & ~f->unread) {
        ec_get_words(f->stk[i]->reply.dict, "trusted.ec.dirty", dirty);
        has |= dirty[WORD_DATA] > own;
    }
    return has;
}

/* Remembers which words of the version the good children have, K at least: those that are not 0. */
static void
learn_versions(struct ec_hold *h, const uint64_t version[2])
{
    pthread_mutex_lock(&h->ei->lock);
    for (unsigned w = 0; w < 2; w++)
        h->ei->has_version[w] |= version[w] != 0;
    pthread_mutex_unlock(&h->ei->lock);
}

/* Returns the children on which the file has no name: such a child keeps the fragment while an fd is open.
 * Stock bricks do not say. */
static child_set
children_without_name(const struct fan *f)
{
    child_set without = 0;

    for_each_child (i, fan_done(f) & ~f->unread) {
        int64_t links;

        without |= !dict_get_int(f->stk[i]->reply.xdata, DICT_KEY_REQUEST_LINK_COUNT, &links) && !links
                       ? CHILD(i)
                       : 0;
    }
    return without;
}

/* Takes the fragments' lengths out of the replies, which then are equal although torn stripes at the file's
 * end give the children different lengths. */
static void
take_lengths(const struct fan *f, int64_t length[])
{
    for_each_child (i, fan_done(f) & ~f->unread) {
        length[i] = 0;
        (void)dict_get_int(f->stk[i]->reply.xdata, DICT_KEY_GET_SIZE, &length[i]);
        dict_remove(f->stk[i]->reply.xdata, DICT_KEY_GET_SIZE);
    }
}

static uint64_t
shortest(const int64_t length[], child_set of)
{
    int64_t least = length[child_first(of)];

    for_each_child (i, of)
        least = length[i] < least ? length[i] : least;
    return least > 0 ? (uint64_t)least : 0;
}

/* Reads version and size from the replies of K equal children. Returns 0 or -errno. */
static int
take_info(struct ec_op *op, struct ec_hold *h, const struct fan *f)
{
    uint64_t size[2];
    int64_t length[FAN_CHILDREN_MAX];
    int ret;

    if (op->settles)
        take_lengths(f, length);
    child_set good = answers_judge(op, f, false, &ret);

    h->is_split = ret == -EIO && children_count(fan_done(f)) >= op->d->data;
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
    learn_versions(h, h->version);
    ec_get_words(d, "trusted.ec.size", size);
    if (h->version[WORD_DATA] >> 62 || size[0] > INT64_MAX)
        return -EIO; /* K children that are being healed, or a size of no file */
    h->stored_size = h->size = h->sure_size = size[0];
    if (!op->settles)
        take_lengths(f, length);
    h->length = shortest(length, good);
    ec_settle_size(h);
    pthread_mutex_lock(&h->ei->lock);
    h->nameless = children_without_name(f);
    pthread_mutex_unlock(&h->ei->lock);
    ec_blame(h, f->sent & ~good);
    return 0;
}

uint64_t
ec_version_step(void)
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

/* Sets *named to the good children whose fragment stays: those with a name of the file, or all if none has a
 * name. Returns the good children. */
static child_set
good_with_names(struct ec_hold *h, child_set *named)
{
    pthread_mutex_lock(&h->ei->lock);
    child_set good = h->good;

    *named = good & ~h->nameless ? good & ~h->nameless : good;
    pthread_mutex_unlock(&h->ei->lock);
    return good;
}

/* A client that removes the file's last name, or renames another object over it, is between two children for
 * a moment. If the client has died there, a change has to fail: the children without the name drop their
 * fragments with the last fd, and fewer than K would have the change. */
int
ec_wait_for_names(struct ec_op *op, struct ec_hold *h)
{
    child_set named, good = good_with_names(h, &named);

    for (unsigned asked = 0; !ec_is_quorum(op, named) && ec_is_quorum(op, good); asked++) {
        struct ec_delta x = {.h = h, .asks = true};
        struct fan f;

        if (asked == NAMES_ASKED_MAX) {
            log_event(LOG_WARNING, op->d->xl, "disperse-name-too-few",
                      "%s of %s fails with EIO: only %u bricks have a name of the file",
                      fop_info[op->fop].name, GFID(&h->inode->gfid), children_count(named));
            return -EIO;
        }
        coro_pause(NAMES_PAUSE_MS);
        if (ec_ask(&f, op, good, delta_make, &x))
            return -ENOMEM;
        child_set nameless = children_without_name(&f), said = fan_done(&f) & ~f.unread;
        fan_end(&f);
        pthread_mutex_lock(&h->ei->lock);
        h->nameless = (h->nameless & ~said) | nameless;
        pthread_mutex_unlock(&h->ei->lock);
        good = good_with_names(h, &named);
    }
    return 0;
}

/* Chooses the values of the XATTROP before. A question goes alone while a child is missing: the replies tell
 * which of the others are good, and only their versions may rise. */
static void
fill_before(struct ec_hold *h, unsigned needs, struct ec_delta *x)
{
    bool marks[2] = {needs & COUNTS_DATA, needs & (COUNTS_DATA | COUNTS_METADATA)};
    uint64_t step = ec_version_step();

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

/* Reads the replies to the XATTROP before, of the good children. Returns 0 or -errno. */
static int
take_before(struct ec_op *op, struct ec_hold *h, const struct ec_delta *x, const struct fan *f)
{
    child_set done = fan_done(f);
    int err = x->asks ? take_info(op, h, f) : 0;

    if (!x->asks)
        ec_blame(h, f->sent & ~done);
    if (!x->asks && children_count(done) < op->d->data)
        err = answers_too_few(op, f);
    for (unsigned w = 0; w < 2; w++)
        h->is_dirty[w] |= done && x->dirty[w];
    for (unsigned w = 0; w < 2; w++) {
        h->recorded[w] |= !err && x->version[w] ? op->d->all & ~f->sent : 0;
        h->version[w] += err ? 0 : x->version[w];
    }
    if (!err && x->asks)
        h->has_info = true;
    if (!err && x->dirty[WORD_DATA]) {
        h->has_rest |= has_foreign_mark(f, x->dirty[WORD_DATA]);
        err = mend_lengths(op, h);
    }
    return err;
}

/* Sends the XATTROP before: asks for version and size, or sets dirty marks and raises versions, or asks and
 * sets marks. Returns 0 or -errno. */
static int
prepare_now(struct ec_op *op, struct ec_hold *h, unsigned needs)
{
    struct ec_delta x;
    struct fan f;

    fill_before(h, needs, &x);
    if (!x.asks && !x.has_dirty && !x.has_version)
        return 0;
    /* a change that is refused marks nothing, and raises no version */
    int err = x.asks ? 0 : ec_wait_for_names(op, h);
    if (err)
        return err;
    if (ec_ask(&f, op, ec_good(h), delta_make, &x))
        return -ENOMEM;
    err = take_before(op, h, &x, &f);
    fan_end(&f);
    return err;
}

/* Of a hold whose lock was not taken. */
static void
forget_good(struct ec_hold *h)
{
    pthread_mutex_lock(&h->ei->lock);
    h->good = 0;
    pthread_mutex_unlock(&h->ei->lock);
}

/* Returns whether a change needs to know which of the children that are left are good. While all children are
 * there, one that is behind has a lower version already. The question changes nothing, so a death after it
 * leaves nothing. */
static bool
must_ask_versions(const struct disperse *d, const struct ec_hold *h, unsigned needs)
{
    bool has_versions = S_ISREG(inode_type(h->inode)) || S_ISDIR(inode_type(h->inode));

    return h->good != d->all && has_versions && needs & (COUNTS_DATA | COUNTS_METADATA);
}

/* Returns the needs that want an XATTROP before. MUST_MARK: data is always marked. */
static unsigned
missing_needs(const struct disperse *d, const struct ec_hold *h, unsigned needs)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    bool is_whole = h->good == d->all && conf->is_optimistic;
    unsigned missing = h->has_info ? 0 : needs & NEEDS_INFO;

    if (!h->has_info && must_ask_versions(d, h, needs))
        missing |= NEEDS_INFO;
    if (is_whole && !(needs & MUST_MARK))
        return missing;
    if (needs & COUNTS_DATA && (!h->is_dirty[WORD_DATA] || unrecorded_locked(h, WORD_DATA)))
        missing |= COUNTS_DATA;
    if (needs & (COUNTS_DATA | COUNTS_METADATA) &&
        (!h->is_dirty[WORD_METADATA] || unrecorded_locked(h, WORD_METADATA)))
        missing |= COUNTS_METADATA;
    return missing;
}

/* ---- with the lock, in one message ----------------------------------------------------------- */

/* The states that deaths leave are those of an XATTROP before: marks on some children, no version raised. */
bool
ec_early_begin(const struct ec_op *op, struct ec_hold *h, unsigned needs, struct ec_early *e)
{
    struct disperse *d = op->d;

    if (atomic_load(&d->up) != d->all || !fan_takes_joined(d->xl, d->all))
        return false;
    pthread_mutex_lock(&h->ei->lock);
    h->good = d->all;
    pthread_mutex_unlock(&h->ei->lock);
    fill_before(h, missing_needs(d, h, needs), &e->x);
    bool is_wanted = e->x.asks || e->x.has_dirty;
    if (!is_wanted)
        forget_good(h);
    fan_begin(&e->lock);
    fan_begin(&e->before);
    return is_wanted;
}

void
ec_early_steps(const struct ec_op *op, struct ec_hold *h, struct ec_early *e, unsigned i,
               struct fan_step out[2])
{
    const struct ec_lock l = {.inode = h->inode,
                              .domain = op->d->xl->name,
                              .owner = h->owner,
                              .cmd = LK_SET,
                              .type = FLOCK_WRITE};

    out[0] = (struct fan_step){&e->lock, ec_lock_make(op, i, false, &l), false};
    out[1] = (struct fan_step){&e->before, delta_make(op, i, false, &e->x), false};
    for (unsigned k = 0; k < 2 && op->fop == FOP_open && op->inode == h->inode && !h->file; k++) {
        if (!out[k].stk)
            continue;
        out[k].stk->call.fop = k ? FOP_fxattrop : FOP_finodelk;
        out[k].stk->takes_fd = true; /* of the OPEN in the same message */
    }
}

bool
ec_early_end(struct ec_op *op, struct ec_hold *h, struct ec_early *e)
{
    struct ec_delta back = {.h = h};
    child_set all = op->d->all;

    fan_wait(&e->lock);
    fan_wait(&e->before);
    child_set has = fan_done(&e->lock), marked = e->x.has_dirty ? fan_done(&e->before) : 0;
    bool is_taken = has == all && !fan_is_short(&e->lock) && !fan_is_short(&e->before);
    if (is_taken) {
        h->locked = all;
        (void)take_before(op, h, &e->x, &e->before); /* after a failure, ec_prepare() asks again */
    }
    fan_end(&e->lock);
    fan_end(&e->before);
    if (is_taken)
        return true;
    forget_good(h);
    for (unsigned w = 0; w < 2; w++)
        back.dirty[w] = e->x.dirty[w] ? (uint64_t)-1 : 0;
    back.has_dirty = true;
    if (marked) {
        ec_insist(&e->before, op, marked, delta_make, &back);
        fan_end(&e->before);
    }
    if (has)
        ec_locks_drop(op, h->inode, op->d->xl->name, h->owner, has);
    return false;
}

/* ---- users of a hold ------------------------------------------------------------------------- */

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
int
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

/* Returns whether more than R children say that the object does not exist: fewer than K can have it, because
 * a client is removing it. */
static bool
ec_is_gone(const struct disperse *d, const struct fan *f)
{
    child_set without = 0;

    for_each_child(i, f->sent) without |= f->ret[i] == -ENOENT || f->ret[i] == -ESTALE ? CHILD(i) : 0;
    return children_count(without) > d->redundancy;
}

static void
fill_after(struct ec_delta *x)
{
    x->has_version = x->version[0] | x->version[1];
    x->has_dirty = x->dirty[0] | x->dirty[1];
    x->has_size = x->size;
}

/* Reads the replies to the XATTROP after, of the good children, and frees them. Returns 0 or -errno. */
static int
take_after(struct ec_op *op, struct ec_hold *h, struct ec_delta *x, struct fan *f)
{
    child_set done = fan_done(f), sent = f->sent;

    x->is_removed = ec_is_gone(op->d, f);
    int too_few = answers_too_few(op, f);
    fan_end(f);
    if (x->is_removed)
        return 0; /* no counter is left to record, and children without the object are not behind */
    ec_blame(h, sent & ~done);
    if (children_count(done) < op->d->data)
        return too_few;
    learn_versions(h, x->version);
    return 0;
}

/* Sends the XATTROP after; with the call `behind` (NULL: none) in the same message, if all children are good
 * and take both. Returns 0 or -errno. */
static int
send_delta(struct ec_op *op, struct ec_hold *h, struct ec_delta *x, struct ec_behind *behind)
{
    child_set all = op->d->all, good = ec_good(h);
    struct fan f;

    fill_after(x);
    if (ec_is_zero(x))
        return 0;
    if (children_count(good) < op->d->data)
        /* no group of K would have the new values */
        return children_count(atomic_load(&op->d->up)) < op->d->data ? -ENOTCONN : -EIO;
    if (!behind || good != all || !fan_takes_joined(op->d->xl, all)) {
        ec_insist(&f, op, good, delta_make, x);
        return take_after(op, h, x, &f);
    }
    fan_begin(&f);
    fan_begin(&behind->fan);
    for_each_child (i, all) {
        const struct fan_step steps[] = {
            {&f, delta_make(op, i, false, x), false},
            {&behind->fan, behind->make(op, i, false, behind->arg), behind->always}};

        fan_wind_joined(steps, 2, op->d->xl, i);
    }
    fan_wait(&f);
    fan_wait(&behind->fan);
    behind->is_sent = true;
    ec_insist_rest(&f, op, delta_make, x);
    return take_after(op, h, x, &f);
}

/* Fills in the changes of version and size, and forgets them. A version rises only if that tells a child
 * that is behind from the good ones, or if the version may never have risen: an XATTROP that reaches some
 * children only, because the mount dies, leaves no K equal versions. A version that rises without a mark
 * brings the mark; while all children are good, in the last XATTROP (is_last) only. */
static void
take_deltas(struct ec_hold *h, struct ec_delta *x, bool is_last)
{
    uint64_t step = ec_version_step();

    pthread_mutex_lock(&h->ei->lock);
    bool is_whole = h->good == h->ei->d->all;
    for (unsigned w = 0; w < 2; w++) {
        bool rises = is_whole ? !h->ei->has_version[w] : unrecorded_locked(h, w);
        bool waits = rises && is_whole && !h->is_dirty[w] && !is_last;

        x->version[w] = rises && !waits && h->is_unraised[w] ? step : 0;
        x->dirty[w] = x->version[w] && !h->is_dirty[w];
        h->version[w] += x->version[w];
        h->recorded[w] |= x->version[w] ? unrecorded_locked(h, w) : 0;
        h->is_unraised[w] &= waits;
    }
    x->size = h->size - h->stored_size;
    h->stored_size = x->new_size = h->size;
    pthread_mutex_unlock(&h->ei->lock);
}

/* Sends the XATTROP after, with the values of take_deltas(). A mark that may have reached a child counts as
 * set. */
static int
send_deltas(struct ec_op *op, struct ec_hold *h, struct ec_delta *x, struct ec_behind *behind)
{
    int err = send_delta(op, h, x, behind);

    for (unsigned w = 0; w < 2; w++)
        h->is_dirty[w] |= x->dirty[w] == 1;
    return err;
}

/* Returns whether fewer than K children still have the lock: the others were lost, and have dropped it even
 * if they are back. Counters that only a part of the children gets would make K equal ones impossible. */
static bool
has_lost_lock(const struct ec_hold *h)
{
    const struct disperse *d = h->ei->d;
    child_set kept = 0;

    for_each_child (i, h->locked)
        kept |= atomic_load(&d->lost_at[i]) <= h->generation ? CHILD(i) : 0;
    return children_count(kept) < d->data;
}

int
ec_hold_write_back_with(struct ec_op *op, struct ec_hold *h, struct ec_behind *behind)
{
    struct ec_delta x = {.h = h};

    if (has_lost_lock(h))
        return -ENOTCONN; /* the next hold goes on with the size (debt.c) */
    take_deltas(h, &x, false);
    int err = send_deltas(op, h, &x, behind);
    pthread_mutex_lock(&h->ei->lock);
    if (!err)
        h->sure_size = x.new_size;
    h->post_err = h->post_err ? h->post_err : err;
    err = h->post_err;
    pthread_mutex_unlock(&h->ei->lock);
    return err;
}

int
ec_hold_write_back(struct ec_op *op, struct ec_hold *h)
{
    return ec_hold_write_back_with(op, h, NULL);
}

/* Returns whether the XATTROP at the end of the hold may set a mark. */
static bool
may_mark_last(struct ec_hold *h)
{
    child_set all = h->ei->d->all, up = atomic_load(&h->ei->d->up);
    bool may = false;

    pthread_mutex_lock(&h->ei->lock);
    bool is_whole = h->good == all && up == all && !h->is_torn;
    for (unsigned w = 0; w < 2; w++) {
        bool rises = h->is_unraised[w] && !h->ei->has_version[w];

        may |= !h->is_dirty[w] && (is_whole ? rises : h->has_changed[w]);
    }
    pthread_mutex_unlock(&h->ei->lock);
    return may;
}

/* Asks for the versions before a mark. Returns false if the object has gone: its mark would stay in the
 * bricks' indices, where an entry precedes the counter. Children with other versions than K children are
 * behind. A child that cannot answer any more is not behind: all changes so far were made there. */
static bool
ask_last_versions(struct ec_op *op, struct ec_hold *h)
{
    struct ec_delta question = {.h = h, .has_version = true};
    uint64_t version[2];
    child_set others = 0;
    struct fan f;
    int ret;

    ec_insist(&f, op, ec_good(h), delta_make, &question);
    child_set same = answers_judge(op, &f, false, &ret);
    bool is_gone = ec_is_gone(op->d, &f);
    if (!is_gone && ret >= 0) {
        ec_get_words(f.stk[child_first(same)]->reply.dict, "trusted.ec.version", version);
        learn_versions(h, version);
        for_each_child (i, f.sent & ~f.unread & ~same)
            others |= f.ret[i] == -ENOTCONN ? 0 : CHILD(i);
        ec_blame(h, others);
    }
    h->is_torn |= !is_gone && ret < 0; /* no K children agree: the healer decides */
    fan_end(&f);
    return !is_gone;
}

/* Takes back the marks that the XATTROP has set with a version, unless a child failed that call: the version
 * of that child is behind, and only a mark brings the inode into the index of the others. */
static int
unmark_raise(struct ec_op *op, struct ec_hold *h, const struct ec_delta *sent)
{
    struct ec_delta x = {.h = h};

    if (sent->is_removed || ec_good(h) != op->d->all)
        return 0;
    for (unsigned w = 0; w < 2; w++)
        x.dirty[w] = sent->dirty[w] == 1 ? (uint64_t)-1 : 0;
    return send_delta(op, h, &x, NULL);
}

int
ec_write_back_last(struct ec_op *op, struct ec_hold *h, child_set *unlocked)
{
    const struct ec_lock l = {.inode = h->inode,
                              .domain = op->d->xl->name,
                              .owner = h->owner,
                              .cmd = LK_SET,
                              .type = FLOCK_UNLOCK};
    struct ec_behind unlock = {.make = ec_lock_make, .arg = &l, .always = true};
    struct ec_delta x = {.h = h};

    if (has_lost_lock(h))
        return h->post_err ? h->post_err : -ENOTCONN;
    if (may_mark_last(h) && !ask_last_versions(op, h))
        return h->post_err;
    bool is_whole = ec_good(h) == op->d->all && atomic_load(&op->d->up) == op->d->all && !h->is_torn;
    take_deltas(h, &x, true);
    for (unsigned w = 0; w < 2; w++) {
        if (is_whole && h->is_dirty[w])
            x.dirty[w] = (uint64_t)-1;
        else if (!is_whole)
            x.dirty[w] = !h->is_dirty[w] && h->has_changed[w];
    }
    /* a mark that is taken back again needs the lock for longer */
    bool is_last = x.dirty[0] != 1 && x.dirty[1] != 1 && h->locked == op->d->all;
    int err = send_delta(op, h, &x, is_last ? &unlock : NULL);
    if (unlock.is_sent) {
        *unlocked = fan_done(&unlock.fan);
        fan_end(&unlock.fan);
    }
    if (!err && is_whole)
        err = unmark_raise(op, h, &x);
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
