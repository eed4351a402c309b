/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The mounts of kilnd. A request comes as to the shared process (shared.h), at a socket of kilnd, and each
 * mount gets the option `inside` of its bricks' clients. A record of each mount is kept (records.h): a kilnd
 * that follows a killed one mounts again. kilnd goes on when the last mount has gone. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parcel.h"
#include "bricks/upgrade.h"
#include "log/log.h"
#include "mount/inside.h"
#include "mount/mount.h"
#include "mount/records.h"
#include "mount/shared.h"
#include "stack/coro-call.h"
#include "stack/coro-stacks.h"
#include "xlators/mount/fuse/fuse.h"

/* The layers of a brick that lists a folder take 40 KiB of stack, below the layers of the mount. */
#define STACK_BYTES (256u << 10)

static char socket_path[PATH_MAX], records_dir[PATH_MAX];
static bool is_begun;
static sem_t none_left; /* posted by the last mount that leaves while kilnd ends */

static void
inside_none_left(void)
{
    sem_post(&none_left);
}

static void
inside_save_record(const struct mount_options *o, const char *mountpoint)
{
    int err = record_save(records_dir, o, mountpoint);

    if (err) /* the mount works, and does not come back if this process is killed */
        log_event(LOG_WARNING, NULL, "inside-record", "%s: no record of the mount: %s", mountpoint,
                  strerror(-err));
}

static void
inside_remove_record(const char *mountpoint)
{
    record_remove(records_dir, mountpoint);
}

static void
inside_restore(const struct mount_options *recorded, const char *mountpoint, char *packet)
{
    struct mount_options o = *recorded;

    o.is_restored = true;
    int err = mounts_add(&o, mountpoint, packet, NULL, NULL);
    if (err)
        free(packet);
    log_event(err ? LOG_ERROR : LOG_INFO, NULL, "inside-restored", "%s: %s", mountpoint,
              err ? strerror(-err) : "mounting again after the kilnd before was killed");
}

/* Mounts again after a killed kilnd, or goes on with the mounts of the earlier program. */
static void
inside_take_back(struct parcel *saved)
{
    if (!saved) {
        records_each(records_dir, inside_restore);
        return;
    }
    mounts_when_restored(upgrade_mounts_done);
    (void)mounts_restore(saved);
    parcel_free(saved);
}

int
inside_mounts_begin(const char *management_socket, char *error, size_t error_size)
{
    const struct mounts_hooks hooks = {.empty = inside_none_left,
                                       .entering = inside_save_record,
                                       .leaving = inside_remove_record,
                                       .stays = true};
    struct parcel *saved = upgrade_state_of_mounts();
    int err = coro_stacks_init_of(STACK_BYTES);

    if (snprintf(socket_path, sizeof socket_path, "%s%s", management_socket, INSIDE_SOCKET_ENDING) >=
            (int)sizeof socket_path ||
        snprintf(records_dir, sizeof records_dir, "%s.d", socket_path) >= (int)sizeof records_dir)
        err = -ENAMETOOLONG;
    if (!err && saved) {
        fuse_set_generation(parcel_get_u32(saved));
        shared_restore(saved);
    } else if (!err) {
        err = shared_become(socket_path);
    }
    if (err) {
        snprintf(error, error_size, "%s: %s", socket_path,
                 err == -EWOULDBLOCK ? "another kilnd takes mounts there" : strerror(-err));
        return err;
    }
    sem_init(&none_left, 0, 0);
    mounts_begin(&hooks);
    is_begun = true;
    inside_take_back(saved);
    err = shared_listen(socket_path);
    if (err)
        snprintf(error, error_size, "%s: %s", socket_path, strerror(-err));
    return err;
}

void
inside_mounts_end(void)
{
    if (!is_begun)
        return;
    if (mounts_leave())
        while (sem_wait(&none_left) < 0)
            ; /* a signal */
    shared_end(socket_path);
    mounts_end();
}

void
inside_mounts_free(void)
{
    if (!is_begun)
        return;
    fuse_process_end();
    coro_stacks_end();
}

bool
inside_mounts_each(void (*fn)(struct graph *g, void *arg), void *arg)
{
    return !is_begun || mounts_each_graph(fn, arg);
}

void
inside_mounts_refetch(void)
{
    if (is_begun)
        mounts_refetch();
}

/* ---- a newer program ------------------------------------------------------------------------- */

int
inside_mounts_freeze(unsigned ms, char *why, size_t why_size)
{
    return is_begun ? mounts_freeze(ms, why, why_size) : 0;
}

void
inside_mounts_thaw(void)
{
    if (is_begun)
        mounts_thaw();
}

int
inside_mounts_save(struct parcel *to)
{
    parcel_put_u32(to, upgrade_programs() + 1);
    shared_save(to);
    return mounts_save(to);
}

int
inside_mounts_keep_open(bool keeps)
{
    int err = is_begun ? mounts_keep_open(keeps) : 0, shared = is_begun ? shared_keep_open(keeps) : 0;

    return err ? err : shared;
}
