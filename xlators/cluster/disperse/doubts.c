/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Doubts: the objects whose attributes in one brick's listing may be wrong. A brick that was away while a
 * file changed lists the file's old size, and does not know: the other bricks have the mark. A folder that
 * did not change meanwhile is whole on all bricks, so READDIRP may ask that brick.
 *
 *      ask        all children: does any object wait for a heal (LOOKUP with link-count)?
 *      list       if so, the objects, from each child's index (index-list.c): the gfids in doubt
 *
 * An answer holds for a second of one generation of children, as long as the kernel may keep attributes
 * anyway. Any K children know of all doubts: a change took place on K, and 2K is more than N. If a child
 * that is up does not answer, or too many objects wait, all objects are in doubt. A file that is being
 * written is marked, too.
 *
 * thread: d->doubts is under d->lock; a set does not change, and has a count of its users. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/disperse/heal.h"

enum { DOUBTS_MAX = 4096 };

struct ec_doubts {
    struct refcount refs;
    uint64_t second;
    uint32_t generation;
    bool are_all; /* each object is in doubt */
    size_t count;
    struct gfid gfid[]; /* in order */
};

static int
gfid_order(const void *a, const void *b)
{
    return memcmp(a, b, GFID_BYTES);
}

static struct call_stack *
ask_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_call(op, FOP_lookup, i, is_spare, op->inode, NULL);

    (void)unused;
    if (stk && call_xdata(stk) &&
        !dict_set_str(stk->call.xdata, DICT_KEY_LINK_COUNT, "glusterfs.xattrop_index_count"))
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

/* Returns the children with objects that wait. Sets *are_all if a child does not answer. */
static child_set
children_with_pending(struct ec_heal *h, bool *are_all)
{
    child_set with = 0;
    struct fan f;

    *are_all = ec_ask(&f, &h->op, h->on, ask_make, NULL) != 0;
    if (*are_all)
        return 0;
    *are_all = f.good != h->on;
    for_each_child (i, f.good) {
        int64_t pending = 0;

        (void)dict_get_int(f.stk[i]->reply.xdata, DICT_KEY_LINK_COUNT, &pending);
        with |= pending ? CHILD(i) : 0;
    }
    fan_end(&f);
    return with;
}

/* Adds the objects that wait by child i's index. Returns whether the list is whole. */
static bool
add_pending(const struct ec_heal *h, unsigned i, struct index_list *l)
{
    struct inode *dir = ec_index_directory(h, i);
    bool is_whole = dir && !ec_index_read(h, i, dir, l) && !l->is_cut && l->count <= DOUBTS_MAX;

    inode_unref(dir);
    return is_whole;
}

/* Returns the answer of now; NULL: out of memory. */
static struct ec_doubts *
doubts_ask(struct disperse *d, uint64_t second)
{
    struct inode *root = inode_root(d->xl->graph->inodes);
    struct index_list l = {0};
    struct ec_heal h;
    bool are_all;

    ec_heal_begin(&h, d, root);
    inode_unref(root);
    child_set with = children_with_pending(&h, &are_all);

    for_each_child (i, are_all ? 0 : with)
        are_all |= !add_pending(&h, i, &l);
    size_t count = are_all ? 0 : l.count;
    struct ec_doubts *x = malloc(sizeof *x + count * sizeof x->gfid[0]);
    if (x) {
        *x = (struct ec_doubts){
            .second = second, .generation = h.generation, .are_all = are_all, .count = count};
        refcount_init(&x->refs, 1);
        for (size_t n = 0; n < count; n++)
            x->gfid[n] = l.at[n].gfid;
        qsort(x->gfid, count, sizeof x->gfid[0], gfid_order);
    }
    free(l.at);
    ec_heal_end(&h);
    return x;
}

static struct ec_doubts *
doubts_known(struct disperse *d, uint64_t second)
{
    pthread_mutex_lock(&d->lock);
    struct ec_doubts *x = d->doubts;

    if (x && x->second == second && x->generation == atomic_load(&d->generation))
        refcount_get(&x->refs);
    else
        x = NULL;
    pthread_mutex_unlock(&d->lock);
    return x;
}

struct ec_doubts *
ec_doubts_get(struct disperse *d)
{
    uint64_t second = clock_mono_ns() / 1000000000;
    struct ec_doubts *x = doubts_known(d, second), *old;

    if (x)
        return x;
    x = doubts_ask(d, second);
    if (!x)
        return NULL;
    refcount_get(&x->refs);
    pthread_mutex_lock(&d->lock);
    old = d->doubts;
    d->doubts = x;
    pthread_mutex_unlock(&d->lock);
    ec_doubts_put(old);
    return x;
}

void
ec_doubts_put(struct ec_doubts *x)
{
    if (x && refcount_put(&x->refs))
        free(x);
}

bool
ec_doubts_have(const struct ec_doubts *x, const struct gfid *gfid)
{
    return !x || x->are_all ||
           (x->count && bsearch(gfid, x->gfid, x->count, sizeof x->gfid[0], gfid_order) != NULL);
}
