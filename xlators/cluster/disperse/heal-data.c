/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a file's fragments.
 *
 *      lock       other healers out; then the file, as writers do
 *      look       version, size and fragment length of each child
 *      decide     the sources are the largest group with equal data version and size, with fragments of the
 *                 right length; K are needed. All others that have the file are sinks
 *      begin      bit 62 of the sinks' versions; the sinks' fragments are cut to the right length; unlock
 *      blocks     each under the lock: READ from K sources, decode, encode, WRITE to the sinks. Between the
 *                 blocks other clients change the sources, and stock clients also the sinks
 *      end        under the lock: times; the sinks' versions and sizes rise by the differences of the first
 *                 look, so that a change in between, which a sink missed, leaves it behind. Dirty goes
 *
 * Fragments that are longer than the size says on all children, left by a client that died before it
 * recorded a new size, are cut. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/heal.h"

enum { HEAL_UNIT = 128 * 1024 };

struct ec_data_heal {
    struct ec_heal *h;
    child_set sources, sinks;
    uint64_t size, version;
};

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

/* Returns 0, or -EIO: no K children agree. */
static int
choose_sources(struct ec_data_heal *x)
{
    struct ec_heal *h = x->h;
    child_set best = 0;

    for_each_child (i, h->has) {
        child_set same = h->copy[i].version[WORD_DATA] & VERSION_HEALING ? 0 : equal_data(h, i);

        if (children_count(same) > children_count(best))
            best = same;
    }
    if (children_count(best) < h->op.d->data)
        return -EIO;
    x->size = h->copy[child_first(best)].size;
    x->version = h->copy[child_first(best)].version[WORD_DATA];
    uint64_t length = fragment_length(h->op.d, x->size);
    for_each_child (i, best) {
        /* a longer fragment is cut; a shorter one lacks bytes */
        if (h->copy[i].stat.size >= length)
            x->sources |= CHILD(i);
    }
    x->sinks = h->has & ~x->sources;
    return children_count(x->sources) < h->op.d->data ? -EIO : 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int
cut_fragment(const struct ec_heal *h, unsigned i, uint64_t length)
{
    struct call_stack *stk = ec_heal_call(h, FOP_truncate, i);

    if (stk)
        stk->call.offset = length;
    int ret = ec_heal_send(h, i, stk);
    return ret < 0 ? ret : 0;
}

/* Drops a sink that fails: its version keeps bit 62 until the next heal. */
static void
begin_sinks(struct ec_data_heal *x)
{
    struct ec_heal *h = x->h;
    uint64_t length = fragment_length(h->op.d, x->size);

    for_each_child (i, x->sources) {
        if (h->copy[i].stat.size > length)
            (void)cut_fragment(h, i, length); /* a fragment that stays longer is met by the next heal */
    }
    for_each_child (i, x->sinks) {
        struct ec_change c = {
            .version[WORD_DATA] =
                h->copy[i].version[WORD_DATA] & VERSION_HEALING ? 0 : VERSION_HEALING};
        int err = ec_heal_add(h, i, h->op.inode, &c);

        if (!err && h->copy[i].stat.size > length)
            err = cut_fragment(h, i, length);
        if (err)
            x->sinks &= ~CHILD(i);
    }
}

struct sink_write {
    const struct ec_data_heal *x;
    struct iobuf *fragments;
    uint64_t offset, bytes;
};

static struct call_stack *
sink_write_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct sink_write *w = arg;
    struct call_stack *stk = ec_fd_call(op, FOP_writev, i, is_spare, op->inode, NULL);

    if (!stk)
        return NULL;
    stk->call.payload_iobuf = iobuf_ref(w->fragments);
    stk->call.payload[0] = (struct iovec){w->fragments->bytes + i * w->bytes, w->bytes};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = w->bytes;
    stk->call.offset = w->offset;
    return stk;
}

/* Heals `count` stripes from `first` on, under the lock. */
static int
ec_heal_block(struct ec_data_heal *x, uint64_t first, size_t count)
{
    struct ec_heal *h = x->h;
    struct disperse *d = h->op.d;
    struct iobuf *plain = iobuf_get(count * d->stripe);
    struct sink_write w = {.x = x, .offset = first * CODEC_CHUNK, .bytes = count * CODEC_CHUNK};
    child_set failed = 0;
    struct fan f;

    w.fragments = iobuf_get(w.bytes * d->count);
    int err = plain && w.fragments ? 0 : -ENOMEM;
    if (!err)
        err = read_stripes(&h->op, h->op.inode, x->sources, first, count, true,
                           (unsigned char *)plain->bytes, &failed);
    if (!err) {
        codec_encode(d->data, x->sinks, (const unsigned char *)plain->bytes, count,
                     (unsigned char *)w.fragments->bytes);
        err = ec_ask(&f, &h->op, x->sinks, sink_write_make, &w);
    }
    if (!err) {
        for_each_child (i, f.sent) {
            if (f.ret[i] < 0 || (uint64_t)f.ret[i] != w.bytes)
                x->sinks &= ~CHILD(i);
        }
        fan_end(&f);
    }
    iobuf_unref(plain);
    iobuf_unref(w.fragments);
    return err;
}

static int
ec_heal_blocks(struct ec_data_heal *x)
{
    struct ec_heal *h = x->h;
    struct disperse *d = h->op.d;
    const struct disperse_conf *conf = xlator_conf(d->xl);
    size_t window = (size_t)conf->heal_window * HEAL_UNIT / d->stripe;
    uint64_t stripes = (x->size + d->stripe - 1) / d->stripe;
    int err = 0;

    window = window ? window : 1;
    for (uint64_t at = 0; at < stripes && !err && x->sinks; at += window) {
        err = ec_heal_lock(h, h->op.inode);
        if (err)
            return err;
        err = ec_heal_block(x, at, stripes - at < window ? stripes - at : window);
        ec_heal_unlock(h, h->op.inode);
    }
    return err ? err : x->sinks ? 0 : -EIO;
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
    int err = 0;

    for_each_child (i, x->sinks) {
        const struct ec_copy *c = &h->copy[i];
        struct ec_change change = {.version[WORD_DATA] = x->version -
                                                         (c->version[WORD_DATA] | VERSION_HEALING),
                                   .size = x->size - c->size};

        copy_times(x, i);
        if (h->on == h->op.d->all && h->has == h->on)
            change.dirty[WORD_DATA] = -c->dirty[WORD_DATA];
        int ret = ec_heal_add(h, i, h->op.inode, &change);
        err = ret ? ret : err;
    }
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
    if (!err)
        begin_sinks(x);
    child_set wanted = x->sinks;
    if (!err && !wanted)
        err = ec_heal_clear_dirty(h, x->sources, WORD_DATA);
    ec_heal_unlock(h, h->op.inode);
    if (err || !wanted)
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
