/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a file's contents.
 *
 *      lock       the file in the healers' domain; if it is taken, another healer is at work. Then the
 *                 whole file, as writers do
 *      look       the counters of data (pending xattrs), and the size of each copy
 *      decide     the source is the longest copy that no copy accuses; among copies of equal size one with
 *                 a change begun (dirty), then the one changed last. Sinks: accused copies, shorter copies,
 *                 and all if a change was begun and is not known to have ended
 *      truncate   the sinks to the source's size, and unlock the whole file
 *      blocks     each under a lock of its range: RCHECKSUM on all; READ from the source and WRITE to the
 *                 sinks that differ (`data-self-heal-algorithm full`: to all sinks). Beyond its end at the
 *                 look a sink has nothing to compare, unless the file is sparse: there zeros stay a hole.
 *                 Beside the locked blocks other clients write to all children as usual
 *      FSYNC the sinks, lock the whole file, copy the source's times to the sinks
 *      count back the counters of the look, unlock
 *
 * The arbiter has no data: it is no source, and as a sink only its accusation is cleared. A file that is
 * empty on all children needs no source. Until the end the counters keep readers from the sinks.
 *
 * A heal copies up to BLOCKS_AT_A_TIME blocks at once, because each block waits for up to five messages. Each
 * block has a coroutine and a lock owner of its own, and each coroutine holds one lock, so blocks do not wait
 * for each other. The blocks beyond the first of each file share the process's EXTRA_BLOCKS_MAX, which bounds
 * the memory and the load on the bricks. A failed READ of the source ends the heal after the blocks at work;
 * a failed sink gets no further blocks. A heal that stops leaves blocks healed in any order, which no reader
 * sees: the sinks stay accused.
 *
 * While clients work, a block is a unit of the throttle (heal-throttle.h) and has at most WINDOW_BYTES, so
 * that neither its copy nor its lock delays a client's call for long.
 *
 * thread: while the blocks are healed, data_heal.lock guards `next`, `failed`, `err` and the noted errno of
 * *h, and the other fields do not change. Before and after, one coroutine uses the struct. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "mem/iobuf.h"
#include "stack/coro-call.h"
#include "xlators/cluster/replicate/heal.h"

enum {
    WINDOW_BYTES = 128 * 1024,
    BLOCK_MAX = 1024 * 1024,
    BLOCKS_AT_A_TIME = 4,
    EXTRA_BLOCKS_MAX = 24
};

struct data_heal {
    struct heal *h;
    unsigned source;
    child_set sinks; /* without the arbiter */
    uint64_t size, block;
    bool compares, is_sparse;
    pthread_mutex_t lock; /* a leaf; guards the fields below and heal_note() while blocks are healed */
    uint64_t next;        /* offset of the first block that no coroutine has taken */
    child_set failed;
    int err; /* of the first block that failed, as -errno; or 0 */
};

/* ---- deciding -------------------------------------------------------------------------------- */

static child_set
children_with_data(const struct heal *h)
{
    const struct replicate *r = h->op.r;

    return r->arbiter < 0 ? r->all : r->all & ~CHILD(r->arbiter);
}

static bool
is_empty_everywhere(const struct heal *h)
{
    bool is = true;

    for_each_child (i, children_with_data(h))
        is &= h->stat[i].size == 0;
    return is;
}

static bool
is_better_source(const struct heal *h, unsigned a, unsigned b)
{
    const struct iatt *x = &h->stat[a], *y = &h->stat[b];
    uint32_t begun_x = h->replica[a].dirty.count[CHANGE_DATA],
             begun_y = h->replica[b].dirty.count[CHANGE_DATA];

    if (x->size != y->size)
        return x->size > y->size;
    if (begun_x != begun_y)
        return begun_x > begun_y;
    return x->ctime != y->ctime ? x->ctime > y->ctime : x->ctime_nsec > y->ctime_nsec;
}

