/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Counters of a file of which no K children have the same: a client died while it recorded a version or a
 * size, or a stock client did. The change itself was made on all good children before it was recorded, so
 * the fragments of the good children belong together, which more than K fragments show.
 *
 *      candidates  all children; then all without those of one version and size, which may be behind
 *      compare     the whole file, as far as K + 1 children have fragments; children with shorter ones have
 *                  lost bytes, and are no candidates
 *      record      the recorded size of the highest version for which K children have all stripes, of equal
 *                  versions the largest, and the highest version, on each child of the candidate, which
 *                  then is a source if it has them; the others are sinks
 *
 * With exactly K good children fragments show nothing. They are known by their versions then, if all children
 * have the file: a child that is behind has a lower version than each good one, because a version rises on
 * good children only, and a raise that the client did not finish leaves two versions on them. So the K
 * children of the highest versions are the good ones, if their sizes, fragments' lengths and times are equal.
 * A child that has missed a change has older times; so a file of which a good child has lost the newest state
 * (an earlier disk came back) stays unhealed.
 *
 * With K children up, or for a folder, a mount completes the raise that another one had begun before a change
 * (ec_mend_raise()). The raise adds the same number to both words and brings a mark, and the mount died
 * before the change: apart from the number and the mark, counters, times and fragments' lengths of all these
 * children are equal. A child that has missed a change has older times, because the client sends the time to
 * all bricks. A raise after a change finds the mark set.
 *
 * So one fragment that is damaged, or that a brick lies about, decides no size: by the shortest fragment the
 * heal would cut all others.
 *
 * Children of equal versions but different sizes need no comparison if they are K: a size is recorded after
 * the write. A healer that dies between two children leaves counters that still differ, and the next heal
 * compares again. */
#include <errno.h>

#include "log/log.h"
#include "xlators/cluster/disperse/heal-data.h"

enum { MEND_STRIPES = 1024 };

static uint64_t
mend_chunks(const struct ec_heal *h, unsigned i)
{
    return h->copy[i].stat.size / CODEC_CHUNK;
}

child_set
ec_at_least(const struct ec_heal *h, child_set of, uint64_t chunks)
{
    child_set has = 0;

    for_each_child (i, of)
        has |= mend_chunks(h, i) >= chunks ? CHILD(i) : 0;
    return has;
}

uint64_t
ec_nth_longest(const struct ec_heal *h, child_set of, unsigned n)
{
    uint64_t longest = 0;

    for_each_child (i, of) {
        if (mend_chunks(h, i) > longest && children_count(ec_at_least(h, of, mend_chunks(h, i))) >= n)
            longest = mend_chunks(h, i);
    }
    return longest;
}

/* Takes children with short fragments out of *of. Sets *is to whether the fragments of the others, more than
 * K, belong together. */
