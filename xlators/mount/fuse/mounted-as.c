/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which file system is mounted at a mount point? A mount that ends must unmount its own, and not the one
 * that another process has mounted there meanwhile. The kernel gives the number of a file system to the next
 * mount as soon as the old one has gone, so the number alone does not tell. Linux 6.8 numbers mounts for
 * good (STATX_MNT_ID_UNIQUE). On older kernels the file system is asked: statfs(2) of a FUSE file system
 * whose connection has ended fails with ENOTCONN. A server that does not answer within a second lives. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/refcount.h"
#include "base/thread.h"
#include "xlators/mount/fuse/fuse-internal.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

struct mounted_as
mounted_as_now(const char *path)
{
    struct mounted_as as = {0};
    struct statx stx;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID_UNIQUE, &stx) < 0)
        return as;
    as.device = makedev(stx.stx_dev_major, stx.stx_dev_minor);
    if (stx.stx_mask & STATX_MNT_ID_UNIQUE)
        as.id = stx.stx_mnt_id;
    return as;
}

/* A question to a file system, by a thread that the caller does not wait for. */
struct question {
    struct refcount refs;
    sem_t is_answered;
    int err; /* errno */
    char path[];
};

static void
question_put(struct question *q)
{
    if (!refcount_put(&q->refs))
        return;
    sem_destroy(&q->is_answered);
    free(q);
}

static void *
ask(void *arg)
{
    struct question *q = arg;
    struct statfs st;

    q->err = statfs(q->path, &st) < 0 ? errno : 0;
    sem_post(&q->is_answered);
    question_put(q);
    return NULL;
}

/* Returns whether the FUSE file system at the path has lost its server. */
static bool
is_dead(const char *path)
{
    struct question *q = calloc(1, sizeof *q + strlen(path) + 1);
    struct timespec until;
    bool is = false;

    if (!q)
        return false;
    refcount_init(&q->refs, 2);
    sem_init(&q->is_answered, 0, 0);
    memcpy(q->path, path, strlen(path));
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (thread_start(ask, q)) {
        question_put(q);
    } else {
        int ret;

        while ((ret = sem_timedwait(&q->is_answered, &until)) < 0 && errno == EINTR)
            ;
        is = ret == 0 && q->err == ENOTCONN;
    }
    question_put(q);
    return is;
}

bool
mounted_as_still(const char *path, const struct mounted_as *as)
{
    struct mounted_as now = mounted_as_now(path);

    return now.device == as->device && now.id == as->id && (now.id || is_dead(path));
}
