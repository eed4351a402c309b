/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Objects, names and layouts of all subvolumes, for unit tests of cluster/distribute on bricks in memory. */
#ifndef KILN_CLUSTER_DISTRIBUTE_TEST_SUBVOLUMES_H
#define KILN_CLUSTER_DISTRIBUTE_TEST_SUBVOLUMES_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "xlators/cluster/distribute/hash.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_distribute_xlator;

/* Returns the inode of the path on the first subvolume that has the path; NULL: none has it. */
static inline struct inode *
inode_at(const char *path)
{
    struct inode *inode = NULL;

    for (unsigned i = 0; i < scene.count && !inode; i++)
        inode = scene_inode(i, path);
    return inode;
}

/* Returns the name at the end of the path, with the inode of its folder. */
static inline struct loc
loc_at(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char dir[64];

    snprintf(dir, sizeof dir, "%.*s", (int)(name - path), path);
    return (struct loc){.parent = inode_at(dir), .name = name};
}

static inline void
fill_root_inode(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

static inline uint32_t
range_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Returns the subvolume whose range of the root has the hash of the name. */
static inline unsigned
subvolume_of_hash(const char *name)
{
    uint32_t hash = hash_name(NULL, 0, name);

    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_xattr *x = store_xattr(&scene.store[i].object[0], "trusted.glusterfs.dht");

        if (x && range_word(x->bytes + 8) <= hash && hash <= range_word(x->bytes + 12) &&
            range_word(x->bytes + 12))
            return i;
    }
    ck_abort_msg("no range has the hash");
    return 0;
}

#endif
