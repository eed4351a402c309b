/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Moves an object on one child to the name that the object has on the others.
 *
 * A client has renamed a folder while the child was away. A second folder of the same gfid under the new name
 * would share the brick's handle with the old one, and the removal of the old name would then take the handle
 * away. So the heal renames the folder, with its contents. The heals of the folder and of the folders below
 * compare the contents with the other children.
 *
 * A client that died in a RENAME leaves the object under the new name on some children, under the old name on
 * the others. Neither name may have K children, and a child with the newest fragment may have the name that
 * has to go. The removal of both names, or of the last name of that fragment, would lose the object. So the
 * heal completes the RENAME, or takes the RENAME back.
 *
 *      find       the brick's path of the object (GETXATTR of its ancestry, or of a file's names), and the
 *                 parent by its names
 *      lock       the other parent on this child, without waiting; the caller has locked its own
 *      look       the old name still leads to the object, the new name to nothing
 *      RENAME     on this child only
 *
 * If another object is in the way, or the folder is missing there, the object moves aside, to an unused name
 * (ASIDE) in the same folder: folders and files that have changed names in a circle could not move otherwise.
 * The folder's heal then fails with EAGAIN, and is repeated. An object in the way that K children have there
 * stays; then the object moves on the other child, to this child's name.
 *
 * A healer that dies before the RENAME leaves the object at the old place. A healer that dies after that
 * leaves the object at the right place with lower versions. The next heal continues. If a healer dies after
 * the removal of a RENAME's target that too few children have, the next may take the RENAME back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/folder-place.h"
#include "xlators/cluster/disperse/heal.h"

#define ASIDE ".kiln-heal-"

static struct call_stack *
place_call(const struct ec_heal *h, enum fop fop, unsigned i, struct inode *dir, const char *name)
{
    struct call_stack *stk = ec_call(&h->op, fop, i, false, NULL, NULL);

    if (stk)
        stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = name};
    return stk;
}