static uint64_t
block_bytes(const struct data_heal *d)
{
    const struct replicate_conf *conf = xlator_conf(d->h->op.r->xl);
    uint64_t bytes = (uint64_t)conf->heal_window * WINDOW_BYTES;

    if (d->is_sparse) /* compare small blocks */
        return WINDOW_BYTES;
    return bytes < BLOCK_MAX ? bytes : BLOCK_MAX;
}

/* Sets source, sinks and block size. Returns 0 or -EIO: split-brain. */
static int
choose_source(struct data_heal *d)
{
    struct heal *h = d->h;
    const struct replicate_conf *conf = xlator_conf(h->op.r->xl);
    child_set sources = h->way.sources & children_with_data(h);

    if (is_empty_everywhere(h))
        return 0;
    if (!sources)
        return -EIO;
    d->source = child_first(sources);
    for_each_child (i, sources)
        d->source = is_better_source(h, i, d->source) ? i : d->source;
    d->size = h->stat[d->source].size;
    d->is_sparse = h->stat[d->source].blocks * 512 < d->size;
    d->block = block_bytes(d);
    d->compares = conf->heal_algorithm != HEAL_FULL;
    d->sinks = h->way.is_dirty ? h->op.r->all : h->way.sinks;
    for_each_child (i, sources)
        d->sinks |= h->stat[i].size != d->size ? CHILD(i) : 0;
    d->sinks &= children_with_data(h) & ~CHILD(d->source);
    return 0;
}

/* ---- calls to the sinks ---------------------------------------------------------------------- */

/* Sends a call to the sinks of `which`; `make` returns the call for child i. A child that fails is no sink
 * any more. */
static void
send_to_sinks(struct data_heal *d, child_set which,
              struct call_stack *(*make)(struct data_heal *d, unsigned i))
{
    struct fan f;

    fan_begin(&f);
    for_each_child (i, which & ~d->failed)
        fan_wind(&f, &d->h->op, i, make(d, i));
    fan_wait(&f);
    for_each_child (i, f.sent & ~f.good)
        heal_note(d->h, i, -f.ret[i]);
    d->failed |= f.sent & ~f.good;
    fan_end(&f);
}

static struct call_stack *
heal_truncate_make(struct data_heal *d, unsigned i)
{
    struct call_stack *stk = heal_fd_call(d->h, FOP_ftruncate, i);

    if (stk)
        stk->call.offset = d->size;
    return stk;
}

static void
truncate_sinks(struct data_heal *d)
{
    child_set which = 0;

    for_each_child (i, d->sinks)
        which |= d->h->stat[i].size != d->size ? CHILD(i) : 0;
    send_to_sinks(d, which, heal_truncate_make);
}

static struct call_stack *
heal_fsync_make(struct data_heal *d, unsigned i)
{
    return heal_fd_call(d->h, FOP_fsync, i);
}

static struct call_stack *
heal_times_make(struct data_heal *d, unsigned i)
{
    struct call_stack *stk = heal_call(d->h, FOP_setattr, i);

    if (stk) {
        stk->call.stbuf = d->h->stat[d->source];
        stk->call.valid = SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME;
    }
    return stk;
}

/* ---- one block ------------------------------------------------------------------------------- */

struct block {
    struct data_heal *d;
    struct heal h; /* copy of *d->h with a lock owner of its own */
    uint64_t offset, bytes;
};

/* Notes the outcome of a sink's call: 0 or the errno (positive). */
static void
block_note(struct data_heal *d, unsigned i, int why)
{
    if (!why)
        return;
    pthread_mutex_lock(&d->lock);
    d->failed |= CHILD(i);
    heal_note(d->h, i, why);
    pthread_mutex_unlock(&d->lock);
}

/* Takes the next block. Returns the sinks to heal; none if there is no block left, or if the heal of a block
 * has failed. */
static child_set
block_take(struct data_heal *d, struct block *b)
{
    bool is_small = heal_gives_way(&d->h->op.r->throttle) && d->block > WINDOW_BYTES;

    b->d = d;
    b->bytes = is_small ? WINDOW_BYTES : d->block;
    pthread_mutex_lock(&d->lock);
    child_set sinks = d->err || d->next >= d->size ? 0 : d->sinks & ~d->failed;
    b->offset = d->next;
    d->next += sinks ? b->bytes : 0;
    pthread_mutex_unlock(&d->lock);
    return sinks;
}

