/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Supplementary groups of the thread that has sent a request, read from /proc through a cached descriptor.
 *
 * A thread may change its groups at any time, without any notification. So each request reads them, and a
 * change takes effect at once. A table has a place for each thread that has sent requests lately, with
 * /proc/TID/task/TID/status open. The descriptor belongs to the thread, not to the number: after the thread
 * has ended, a read fails (ESRCH), and the path is opened again.
 *
 * The fields of a place belong to the thread that has set its `is_busy`. No thread waits for that: a
 * request that finds the place in use reads through a separate descriptor. */
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
status_path(pid_t pid, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/proc/%d/task/%d/status", (int)pid, (int)pid);
}

static int
place_read(struct place *p, pid_t pid, uint32_t *out)
{
    if (p->pid != pid || !p->status.path) {
        procfs_close(&p->status);
        status_path(pid, p->path);
        p->status.path = p->path;
        p->pid = pid;
    }
    int count = procfs_groups(&p->status, out, CRED_GROUPS_MAX);
    if (count == -ESRCH) /* the thread has ended; another thread may have the number */
        count = procfs_groups(&p->status, out, CRED_GROUPS_MAX);
    return count;
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

int
groups_of(const struct fuse_ctx *ctx, uint32_t *out)
{
    struct place *p = &places[(unsigned)ctx->pid % PLACES];

    if (ctx->pid <= 0) /* a process in a namespace that this process cannot see, or the kernel */
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
