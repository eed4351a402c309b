/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Supplementary groups of the thread that has sent a request, read from /proc through a cached
 * descriptor.
 *
 * A thread may change its groups at any time, without any notification, and a read of its status file
 * takes the kernel 7 us, a quarter of a small request. So the groups that were read count for 10 ms,
 * for requests of the same thread, uid and gid, and no result depends on their age:
 *
 *   a server acts for several users     it changes uid or gid, so its next request reads the groups
 *   a thread gains a group              a call that a brick refuses is repeated with groups that are
 *                                       read anew, if they differ (task.c)
 *   a thread gives a group up           the kernel checks mode and owner of each object with the
 *                                       thread's groups of that moment (default_permissions), before
 *                                       it sends the request
 *   a call sets S_ISGID                 the groups are read anew, because a brick clears the bit
 *                                       without an error if the caller is not in the object's group
 *
 * A table has a place for each thread that has sent requests lately, with /proc/TID/task/TID/status
 * open. The descriptor belongs to the thread, not to the number: after the thread has ended, a read
 * fails (ESRCH), and the path is opened again. Within 10 ms a number of the same uid and gid does not
 * return: the kernel counts through all numbers first.
 *
 * The fields of a place belong to the thread that has set its `is_busy`. No thread waits for that: a
 * request that finds the place in use reads through a separate descriptor. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/procfs.h"
#include "base/ticks.h"
#include "rpc/xdr/cred.h"
#include "xlators/mount/fuse/fuse-internal.h"

enum { PLACES = 128, PATH_BYTES = 64, GROUPS_LAST_NS = 10 * 1000 * 1000 };

struct place {
    atomic_flag is_busy;
    pid_t pid;
    uid_t uid;
    gid_t gid;
    char path[PATH_BYTES];
    struct procfs status;
    uint64_t read_at; /* ticks */
    int count;        /* of groups, or -errno of the read */
    uint32_t groups[CRED_GROUPS_MAX];
};
static struct place places[PLACES];

static void
status_path(pid_t pid, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/proc/%d/task/%d/status", (int)pid, (int)pid);
}

static bool
place_is_fresh(const struct place *p, const struct fuse_ctx *ctx)
{
    return p->pid == ctx->pid && p->uid == ctx->uid && p->gid == ctx->gid && p->count >= 0 &&
           ticks_to_ns(ticks_now() - p->read_at) < GROUPS_LAST_NS;
}

static void
place_read(struct place *p, const struct fuse_ctx *ctx)
{
    if (p->pid != ctx->pid || !p->status.path) {
        procfs_close(&p->status);
        status_path(ctx->pid, p->path);
        p->status.path = p->path;
        p->pid = ctx->pid;
    }
    p->uid = ctx->uid;
    p->gid = ctx->gid;
    p->read_at = ticks_now();
    p->count = procfs_groups(&p->status, p->groups, CRED_GROUPS_MAX);
    if (p->count == -ESRCH) /* the thread has ended; another thread may have the number */
        p->count = procfs_groups(&p->status, p->groups, CRED_GROUPS_MAX);
}

static int
read_alone(pid_t pid, uint32_t *out)
{
    char path[PATH_BYTES];
    struct procfs status = PROCFS_FILE(path);

    status_path(pid, path);
    int count = procfs_groups(&status, out, CRED_GROUPS_MAX);
    procfs_close(&status);
    return count;
}

static int
read_groups_of(const struct fuse_ctx *ctx, uint32_t *out, bool may_be_old, bool *is_old)
{
    struct place *p = &places[(unsigned)ctx->pid % PLACES];

    *is_old = false;
    if (ctx->pid <= 0) /* a process in a namespace that this process cannot see, or the kernel */
        return -ESRCH;
    if (atomic_flag_test_and_set_explicit(&p->is_busy, memory_order_acquire))
        return read_alone(ctx->pid, out);
    *is_old = may_be_old && place_is_fresh(p, ctx);
    if (!*is_old)
        place_read(p, ctx);
    int count = p->count;
    if (count > 0)
        memcpy(out, p->groups, (size_t)count * sizeof *out);
    atomic_flag_clear_explicit(&p->is_busy, memory_order_release);
    return count;
}

int
groups_of(const struct fuse_ctx *ctx, uint32_t *out, bool *is_old)
{
    return read_groups_of(ctx, out, true, is_old);
}

int
groups_now(const struct fuse_ctx *ctx, uint32_t *out)
{
    bool is_old;

    return read_groups_of(ctx, out, false, &is_old);
}

void
groups_end(void)
{
    for (int i = 0; i < PLACES; i++) {
        procfs_close(&places[i].status);
        places[i].pid = 0;
    }
}
