/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* INODELK, FINODELK: locks on byte ranges of an object, requested by other bricks' and clients' translators
 * (spec: brick 8.2). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stack/lock-cmd.h"
#include "xlators/features/locks/locks-internal.h"


/* Replicate's metadata lock has nothing to do with data locks on the whole file. */
static const char *
domain_of(const struct fop_call *c, char *buffer, size_t size)
{
    if (c->flock.start != METADATA_START || c->flock.len != 0)
        return c->volume;
    snprintf(buffer, size, "%s:metadata", c->volume);
    return buffer;
}

static int
inodelk_check(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (c->cmd != LK_SET && c->cmd != LK_SET_WAIT)
        return -ENOTSUP;
    if (c->type != FLOCK_READ && c->type != FLOCK_WRITE && c->type != FLOCK_UNLOCK)
        return -EINVAL;
    return c->flock.len < 0 ? -EINVAL : lock_domain_check(stk);
}

xl_verdict
locks_inodelk(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct inode *inode = c->fd ? c->fd->inode : c->loc.inode;
    char buffer[FOP_LOCK_DOMAIN_MAX + sizeof ":metadata"];
    int64_t start, end;
    int err = inodelk_check(stk);

    if (!err && lock_range(c->flock.start, c->flock.len, &start, &end))
        err = -EINVAL;
    if (err)
        return err;
    if (!inode)
        return -ESTALE;
    if ((err = locks_counts_prepare(xl, stk)))
        return err;
    const char *domain = domain_of(c, buffer, sizeof buffer);
    stk->reply.op_ret = 0;
    if (c->type == FLOCK_UNLOCK) {
        struct lock key;

        lock_key(&key, stk, NULL);
        key.start = start;
        key.end = end;
        return lock_queue_unlock(xl, inode, domain, LOCK_INODE, &key);
    }
    struct lock *l = lock_new(xl, stk, NULL);
    if (!l)
        return -ENOMEM;
    l->start = start;
    l->end = end;
    return lock_queue_request(xl, stk, inode, domain, LOCK_INODE, l, c->cmd == LK_SET_WAIT);
}
