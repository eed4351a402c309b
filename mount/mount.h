/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount: the mounts of this process.
 *
 *      mounts_add()  -> volfile (file, or glusterd) -> graph -> mounted -> first news of its bricks: settled
 *                          |                                                    |
 *                          +-- failed: settled, and gone                        | new volfiles: reconfigured
 *                                                                               v
 *                                              unmounted, refused, mounts_leave(): taken down, gone
 *
 * What takes long or waits for a mount's bricks is done by a thread of the mount's own, which is there only
 * while there is something to do: one mount's coming and going does not hold up another's. At rest no thread
 * belongs to a mount.
 */
#ifndef KILN_MOUNT_MOUNT_H
#define KILN_MOUNT_MOUNT_H

#include "mount/kiln-mount.h"

struct mount;

struct mounts_hooks {
    /* The last one is gone. From any thread, with no lock held. */
    void (*empty)(void);
    /* These are called in a mount's thread, with no lock held, and may be NULL. No other mount has the mount
     * point between `entering`, before it is mounted, and `leaving`, after it was unmounted or has failed.
     * `left`: another mount may have the mount point; `is_last`: `empty` follows. */
    void (*entering)(const struct mount_options *o, const char *mountpoint);
    void (*leaving)(const char *mountpoint);
    void (*left)(const char *mountpoint, bool is_last);
};

/* Once, before the first. */
void mounts_begin(const struct mounts_hooks *hooks);
/* Begins one. `mountpoint` is absolute and copied; what `o` points to stays until the mount is gone, when its
 * own texts and `words` are freed. `settled` is called once, in a thread of the mount's, with 0, or with the
 * exit status and why; NULL: nobody asks. 0 or -errno: then nothing has begun, and `o` and `words` stay the
 * caller's; -ESHUTDOWN: the last mount has gone, and the process is about to; -EEXIST: this process has a
 * mount on this mount point. A dead mount on the mount point is replaced (place.h). */
int mounts_add(const struct mount_options *o, const char *mountpoint, char *words,
               void (*settled)(int status, const char *why, void *arg), void *arg);
/* All are unmounted. Returns at once: `empty` follows. False: there is none, and none can be added any more.
 * */
bool mounts_leave(void);
/* All ask for their volfiles again. */
void mounts_refetch(void);
/* Waits until no thread of a mount's runs any more. After `empty`. */
void mounts_end(void);
/* fn for the graph of each mount that has one; for statedump_write(). */
bool mounts_each_graph(void (*fn)(struct graph *g, void *arg), void *arg);

#endif
