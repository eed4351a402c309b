/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* changelog: the counters by which replicas accuse each other, and their evaluation: arithmetic, no calls.
 *
 * Each replica of an object has, for each child K of the set, an xattr (trusted.afr.*, the pending xattr)
 * with three counters: operations on data, metadata and entries that this replica has and K has missed
 * ("this replica accuses K"). One more xattr of the same shape, trusted.afr.dirty, counts operations that
 * were begun and are not known to have ended. A missing counter is 0. Only XATTROP changes counters, by
 * adding.
 *
 *                   on child 0      on child 1
 *      about 0      -               0 0 0            child 0 is accused by no copy: its data may be read
 *      about 1      1 0 0           -                child 1 has missed one change of data: do not read it
 *
 * If both accuse each other, neither copy is good. This is split-brain, and the answer is EIO.
 *
 * On a directory the data counter means: compare the whole directory (heal).
 *
 * thread: any; nothing here is shared. */
#ifndef KILN_CLUSTER_CHANGELOG_H
#define KILN_CLUSTER_CHANGELOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gfid.h"
#include "xlators/cluster/children.h"

#define REPLICAS_MAX 16

enum change { CHANGE_DATA, CHANGE_METADATA, CHANGE_ENTRY, CHANGES };

#define CHANGELOG_BYTES 12
struct changelog {
    uint32_t count[CHANGES];
};

/* Encodes the counters as in an xattr: big-endian. */
void changelog_put(const struct changelog *c, unsigned char out[CHANGELOG_BYTES]);
/* Decodes an xattr's bytes; missing bytes are 0. */
void changelog_get(struct changelog *out, const void *bytes, size_t len);

/* One child's reply about an object. */
struct replica {
    bool is_there;  /* the child has answered, and has the object */
    bool is_bad;    /* the brick reports that its copy is bad */
    bool is_locked; /* a writer has the lock: the copies' sizes may differ */
    bool is_file;
    struct changelog about[REPLICAS_MAX]; /* the pending xattrs about each child */
    struct changelog dirty;
    uint64_t size;
};

/* Returns the children that at least one other present child accuses. */
child_set changelog_accused(const struct replica *r, unsigned count, enum change what);
/* Returns the children from which `what` may be read. For a file's data, the size of the copy must not be
 * less than the longest unaccused copy, unless a writer has the lock. The arbiter (its index, or -1) is
 * never included, because it has no data. */
child_set changelog_readable(const struct replica *r, unsigned count, enum change what, int arbiter);

/* The direction of a heal. */
struct direction {
    child_set sources, sinks;
    bool is_dirty; /* a change was begun, and is not known to have ended */
};

/* Computes the direction of a heal from replicas that are all present, read under the heal's locks. No
 * source: split-brain, or a state that only the self-heal daemon decides (a copy that accuses itself, as
 * old clients left it). A child that is accused or bad is never a source. No sink: no child is accused. */
void changelog_direction(const struct replica *r, unsigned count, enum change what, struct direction *out);

enum quorum_type { QUORUM_NONE, QUORUM_AUTO, QUORUM_FIXED };
struct quorum {
    enum quorum_type type;
    unsigned count; /* for QUORUM_FIXED */
};
/* Returns whether `good`, of `count` children, is a quorum. At least one child is always needed. */
bool quorum_is_met(const struct quorum *q, unsigned count, child_set good);

/* Returns the errno (positive) to report when two children have failed differently. */
int replica_worse_errno(int a, int b);

/* Returns the child of `readable` (not empty) to read this file from. */
unsigned replica_choose(child_set readable, unsigned count, const struct gfid *gfid);

#endif
