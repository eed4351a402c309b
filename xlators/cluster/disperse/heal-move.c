/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Moves a folder on one child to the name that it has on the others.
 *
 * A client has renamed the folder while the child was away. A second folder of the same gfid under the new
 * name would share the brick's handle with the old one, and the removal of the old name would then take the
 * handle away. So the heal renames the folder, with its contents, which the heals of the folder and of the
 * folders in it compare with the other children.
 *
 *      find       the brick's path of the folder (GETXATTR of its ancestry), and the parent by its names
 *      lock       the old parent on this child, without waiting; the caller has locked the new parent
 *      look       the old name still leads to the folder
 *      RENAME     on this child only
 *
 * A healer that dies before the RENAME leaves the folder at the old place, and one that dies after it a
 * folder at the right place whose versions are still lower: the next heal continues. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/disperse/heal.h"

#define PATH_KEY "glusterfs.ancestry.path"

/* The place of a folder on one child. */
struct ec_place {
    struct inode *dir; /* a reference, or NULL */
    const char *name;  /* in the arena of `stk` */
    struct call_stack *stk;
};

static struct call_stack *
place_call(const struct ec_heal *h, enum fop fop, unsigned i, struct inode *dir, const char *name)
{
    struct call_stack *stk = ec_call(&h->op, fop, i, false, NULL, NULL);

    if (stk)
        stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = name};
    return stk;
}

static int
look_at_place(const struct ec_heal *h, unsigned i, struct inode *dir, const char *name, struct iatt *out)
{
    struct call_stack *stk = place_call(h, FOP_lookup, i, dir, name);
    int ret = stk ? coro_call(stk, h->op.d->xl->children[i]) : -ENOMEM;

    if (ret >= 0)
        *out = stk->reply.stat;
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* Returns a copy of the brick's path, to be cut into names; NULL: the brick does not report it. */
static char *
copy_ancestry(struct call_stack *stk)
{
    const struct dict_pair *p = dict_find_text(stk->reply.dict, PATH_KEY);
    bool has_bytes = p && (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED);
    size_t len = has_bytes ? strnlen(p->v.bytes, p->len) : 0;
    char *path = len ? arena_alloc(&stk->arena, len + 1) : NULL;

    if (!path || ((const char *)p->v.bytes)[0] != '/')
        return NULL;
    memcpy(path, p->v.bytes, len);
    path[len] = '\0';
    return path;
}

/* Looks up all names of the path but the last one. */
static int
walk_ancestry(const struct ec_heal *h, unsigned i, char *path, struct ec_place *out)
{
    struct inode_table *table = h->op.d->xl->graph->inodes;
    int err = 0;

    out->dir = inode_root(table);
    out->name = path + 1;
    for (char *slash; !err && (slash = strchr(out->name, '/')); out->name = slash + 1) {
        struct iatt stat;

        *slash = '\0';
        err = look_at_place(h, i, out->dir, out->name, &stat);
        inode_unref(out->dir);
        out->dir = err ? NULL : inode_link(table, NULL, NULL, &stat);
        if (!err && !out->dir)
            err = -ENOMEM;
    }
    return err ? err : *out->name ? 0 : -ENOENT;
}

static int
ec_place_find(const struct ec_heal *h, unsigned i, struct inode *inode, struct ec_place *out)
{
    *out = (struct ec_place){.stk = ec_call(&h->op, FOP_getxattr, i, false, inode, NULL)};
    if (!out->stk)
        return -ENOMEM;
    out->stk->call.name = PATH_KEY;
    out->stk->call.has_name = 1;
    int ret = coro_call(out->stk, h->op.d->xl->children[i]);
    char *path = ret >= 0 ? copy_ancestry(out->stk) : NULL;

    return ret < 0 ? ret : path ? walk_ancestry(h, i, path, out) : -ENOENT;
}

static void
ec_place_end(struct ec_place *p)
{
    if (p->dir)
        inode_unref(p->dir);
    if (p->stk)
        call_stack_free(p->stk);
}

static int
rename_from(const struct ec_heal *h, unsigned i, const struct ec_place *from, struct inode *inode,
            const char *name)
{
    struct iatt stat;
    int err = look_at_place(h, i, from->dir, from->name, &stat);

    if (err)
        return err;
    if (!gfid_equal(&stat.gfid, &inode->gfid))
        return -ENOENT;
    struct call_stack *stk = place_call(h, FOP_rename, i, from->dir, from->name);
    if (stk) {
        stk->call.loc.inode = inode_ref(inode);
        stk->call.loc2 = (struct loc){.parent = inode_ref(h->op.inode), .name = name};
    }
    log_event(LOG_INFO, h->op.d->xl, "disperse-heal-moves", "moving folder %s from %s/%s to %s/%s on %s",
              GFID(&inode->gfid), GFID(&from->dir->gfid), from->name, GFID(&h->op.inode->gfid), name,
              h->op.d->xl->children[i]->name);
    int ret = ec_heal_send(h, i, stk);
    return ret < 0 ? ret : 0;
}

int
ec_heal_move_folder(const struct ec_heal *h, unsigned i, struct inode *inode, const char *name)
{
    const struct ec_op *op = &h->op;
    struct ec_place from;
    int err = ec_place_find(h, i, inode, &from);
    bool is_locked = !err && gfid_equal(&from.dir->gfid, &op->inode->gfid); /* a rename within the folder */

    if (!err && !is_locked && !ec_locks_try(op, from.dir, op->d->xl->name, h->lock_owner, CHILD(i)))
        err = -EAGAIN;
    if (!err) {
        err = rename_from(h, i, &from, inode, name);
        if (!is_locked)
            ec_locks_drop(op, from.dir, op->d->xl->name, h->lock_owner, CHILD(i));
    }
    ec_place_end(&from);
    return err;
}
