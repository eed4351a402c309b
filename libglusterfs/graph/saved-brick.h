/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* saved-brick: how a brick's layers hand the state that clients rely on to the same layers of a newer program
 * (xlator_type.save and .restore). protocol/server, which knows the clients, makes these structs.
 *
 * thread: the main thread alone. While a layer saves, no call runs; parked calls stay parked. While a layer
 * restores, no client's call has been read yet. */
#ifndef KILN_GRAPH_SAVED_BRICK_H
#define KILN_GRAPH_SAVED_BRICK_H

#include "base/gfid.h"
#include "base/parcel.h"

struct brick_client;
struct call_stack;
struct inode;

struct brick_saver {
    struct parcel *to;
    /* Keeps a parked call: the next program receives the call once more, as the client sent it. Calls of a
     * client keep the order in which the layer gives them. `stk` stays the layer's. 0 or -errno. */
    int (*keep_call)(struct brick_saver *s, const struct call_stack *stk);
};

struct brick_restorer {
    struct parcel *from;
    /* The client that had this id in the old program (brick_client.id), lent; NULL: not restored. */
    struct brick_client *(*client)(struct brick_restorer *r, uint64_t id);
    /* Finds the object, on the disk if need be: a reference; NULL: there is none. */
    struct inode *(*inode)(struct brick_restorer *r, const struct gfid *gfid);
};

#endif
