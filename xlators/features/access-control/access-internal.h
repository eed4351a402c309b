/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* access-control: the cached owner, mode and ACLs of each inode.
 *
 * The cache is filled on demand: the first check that needs an inode's permissions parks its call, asks
 * storage for attributes and ACLs (one stat) and runs the rule again. Traffic of root costs nothing here,
 * because root is not checked. An operation that may change permissions (setattr, setting or removing an ACL)
 * empties the context when its reply passes. `generation` counts these changes, so that a stat reply from
 * before a change is not cached.
 *
 * Locks: one mutex per context, held while a rule evaluates the context, never across a call.
 */
#ifndef KILN_ACCESS_INTERNAL_H
#define KILN_ACCESS_INTERNAL_H

#include <pthread.h>

#include "fs/fd.h"
#include "fs/inode.h"
#include "stack/xlator.h"
#include "xlators/features/access-control/acl.h"

struct access_conf {
    int64_t super_uid; /* a second super user besides uid 0; -1: none */
};

struct access_ctx {
    pthread_mutex_t mutex;
    bool is_valid;
    uint64_t generation;
    uint32_t uid, gid, mode;
    struct acl *access, *inherited; /* system.posix_acl_access and system.posix_acl_default; NULL: none */
};

int access_pools_init(void);
void access_ctx_free(struct access_ctx *ctx);

/* The state of a rule's evaluation. A rule that needs the permissions of an inode that is not cached sets
 * `missing`. */
struct access_query {
    struct xlator *xl;
    struct call_stack *stk;
    struct inode *missing;
    struct fd *fd; /* the call's fd on `missing`, if any: works for an unlinked file too */
};

/* Returns the context of `inode`, locked and filled. Returns NULL with q->missing set if the context is not
 * filled yet, or with *err = -ENOMEM. */
struct access_ctx *access_ctx_lock(struct access_query *q, struct inode *inode, int *err);

/* A rule returns 0 (permitted), -errno, or ACCESS_UNKNOWN: the caller fills q->missing first and runs the
 * rule again. */
#define ACCESS_UNKNOWN 1
typedef int (*access_rule)(struct access_query *q);

/* Runs the rule, filling contexts until the rule has all that it needs. Returns 0 or -errno. *is_parked: the
 * call is parked and will be retried; the caller returns XL_OWNED. */
int access_run(struct xlator *xl, struct call_stack *stk, access_rule rule, bool *is_parked);

/* Empties the context of `inode` when the call's reply passes. Returns 0 or -ENOMEM. */
int access_forget_later(struct xlator *xl, struct call_stack *stk, struct inode *inode);

/* True for a mount's internal work whose root the brick squashed to another user. */
static inline bool
access_is_squashed_work(const struct call_stack *stk)
{
    return stk->caller.pid < 0 && stk->caller.standing == PID_WAS_SQUASHED;
}

/* access-content.c: removes the content of files that the caller may not read from the call's reply. Returns
 * 0 or -ENOMEM. */
int access_guard_content(struct xlator *xl, struct call_stack *stk);

/* ---- access-name.c: may an ordinary user do this to an xattr of this name? ------------------- */
enum access_name_use { NAME_SET, NAME_REMOVE, NAME_CREATE, NAME_COUNT };
bool access_may_name(const char *name, enum access_name_use use, bool is_squashed_work);

#endif