static struct call_stack *
heal_checksum_make(const struct block *b, unsigned i)
{
    struct call_stack *stk = heal_fd_call(&b->h, FOP_rchecksum, i);

    if (stk) {
        stk->call.offset = b->offset;
        stk->call.size = b->bytes;
    }
    return stk;
}

/* Adds to *differ the sinks of `which` whose block differs from the source. Returns 0 or the source's -errno.
 */
static int
compare_block(struct block *b, child_set which, child_set *differ)
{
    unsigned source = b->d->source;
    struct fan f;

    fan_begin(&f);
    for_each_child (i, which | CHILD(source))
        fan_wind(&f, &b->h.op, i, heal_checksum_make(b, i));
    fan_wait(&f);
    int err = f.good & CHILD(source) ? 0 : f.ret[source];
    for_each_child (i, err ? 0 : f.sent & ~CHILD(source)) {
        bool is_equal = f.good & CHILD(i) && memcmp(f.stk[i]->reply.strong, f.stk[source]->reply.strong,
                                                    sizeof f.stk[i]->reply.strong) == 0;

        *differ |= is_equal ? 0 : CHILD(i);
    }
    fan_end(&f);
    return err;
}

static struct call_stack *
heal_write_make(const struct block *b, unsigned i, const struct fop_reply *from)
{
    struct call_stack *stk = heal_fd_call(&b->h, FOP_writev, i);

    if (!stk)
        return NULL;
    stk->call.offset = b->offset;
    stk->call.payload_iobuf = iobuf_ref(from->iobuf);
    stk->call.payload[0] = from->payload;
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = from->payload.iov_len;
    return stk;
}

static int
copy_block(struct block *b, child_set to)
{
    struct data_heal *d = b->d;
    struct call_stack *from = heal_fd_call(&b->h, FOP_readv, d->source);
    struct fan f;

    if (!from)
        return -ENOMEM;
    from->call.offset = b->offset;
    from->call.size = b->bytes;
    int ret = coro_call(from, d->h->op.r->xl->children[d->source]);

    if (ret > 0) { /* 0: another client has truncated all copies */
        fan_begin(&f);
        for_each_child (i, to)
            fan_wind(&f, &b->h.op, i, heal_write_make(b, i, &from->reply));
        fan_wait(&f);
        for_each_child (i, f.sent)
            block_note(d, i, f.ret[i] == ret ? 0 : f.ret[i] < 0 ? -f.ret[i] : ENOSPC);
        fan_end(&f);
    }
    call_stack_free(from);
    return ret < 0 ? ret : 0;
}

/* The sinks of `which` that need no comparison, because they had no data from `offset` on. */
static child_set
sinks_without_data(const struct data_heal *d, child_set which, uint64_t offset)
{
    child_set are = 0;

    for_each_child (i, which)
        are |= !d->is_sparse && d->h->stat[i].size <= offset ? CHILD(i) : 0;
    return are;
}

static int
heal_block(struct block *b, child_set sinks)
{
    struct data_heal *d = b->d;
    struct lock_entity e = {.inode = b->h.op.inode, .start = b->offset, .len = b->bytes};
    child_set differ = d->compares ? sinks_without_data(d, sinks, b->offset) : sinks;
    int err = heal_lock(&b->h, &e);

    if (err)
        return err;
    if (differ != sinks)
        err = compare_block(b, sinks & ~differ, &differ);
    if (!err && differ)
        err = copy_block(b, differ);
    heal_unlock(&b->h, &e);
    return err;
}

/* Returns false if there is nothing left to do. */
static bool
heal_next_block(struct data_heal *d)
{
    struct block b;
    child_set sinks = block_take(d, &b);

    if (!sinks)
        return false;
    heal_copy(&b.h, d->h);
    int err = heal_block(&b, sinks);

    pthread_mutex_lock(&d->lock);
    d->err = d->err ? d->err : err;
    pthread_mutex_unlock(&d->lock);
    return true;
}

