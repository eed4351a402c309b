/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* records: the mounts of the shared process on disk, so that the next shared process takes the mount points
 * of one that was killed back.
 *
 * A record is a file with the packet of shared.h. The shared process writes the record before it mounts, and
 * removes the record when the mount has left: unmounted, failed, or ended by SIGTERM. If the process dies
 *
 *     before the record has its name    the request is lost, nothing is mounted
 *     between record and mount          the mount point is not dead: the next process drops the record
 *     while mounted                     the mount point is dead: the next process mounts the volume there
 * again
 *     between unmount and removal       the mount point is not dead: the next process drops the record
 *
 * The next process is started by systemd (kiln-mount.service) or by the next `kiln mount`. It waits for the
 * volfile of each such mount without end, and replaces the dead mount when it has the volfile; until then
 * calls there fail with ENOTCONN. The holder of the lock of shared.h alone reads and writes records. */
#ifndef KILN_MOUNT_RECORDS_H
#define KILN_MOUNT_RECORDS_H

#include "mount/kiln-mount.h"

#define RECORDS_DIR "/run/kiln-mount"

/* Writes the record of a mount. Returns 0 or -errno. Any thread; one call for one mount point at a time. */
int record_save(const char *dir, const struct mount_options *o, const char *mountpoint);
/* Removes the record, if there is one. Any thread. */
void record_remove(const char *dir, const char *mountpoint);
/* Calls `fn` for each record. What `o` points to is in `packet`, which belongs to fn. Removes records that
 * cannot be read, and those of another mount namespace. */
void records_each(const char *dir,
                  void (*fn)(const struct mount_options *o, const char *mountpoint, char *packet));

#endif
