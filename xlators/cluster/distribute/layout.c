/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/distribute/layout.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mem-pool.h"

enum { POOLED_CHILDREN = 8 };

/* Memory for a layout of POOLED_CHILDREN; clang does not allow a struct with a flexible array inside
 * another struct. */
struct layout_pooled {
    _Alignas(struct layout) char room[sizeof(struct layout) + POOLED_CHILDREN * sizeof(struct layout_range)];
};

static struct mem_pool *pool;

int
layout_pools_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct layout_pooled, 0);
    return pool ? 0 : -ENOMEM;
}

struct layout *
layout_new(unsigned count, uint16_t owner)
{
    bool is_pooled = count <= POOLED_CHILDREN;
    struct layout *l = is_pooled ? mem_get0_owner(pool, owner)
                                 : calloc(1, sizeof *l + count * sizeof l->of[0]); /* large volumes only */

    if (!l)
        return NULL;
    refcount_init(&l->refs, 1);
    l->is_pooled = is_pooled;
    l->count = (uint16_t)count;
    l->commit = LAYOUT_COMMIT_INVALID;
    for (unsigned i = 0; i < count; i++)
        l->of[i].err = ENOTCONN;
    return l;
}

struct layout *
layout_ref(struct layout *l)
{
    refcount_get(&l->refs);
    return l;
}

void
layout_unref(struct layout *l)
{
    if (!l || !refcount_put(&l->refs))
        return;
    if (l->is_pooled)
        mem_put(l);
    else
        free(l);
}

/* ---- format on disk -------------------------------------------------------------------------- */

static uint32_t
number_at(const uint8_t *bytes)
{
    uint32_t be;

    memcpy(&be, bytes, sizeof be);
    return be32toh(be);
}

static void
put_number(uint8_t *bytes, uint32_t number)
{
    uint32_t be = htobe32(number);

    memcpy(bytes, &be, sizeof be);
}

void
layout_read(struct layout *l, unsigned i, const void *bytes, size_t len)
{
    struct layout_range r = {.err = LAYOUT_NO_XATTR, .sorted = l->of[i].sorted};
    const uint8_t *at = bytes;

    if (bytes && len == LAYOUT_BYTES) {
        r = (struct layout_range){.commit = number_at(at),
                                  .type = number_at(at + 4),
                                  .start = number_at(at + 8),
                                  .stop = number_at(at + 12),
                                  .sorted = l->of[i].sorted};
    }
    if (bytes && (len != LAYOUT_BYTES || r.type > LAYOUT_SET_BY_USER || r.start > r.stop))
        r = (struct layout_range){.err = EINVAL, .sorted = l->of[i].sorted};
    l->of[i] = r;
}

void
layout_failed(struct layout *l, unsigned i, int err)
{
    l->of[i] = (struct layout_range){.err = err, .sorted = l->of[i].sorted};
}

void
layout_write(const struct layout_range *r, uint8_t bytes[LAYOUT_BYTES])
{
    put_number(bytes, r->commit);
    put_number(bytes + 4, r->type);
    put_number(bytes + 8, r->start);
    put_number(bytes + 12, r->stop);
}

/* ---- reading a layout ------------------------------------------------------------------------ */

bool
layout_range_is_empty(const struct layout_range *r)
{
    return r->err || r->start == r->stop;
}

/* Insertion sort, because a subvolume order is a rotation of the range order. */
static void
sort_ranges(struct layout *l)
{
    l->range_count = 0;
    for (unsigned i = 0; i < l->count; i++) {
        if (layout_range_is_empty(&l->of[i]))
            continue;
        unsigned at = l->range_count++;

        for (; at > 0 && l->of[l->of[at - 1].sorted].start > l->of[i].start; at--)
            l->of[at].sorted = l->of[at - 1].sorted;
        l->of[at].sorted = (uint16_t)i;
    }
}

void
layout_settle(struct layout *l)
{
    bool is_first = true;

    sort_ranges(l);
    l->commit = LAYOUT_COMMIT_INVALID;
    for (unsigned i = 0; i < l->count; i++) {
        if (l->of[i].err)
            continue;
        if (!is_first && l->commit != l->of[i].commit) {
            l->commit = LAYOUT_COMMIT_INVALID;
            return;
        }
        l->commit = l->of[i].commit;
        is_first = false;
    }
}

