/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* records: the mounts of the shared process on disk, so that after a kill the next shared process restores
 * these mounts.
 *
 * A record is a file with the packet of shared.h. The shared process writes the record before it mounts, and
 * removes the record when the mount has left: unmounted, failed, or ended by SIGTERM. If the process dies
 *
 *     before the record has its name    the request is lost, nothing is mounted
 *     between record and mount          the mount point is not dead: the next process drops the record
 *     while mounted                     the mount point is dead: the next process mounts the volume again
 *     between unmount and removal       the mount point is not dead: the next process drops the record
 *
 * Systemd (kiln-mount.service) or the next `kiln mount` starts the next process. That process waits for the
 * volfile of each such mount without end, and replaces the dead mount when the volfile arrives. Until then
 * calls in the dead mount fail with ENOTCONN. Only the holder of shared.h's lock reads and writes records. */
#ifndef KILN_MOUNT_RECORDS_H
#define KILN_MOUNT_RECORDS_H

#include "mount/kiln-mount.h"

#define RECORDS_DIR "/run/kiln-mount"

/* Writes the record of a mount. Returns 0 or -errno. Any thread, but only one for each mount point at a
 * time. */
int record_save(const char *dir, const struct mount_options *o, const char *mountpoint);
/* Removes the record, if any. Any thread. */
void record_remove(const char *dir, const char *mountpoint);
/* Calls `fn` for each record. The texts of `o` are in `packet`, which belongs to fn. Removes records that
 * cannot be read, and records of another mount namespace. */
void records_each(const char *dir,
                  void (*fn)(const struct mount_options *o, const char *mountpoint, char *packet));

#endif
