/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/replicate/changelog.h"

#include <errno.h>
#include <string.h>

/* ---- counters -------------------------------------------------------------------------------- */

void
changelog_put(const struct changelog *c, unsigned char out[CHANGELOG_BYTES])
{
    for (unsigned w = 0; w < CHANGES; w++) {
        for (unsigned b = 0; b < 4; b++)
            out[4 * w + b] = (unsigned char)(c->count[w] >> (24 - 8 * b));
    }
}

void
changelog_get(struct changelog *out, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    *out = (struct changelog){0};
    for (unsigned at = 0; at < CHANGELOG_BYTES && at < len; at++)
        out->count[at / 4] |= (uint32_t)p[at] << (24 - 8 * (at % 4));
}

/* ---- readable copies ------------------------------------------------------------------------- */

child_set
changelog_accused(const struct replica *r, unsigned count, enum change what)
{
    child_set accused = 0;

    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < count && r[i].is_there; j++)
            accused |= j != i && r[i].about[j].count[what] ? CHILD(j) : 0;
    }
    return accused;
}

/* Drops copies that are shorter than the longest. */
static child_set
keep_longest(const struct replica *r, unsigned count, child_set good, int arbiter)
{
    uint64_t size = 0;
    child_set out = 0;

    for (unsigned i = 0; i < count; i++) {
        if (r[i].is_there && r[i].is_locked)
            return good;
        if (good & CHILD(i) && (int)i != arbiter && r[i].size > size)
            size = r[i].size;
    }
    for_each_child(i, good) out |= r[i].size == size ? CHILD(i) : 0;
    return out;
}

child_set
changelog_readable(const struct replica *r, unsigned count, enum change what, int arbiter)
{
    child_set good = 0, accused = changelog_accused(r, count, what);
    bool is_file = false;

    for (unsigned i = 0; i < count; i++) {
        good |= r[i].is_there && !r[i].is_bad ? CHILD(i) : 0;
        is_file |= r[i].is_there && r[i].is_file;
    }
    good &= ~accused;
    if (what != CHANGE_DATA || !is_file)
        return good;
    if (arbiter >= 0)
        good &= ~CHILD(arbiter);
    return keep_longest(r, count, good, arbiter);
}

/* ---- direction of a heal --------------------------------------------------------------------- */

void
changelog_direction(const struct replica *r, unsigned count, enum change what, struct direction *out)
{
    child_set accused = changelog_accused(r, count, what);
    bool is_odd = false;

    *out = (struct direction){0};
    for (unsigned i = 0; i < count; i++) {
        bool is_good = r[i].is_there && !r[i].is_bad && !(accused & CHILD(i));

        out->sources |= is_good ? CHILD(i) : 0;
        out->is_dirty |= r[i].dirty.count[what] != 0;
        is_odd |= r[i].about[i].count[what] != 0;
    }
    if (is_odd)
        out->sources = 0;
    out->sinks = out->sources ? accused : 0;
}

/* ---- quorum ---------------------------------------------------------------------------------- */

bool
quorum_is_met(const struct quorum *q, unsigned count, child_set good)
{
    unsigned n = children_count(good);

    switch (q->type) {
    case QUORUM_AUTO: /* exactly one half is a quorum if it includes the first child */
        return 2 * n > count || (2 * n == count && good & CHILD(0));
    case QUORUM_FIXED:
        return n >= q->count && n > 0;
    case QUORUM_NONE:
    default:
        return n > 0;
    }
}

int
replica_worse_errno(int a, int b)
{
    static const int first[] = {ENODATA, ENOENT, ESTALE, ENOSPC};

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        if (a == first[i] || b == first[i])
            return first[i];
    }
    return b ? b : a;
}

/* ---- choice of the child to read from -------------------------------------------------------- */

unsigned
replica_choose(child_set readable, unsigned count, const struct gfid *gfid)
{
    unsigned i = gfid_super_fast_hash(gfid) % count;

    return readable & CHILD(i) ? i : child_first(readable);
}