static void
count_errors(const struct layout *l, struct layout_flaws *out)
{
    for (unsigned i = 0; i < l->count; i++) {
        switch (l->of[i].err) {
        case 0: break;
        case LAYOUT_NO_XATTR: out->no_xattr++; break;
        case ENOENT:
        case ENODATA:
        case ESTALE: out->missing++; break;
        case ENOTCONN: out->away++; break;
        default: out->other++; break;
        }
    }
}

/* Checks that each range begins where the previous one ends, from 0 to the last hash. */
void
layout_check(const struct layout *l, struct layout_flaws *out)
{
    uint64_t next = 0; /* the first hash that no earlier range covers */

    *out = (struct layout_flaws){0};
    count_errors(l, out);
    for (unsigned k = 0; k < l->range_count; k++) {
        const struct layout_range *r = &l->of[l->of[k].sorted];

        if (r->start > next)
            out->holes++;
        else if (r->start < next)
            out->overlaps++;
        if (r->stop + UINT64_C(1) > next)
            next = r->stop + UINT64_C(1);
    }
    if (next <= UINT32_MAX)
        out->holes++;
}

/* Where ranges overlap, the range with the lowest start wins. */
int
layout_find(const struct layout *l, uint32_t hash)
{
    for (unsigned k = 0; k < l->range_count; k++) {
        const struct layout_range *r = &l->of[l->of[k].sorted];

        if (r->start <= hash && hash <= r->stop)
            return l->of[k].sorted;
    }
    return -1;
}

bool
layout_equal(const struct layout *a, const struct layout *b)
{
    for (unsigned i = 0; i < a->count; i++) {
        const struct layout_range *x = &a->of[i], *y = &b->of[i];

        if (x->err != y->err || x->commit != y->commit || x->start != y->start || x->stop != y->stop)
            return false;
    }
    return true;
}

/* ---- computing a new layout ------------------------------------------------------------------ */

static bool
is_usable(const struct layout *l, const struct layout_plan *plan, unsigned i)
{
    return (l->of[i].err == 0 || l->of[i].err == LAYOUT_NO_XATTR) && plan->weights[i];
}

struct sums {
    unsigned usable;
    double weight;
};

/* Sums up the children that will get a range. */
static struct sums
sum_weights(const struct layout *l, const struct layout_plan *plan, unsigned first)
{
    struct sums s = {0, 0};

    for (unsigned k = 0; k < l->count; k++) {
        unsigned i = plan->order[(first + k) % l->count];

        if (!is_usable(l, plan, i) || (plan->spread && s.usable == plan->spread))
            continue;
        s.usable++;
        s.weight += plan->weights[i];
    }
    return s;
}

/* Uses the order of all clients and begins at the child that the folder's hash selects. So clients that
 * assign at the same time compute the same layout, while the first child differs between folders. */
void
layout_assign(struct layout *l, const struct layout_plan *plan)
{
    unsigned first = plan->hash % l->count, left;
    struct sums s = sum_weights(l, plan, first);
    double unit = s.weight > 0 ? (double)UINT32_MAX / s.weight : 0;
    struct layout_range *last = NULL;
    uint32_t start = 0;

    left = s.usable;
    for (unsigned k = 0; k < l->count; k++) {
        unsigned i = plan->order[(first + k) % l->count];
        struct layout_range *r = &l->of[i];

        if (r->err && r->err != LAYOUT_NO_XATTR)
            continue;
        *r = (struct layout_range){.commit = plan->commit, .sorted = r->sorted};
        if (!left || !plan->weights[i])
            continue;
        uint32_t range = (uint32_t)(unit * plan->weights[i]);

        left--;
        /* Next to much larger subvolumes a share rounds to zero; a range needs at least two hashes. */
        if (left ? range < 2 : start == UINT32_MAX)
            continue;
        r->start = start;
        r->stop = left ? start + range - 1 : UINT32_MAX;
        start = r->stop + 1;
        last = r;
    }
    if (last)
        last->stop = UINT32_MAX;
    layout_settle(l);
}

/* ---- a new distribution near the old one ----------------------------------------------------- */

static uint64_t
range_size(const struct layout_range *r)
{
    return layout_range_is_empty(r) ? 0 : (uint64_t)r->stop - r->start + 1;
}

static uint64_t
range_overlap(const struct layout_range *a, const struct layout_range *b)
{
    uint32_t start = a->start > b->start ? a->start : b->start, stop = a->stop < b->stop ? a->stop : b->stop;

    return range_size(a) && range_size(b) && start <= stop ? (uint64_t)stop - start + 1 : 0;
}

