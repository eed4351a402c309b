/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The groups of the threads that have asked lately, one thread in each place of a table.
 *
 * A thread may change its groups at any time, and the kernel tells nobody. A place therefore keeps its groups
 * for GROUPS_MS and then reads them again: groups that a thread has given up count for at most GROUPS_MS
 * more, and those that it has got may be missing for as long. A thread that changes its uid or gid, as login,
 * su and servers that act for users do, is read at once, because a place is of one thread, uid and gid.
 *
 * A place keeps /proc/TID/task/TID/status open. The descriptor is of that thread and not of the number: once
 * the thread has ended a read of it fails (ESRCH), and the path is opened again. So a thread that gets the
 * number of another has the other's groups for GROUPS_MS at most, and only with the same uid and gid.
 *
 * Fields of a place are touched by the thread that has set its `is_busy`, which nobody waits for: a request
 * that finds the place in use reads by itself.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/procfs.h"
#include "event/timer.h"
#include "rpc/xdr/cred.h"
#include "xlators/mount/fuse/fuse-internal.h"

enum { PLACES = 128, GROUPS_MS = 2, PATH_BYTES = 64 };

struct place {
    atomic_flag is_busy;
    pid_t pid;
    uid_t uid;
    gid_t gid;
    uint64_t read_ns;
    int count; /* or -errno */
    char path[PATH_BYTES];
    struct procfs status;
    uint32_t groups[CRED_GROUPS_MAX];
};
static struct place places[PLACES];

static void
path_of(pid_t pid, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/proc/%d/task/%d/status", (int)pid, (int)pid);
}

/* Its first read of that thread, or one after GROUPS_MS. */
static void
place_read(struct place *p, pid_t pid, uint64_t now)
{
    if (p->pid != pid || !p->status.path) {
        procfs_close(&p->status);
        path_of(pid, p->path);
        p->status.path = p->path;
        p->pid = pid;
    }
    p->count = procfs_groups(&p->status, p->groups, CRED_GROUPS_MAX);
    if (p->count == -ESRCH) /* that thread has ended; the number may be another's */
        p->count = procfs_groups(&p->status, p->groups, CRED_GROUPS_MAX);
    p->read_ns = now;
}

static int
read_alone(pid_t pid, uint32_t *out)
{
    char path[PATH_BYTES];
    struct procfs status = PROCFS_FILE(path);

    path_of(pid, path);
    int count = procfs_groups(&status, out, CRED_GROUPS_MAX);
    procfs_close(&status);
    return count;
}

int
groups_of(const struct fuse_ctx *ctx, uint32_t *out)
{
    struct place *p = &places[(unsigned)ctx->pid % PLACES];
    uint64_t now = clock_mono_ns();

    if (ctx->pid <= 0) /* in a namespace that we do not see, or the kernel itself */
        return -ESRCH;
    if (atomic_flag_test_and_set_explicit(&p->is_busy, memory_order_acquire))
        return read_alone(ctx->pid, out);
    if (p->pid != ctx->pid || p->uid != ctx->uid || p->gid != ctx->gid ||
        now - p->read_ns >= GROUPS_MS * 1000000ull)
        place_read(p, ctx->pid, now);
    p->uid = ctx->uid;
    p->gid = ctx->gid;
    int count = p->count;
    if (count > 0)
        memcpy(out, p->groups, (size_t)count * sizeof *out);
    atomic_flag_clear_explicit(&p->is_busy, memory_order_release);
    return count;
}

void
groups_end(void)
{
    for (int i = 0; i < PLACES; i++) {
        procfs_close(&places[i].status);
        places[i].pid = 0;
    }
}
