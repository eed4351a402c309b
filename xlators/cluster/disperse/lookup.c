/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LOOKUP: goes to all children that are up, without a lock. Version and size are part of the comparison. The
 * largest group of equal answers wins. If fewer than K children agree about an existing file, a client is
 * just recording a change of its size, or fragments are behind: then LOOKUP waits for the hold and asks
 * again under the lock. Only if that fails too, the largest group's answer is taken as it is, so that the
 * name can be seen and removed.
 *
 * The size is that of trusted.ec.size, or of the hold, if this mount holds the lock. While another client
 * holds it, the size may be a second old (STAT is exact). */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/disperse-internal.h"

static int
ask_for_counters(struct dict *d)
{
    static const char *const keys[] = {"trusted.ec.size", "trusted.ec.version", "trusted.ec.dirty"};
    int err = 0;

    dict_remove(d, DICT_KEY_CONTENT); /* a fragment's bytes are no contents */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !err; i++)
        err = dict_set_text_int(d, keys[i], 0);
    return err;
}

static struct call_stack *
ec_lookup_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_fork(op, i, is_spare, unused);
    struct dict *d = stk ? call_xdata(stk) : NULL;

    if (d && !ask_for_counters(d))
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

static int
take_found(struct ec_op *op, const struct fan *f, child_set found)
{
    struct iatt *stat = &op->stk->reply.stat;
    uint64_t size = ec_get_size(f->stk[child_first(found)]->reply.xdata), held;
    int err = answers_take(op, f, found);
    if (err || !S_ISREG(stat->mode))
        return err;
    struct inode *inode = inode_find(op->d->xl->graph->inodes, &stat->gfid);
    iatt_set_size(stat, ec_size_held(op->d, inode, &held) ? held : size);
    inode_unref(inode);
    return 0;
}

/* Asks all children, and takes the largest group's answer. Returns 0, or -errno; *is_doubtful: a file about
 * which fewer than K children agree. */
static int
lookup_once(struct ec_op *op, bool *is_doubtful)
{
    struct fan f;
    int ret, err = ec_ask(&f, op, atomic_load(&op->d->up), ec_lookup_make, NULL);

    *is_doubtful = false;
    if (err)
        return err;
    child_set found = answers_winner(&f, true, &ret);
    if (fan_is_short(&f)) {
        err = -ENOMEM;
    } else {
        err = ret < 0 ? ret : take_found(op, &f, found);
        *is_doubtful = !err && S_ISREG(op->stk->reply.stat.mode) && children_count(found) < op->d->data;
    }
    fan_end(&f);
    return err;
}

void
ec_lookup_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX, .is_shared = true};
    bool is_doubtful;
    int err = lookup_once(op, &is_doubtful);

    if (err || !is_doubtful) {
        ec_finish(op, err);
        return;
    }
    struct inode *inode = inode_link(op->d->xl->graph->inodes, NULL, NULL, &op->stk->reply.stat);
    bool is_held = inode && !ec_join(op, inode, &u, NEEDS_INFO);

    if (is_held)
        err = lookup_once(op, &is_doubtful);
    ec_finish(op, err);
    if (is_held)
        ec_leave(op, inode, &u);
    inode_unref(inode);
}
