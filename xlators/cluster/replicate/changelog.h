/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* changelog: what replicas say about each other, and what follows from it: arithmetic, no calls.
 *
 * On each replica of an object there is, for each child K of the set, an xattr with three counters:
 * operations on data, metadata and entries that this replica has and K has not ("it accuses K"); and one
 * more of the same shape, trusted.afr.dirty: operations that were begun and are not known to have ended. A
 * counter that is not there is 0. Only XATTROP changes them, by adding.
 *
 *                   on child 0      on child 1
 *      about 0      -               0 0 0            child 0 is accused by nobody: its data may be read
 *      about 1      1 0 0           -                child 1 has missed one change of data: it may not
 *
 * Both accuse each other: neither is good, which is called split-brain, and is answered EIO.
 *
 * On a directory the data word means: compare the whole directory (heal).
 */
#ifndef KILN_CLUSTER_CHANGELOG_H
#define KILN_CLUSTER_CHANGELOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gfid.h"

#define REPLICAS_MAX 16
typedef uint32_t child_set; /* bit i: child i */
#define CHILD(i) ((child_set)1 << (i))
#define CHILDREN(n) ((child_set)(((uint64_t)1 << (n)) - 1))

enum change { CHANGE_DATA, CHANGE_METADATA, CHANGE_ENTRY, CHANGES };

#define CHANGELOG_BYTES 12
struct changelog {
    uint32_t count[CHANGES];
};

/* As in an xattr: big-endian. */
void changelog_put(const struct changelog *c, unsigned char out[CHANGELOG_BYTES]);
/* From an xattr's bytes; what is missing of them is 0. */
void changelog_get(struct changelog *out, const void *bytes, size_t len);

/* What one child has answered about an object. */
struct replica {
    bool is_there;  /* it has answered, and has the object */
    bool is_bad;    /* the brick itself says that its copy is bad */
    bool is_locked; /* somebody is writing: sizes mean nothing */
    bool is_file;
    struct changelog about[REPLICAS_MAX]; /* its xattrs about each child */
    struct changelog dirty;
    uint64_t size;
};

/* Whom another of the children that are there accuses. */
child_set changelog_accused(const struct replica *r, unsigned count, enum change what);
/* Of whom `what` may be read. Of a file's data only what is not shorter than the longest copy that nobody
 * accuses, unless somebody is writing; never the arbiter's (its index, or -1), which has none. */
child_set changelog_readable(const struct replica *r, unsigned count, enum change what, int arbiter);

/* From whom to whom a heal goes. */
struct direction {
    child_set sources, sinks;
    bool is_dirty; /* some change was begun, and is not known to have ended */
};

/* Of replicas that are all there, as read under the heal's locks. No source: split-brain, or something that
 * only the self-heal daemon decides (one that accuses itself, as old clients left it). A child that is
 * accused is never a source, whatever else is known, nor is one that is bad. No sink: nobody is accused. */
void changelog_direction(const struct replica *r, unsigned count, enum change what, struct direction *out);

enum quorum_type { QUORUM_NONE, QUORUM_AUTO, QUORUM_FIXED };
struct quorum {
    enum quorum_type type;
    unsigned count; /* of QUORUM_FIXED */
};
/* May the set go on with these children of `count`? One at least is always needed. */
bool quorum_is_met(const struct quorum *q, unsigned count, child_set good);

/* Which errno (positive) to answer when two children have failed differently. */
int replica_worse_errno(int a, int b);

/* SuperFastHash of a gfid: spreads the reads of files over the children. */
uint32_t gfid_super_fast_hash(const struct gfid *gfid);
/* The child of `readable` (not empty) that this file is read from. */
unsigned replica_choose(child_set readable, unsigned count, const struct gfid *gfid);

static inline unsigned
children_count(child_set s)
{
    return (unsigned)__builtin_popcount(s);
}

/* The first of a set that is not empty. */
static inline unsigned
child_first(child_set s)
{
    return (unsigned)__builtin_ctz(s);
}

/* One loop, so that `break` and `continue` do what they say. */
#define for_each_child(i, set)                                                                               \
    for (child_set i##_left = (set), i = 0; i##_left && (i = child_first(i##_left), true);                   \
         i##_left &= i##_left - 1)

#endif
