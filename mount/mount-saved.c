/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount-saved: a newer program takes over the mounts of this process (mount/upgrade.h). The old program
 * freezes and saves all mounts; the new program begins a mount for each saved mount, whose thread restores
 * the saved state. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <urcu/list.h>

#include "base/parcel.h"
#include "event/timer.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mount/mount-internal.h"
#include "mount/shared.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/protocol/client/saved.h"

enum { BRICKS_MS = 10000, LOOK_MS = 1, OPTIONS_BYTES_MAX = 65536 };

static atomic_uint restoring, restored_well, restored_badly; /* numbers of mounts of an earlier program */
static void (*tell_restored)(unsigned served, unsigned failed);

/* ---- one mount of the earlier program -------------------------------------------------------- */

char *
mount_saved_text(struct mount *m, size_t *len, char *error, size_t size)
{
    const void *bytes = parcel_get_bytes(m->saved, len);
    char *text = m->saved->is_broken ? NULL : malloc(*len + 1);

    if (!text) {
        snprintf(error, size, "the earlier program's volfile is unreadable, or there is no memory");
        return NULL;
    }
    memcpy(text, bytes, *len);
    text[*len] = '\0';
    if (m->options.volfile || mount_ask_servers(m, error, size))
        return text;
    free(text);
    return NULL;
}

/* Waits until all bricks that the earlier program had are connected, or for a while. */
static void
await_saved_bricks(struct mount *m)
{
    for (unsigned ms = 0; ms < BRICKS_MS && !clients_are_up(m->graph); ms += LOOK_MS) {
        pthread_mutex_lock(&m->lock);
        bool is_over = mount_must_leave(m);

        pthread_mutex_unlock(&m->lock);
        if (is_over)
            return;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

void
mount_free_saved(struct mount *m)
{
    if (m->saved)
        parcel_free(m->saved);
    free(m->saved);
    m->saved = NULL;
}

/* Counts a restored mount that serves, or has failed. */
static void
count_restored(bool is_well)
{
    atomic_fetch_add(is_well ? &restored_well : &restored_badly, 1);
    if (atomic_fetch_sub(&restoring, 1) == 1 && tell_restored)
        tell_restored(atomic_load(&restored_well), atomic_load(&restored_badly));
}

void
mount_take_over(struct mount *m)
{
    char error[1024] = "";
    struct graph *g = mount_make_graph(m, error, sizeof error);
    int err = g ? fuse_restore(g, m->saved) : 0;

    if (g && !err) {
        mount_publish_graph(m, g);
        err = graph_start(g);
        if (!err) {
            await_saved_bricks(m);
            err = fuse_go_on(g);
        }
    } else if (g) {
        mount_end_graph(g);
        g = NULL;
    }
    mount_free_saved(m);
    count_restored(g && !err);
    if (g && !err)
        return;
    log_event(LOG_CRITICAL, NULL, "mount-not-taken-over", "the mount at %s is lost in the upgrade: %s",
              m->mountpoint, err ? strerror(-err) : error);
    (void)umount2(m->mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW);
    pthread_mutex_lock(&m->lock);
    m->to_do |= TO_LEAVE;
    pthread_mutex_unlock(&m->lock);
}

/* ---- all mounts: the old program ------------------------------------------------------------- */

/* mounts_lock is held from mounts_freeze() to mounts_thaw(), so the list stays. */
static struct mount *stopped_before; /* the first mount that is not stopped; NULL: all are */

static void
thaw_until(const struct mount *end)
{
    struct mount *m;

    cds_list_for_each_entry (m, &mounts_list, link) {
        if (m == end)
            break;
        fuse_thaw(m->graph);
    }
}

/* 0, or -EAGAIN: the mount's thread works, so the mount comes, changes or goes. */
static int
stop_mount(struct mount *m, char *why, size_t why_size)
{
    pthread_mutex_lock(&m->lock);
    bool is_busy = m->is_acting || m->to_do || !m->graph;

    pthread_mutex_unlock(&m->lock);
    int err = is_busy ? -EAGAIN : fuse_freeze_begin(m->graph);

    if (err)
        snprintf(why, why_size, "%s: %s", m->mountpoint,
                 err == -EBUSY    ? "files of bricks that the volume had before are still open"
                 : err == -ENOMEM ? strerror(ENOMEM)
                                  : "the mount is coming, changing or going");
    return err;
}

static int
stop_all(char *why, size_t why_size)
{
    struct mount *m;
    int err = 0;

    stopped_before = NULL;
    cds_list_for_each_entry (m, &mounts_list, link) {
        if ((err = stop_mount(m, why, why_size))) {
            stopped_before = m;
            break;
        }
    }
    return err;
}

/* 1: all mounts rest; 0; or -errno. */
static int
look_at_all(char *why, size_t why_size)
{
    int result = 1;
    struct mount *m;

    cds_list_for_each_entry (m, &mounts_list, link) {
        int rests = fuse_freeze_look(m->graph);

        if (rests < 0) {
            snprintf(why, why_size, "%s: %s", m->mountpoint,
                     rests == -EOPNOTSUPP ? "a file that was removed is open on a sharded or dispersed volume"
                                          : strerror(-rests));
            return rests;
        }
        if (!rests && result)
            snprintf(why, why_size, "%s: %s in time", m->mountpoint, fuse_freeze_obstacle(m->graph));
        result &= rests;
    }
    return result;
}

int
mounts_freeze(unsigned ms, char *why, size_t why_size)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t deadline = clock_mono_ns() + ms * 1000000ull;

    int err, result = 0;

    pthread_mutex_lock(&mounts_lock);
    while ((err = stop_all(why, why_size)) == -EAGAIN && clock_mono_ns() < deadline) {
        mounts_thaw(); /* the work of a mount's thread may need the lock */
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&mounts_lock);
    }
    while (!err && (result = look_at_all(why, why_size)) == 0) {
        if (clock_mono_ns() > deadline)
            err = -EBUSY;
        nanosleep(&pause, NULL);
    }
    err = err ? err : result < 0 ? result : 0;
    if (err)
        mounts_thaw();
    return err;
}

