/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* place: the state of a mount point. A mount whose process has died stays in the mount table, and each call
 * in such a dead mount fails with ENOTCONN. The functions look only at mounts of the type fuse.glusterfs, so
 * that no other file system is ever unmounted. Paths are absolute. */
#ifndef KILN_MOUNT_PLACE_H
#define KILN_MOUNT_PLACE_H

#include <stdbool.h>

enum place { PLACE_FREE, PLACE_LIVE, PLACE_DEAD };

/* Tells about the topmost mount. Asks the mount in a child process, for a second at most, because a mount
 * whose bricks hang does not answer; such a mount is live. Called before the process has threads. */
enum place place_look(const char *path);
/* Tells whether the topmost mount is dead. Asks in this thread, and hangs as long as the mount hangs. Any
 * thread. */
bool place_is_dead(const char *path);
/* Unmounts all dead mounts that are stacked on this mount point, lazily: open files fail with ENOTCONN as
 * before. Hangs as place_is_dead() does. Returns 0 or -errno. Any thread. */
int place_clear(const char *path);

#endif
