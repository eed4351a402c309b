/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* access-control: who owns what with which permissions, as remembered per inode.
 *
 * Filled on demand: the first check that needs an inode's permissions parks its call, asks storage for
 * attributes and ACLs (one stat) and runs the rule again. So traffic of root, who is not checked, costs
 * nothing here. What may change permissions (setattr, ACL xattrs) empties the context when its reply comes
 * by; `generation` lets an answer that was under way meanwhile be recognised as possibly old.
 *
 * Locks: one mutex per context, held for an evaluation, never over a call.
 */
#ifndef KILN_ACCESS_INTERNAL_H
#define KILN_ACCESS_INTERNAL_H

#include <pthread.h>

#include "fs/fd.h"
#include "fs/inode.h"
#include "stack/xlator.h"
#include "xlators/features/access-control/acl.h"

struct access_conf {
    int64_t super_uid; /* a second super user besides 0; -1: none */
};

struct access_ctx {
    pthread_mutex_t mutex;
    bool is_valid;
    uint64_t generation;
    uint32_t uid, gid, mode;
    struct acl *access, *inherited; /* system.posix_acl_access, _default; NULL: none */
};

int access_pools_init(void);
void access_ctx_free(struct access_ctx *ctx);

/* What a rule found out it has to know first. */
struct access_query {
    struct xlator *xl;
    struct call_stack *stk;
    struct inode *missing;
    struct fd *fd; /* of `missing`, if the call has one: works for an unlinked file too */
};

/* Locked and filled; NULL with q->missing set (or *err = -ENOMEM): not known yet. */
struct access_ctx *access_ctx_lock(struct access_query *q, struct inode *inode, int *err);

/* A rule answers 0 (go on), -errno, or ACCESS_UNKNOWN: q->missing must be filled first. */
#define ACCESS_UNKNOWN 1
typedef int (*access_rule)(struct access_query *q);

/* Runs the rule until it knows all it needs. 0, -errno; XL_OWNED + parked: *is_parked. A parked call is
 * retried. */
int access_run(struct xlator *xl, struct call_stack *stk, access_rule rule, bool *is_parked);

/* When the reply comes by, what is known about `inode` is forgotten. 0 or -ENOMEM. */
int access_forget_later(struct xlator *xl, struct call_stack *stk, struct inode *inode);

/* A mount's own work, done as somebody else than root. */
static inline bool
access_is_squashed_work(const struct call_stack *stk)
{
    return stk->caller.pid < 0 && stk->caller.standing == PID_WAS_SQUASHED;
}

/* access-content.c: the content of files that this caller may not read is taken out of the reply. 0 or
 * -ENOMEM. */
int access_guard_content(struct xlator *xl, struct call_stack *stk);

/* ---- access-name.c: may an ordinary user do that with an xattr of this name, as far as the name says? -- */
enum access_name_use { NAME_SET, NAME_REMOVE, NAME_CREATE, NAME_COUNT };
bool access_may_name(const char *name, enum access_name_use use, bool is_squashed_work);

#endif
