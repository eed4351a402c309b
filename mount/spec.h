/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* spec: a mount's volfile, fetched from glusterd and fetched again whenever that says that it has changed
 * (management 2, 3).
 *
 * Servers are tried in the order given: the next one is connected to when the one before cannot be reached,
 * and stays connected, so that whichever is there tells of changes. Lost connections are made again for ever.
 *
 * thread: spec_new() and spec_free() by the mount's own; what they tell comes on workers.
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
    /* None is to be had: a server has said so, or each one was tried and none can be reached. May be called
     * several times; later attempts may succeed. */
    void (*failed)(void *arg, const char *why);
};

/* Begins. Everything is copied but ops. NULL with *err: -ENOMEM, -EINVAL, -ENAMETOOLONG (of a server's name).
 */
struct spec *spec_new(const char *const *servers, unsigned count, uint16_t port, const char *id,
                      const struct spec_ops *ops, void *arg, int *err);
/* Asks again, those that are connected. */
void spec_refetch(struct spec *s);
/* Nothing is told any more after return. NULL allowed. Not on a worker: it waits for them. */
void spec_free(struct spec *s);

#endif
