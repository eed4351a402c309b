/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount: the mounts of this process.
 *
 *      mounts_add()  -> volfile (file, or glusterd) -> graph -> mounted -> first news of its bricks: settled
 *                          |                                                    |
 *                          +-- failed: settled, and gone                        | new volfiles: reconfigured
 *                                                                               v
 *                                              unmounted, refused, mounts_leave(): taken down, gone
 *
 * A mount with work to do has a thread of its own for the calls that take long or wait for bricks, so that
 * the start or the end of a mount does not delay other mounts. A mount at rest has no thread.
 */
#ifndef KILN_MOUNT_MOUNT_H
#define KILN_MOUNT_MOUNT_H

#include "mount/kiln-mount.h"

struct mount;
struct parcel;

struct mounts_hooks {
    /* The last mount is gone. Called from any thread, with no lock held. */
    void (*empty)(void);
    /* These hooks are called in a mount's thread, with no lock held, and may be NULL. `entering` is called
     * before the mount, and `leaving` after the unmount or a failure; no other mount has the mount point in
     * between. At `left` another mount may have the mount point; `is_last`: `empty` follows. */
    void (*entering)(const struct mount_options *o, const char *mountpoint);
    void (*leaving)(const char *mountpoint);
    void (*left)(const char *mountpoint, bool is_last);
    /* The process goes on without mounts: a mount counts as the last one only after mounts_leave(). */
    bool stays;
};

/* Sets the hooks. Called once, before the first mounts_add(). */
void mounts_begin(const struct mounts_hooks *hooks);
/* Begins a mount. `mountpoint` is absolute and copied. The texts of `o` must stay until the mount is gone;
 * the mount then frees `o->owned` and `words`. The mount's thread calls `settled` once, with 0, or with the
 * exit status and the reason; `settled` may be NULL. Replaces a dead mount on the mount point (place.h).
 * Returns 0 or -errno; after an error nothing has begun, and the caller still owns `o` and `words`.
 * -ESHUTDOWN: the last mount has gone, and the process is about to end; -EEXIST: this process has a mount on
 * this mount point. */
int mounts_add(const struct mount_options *o, const char *mountpoint, char *words,
               void (*settled)(int status, const char *why, void *arg), void *arg);
/* ---- a newer program of this process (mount/upgrade.h). Main thread, in this order ------------- */

/* Stops all mounts, and waits at most `ms` milliseconds until no request and no call is under way. From then
 * on no mount begins or ends. 0, or -errno with *why, and all mounts go on: -EBUSY. */
int mounts_freeze(unsigned ms, char *why, size_t why_size);
/* Writes all mounts. 0 or -errno. */
int mounts_save(struct parcel *to);
/* Lets the mounts' descriptors survive exec(2), or not. 0 or -errno. */
int mounts_keep_open(bool keeps);
void mounts_thaw(void);
/* In the new program, in place of mounts_add(): begins all saved mounts, each in its own thread. Returns the
 * number of mounts; a mount that cannot be restored is logged and unmounted. */
unsigned mounts_restore(struct parcel *from);
/* Calls `fn` once, in some thread, when all restored mounts serve or have failed, with their number. */
void mounts_when_restored(void (*fn)(unsigned served, unsigned failed));

/* Begins to unmount all mounts, and returns at once; `empty` follows. Returns false if there is no mount;
 * from then on mounts_add() fails. */
bool mounts_leave(void);
/* Makes each mount read or fetch the volfile again. */
void mounts_refetch(void);
/* Waits until no thread of a mount runs any more. Called after `empty`. */
void mounts_end(void);
/* Calls fn for the graph of each mount with a graph; for statedump_write(). */
bool mounts_each_graph(void (*fn)(struct graph *g, void *arg), void *arg);

#endif
