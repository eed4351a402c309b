/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-marks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bricks/bricks.h"
#include "data/dict.h"
#include "fs/inode.h"
#include "volumes/bricks/brick-call.h"

/* A dispersed set has no accusations: the dirty mark makes the self-heal daemon compare the folder's
 * names. */
static int
fill_dirty_mark(struct call_stack *stk)
{
    static const unsigned char count[16] = {[7] = 1, [15] = 1};

    stk->call.fop = FOP_xattrop;
    stk->call.flags = 1; /* add 64 bits */
    stk->call.dict = dict_new(&stk->arena);
    return stk->call.dict ? dict_set_text(stk->call.dict, "trusted.ec.dirty", DICT_PTR, count, sizeof count)
                          : -ENOMEM;
}

/* Counts one pending change of metadata, one of entries and one of data. A folder has no data: the data
 * count makes the self-heal daemon compare all names of the folder, not only names in an index. */
static int
fill_xattrop(struct call_stack *stk, const struct volume *v, unsigned knows, const bool *lacks)
{
    static const unsigned char count[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    const unsigned first = knows - knows % v->replica;
    char key[VOLUME_NAME_MAX + 64];
    int err = 0;

    stk->call.fop = FOP_xattrop;
    stk->call.flags = 0; /* add */
    stk->call.dict = dict_new(&stk->arena);
    if (!stk->call.dict)
        return -ENOMEM;
    for (unsigned i = first; i < first + v->replica && !err; i++) {
        snprintf(key, sizeof key, "trusted.afr.%s-client-%u", v->name, v->bricks[i].id);
        if (lacks[i])
            err = dict_set_text(stk->call.dict, key, DICT_PTR, count, sizeof count);
    }
    return err;
}

static int
put_marks(struct graph *g, const struct volume *v, unsigned knows, const bool *lacks)
{
    struct brick_call q = {0};
    struct call_stack *stk = brick_call_new(&q);
    int err = !stk ? -ENOMEM : v->redundancy ? fill_dirty_mark(stk) : fill_xattrop(stk, v, knows, lacks);

    if (err) {
        if (stk)
            call_stack_free(stk);
        return err;
    }
    stk->call.loc.inode = inode_root(g->inodes);
    return brick_call_run(&q, stk, g);
}

int
brick_marks_put(const struct volume *v, unsigned knows, const bool *lacks, struct problem *why)
{
    struct graph *g = bricks_find(v->bricks[knows].path);
    int err = g ? put_marks(g, v, knows, lacks) : -ENOENT;

    if (g)
        graph_unpin(g);
    if (!g)
        return problem_set(why, err, "brick %s is not served", v->bricks[knows].path);
    return err ? problem_set(why, err, "brick %s cannot record which bricks are incomplete: %s",
                             v->bricks[knows].path, strerror(-err))
               : 0;
}
