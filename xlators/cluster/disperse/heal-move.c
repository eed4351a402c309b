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

#include "log/log.h"
#include "xlators/cluster/folder-place.h"
#include "xlators/cluster/disperse/heal.h"

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

static int
rename_from(const struct ec_heal *h, unsigned i, const struct folder_place *from, struct inode *inode,
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
    struct folder_place from;
    struct call_stack *stk = ec_call(op, FOP_getxattr, i, false, inode, NULL);
    int err = folder_place_find(&from, op->d->xl, i, stk, look_at_place, h);
    err = err == FOLDER_PLACE_UNKNOWN ? -ENOENT : err;
    bool is_locked = !err && gfid_equal(&from.dir->gfid, &op->inode->gfid); /* a rename within the folder */

    if (!err && !is_locked && !ec_locks_try(op, from.dir, op->d->xl->name, h->lock_owner, CHILD(i)))
        err = -EAGAIN;
    if (!err) {
        err = rename_from(h, i, &from, inode, name);
        if (!is_locked)
            ec_locks_drop(op, from.dir, op->d->xl->name, h->lock_owner, CHILD(i));
    }
    folder_place_end(&from);
    return err;
}
