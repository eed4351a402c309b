/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* ENTRYLK, FENTRYLK: one name in a directory, or all of them (spec: brick 8.3). */
#include <errno.h>
#include <string.h>

#include "xlators/features/locks/locks-internal.h"

enum { ENTRYLK_LOCK = 0, ENTRYLK_UNLOCK = 1, ENTRYLK_LOCK_NB = 2 };

#define OPVERSION_NEEDS_OWNER 70000

static int
check(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    /* Stock fails an unknown command with errno 0, which no client can make sense of. */
    if (c->cmd > ENTRYLK_LOCK_NB || c->type > FLOCK_WRITE)
        return -EINVAL;
    if (!c->volume || strlen(c->volume) > FOP_LOCK_DOMAIN_MAX)
        return -EINVAL;
    if (!stk->caller.lk_owner.len && stk->client && stk->client->opversion >= OPVERSION_NEEDS_OWNER)
        return -EINVAL;
    return stk->caller.lk_owner.len > LK_OWNER_MAX ? -EINVAL : 0;
}

int
locks_entrylk(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct inode *inode = c->fd ? c->fd->inode : c->loc.inode;
    const char *name = c->name && *c->name ? c->name : NULL;
    int rc = check(stk);

    if (rc)
        return rc;
    if (!inode)
        return -ESTALE;
    if ((rc = locks_counts_prepare(xl, stk)))
        return rc;
    struct lock *l = lock_new(xl, stk, name);
    if (!l)
        return -ENOMEM;
    stk->reply.op_ret = 0;
    if (c->cmd != ENTRYLK_UNLOCK)
        return lock_queue_request(xl, stk, inode, c->volume, true, l, c->cmd == ENTRYLK_LOCK);
    rc = lock_queue_unlock(xl, stk, inode, c->volume, true, l);
    lock_free(l);
    return rc;
}
