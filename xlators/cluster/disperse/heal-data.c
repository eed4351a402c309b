/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a file's fragments.
 *
 *      lock       other healers out; then the file, as writers do
 *      look       version, size and fragment length of each child
 *      decide     the sources are the largest group with equal data version and size, with fragments of the
 *                 right length; K are needed. All others that have the file are sinks. If no K children
 *                 agree, because a client died while it recorded a version or a size, or if fewer than K of
 *                 them have the right length, the fragments decide (heal-mend.c)
 *                 A live client that has lost bricks may come back and mend a marked file (debt.c). So the
 *                 heal of a marked file without sinks waits until the children are up for five seconds. A
 *                 heal that no call waits for does the same if the file has bytes behind its size, or if
 *                 fewer than K children were up before, and waits until this mount owes the file nothing
 *      begin      bit 62 of the sinks' versions; the sinks' fragments are cut to the right length; unlock
 *      blocks     each under the lock: READ from all sources, compare, decode, encode, WRITE to the sinks
 *                 (heal-block.c). Between the blocks other clients change the sources, and stock clients
 *                 also the sinks. A block is a unit of the throttle (heal-throttle.h): while clients work,
 *                 it has at most HEAL_UNIT bytes
 *      end        under the lock: times; the sinks' versions and sizes rise by the differences of the first
 *                 look, so that a change in between, which a sink missed, leaves it behind. Dirty goes
 *
 * Without sinks, a dirty mark, or a note of the bricks (dead-objects.c), means that a client died during a
 * change. Its stripes may be old on some children and new on others, so all blocks are compared. Fragments
 * that are longer than the size says on all children, left by a client that died before it recorded a new
 * size, are cut, and bytes behind the size in its stripe become zeros, both before another client can extend
 * the file. Fragments that are shorter on too many children, left by a client that died in a truncation, get
 * zeros. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/heal-data.h"

enum { HEAL_UNIT = 128 * 1024 };
#define GRACE_NS (UINT64_C(5) * 1000 * 1000 * 1000)

