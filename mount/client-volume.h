/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* client-volume: a client's volfile as a graph, for programs that use volumes: kiln-mount, kilnd's mounts and
 * libgfapi.
 *
 * thread: any; a volfile belongs to the caller. */
#ifndef KILN_MOUNT_CLIENT_VOLUME_H
#define KILN_MOUNT_CLIENT_VOLUME_H

#include <stdbool.h>

#include "graph/graph.h"

#define CLIENT_HARD_NAME "kiln-hard" /* the layer that client_volume_add_hard() adds */

/* Finds the layer types that the volfile of a client may name, also those that a client leaves out. NULL: no
 * such type. */
xlator_type_find client_type_find;
/* Adds features/hard above the layers that decide which bricks a call goes to. 0, -ENOMEM; -EEXIST: the
 * volfile has a section of that name already. */
int client_volume_add_hard(struct volfile *v);
/* Is the section a brick's? */
bool client_is_brick(const struct volfile_section *s);
/* Returns the value of the option; "": not given. */
const char *client_option_of(const struct volfile_section *s, const char *key);
/* The kinds of change of a volume. */
enum volume_change { VOLUME_SAME_BRICKS, VOLUME_OTHER_BRICKS };
/* `before` is the volfile that the graph was made from. A change of layers counts as a change of bricks. */
enum volume_change volume_compare(const struct volfile *before, const struct volfile *now);
/* Names the types of the graph's layers that are left out, if any, in a line of the log. `whose`: the mount
 * point or volume. */
void client_volume_log_left_out(const struct graph *g, const char *whose);

#endif
