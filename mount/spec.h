/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* spec: fetches a mount's volfile from glusterd, and fetches the volfile again whenever glusterd reports a
 * change (management 2, 3).
 *
 * The spec tries servers in the order given, and connects to the next server when a server cannot be reached.
 * All connections stay, so that any server that is up can report changes. The spec restores lost connections
 * for ever.
 *
 * thread: the mount's thread calls spec_new() and spec_free(); the callbacks run on workers.
 */
#ifndef KILN_MOUNT_SPEC_H
#define KILN_MOUNT_SPEC_H

#include <stddef.h>
#include <stdint.h>

struct spec;

#define SPEC_SERVERS_MAX 16

struct spec_ops {
    /* A volfile has come, perhaps the same as before. */
    void (*text)(void *arg, const char *text, size_t bytes);
    /* There is no volfile: a server has refused (err, -errno: -ENOENT: it has no such volume), or no server
     * can be reached (-ENOTCONN). May be called several times; later attempts may succeed. */
    void (*failed)(void *arg, int err, const char *why);
};

/* Begins to fetch. A server is the name of a host, [HOST]:PORT with a port of its own, or the absolute path
 * of a unix socket. Copies all arguments but ops. Returns NULL with *err: -ENOMEM, -EINVAL, -ENAMETOOLONG (of
 * a server's name). */
struct spec *spec_new(const char *const *servers, unsigned count, uint16_t port, const char *id,
                      const struct spec_ops *ops, void *arg, int *err);
/* Asks all connected servers again. */
void spec_refetch(struct spec *s);
/* No callback runs after return. NULL allowed. Not on a worker, because spec_free() waits for workers. */
void spec_free(struct spec *s);

#endif