static int
cut_fragment(const struct ec_heal *h, unsigned i, uint64_t length)
{
    struct call_stack *stk = ec_heal_call(h, FOP_truncate, i);

    if (stk)
        stk->call.offset = length;
    int ret = ec_heal_send(h, i, stk);
    return ret < 0 ? ret : 0;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static child_set
equal_data(const struct ec_heal *h, unsigned i)
{
    child_set same = 0;

    for_each_child (k, h->has) {
        if (h->copy[k].version[WORD_DATA] == h->copy[i].version[WORD_DATA] &&
            h->copy[k].size == h->copy[i].size)
            same |= CHILD(k);
    }
    return same;
}

child_set
ec_largest_equal(const struct ec_heal *h)
{
    child_set best = 0;

    for_each_child (i, h->has) {
        child_set same = ec_copy_is_source(&h->copy[i]) ? equal_data(h, i) : 0;

        if (children_count(same) > children_count(best))
            best = same;
    }
    return best;
}

/* Gives equal lengths to fragments of which a truncation that a client died in has cut some or all: the bytes
 * behind the K-th longest one are gone from too many children. A child with a shorter one is a sink. Returns
 * 0 or -errno. */
static int
level_fragments(struct ec_data_heal *x, child_set of, uint64_t length)
{
    uint64_t chunks = ec_nth_longest(x->h, of, x->h->op.d->data);

    x->sources = ec_at_least(x->h, of, chunks);
    for_each_child (i, x->sources) {
        int err = x->h->copy[i].stat.size > chunks * CODEC_CHUNK ? cut_fragment(x->h, i, chunks * CODEC_CHUNK)
                                                                 : 0;

        if (!err)
            err = cut_fragment(x->h, i, length);
        if (err)
            return err;
        x->h->copy[i].stat.size = length;
    }
    return 0;
}

/* Returns whether a client may have died in a change of contents. */
static bool
ec_is_marked(const struct ec_heal *h, child_set of)
{
    bool is = h->compares_all;

    for_each_child (i, of)
        is |= h->copy[i].dirty[WORD_DATA] != 0;
    return is;
}

/* Returns the children of the group that have all stripes of its size. A longer fragment is cut; a shorter
 * one lacks bytes. */
static child_set
whole_fragments(const struct ec_heal *h, child_set group)
{
    uint64_t length = group ? fragment_length(h->op.d, h->copy[child_first(group)].size) : 0;

    return ec_at_least(h, group, length / CODEC_CHUNK);
}

static bool
is_in_grace(const _Atomic uint64_t *since_ns)
{
    uint64_t since = atomic_load(since_ns);

    return since && clock_mono_ns() - since < GRACE_NS;
}

/* Returns whether a client that a loss of bricks has cut off may still come back and mend the file: record a
 * size, or complete stripes. */
static bool
may_be_mended(const struct ec_data_heal *x)
{
    const struct ec_heal *h = x->h;
    const struct disperse *d = h->op.d;
    uint64_t length = fragment_length(d, x->size);
    bool may_lack_size = false;

    for_each_child (i, x->sources)
        may_lack_size |= h->copy[i].stat.size > length;
    bool may = h->is_patient && (ec_pays_debt(d, h->op.inode) || is_in_grace(&d->enough_ns));
    may |= ((h->is_patient && may_lack_size) || !x->sinks) && is_in_grace(&d->up_ns);
    return x->compares && may;
}

/* Returns 0, or -EIO: no K children agree; or -EAGAIN: later. */
static int
choose_sources(struct ec_data_heal *x)
{
    struct ec_heal *h = x->h;
    const unsigned data = h->op.d->data;
    child_set best = ec_largest_equal(h), mended = 0;
    int err = 0;

    if (children_count(whole_fragments(h, best)) < data)
        err = ec_mend_counters(x, &mended);
    if (err)
        return err;
    best = mended ? mended : best;
    if (children_count(best) < data)
        return -EIO;
    x->size = h->copy[child_first(best)].size;
    x->version = h->copy[child_first(best)].version[WORD_DATA];
    x->sources = whole_fragments(h, best);
    if (children_count(x->sources) < data)
        err = ec_is_marked(h, best) ? level_fragments(x, best, fragment_length(h->op.d, x->size)) : -EIO;
    x->sinks = h->has & ~x->sources;
    x->compares = ec_is_marked(h, x->sources);
    return err ? err : may_be_mended(x) ? -EAGAIN : 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Drops a sink that fails: its version keeps bit 62 until the next heal. */
static void
begin_sinks(struct ec_data_heal *x)
{
    struct ec_heal *h = x->h;
    uint64_t length = fragment_length(h->op.d, x->size);
    struct ec_change c[FAN_CHILDREN_MAX] = {0};

    for_each_child (i, x->sources) {
        if (h->copy[i].stat.size > length)
            (void)cut_fragment(h, i, length); /* a fragment that stays longer is met by the next heal */
    }
    for_each_child (i, x->sinks)
        c[i].version[WORD_DATA] = h->copy[i].version[WORD_DATA] & VERSION_HEALING ? 0 : VERSION_HEALING;
    (void)ec_heal_add(h, x->sinks, h->op.inode, c, &x->sinks);
    for_each_child (i, x->sinks) {
        if (h->copy[i].stat.size > length && cut_fragment(h, i, length))
            x->sinks &= ~CHILD(i);
    }
}

/* Returns the number of stripes that the next block has at most. */
static uint64_t
block_stripes(const struct disperse *d)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    size_t units = heal_gives_way(&d->throttle) ? 1 : (size_t)conf->heal_window;
    size_t stripes = units * HEAL_UNIT / d->stripe;

    return stripes ? stripes : 1;
}

/* Heals the block that begins with stripe `*at` of `end`, and sets *at to the next block. */
static int
heal_next_stripes(struct ec_data_heal *x, uint64_t *at, uint64_t end)
{
    struct ec_heal *h = x->h;
    uint64_t most = block_stripes(h->op.d), count = end - *at < most ? end - *at : most;
    int err = ec_heal_lock(h, h->op.inode);

    if (err)
        return err;
    err = ec_heal_block(x, *at, count);
    ec_heal_unlock(h, h->op.inode);
    *at += count;
    return err;
}

static int
ec_heal_blocks(struct ec_data_heal *x)
{
    struct disperse *d = x->h->op.d;
    uint64_t end = (x->size + d->stripe - 1) / d->stripe, at = 0;
    bool is_small = x->size <= HEAL_UNIT; /* the object's unit goes on */
    int err = 0;

    if (!is_small)
        heal_unit_end(&d->throttle, x->h->unit_ns);
    while (at < end && !err && (x->sinks || x->compares)) {
        uint64_t begun = is_small ? 0 : heal_unit_begin(&d->throttle);

        err = heal_next_stripes(x, &at, end);
        if (!is_small)
            heal_unit_end(&d->throttle, begun);
    }
    if (!is_small)
        x->h->unit_ns = heal_unit_begin(&d->throttle);
    return err;
}

static void
copy_times(const struct ec_data_heal *x, unsigned sink)
{
    struct call_stack *stk = ec_heal_call(x->h, FOP_setattr, sink);

    if (stk) {
        stk->call.stbuf = x->h->copy[child_first(x->sources)].stat;
        stk->call.valid = SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME;
    }
    (void)ec_heal_send(x->h, sink, stk); /* a wrong time is no reason to fail */
}

/* Makes the healed sinks good, by the counters of the first look. */
static int
end_sinks(struct ec_data_heal *x, child_set wanted)
{
    struct ec_heal *h = x->h;
    bool is_whole = h->on == h->op.d->all && h->has == h->on;
    struct ec_change change[FAN_CHILDREN_MAX] = {0};

    for_each_child (i, x->sinks) {
        const struct ec_copy *c = &h->copy[i];

        copy_times(x, i);
        change[i] = (struct ec_change){
            .version[WORD_DATA] = x->version - (c->version[WORD_DATA] | VERSION_HEALING),
            .dirty[WORD_DATA] = is_whole ? -c->dirty[WORD_DATA] : 0,
            .size = x->size - c->size};
    }
    int err = ec_heal_add(h, x->sinks, h->op.inode, change, NULL);
    if (x->sinks != wanted)
        err = err ? err : -EIO;
    return err ? err : ec_heal_clear_dirty(h, x->sources, WORD_DATA);
}

/* Under the lock on healers. */
static int
heal_fragments(struct ec_data_heal *x)
{
    struct ec_heal *h = x->h;
    int err = ec_heal_lock(h, h->op.inode);

    if (err)
        return err;
    err = ec_heal_see(h);
    if (!err)
        err = choose_sources(x);
    child_set wanted = x->sinks;
    if (!err)
        begin_sinks(x);
    if (!err && x->compares)
        err = ec_heal_last_stripe(x);
    bool is_done = !wanted && !x->compares;
    if (!err && is_done)
        err = ec_heal_clear_dirty(h, x->sources, WORD_DATA);
    ec_heal_unlock(h, h->op.inode);
    if (err || is_done)
        return err;
    err = ec_heal_blocks(x);
    if (!err)
        err = ec_heal_lock(h, h->op.inode);
    if (err)
        return err;
    err = end_sinks(x, wanted);
    ec_heal_unlock(h, h->op.inode);
    return err;
}

int
ec_heal_data(struct ec_heal *h)
{
    struct ec_data_heal x = {.h = h};
    int err = ec_healer_lock(h);

    if (err)
        return err;
    err = heal_fragments(&x);
    ec_healer_unlock(h);
    return err;
}
