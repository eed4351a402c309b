/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A mount of a distributed volume on bricks in memory, and its calls. */
#ifndef KILN_CLUSTER_DISTRIBUTE_TEST_DISTRIBUTE_CALLS_H
#define KILN_CLUSTER_DISTRIBUTE_TEST_DISTRIBUTE_CALLS_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children-internal.h"
#include "xlators/cluster/test-children.h"

enum { SUBVOLUMES = 3, FILE_A = 20, FILE_B = 21, FOLDER = 22, FRESH = 60 };
#define LAYOUT_KEY "trusted.glusterfs.dht"
#define MDS_KEY "trusted.glusterfs.dht.mds"
#define LINKTO_KEY "trusted.glusterfs.dht.linkto"

static const char *path_a, *path_b;
static uint32_t caller_uid;
static enum call_hint_kind hint; /* of calls of names and folders */

static inline void
fill_name(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xbb, [15] = FRESH}};

    stk->caller.uid = caller_uid;
    stk->call.hint.kind = hint;
    stk->call.loc = loc_at(path_a);
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    stk->call.name2 = "target";
    if (path_b)
        stk->call.loc2 = loc_at(path_b);
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static inline void
fill_object(struct call_stack *stk)
{
    stk->call.loc.inode = inode_at(path_a);
    stk->call.size = 4096;
    stk->call.hint.kind = hint;
}

static inline int
name_call(enum fop fop, const char *path)
{
    path_a = path;
    path_b = NULL;
    return scene_call(fop, fill_name, 0);
}

static inline int
rename_call(const char *from, const char *to)
{
    path_a = from;
    path_b = to;
    return scene_call(FOP_rename, fill_name, 0);
}

static inline int
object_call(enum fop fop, const char *path)
{
    path_a = path;
    return scene_call(fop, fill_object, 0);
}

static inline void
mount_begin(const char *options)
{
    scene_begin(&cluster_distribute_xlator, options);
    (void)object_call(FOP_lookup, "/");
}

static inline void
children_return(void)
{
    scene.fault_count = 0;
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
}

static inline void
linkto_make_at(unsigned i, const char *path, uint8_t number, unsigned target)
{
    const char name[] = {'c', (char)('0' + target), '\0'};
    struct stored_object *o = store_make(i, path, S_IFREG | S_ISVTX, number, NULL);

    must(store_set_xattr(o, LINKTO_KEY, name, sizeof name) == 0);
}

#endif
