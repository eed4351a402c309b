/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The groups of the thread that has sent a request, read from /proc through a descriptor that is kept for it.
 *
 * A thread may change its groups at any time, and the kernel tells nobody. So each request reads them: what a
 * thread has given up or got counts at once. A table has a place for each of the threads that have asked
 * lately, which keeps /proc/TID/task/TID/status open. The descriptor is of that thread and not of the number:
 * once the thread has ended a read of it fails (ESRCH), and the path is opened again.
 *
 * Fields of a place are touched by the thread that has set its `is_busy`, which nobody waits for: a request
 * that finds the place in use reads by itself.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/procfs.h"
#include "rpc/xdr/cred.h"
#include "xlators/mount/fuse/fuse-internal.h"

enum { PLACES = 128, PATH_BYTES = 64 };

struct place {
    atomic_flag is_busy;
    pid_t pid;
    char path[PATH_BYTES];
    struct procfs status;
};
static struct place places[PLACES];

static void
path_of(pid_t pid, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/proc/%d/task/%d/status", (int)pid, (int)pid);
}

static int
place_read(struct place *p, pid_t pid, uint32_t *out)
{
    if (p->pid != pid || !p->status.path) {
        procfs_close(&p->status);
        path_of(pid, p->path);
        p->status.path = p->path;
        p->pid = pid;
    }
    int count = procfs_groups(&p->status, out, CRED_GROUPS_MAX);
    if (count == -ESRCH) /* that thread has ended; the number may be another's */
        count = procfs_groups(&p->status, out, CRED_GROUPS_MAX);
    return count;
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

    if (ctx->pid <= 0) /* in a namespace that we do not see, or the kernel itself */
        return -ESRCH;
    if (atomic_flag_test_and_set_explicit(&p->is_busy, memory_order_acquire))
        return read_alone(ctx->pid, out);
    int count = place_read(p, ctx->pid, out);
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
