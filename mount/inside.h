/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* inside: mounts in the process of the bricks (`kiln mount -o inside`, kilnd --inside-mounts). Fops to
 * bricks of this process go as calls (rpc/transport/fop-path.h), fops to other bricks go by connections. */
#ifndef KILN_MOUNT_INSIDE_H
#define KILN_MOUNT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

struct graph;
struct parcel;

/* kilnd takes requests for mounts at its management socket's path with this ending. */
#define INSIDE_SOCKET_ENDING ".mounts"

/* Takes requests for mounts beside the management socket, and takes back the mounts of the earlier program of
 * this process (bricks/upgrade.h), or of a kilnd that was killed. When bricks and volfiles are served.
 * Returns 0, or -errno with the reason in `error`. Main thread. */
int inside_mounts_begin(const char *management_socket, char *error, size_t error_size);
/* Unmounts all, and waits for the end of the last mount. While bricks are still served; also if begin has
 * failed or was not called. Main thread. */
void inside_mounts_end(void);
/* Frees the memory that mounts share; after workers_stop(). */
void inside_mounts_free(void);
/* Calls fn for the graph of each mount, as bricks_each() does for bricks. */
bool inside_mounts_each(void (*fn)(struct graph *g, void *arg), void *arg);
/* The volfiles of mounts may have changed: SIGHUP. */
void inside_mounts_refetch(void);

/* ---- a newer program of this process (bricks/upgrade.h), as in mount/mount.h. Main thread ------ */

/* Before bricks rest, because running requests need the bricks. 0, or -errno with *why, and all mounts go on.
 */
int inside_mounts_freeze(unsigned ms, char *why, size_t why_size);
void inside_mounts_thaw(void);
/* 0 or -errno. */
int inside_mounts_save(struct parcel *to);
int inside_mounts_keep_open(bool keeps);

#endif
