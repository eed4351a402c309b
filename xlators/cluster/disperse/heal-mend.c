/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Counters of a file of which no K children have the same: a client died while it recorded a version or a
 * size, or a stock client did. The change itself was made on all good children before it was recorded, so
 * the fragments of the good children belong together, which more than K fragments show.
 *
 *      candidates  all children; then all without those of one version and size, which may be behind
 *      compare     the whole file, up to the shortest fragment
 *      record      the largest recorded size that the fragments have room for, and the highest version, on
 *                  each child of the candidate, which then is a source; the others are sinks
 *
 * Children of equal versions but different sizes need no comparison if they are K: a size is recorded after
 * the write. A healer that dies between two children leaves counters that still differ, and the next heal
 * compares again. */
#include <errno.h>

#include "log/log.h"
#include "xlators/cluster/disperse/heal-data.h"

enum { MEND_STRIPES = 1024 };

static uint64_t
mend_shortest(const struct ec_heal *h, child_set of)
{
    uint64_t shortest = UINT64_MAX;

    for_each_child (i, of)
        shortest = h->copy[i].stat.size < shortest ? h->copy[i].stat.size : shortest;
    return shortest / CODEC_CHUNK;
}

static int
mend_compare(struct ec_heal *h, child_set of, bool *is)
{
    uint64_t stripes = mend_shortest(h, of);
    int err = 0;

    *is = true;
    for (uint64_t at = 0; at < stripes && *is && !err; at += MEND_STRIPES)
        err = ec_block_belongs(h, of, at, stripes - at < MEND_STRIPES ? stripes - at : MEND_STRIPES, is);
    return err;
}

/* Returns the children with child i's version, and with its size if `compares_sizes`. */
static child_set
mend_group(const struct ec_heal *h, unsigned i, bool compares_sizes)
{
    const struct ec_copy *c = &h->copy[i];
    child_set same = 0;

    for_each_child (k, h->has) {
        bool is = h->copy[k].version[WORD_DATA] == c->version[WORD_DATA] &&
                  (!compares_sizes || h->copy[k].size == c->size);

        same |= is ? CHILD(k) : 0;
    }
    return same;
}

/* Returns the children of the highest version, if they are K at least. */
static child_set
mend_newest(const struct ec_heal *h)
{
    unsigned best = child_first(h->has);

    for_each_child (i, h->has) {
        uint64_t version = h->copy[i].version[WORD_DATA];
        bool is_healing = version & VERSION_HEALING;

        best = !is_healing && (h->copy[best].version[WORD_DATA] & VERSION_HEALING ||
                               version > h->copy[best].version[WORD_DATA])
                   ? i
                   : best;
    }
    child_set same = h->copy[best].version[WORD_DATA] & VERSION_HEALING ? 0 : mend_group(h, best, false);
    return children_count(same) >= h->op.d->data ? same : 0;
}

/* Returns 0 with the set, or 0 and *out 0: no candidate's fragments belong together; or -errno. */
static int
mend_candidates(struct ec_heal *h, child_set *out)
{
    child_set healing = 0, left;
    bool belongs = false;

    *out = 0;
    for_each_child (i, h->has)
        healing |= h->copy[i].version[WORD_DATA] & VERSION_HEALING ? CHILD(i) : 0;
    left = h->has & ~healing;
    if (children_count(left) > h->op.d->data) {
        int err = mend_compare(h, left, &belongs);

        if (err || belongs) {
            *out = belongs ? left : 0;
            return err;
        }
    }
    for (child_set rest = left; rest;) {
        child_set without = mend_group(h, child_first(rest), true);
        int err = 0;

        rest &= ~without;
        if (children_count(left & ~without) > h->op.d->data)
            err = mend_compare(h, left & ~without, &belongs);
        if (err || belongs) {
            *out = belongs ? left & ~without : 0;
            return err;
        }
    }
    return 0;
}

/* Returns the largest recorded size that has fragments of the shortest length, or else of a smaller one. */
static uint64_t
mend_size(const struct ec_heal *h, child_set of)
{
    uint64_t length = mend_shortest(h, of) * CODEC_CHUNK, size = 0;

    for_each_child (i, of) {
        if (fragment_length(h->op.d, h->copy[i].size) <= length && h->copy[i].size > size)
            size = h->copy[i].size;
    }
    return size;
}

int
ec_mend_counters(struct ec_data_heal *x, child_set *out)
{
    struct ec_heal *h = x->h;
    child_set of = mend_newest(h);
    uint64_t version = 0;
    int err = of ? 0 : mend_candidates(h, &of);

    if (err || !of)
        return err ? err : -EIO;
    uint64_t size = mend_size(h, of);
    for_each_child (i, of)
        version = h->copy[i].version[WORD_DATA] > version ? h->copy[i].version[WORD_DATA] : version;
    log_event(LOG_INFO, h->op.d->xl, "disperse-counters-mended",
              "%s: a client died before it recorded its change on all bricks: size %llu, version %llu",
              GFID(&h->op.inode->gfid), (unsigned long long)size, (unsigned long long)version);
    for_each_child (i, of) {
        struct ec_copy *c = &h->copy[i];
        struct ec_change change = {.version[WORD_DATA] = version - c->version[WORD_DATA],
                                   .size = size - c->size};

        err = change.version[WORD_DATA] | change.size ? ec_heal_add(h, i, h->op.inode, &change) : 0;
        if (err)
            return err;
        c->version[WORD_DATA] = version;
        c->size = size;
    }
    *out = of;
    return 0;
}