static int
mend_compare(struct ec_heal *h, child_set *of, bool *is)
{
    uint64_t stripes = ec_nth_longest(h, *of, h->op.d->data + 1);
    int err = 0;

    /* without a stripe to compare, only empty fragments belong together */
    *is = stripes || !ec_at_least(h, *of, 1);
    *of = ec_at_least(h, *of, stripes);
    for (uint64_t at = 0; at < stripes && *is && !err; at += MEND_STRIPES)
        err = ec_block_belongs(h, *of, at, stripes - at < MEND_STRIPES ? stripes - at : MEND_STRIPES, is);
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

static child_set
mend_sources(const struct ec_heal *h)
{
    child_set sources = 0;

    for_each_child (i, h->has)
        sources |= ec_copy_is_source(&h->copy[i]) ? CHILD(i) : 0;
    return sources;
}

/* Returns the child with the highest version among `of` (not empty). */
static unsigned
mend_highest(const struct ec_heal *h, child_set of)
{
    unsigned best = child_first(of);

    for_each_child (i, of)
        best = h->copy[i].version[WORD_DATA] > h->copy[best].version[WORD_DATA] ? i : best;
    return best;
}

/* Returns the children of the highest version, if they are K at least. */
static child_set
mend_newest(const struct ec_heal *h)
{
    child_set sources = mend_sources(h);
    child_set same = sources ? mend_group(h, mend_highest(h, sources), false) : 0;

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
    for (child_set rest = left, without = 0; !belongs;) {
        child_set candidate = left & ~without;
        int err = 0;

        if (children_count(candidate) > h->op.d->data)
            err = mend_compare(h, &candidate, &belongs);
        *out = belongs ? candidate : 0;
        if (err || !rest)
            return err;
        without = mend_group(h, child_first(rest), true);
        rest &= ~without;
    }
    return 0;
}

static bool
mend_are_alike(const struct ec_heal *h, unsigned i, unsigned k)
{
    const struct ec_copy *a = &h->copy[i], *b = &h->copy[k];

    return a->size == b->size && (a->stat.size == b->stat.size || S_ISDIR(a->stat.mode)) &&
           a->stat.mtime == b->stat.mtime && a->stat.mtime_nsec == b->stat.mtime_nsec &&
           a->stat.ctime == b->stat.ctime && a->stat.ctime_nsec == b->stat.ctime_nsec;
}

/* Returns the K children of the highest versions, if all children have the file and no other child has one of
 * these versions; else 0. */
static child_set
mend_last_group(const struct ec_heal *h)
{
    child_set left = h->has == h->op.d->all ? mend_sources(h) : 0, group = 0;
    unsigned first = left ? mend_highest(h, left) : 0;
    while (left && children_count(group) < h->op.d->data) {
        child_set same = mend_group(h, mend_highest(h, left), false) & left;

        for_each_child (i, same) {
            if (!mend_are_alike(h, first, i))
                return 0;
        }
        group |= same;
        left &= ~same;
    }
    return children_count(group) == h->op.d->data ? group : 0;
}

/* Sets *out to the size of the highest version for which K children of `of` have all stripes; of equal
 * versions the largest size. Returns false if there is none. */
static bool
mend_size(const struct ec_heal *h, child_set of, uint64_t *out)
{
    uint64_t chunks = ec_nth_longest(h, of, h->op.d->data), highest = 0;
    bool has_any = false;

    for_each_child (i, of) {
        const struct ec_copy *c = &h->copy[i];
        uint64_t version = c->version[WORD_DATA];

        if (!ec_copy_is_source(c) || fragment_length(h->op.d, c->size) / CODEC_CHUNK > chunks)
            continue;
        if (!has_any || version > highest || (version == highest && c->size > *out))
            *out = c->size;
        highest = version > highest ? version : highest;
        has_any = true;
    }
    return has_any;
}

int
ec_mend_counters(struct ec_data_heal *x, child_set *out)
{
    struct ec_heal *h = x->h;
    child_set of = mend_newest(h);
    uint64_t version = 0, size = 0;
    int err = of ? 0 : mend_candidates(h, &of);

    if (!err && !of)
        of = mend_last_group(h);
    *out = 0;
    if (err || !of || !mend_size(h, of, &size))
        return err;
    for_each_child (i, of) {
        uint64_t told = ec_copy_is_source(&h->copy[i]) ? h->copy[i].version[WORD_DATA] : 0;

        version = told > version ? told : version;
    }
    log_event(LOG_INFO, h->op.d->xl, "disperse-counters-mended",
              "%s: a client died before it recorded its change on all bricks: size %llu, version %llu",
              GFID(&h->op.inode->gfid), (unsigned long long)size, (unsigned long long)version);
    struct ec_change change[FAN_CHILDREN_MAX] = {0};
    child_set changed = 0;
    for_each_child (i, of) {
        struct ec_copy *c = &h->copy[i];

        change[i] = (struct ec_change){.version[WORD_DATA] = version - c->version[WORD_DATA],
                                       .size = size - c->size};
        changed |= change[i].version[WORD_DATA] | change[i].size ? CHILD(i) : 0;
        c->version[WORD_DATA] = version;
        c->size = size;
    }
    err = ec_heal_add(h, changed, h->op.inode, change, NULL);
    if (err)
        return err;
    *out = of;
    return 0;
}

/* ---- a raise before a change ----------------------------------------------------------------- */

/* Fills in the raise that children lack. Returns these children; 0: the versions differ by more. */
static child_set
mend_lacking(const struct ec_heal *h, struct ec_change change[])
{
    child_set sources = mend_sources(h), lacking = 0;

    if (sources != h->on || children_count(sources) < h->op.d->data)
        return 0;
    unsigned top = mend_highest(h, sources);
    const struct ec_copy *to = &h->copy[top];
    for_each_child (i, sources) {
        const struct ec_copy *c = &h->copy[i];
        uint64_t step = to->version[WORD_DATA] - c->version[WORD_DATA];

        for (unsigned w = 0; w < 2; w++) {
            if (to->version[w] - c->version[w] != step || to->dirty[w] - c->dirty[w] != (step != 0))
                return 0;
        }
        if (!mend_are_alike(h, top, i))
            return 0;
        change[i] = (struct ec_change){.version = {step, step}, .dirty = {1, 1}};
        lacking |= step ? CHILD(i) : 0;
    }
    return lacking;
}

int
ec_mend_raise(struct disperse *d, struct inode *inode, child_set of)
{
    struct ec_change change[FAN_CHILDREN_MAX] = {0};
    struct ec_heal h;
    int err = 0;

    ec_heal_begin(&h, d, inode);
    h.on &= of;
    child_set has = ec_locks_take(&h.op, inode, d->xl->name, h.lock_owner, h.on, &err);
    if (has == h.on) {
        (void)ec_heal_see(&h); /* succeeds with more than K children only */
        child_set lacking = mend_lacking(&h, change);

        /* without a lack, another operation may have completed the raise meanwhile */
        err = children_count(ec_largest_equal(&h)) >= d->data ? 0 : -EIO;
        if (lacking)
            err = ec_heal_add(&h, lacking, inode, change, NULL);
        if (!err && lacking)
            log_event(LOG_INFO, d->xl, "disperse-raise-mended",
                      "%s: a client died before a change: the version of each brick is %llu now",
                      GFID(&inode->gfid),
                      (unsigned long long)h.copy[mend_highest(&h, h.has)].version[WORD_DATA]);
    } else {
        err = -EIO;
    }
    ec_locks_drop(&h.op, inode, d->xl->name, h.lock_owner, has);
    ec_heal_end(&h);
    return err;
}
