/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A folder with different names on different subvolumes: a client died in the middle of a rename, which was
 * therefore not acknowledged. The first lookup of one of the names decides: all subvolumes get that name. If
 * the folder were made anew where the name is missing, those subvolumes would have the folder under both
 * names.
 *
 *   1. The caller has the locks of the name, so that no rename to or from it is under way.
 *   2. LOOKUP of the gfid on the subvolume that lacks the name. ENOENT: nothing to move.
 *   3. The path of the folder there (glusterfs.ancestry.path), and its parent by LOOKUPs from the root. A
 *      heal of replicas below may have parked the folder in the hidden folder of one brick
 *      (replicate/heal-park.c): that is no place, and the heal is waited for (EBUSY).
 *   4. The locks of the old name, if they are free: otherwise a rename may be under way (EBUSY).
 *   5. LOOKUP of the old name once more, then RENAME, on that subvolume alone.
 *
 * A client that dies before 5 leaves the state as it was; the next lookup repeats the steps. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

#define PATH_KEY "glusterfs.ancestry.path"
#define HIDDEN "/.glusterfs" /* begins the paths of the bricks' own folders */

/* Where a subvolume has the folder. */
struct dist_place {
    struct inode *dir; /* a reference */
    const char *name;
};

/* Returns the attributes of the object behind a name, or of `inode` if the name is NULL. 0 or -errno. */
static int
lookup_on(const struct op *o, unsigned child, struct inode *dir, const char *name, struct inode *inode,
        struct iatt *out)
{
    struct call_stack *stk = lookup_call(o, dir, name, inode, true);
    int ret = dist_call_at(o, child, stk);

    if (ret >= 0)
        *out = stk->reply.stat;
    if (stk)
        call_stack_free(stk);
    return ret == -ESTALE ? -ENOENT : ret < 0 ? ret : 0;
}

/* Returns the folder's path on the arena of the operation; NULL: none was told. */
static char *
path_on(const struct op *o, unsigned child, struct inode *folder)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_getxattr), folder);
    char *path = NULL;

    if (!stk)
        return NULL;
    stk->call.name = PATH_KEY;
    stk->call.has_name = 1;
    int ret = dist_call_at(o, child, stk);
    const struct dict_pair *p = ret < 0 ? NULL : dict_find_text(stk->reply.dict, PATH_KEY);

    if (p && (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED)) {
        size_t len = strnlen(p->v.bytes, p->len);

        path = len && *(const char *)p->v.bytes == '/' ? arena_zalloc(&o->stk->arena, len + 1) : NULL;
        if (path)
            memcpy(path, p->v.bytes, len);
    }
    call_stack_free(stk);
    return path;
}

static int
find_on(const struct op *o, unsigned child, struct inode *folder, struct dist_place *out)
{
    struct inode_table *t = o->d->xl->graph->inodes;
    char *path = path_on(o, child, folder);
    int err = 0;

    *out = (struct dist_place){0};
    if (!path || strncmp(path, HIDDEN, sizeof HIDDEN - 1) == 0)
        return -EBUSY;
    out->dir = inode_root(t);
    out->name = path + 1;
    for (char *slash; !err && (slash = strchr(out->name, '/')); out->name = slash + 1) {
        struct iatt a;

        *slash = '\0';
        err = lookup_on(o, child, out->dir, out->name, NULL, &a);
        inode_unref(out->dir);
        out->dir = err ? NULL : inode_link(t, NULL, NULL, &a);
        err = !err && !out->dir ? -ENOMEM : err;
    }
    return err ? err : *out->name ? 0 : -EBUSY;
}

/* Step 5. */
static int
move_on(const struct op *o, unsigned child, const struct dist_place *from, struct inode *folder,
        struct inode *parent, const char *name)
{
    struct iatt a;
    int err = lookup_on(o, child, from->dir, from->name, NULL, &a);

    if (!err && !gfid_equal(&a.gfid, &folder->gfid))
        err = -EBUSY;
    if (err)
        return err == -ENOENT ? -EBUSY : err;
    struct call_stack *stk =
        dist_call_for_name(dist_call_new_internal(o, FOP_rename), from->dir, from->name);

    stk = dist_call_for_inode(stk, folder);
    if (stk) {
        stk->call.loc2.parent = inode_ref(parent);
        stk->call.loc2.name = name;
    }
    int ret = dist_call_once(o, child, stk);

    log_event(ret < 0 ? LOG_WARNING : LOG_INFO, o->d->xl, "distribute-folder-moved",
              "%s on %s: from %s/%s to %s/%s, as on other subvolumes: %s", GFID(&folder->gfid),
              o->d->child[child].xl->name, GFID(&from->dir->gfid), from->name, GFID(&parent->gfid), name,
              ret < 0 ? strerror(-ret) : "done");
    return ret < 0 ? ret : 0;
}

int
folder_move_here(const struct op *o, unsigned child, struct inode *folder, struct inode *parent,
                 const char *name)
{
    struct dist_place from;
    struct dist_lock lock[2];
    struct iatt a;
    int err = lookup_on(o, child, NULL, NULL, folder, &a);

    if (err)
        return err;
    err = find_on(o, child, folder, &from);
    int hashed = err ? err : folder_hashed(o, from.dir, from.name);

    if (hashed >= 0) {
        unsigned count = dist_locks_namespace(lock, (unsigned)hashed, from.dir, from.name);

        err = dist_locks_try(o, lock, count);
        if (!err) {
            err = move_on(o, child, &from, folder, parent, name);
            dist_locks_drop(o, lock, count);
        }
    }
    inode_unref(from.dir);
    return err == -EAGAIN ? -EBUSY : hashed < 0 ? -EBUSY : err;
}