static bool
has_equal_ranges(const struct layout *l)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (unsigned k = 0; k < l->range_count; k++) {
        uint64_t size = range_size(&l->of[l->of[k].sorted]);

        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    return l->range_count && most - least <= l->range_count;
}

enum { NEAR_MAX = 1024 }; /* children; for more the ranges stay as they were assigned */

/* Children that have a range in both layouts, in the order of their old ranges; and the best choice for each
 * number of children and of new ranges. */
struct near {
    const struct layout *l, *old;
    uint16_t *child;
    unsigned count;
    bool *takes;                /* [child][range]: the child takes the range in the best choice so far */
    uint64_t *best, *best_less; /* [range]: hashes kept, with the present child, and with one child less */
};

static void
list_stayers(struct near *n)
{
    for (unsigned i = 0; i < n->l->count; i++) {
        const struct layout_range *r = &n->old->of[i];
        unsigned at = n->count;

        if (layout_range_is_empty(r) || layout_range_is_empty(&n->l->of[i]))
            continue;
        for (; at > 0 && n->old->of[n->child[at - 1]].start > r->start; at--)
            n->child[at] = n->child[at - 1];
        n->child[at] = (uint16_t)i;
        n->count++;
    }
}

/* Dynamic programming: the children take ranges in their order, each at most one. */
static void
find_best_choice(struct near *n)
{
    unsigned ranges = n->l->range_count;

    for (unsigned i = 0; i < n->count; i++) {
        uint64_t *swap = n->best_less;

        n->best_less = n->best;
        n->best = swap;
        n->best[0] = 0;
        for (unsigned k = 0; k < ranges; k++) {
            const struct layout_range *r = &n->l->of[n->l->of[k].sorted];
            uint64_t with = n->best_less[k] + range_overlap(&n->old->of[n->child[i]], r);

            n->takes[i * ranges + k] = k >= i && (k == i || with > n->best[k]);
            n->best[k + 1] = n->takes[i * ranges + k] ? with : n->best[k];
        }
    }
}

/* Sets range_of[child] to the child whose range the child gets; -1: none. */
static void
choose_ranges(const struct near *n, int32_t *range_of, bool *is_taken)
{
    unsigned ranges = n->l->range_count, next = 0;

    for (unsigned i = 0; i < n->l->count; i++)
        range_of[i] = -1;
    for (unsigned i = n->count, k = ranges; i-- > 0;) {
        while (!n->takes[i * ranges + --k])
            continue;
        range_of[n->child[i]] = n->l->of[k].sorted;
        is_taken[k] = true;
    }
    for (unsigned i = 0; i < n->l->count; i++) {
        if (range_of[i] >= 0 || layout_range_is_empty(&n->l->of[i]))
            continue;
        while (is_taken[next])
            next++;
        range_of[i] = n->l->of[next++].sorted;
    }
}

static int
exchange_ranges(struct layout *l, const int32_t *range_of)
{
    struct layout_range *was = malloc(l->count * sizeof *was);

    if (!was)
        return -ENOMEM;
    memcpy(was, l->of, l->count * sizeof *was);
    for (unsigned i = 0; i < l->count; i++) {
        if (range_of[i] < 0)
            continue;
        l->of[i].start = was[range_of[i]].start;
        l->of[i].stop = was[range_of[i]].stop;
    }
    free(was);
    layout_settle(l);
    return 0;
}

int
layout_keep_near(struct layout *l, const struct layout *old)
{
    struct near n = {.l = l, .old = old};

    if (l->range_count > NEAR_MAX || !has_equal_ranges(l))
        return 0;
    size_t ranges = l->range_count;
    n.child = calloc(l->count, sizeof *n.child);
    n.takes = calloc(ranges * ranges, sizeof *n.takes);
    n.best = calloc(2 * (ranges + 1), sizeof *n.best);
    n.best_less = n.best ? n.best + ranges + 1 : NULL;
    uint64_t *rows = n.best;
    int32_t *range_of = malloc(l->count * sizeof *range_of);
    bool *is_taken = calloc(ranges, sizeof *is_taken);
    int err = n.child && n.takes && n.best && range_of && is_taken ? 0 : -ENOMEM;

    if (!err) {
        list_stayers(&n);
        find_best_choice(&n);
        choose_ranges(&n, range_of, is_taken);
        err = exchange_ranges(l, range_of);
    }
    free(n.child);
    free(n.takes);
    free(rows);
    free(range_of);
    free(is_taken);
    return err;
}