void
mounts_thaw(void)
{
    thaw_until(stopped_before);
    pthread_mutex_unlock(&mounts_lock);
}

static int
save_mount(struct mount *m, struct parcel *to)
{
    struct parcel own = {0};
    char *packet = malloc(OPTIONS_BYTES_MAX);
    int bytes = packet ? shared_encode(&m->options, m->mountpoint, packet, OPTIONS_BYTES_MAX) : -ENOMEM;
    int err = bytes < 0 ? bytes : 0;

    parcel_put_bytes(&own, m->current, m->current_bytes);
    err = err ? err : fuse_save(m->graph, &own);
    if (!err) {
        parcel_put_bytes(to, packet, (size_t)bytes);
        parcel_put_bytes(to, own.bytes, own.used);
    }
    if (!err && (own.is_broken || to->is_broken))
        err = -ENOMEM;
    parcel_free(&own);
    free(packet);
    return err;
}

int
mounts_save(struct parcel *to)
{
    struct mount *m;
    int err = 0;

    cds_list_for_each_entry (m, &mounts_list, link) {
        parcel_put_u32(to, 1);
        if ((err = save_mount(m, to)))
            return err;
    }
    parcel_put_u32(to, 0);
    return to->is_broken ? -ENOMEM : 0;
}

int
mounts_keep_open(bool keeps)
{
    struct mount *m;
    int err = 0;

    cds_list_for_each_entry (m, &mounts_list, link) {
        int failed = fuse_keep_open(m->graph, keeps);

        err = err ? err : failed;
    }
    return err;
}

/* ---- all mounts: the new program ------------------------------------------------------------- */

/* 0 or -errno. */
static int
restore_one(const void *packet, size_t packet_bytes, const void *state, size_t bytes)
{
    struct parcel *saved = calloc(1, sizeof *saved);
    char *words = malloc(packet_bytes + 1);
    const char *mountpoint, *bad_word;
    struct mount_options o;
    struct mount *m = NULL;
    int err = saved && words ? 0 : -ENOMEM;

    if (!err) {
        memcpy(words, packet, packet_bytes);
        parcel_put_raw(saved, state, bytes);
        err = shared_decode(words, packet_bytes, &o, &mountpoint, &bad_word);
    }
    if (!err && (saved->is_broken || !(m = mount_new(&o, mountpoint))))
        err = -ENOMEM;
    if (err) {
        if (saved)
            parcel_free(saved);
        free(saved);
        free(words);
        return err;
    }
    m->words = words;
    m->saved = saved;
    err = mount_begin(m);
    if (err)
        mount_free(m);
    return err;
}

unsigned
mounts_restore(struct parcel *from)
{
    unsigned count = 0;

    atomic_fetch_add(&restoring, 1); /* until all have begun */
    while (parcel_get_u32(from)) {
        size_t packet_bytes, bytes;
        const void *packet = parcel_get_bytes(from, &packet_bytes), *state = parcel_get_bytes(from, &bytes);

        atomic_fetch_add(&restoring, 1);
        int err = from->is_broken ? -EBADMSG : restore_one(packet, packet_bytes, state, bytes);

        count++;
        if (!err)
            continue;
        log_event(LOG_CRITICAL, NULL, "mount-not-begun", "a mount of the earlier program is lost: %s",
                  strerror(-err));
        count_restored(false);
    }
    atomic_fetch_sub(&restored_well, 1); /* the count of this function itself */
    count_restored(true);
    return count;
}

void
mounts_when_restored(void (*fn)(unsigned served, unsigned failed))
{
    tell_restored = fn;
}