static void
heal_blocks_in_turn(void *arg, size_t n)
{
    struct data_heal *d = arg;
    struct heal_throttle *throttle = &d->h->op.r->throttle;
    bool goes_on;

    (void)n;
    do {
        uint64_t begun = heal_unit_begin(throttle);

        goes_on = heal_next_block(d);
        heal_unit_end(throttle, begun);
    } while (goes_on);
}

/* ---- all blocks ------------------------------------------------------------------------------ */

static atomic_uint extra_blocks; /* of all heals of the process */

static unsigned
extra_blocks_take(unsigned wanted)
{
    unsigned taken = atomic_load(&extra_blocks), n;

    do {
        n = EXTRA_BLOCKS_MAX - taken < wanted ? EXTRA_BLOCKS_MAX - taken : wanted;
    } while (!atomic_compare_exchange_weak(&extra_blocks, &taken, taken + n));
    return n;
}

static int
heal_blocks(struct data_heal *d)
{
    size_t count = d->sinks & ~d->failed ? (size_t)((d->size + d->block - 1) / d->block) : 0;

    if (!count)
        return 0;
    if (d->size <= WINDOW_BYTES) { /* the object's unit goes on */
        (void)heal_next_block(d);
        return d->err;
    }
    struct heal_throttle *throttle = &d->h->op.r->throttle;
    unsigned extra = extra_blocks_take(count < BLOCKS_AT_A_TIME ? (unsigned)count - 1 : BLOCKS_AT_A_TIME - 1);

    heal_unit_end(throttle, d->h->unit_ns);
    coro_each(1 + extra, 1 + extra, heal_blocks_in_turn, d);
    d->h->unit_ns = heal_unit_begin(throttle);
    atomic_fetch_sub(&extra_blocks, extra);
    return d->err;
}

/* ---- the whole heal -------------------------------------------------------------------------- */

/* Reads the source's times again, because clients have written during the heal. */
static int
look_at_times(struct data_heal *d)
{
    struct call_stack *stk = heal_call(d->h, FOP_stat, d->source);
    int err = stk ? coro_call(stk, d->h->op.r->xl->children[d->source]) : -ENOMEM;

    if (err >= 0)
        d->h->stat[d->source] = stk->reply.stat;
    if (stk)
        call_stack_free(stk);
    return err < 0 ? err : 0;
}

static int
heal_data_finish(struct data_heal *d)
{
    struct lock_entity whole = {.inode = d->h->op.inode};
    int err;

    send_to_sinks(d, d->sinks, heal_fsync_make);
    err = heal_lock(d->h, &whole);
    if (err)
        return err;
    if (d->sinks)
        err = look_at_times(d);
    if (!err && d->sinks)
        send_to_sinks(d, d->sinks, heal_times_make);
    if (!err)
        err = heal_count_back(d->h, CHANGE_DATA, d->failed);
    heal_unlock(d->h, &whole);
    return err;
}

static int
heal_data_begin(struct data_heal *d)
{
    struct lock_entity whole = {.inode = d->h->op.inode};
    int err = heal_lock(d->h, &whole);

    if (err)
        return err;
    err = heal_look(d->h, CHANGE_DATA);
    if (!err)
        err = choose_source(d);
    if (!err)
        truncate_sinks(d);
    heal_unlock(d->h, &whole);
    return err;
}

int
heal_data(struct heal *h)
{
    struct lock_entity alone = {.inode = h->op.inode, .domain = h->op.r->heal_domain};
    struct data_heal d = {.h = h, .lock = PTHREAD_MUTEX_INITIALIZER};
    int err = heal_lock_alone(h, &alone);

    if (err)
        return err;
    err = heal_data_begin(&d);
    if (!err)
        err = heal_blocks(&d);
    if (!err)
        err = heal_data_finish(&d);
    heal_unlock(h, &alone);
    return err;
}
