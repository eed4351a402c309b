/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* place: tells what is mounted on a mount point. A mount whose process has died stays in the mount table, and
 * each call in it fails with ENOTCONN; such a mount is dead. Only mounts of the type fuse.glusterfs are
 * looked at, so that no other file system is ever unmounted. Paths are absolute. */
#ifndef KILN_MOUNT_PLACE_H
#define KILN_MOUNT_PLACE_H

#include <stdbool.h>

enum place { PLACE_FREE, PLACE_LIVE, PLACE_DEAD };

/* Tells about the topmost mount. Asks the mount in a child process, for a second at most, because a mount
 * whose bricks hang does not answer: such a mount is live. Before there are threads. */
enum place place_look(const char *path);
/* The same in this thread, which hangs with a hanging mount. Any thread. */
bool place_is_dead(const char *path);
/* Unmounts dead mounts on this mount point, one on the other, lazily: open files fail with ENOTCONN as
 * before. Hangs as place_is_dead() does. Returns 0 or -errno. Any thread. */
int place_clear(const char *path);

#endif