/* As folder_look. */
static int
look_at_place(const void *heal, unsigned i, struct inode *dir, const char *name, struct iatt *out)
{
    const struct ec_heal *h = heal;
    struct call_stack *stk = place_call(h, FOP_lookup, i, dir, name);
    int ret = stk ? coro_call(stk, h->op.d->xl->children[i]) : -ENOMEM;

    if (ret >= 0)
        *out = stk->reply.stat;
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* Renames on child i; both folders are locked there. */
static int
rename_on(const struct ec_heal *h, unsigned i, struct inode *inode, struct inode *from, const char *name,
          struct inode *to, const char *name2)
{
    struct call_stack *stk = place_call(h, FOP_rename, i, from, name);

    if (stk) {
        stk->call.loc.inode = inode_ref(inode);
        stk->call.loc2 = (struct loc){.parent = inode_ref(to), .name = name2};
    }
    log_event(LOG_INFO, h->op.d->xl, "disperse-heal-moves", "moving %s from %s/%s to %s/%s on %s",
              GFID(&inode->gfid), GFID(&from->gfid), name, GFID(&to->gfid), name2,
              h->op.d->xl->children[i]->name);
    int ret = ec_heal_send(h, i, stk);
    return ret < 0 ? ret : 0;
}

/* Returns 0 if child i has the object under the name, or -errno. */
static int
look_for(const struct ec_heal *h, unsigned i, const struct inode *inode, struct inode *dir, const char *name)
{
    struct iatt stat;
    int err = look_at_place(h, i, dir, name, &stat);

    return err ? err : gfid_equal(&stat.gfid, &inode->gfid) ? 0 : -EEXIST;
}

static int
find_place(const struct ec_heal *h, unsigned i, struct inode *inode, struct folder_place *out)
{
    struct call_stack *stk = ec_call(&h->op, FOP_getxattr, i, false, inode, NULL);

    return S_ISDIR(inode_type(inode)) ? folder_place_find(out, h->op.d->xl, i, stk, look_at_place, h)
                                      : file_place_find(out, h->op.d->xl, i, stk, look_at_place, h);
}

/* Locks the other folder of a move on child i, unless it is the heal's own. Returns 0 or -EAGAIN. */
static int
lock_place(const struct ec_heal *h, unsigned i, struct inode *dir, bool *is_locked)
{
    const struct ec_op *op = &h->op;

    *is_locked = !gfid_equal(&dir->gfid, &op->inode->gfid) &&
                 ec_locks_try(op, dir, op->d->xl->name, h->lock_owner, CHILD(i));
    return *is_locked || gfid_equal(&dir->gfid, &op->inode->gfid) ? 0 : -EAGAIN;
}

static void
unlock_place(const struct ec_heal *h, unsigned i, struct inode *dir, bool is_locked)
{
    if (is_locked)
        ec_locks_drop(&h->op, dir, h->op.d->xl->name, h->lock_owner, CHILD(i));
}

int
ec_heal_move(const struct ec_heal *h, unsigned i, struct inode *inode, const char *name)
{
    struct folder_place from;
    bool is_locked = false;
    int err = find_place(h, i, inode, &from);

    err = err == FOLDER_PLACE_UNKNOWN ? -ENOENT : err;
    if (!err)
        err = lock_place(h, i, from.dir, &is_locked);
    if (!err)
        err = look_for(h, i, inode, from.dir, from.name);
    err = err == -EEXIST ? -ENOENT : err;
    if (!err)
        err = rename_on(h, i, inode, from.dir, from.name, h->op.inode, name);
    unlock_place(h, i, from.dir, is_locked);
    folder_place_end(&from);
    return err;
}

/* Renames the object on child i, within the heal's folder, to a name that no other object has. The name that
 * has to go is free then; from the new name, the next heal of the folder moves on. */
static int
step_aside(const struct ec_heal *h, unsigned i, struct inode *inode, const char *name)
{
    char aside[sizeof ASIDE + GFID_TEXT_SIZE];

    snprintf(aside, sizeof aside, ASIDE "%s", GFID(&inode->gfid));
    if (strcmp(name, aside) == 0)
        return -EAGAIN;
    int err = rename_on(h, i, inode, h->op.inode, name, h->op.inode, aside);
    return err ? err : -EAGAIN;
}

/* Returns whether an object cannot move because other objects have to move first: another one has the name,
 * its folder is missing, or is below the object. */
static bool
is_not_yet(int err)
{
    return err == -EEXIST || err == -ENOTEMPTY || err == -ENOENT || err == -ESTALE || err == -EINVAL;
}

/* Returns whether child i has a second folder of the same gfid, which a stock healer has made under the right
 * name. The gfid leads there then. */
static bool
has_second_folder(const struct ec_heal *h, unsigned i, struct inode *inode, const char *name)
{
    struct folder_place own;
    bool has = S_ISDIR(inode_type(inode)) && !find_place(h, i, inode, &own) &&
               (!gfid_equal(&own.dir->gfid, &h->op.inode->gfid) || strcmp(own.name, name) != 0);

    if (S_ISDIR(inode_type(inode)))
        folder_place_end(&own);
    return has;
}

/* Returns whether the object that child i has under the name has it on K children: it stays there. */
static bool
is_name_kept(const struct ec_heal *h, unsigned i, struct inode *dir, const char *name)
{
    struct iatt other, stat;
    child_set has = 0;

    if (look_at_place(h, i, dir, name, &other))
        return false;
    for_each_child (k, h->on)
        has |= !look_at_place(h, k, dir, name, &stat) && gfid_equal(&stat.gfid, &other.gfid) ? CHILD(k) : 0;
    return children_count(has) >= h->op.d->data;
}

/* Moves the object on child i to the place that child `of` has it at. Returns 0; -ENODATA: that child does
 * not know the place; -EEXIST: other objects have to move first; or -errno. */
static int
move_to_place_of(const struct ec_heal *h, unsigned i, unsigned of, struct inode *inode, const char *name)
{
    struct folder_place to;
    bool is_locked = false;
    int err = find_place(h, of, inode, &to);

    err = err == FOLDER_PLACE_UNKNOWN ? -ENODATA : err;
    if (!err)
        err = look_for(h, of, inode, to.dir, to.name);
    err = err && err != -ENOMEM && err != -ENODATA ? -EAGAIN : err; /* the place changes */
    if (!err) {
        int ret = ec_heal_send(h, i, ec_call(&h->op, FOP_lookup, i, false, to.dir, NULL));

        ret = ret < 0 ? ret : lock_place(h, i, to.dir, &is_locked);
        ret = ret < 0 ? ret : look_for(h, i, inode, to.dir, to.name) == -ENOENT ? 0 : -EEXIST;
        ret = ret < 0 ? ret : rename_on(h, i, inode, h->op.inode, name, to.dir, to.name);
        err = is_not_yet(ret) ? -EEXIST : ret;
        if (ret == -EEXIST && is_name_kept(h, i, to.dir, to.name))
            err = -EAGAIN; /* the heal of that name moves the object on the other child */
    }
    unlock_place(h, i, to.dir, is_locked);
    folder_place_end(&to);
    return err;
}

int
ec_heal_move_back(const struct ec_heal *h, unsigned i, child_set of, struct inode *inode, const char *name)
{
    int err = -ENODATA;

    if (has_second_folder(h, i, inode, name))
        return err;
    for_each_child (k, of) {
        int ret = move_to_place_of(h, i, k, inode, name);

        if (!ret || ret == -ENOMEM)
            return ret;
        err = ret == -ENODATA || err == -EAGAIN ? err : ret;
    }
    return err == -EEXIST ? step_aside(h, i, inode, name) : err;
}

bool
ec_heal_move_would_uncover(const struct ec_heal *h, unsigned i, struct inode *inode)
{
    struct folder_place from;
    bool would = false;

    if (!find_place(h, i, inode, &from)) {
        for_each_child (k, h->on)
            would |= look_for(h, k, inode, from.dir, from.name) == -EEXIST;
    }
    folder_place_end(&from);
    return would;
}
