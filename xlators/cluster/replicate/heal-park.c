/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Objects that a heal removes from a folder on one child, or moves into it.
 *
 * A child under heal may hold an object under a stale name, while the object lives on in another place on
 * the other children: its contents may be the only good ones, and a folder cannot have two names. Such an
 * object is parked: renamed into the volume's hidden folder .glusterfs-anonymous-inode-VOLUME on that
 * child, under its gfid. Folders that are not empty are parked, too, so that the name goes at once. An
 * object leaves its parking place in one of four ways:
 *
 *   heal_bring_back()      renames it to the name that it has on the other children
 *   heal_move_folder()     does that for a folder in another place, for example inside of a parked folder
 *   heal_unpark_named()    unlinks the parked name of a file that has another name
 *   heal_clear_parked()    removes objects that no other child has any more. Folders are emptied first:
 *                          objects in them that live elsewhere are parked under their own gfids. Runs when
 *                          no heal waits; the stock self-heal daemon does the same after each crawl
 *
 * The hidden folders of the children have different names in them, and are never made equal: a heal of such a
 * name would move the living object into the hidden folder, and clearing would remove it. An object that all
 * children have in their hidden folders, although none has removed it, is not removed either.
 *
 * A mount that dies in between leaves the object parked; the next mount that heals an object, or the
 * daemon, clears it. Heals of different mounts may meet in the hidden folder: each step is one RENAME,
 * UNLINK or RMDIR that fails with ENOENT if the other mount was faster, which is no error. Clearing takes a
 * lock on the hidden folder in the healers' domain, so that two mounts do not unlink the last two names of
 * a file.
 *
 * thread: struct replicate's may_be_parked (true until clearing finds no parked object) and is_clearing are
 * atomic; all other data lies on the coroutine's stack. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/folder-place.h"
#include "xlators/cluster/replicate/heal.h"

#define ANONYMOUS ".glusterfs-anonymous-inode-"
#define ANONYMOUS_SIZE (sizeof ANONYMOUS + GFID_TEXT_SIZE)

/* ---- calls ----------------------------------------------------------------------------------- */

int
heal_look_by_gfid(const struct heal *h, unsigned i, struct inode *inode, struct iatt *out)
{
    struct call_stack *stk = heal_call(h, FOP_lookup, i);

    if (!stk)
        return -ENOMEM;
    inode_unref(stk->call.loc.inode);
    stk->call.loc.inode = inode_ref(inode);
    int ret = coro_call(stk, h->op.r->xl->children[i]);

    if (ret >= 0 && out)
        *out = stk->reply.stat;
    call_stack_free(stk);
    return ret == -ESTALE ? -ENOENT : ret < 0 ? ret : 0;
}

/* Reads the attributes of the object behind the name. 0, -ENOENT, -ENODATA if the object has no gfid, or
 * -errno. */
static int
lookup_by_name(const struct heal *h, unsigned i, struct inode *dir, const char *name, struct iatt *out)
{
    struct call_stack *stk = heal_lookup_make(h, i, dir, name);

    if (!stk)
        return -ENOMEM;
    int ret = coro_call(stk, h->op.r->xl->children[i]);

    if (ret >= 0)
        *out = stk->reply.stat;
    call_stack_free(stk);
    if (ret >= 0 && gfid_is_null(&out->gfid))
        return -ENODATA;
    return ret == -ESTALE ? -ENOENT : ret < 0 ? ret : 0;
}

static int
rename_on_child(const struct heal *h, unsigned i, struct inode *from, const char *name, struct inode *to,
          const char *name2)
{
    struct call_stack *stk = heal_name_call(h, FOP_rename, i, from, name);

    if (stk)
        stk->call.loc2 = (struct loc){.parent = inode_ref(to), .name = name2};
    return heal_send(h, i, stk);
}

static int
without_enoent(int err)
{
    return err == -ENOENT || err == -ESTALE ? 0 : err;
}

/* ---- the hidden folder ----------------------------------------------------------------------- */

static struct gfid
hidden_gfid(const struct replicate *r)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct gfid gfid = conf->volume_id;

    gfid.b[0] ^= 1;
    return gfid;
}

bool
heal_is_hidden(const struct replicate *r, const struct inode *dir)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct gfid gfid = hidden_gfid(r);

    return !gfid_is_null(&conf->volume_id) && gfid_equal(&dir->gfid, &gfid);
}

static int
make_anonymous(const struct heal *h, unsigned i, struct inode *root, const char *name)
{
    struct gfid gfid = hidden_gfid(h->op.r);
    struct call_stack *stk = heal_name_call(h, FOP_mkdir, i, root, name);

    if (stk)
        stk->call.mode = 0700;
    if (stk && (!call_xdata(stk) || dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid))) {
        call_stack_free(stk);
        stk = NULL;
    }
    int err = heal_send(h, i, stk);

    return err == -EEXIST ? 0 : err;
}

/* Returns a reference to the hidden folder of child i, which is made first if `makes`. NULL: error in *err.
 */
static struct inode *
anonymous_dir(const struct heal *h, unsigned i, bool makes, int *err)
{
    const struct replicate_conf *conf = xlator_conf(h->op.r->xl);
    struct inode_table *table = h->op.r->xl->graph->inodes;
    struct gfid gfid = hidden_gfid(h->op.r);
    struct inode *root = inode_root(table), *dir;
    char name[ANONYMOUS_SIZE];

    *err = -EOPNOTSUPP;
    dir = NULL;
    if (conf->uses_anonymous_inode && !gfid_is_null(&conf->volume_id)) {
        snprintf(name, sizeof name, ANONYMOUS "%s", GFID(&conf->volume_id));
        *err = makes ? make_anonymous(h, i, root, name) : 0;
        if (*err >= 0)
            dir = inode_link(table, NULL, NULL, &(struct iatt){.gfid = gfid, .mode = S_IFDIR | 0700});
        if (*err >= 0 && !dir)
            *err = -ENOMEM;
    }
    inode_unref(root);
    return dir;
}

void
heal_make_hidden(const struct heal *h)
{
    for_each_child (i, h->op.r->all) {
        int err;
        struct inode *dir = anonymous_dir(h, i, true, &err);

        inode_unref(dir);
    }
}

/* ---- parking and unparking ------------------------------------------------------------------- */

int
heal_unpark_named(const struct heal *h, unsigned i, struct inode *inode)
{
    char text[GFID_TEXT_SIZE];
    struct iatt stat;
    int err = heal_look_by_gfid(h, i, inode, &stat);

    if (err || S_ISDIR(stat.mode) || stat.nlink <= 1)
        return err == -ENOENT ? 0 : err;
    struct inode *dir = anonymous_dir(h, i, false, &err);

    if (!dir)
        return err == -EOPNOTSUPP ? 0 : err;
    err = heal_send(h, i, heal_name_call(h, FOP_unlink, i, dir, gfid_text(&inode->gfid, text)));
    inode_unref(dir);
    return without_enoent(err);
}

int
heal_park(const struct heal *h, unsigned i, struct inode *dir, const char *name, const struct iatt *stat)
{
    char text[GFID_TEXT_SIZE];
    int err;
    struct inode *hidden = anonymous_dir(h, i, true, &err);

    if (!hidden)
        return err == -EOPNOTSUPP ? -EBUSY : err;
    atomic_store(&h->op.r->may_be_parked, true);
    err = rename_on_child(h, i, dir, name, hidden, gfid_text(&stat->gfid, text));
    inode_unref(hidden);
    struct inode *inode = err ? NULL : inode_link(h->op.r->xl->graph->inodes, NULL, NULL, stat);

    if (inode)
        err = heal_unpark_named(h, i, inode);
    inode_unref(inode);
    return err;
}

int
heal_bring_back(const struct heal *h, unsigned i, struct inode *inode, struct inode *dir, const char *name)
{
    char text[GFID_TEXT_SIZE];
    int err;
    struct inode *hidden = anonymous_dir(h, i, false, &err);

    if (!hidden)
        return err == -EOPNOTSUPP ? -EBUSY : err;
    err = rename_on_child(h, i, hidden, gfid_text(&inode->gfid, text), dir, name);
    inode_unref(hidden);
    return err == -ENOENT || err == -ESTALE ? -EBUSY : err;
}

/* ---- a folder in another place --------------------------------------------------------------- */

static int
look_at_parent(const void *heal, unsigned i, struct inode *dir, const char *name, struct iatt *out)
{
    return lookup_by_name(heal, i, dir, name, out);
}

/* Finds the place of the folder on child i. Call folder_place_end() in any case. */
static int
find_place(const struct heal *h, unsigned i, struct inode *inode, struct folder_place *out)
{
    struct call_stack *stk = heal_call(h, FOP_getxattr, i);

    if (stk) {
        inode_unref(stk->call.loc.inode);
        stk->call.loc.inode = inode_ref(inode);
    }
    int err = folder_place_find(out, h->op.r->xl, i, stk, look_at_parent, h);

    return err == FOLDER_PLACE_UNKNOWN ? -EBUSY : err;
}

/* Returns whether the folder's counters make child i a source of names for other children. A folder that
 * other children lack is no source. */
static bool
is_source_of(const struct heal *h, unsigned i, struct inode *dir)
{
    struct heal other;

    heal_begin(&other, h->op.r, dir);
    bool is = !heal_look(&other, CHANGE_ENTRY) && !other.way.is_dirty && other.way.sinks &&
              other.way.sources & CHILD(i);
    heal_end(&other);
    return is;
}

/* Renames the folder, under the lock on the old name, which may lead to another object by now. */
static int
move_from(const struct heal *h, unsigned i, const struct folder_place *from, struct inode *inode,
          struct inode *dir, const char *name)
{
    struct iatt stat;
    int err = lookup_by_name(h, i, from->dir, from->name, &stat);

    if (err)
        return err == -ENOENT ? -EBUSY : err;
    if (!gfid_equal(&stat.gfid, &inode->gfid))
        return -EBUSY;
    log_event(LOG_INFO, h->op.r->xl, "heal-moves-folder", "moving folder %s from %s/%s to %s/%s on %s",
              GFID(&inode->gfid), GFID(&from->dir->gfid), from->name, GFID(&dir->gfid), name,
              h->op.r->xl->children[i]->name);
    return rename_on_child(h, i, from->dir, from->name, dir, name);
}

int
heal_move_folder(const struct heal *h, unsigned i, struct inode *inode, struct inode *dir, const char *name)
{
    struct folder_place from;
    int err = find_place(h, i, inode, &from);
    bool is_clear = h->way.sources && h->way.sinks && !h->way.is_dirty;

    if (!err && !is_clear && is_source_of(h, i, from.dir))
        err = -EBUSY;
    struct lock_entity e = {.is_entry = true, .inode = from.dir, .name = from.name};

    if (!err && !locks_try(&h->op, &e, CHILD(i)))
        err = -EBUSY;
    else if (!err) {
        err = move_from(h, i, &from, inode, dir, name);
        locks_drop_one(&h->op, &e, CHILD(i));
    }
    folder_place_end(&from);
    return err;
}

/* ---- clearing -------------------------------------------------------------------------------- */

/* Returns whether the only name of the object on child k is in the hidden folder there. */
static bool
is_only_parked(const struct heal *h, unsigned k, const struct iatt *object)
{
    char text[GFID_TEXT_SIZE];
    struct iatt stat;
    int err;
    struct inode *hidden = anonymous_dir(h, k, false, &err);

    if (!hidden)
        return false;
    err = lookup_by_name(h, k, hidden, gfid_text(&object->gfid, text), &stat);
    inode_unref(hidden);
    return !err && gfid_equal(&stat.gfid, &object->gfid) && (S_ISDIR(stat.mode) || stat.nlink <= 1);
}

/* Returns whether another child has the object outside of its hidden folder. An unknown answer counts as
 * yes. */
static bool
lives_outside(const struct heal *h, unsigned child, const struct iatt *stat)
{
    struct inode *inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, stat);
    bool lives = !inode;

    for_each_child (i, inode ? h->op.r->all & ~CHILD(child) : 0)
        lives |= heal_look_by_gfid(h, i, inode, NULL) != -ENOENT && !is_only_parked(h, i, stat);
    inode_unref(inode);
    return lives;
}

bool
heal_lives_elsewhere(const struct heal *h, unsigned child, const struct iatt *stat)
{
    struct inode *inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, stat);
    bool lives = !inode;

    for_each_child (i, inode ? h->op.r->all & ~CHILD(child) : 0)
        lives |= heal_look_by_gfid(h, i, inode, NULL) != -ENOENT;
    inode_unref(inode);
    return lives;
}

/* Removes one name of a parked folder that is being removed: a living object is parked under its own gfid. An
 * object without a gfid, which a brick leaves when it dies while it creates the object, gets one, so that
 * calls reach it. */
static int
take_out_of_parked(struct heal *h, unsigned i, struct inode *dir, const char *name)
{
    struct iatt stat;
    int err = lookup_by_name(h, i, dir, name, &stat);

    if (err == -ENODATA)
        err = heal_give_gfid(h, i, dir, name, &stat);
    if (err)
        return err == -ENOENT ? 0 : err;
    if (S_ISDIR(stat.mode) || (stat.nlink <= 1 && lives_outside(h, i, &stat)))
        return heal_park(h, i, dir, name, &stat);
    return without_enoent(heal_send(h, i, heal_name_call(h, FOP_unlink, i, dir, name)));
}

static int
remove_parked_folder(struct heal *h, unsigned i, struct inode *hidden, const char *name,
                     const struct iatt *stat)
{
    struct inode *inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, stat);
    int err = inode ? heal_list(h, i, inode, take_out_of_parked) : -ENOMEM;

    inode_unref(inode);
    return err < 0 ? err : heal_send(h, i, heal_name_call(h, FOP_rmdir, i, hidden, name));
}

/* Returns whether no child has removed the object: all have it, in their hidden folders only. */
static bool
is_parked_everywhere(const struct heal *h, const struct iatt *stat)
{
    bool is = true;

    for_each_child (i, h->op.r->all)
        is &= is_only_parked(h, i, stat);
    return is;
}

/* Returns 1: the object is removed; 0: it stays, because another child has it under a name; or -errno. */
static int
clear_parked_object(struct heal *h, unsigned i, struct inode *hidden, const char *name)
{
    struct iatt stat;
    int err = lookup_by_name(h, i, hidden, name, &stat);

    if (err)
        return err == -ENOENT ? 0 : err;
    bool is_dir = S_ISDIR(stat.mode);

    if ((is_dir || stat.nlink <= 1) && lives_outside(h, i, &stat)) {
        atomic_store(&h->op.r->may_be_parked, true);
        return 0;
    }
    if (is_parked_everywhere(h, &stat)) {
        log_event(LOG_ERROR, h->op.r->xl, "heal-keeps-parked",
                  "%s lies in " ANONYMOUS "... of all bricks, though no brick has removed it; it is kept",
                  name);
        return 0;
    }
    log_event(LOG_INFO, h->op.r->xl, "heal-removes-parked",
              "removing parked %s from %s, the only brick that has it", name, h->op.r->xl->children[i]->name);
    err = is_dir ? remove_parked_folder(h, i, hidden, name, &stat)
                 : heal_send(h, i, heal_name_call(h, FOP_unlink, i, hidden, name));
    return err < 0 ? without_enoent(err) : 1;
}

/* Returns the number of removed objects, or -errno. */
static int
clear_parked_child(struct heal *h, unsigned i)
{
    int err;
    struct inode *hidden = anonymous_dir(h, i, false, &err);

    if (!hidden)
        return err == -EOPNOTSUPP ? 0 : err;
    struct lock_entity e = {.is_entry = true, .inode = hidden, .domain = h->op.r->heal_domain};

    err = 0;
    if (locks_try(&h->op, &e, CHILD(i))) { /* else another mount is clearing it, or it does not exist */
        err = heal_list(h, i, hidden, clear_parked_object);
        locks_drop_one(&h->op, &e, CHILD(i));
    }
    inode_unref(hidden);
    return without_enoent(err);
}

/* Clears all hidden folders. Subfolders of a removed folder are now in the hidden folder, so this repeats
 * until a pass removes no object. */
static void
clear_parked_all(struct heal *h)
{
    int gone;

    do {
        gone = 0;
        for_each_child (i, heal_must_stop(h) ? 0 : h->op.r->all) {
            int n = clear_parked_child(h, i);

            gone += n > 0 ? n : 0;
            if (n >= 0)
                continue;
            atomic_store(&h->op.r->may_be_parked, true);
            log_event(LOG_INFO, h->op.r->xl, "heal-parked-stays", "%s: %s; the next heal tries again",
                      h->op.r->xl->children[i]->name, strerror(-n));
        }
    } while (gone > 0);
}

void
heal_clear_parked(struct replicate *r)
{
    struct inode *root = inode_root(r->xl->graph->inodes);
    struct heal h;

    if (!atomic_exchange(&r->is_clearing, true)) {
        atomic_store(&r->may_be_parked, false);
        heal_begin(&h, r, root);
        clear_parked_all(&h);
        heal_end(&h);
        atomic_store(&r->is_clearing, false);
    }
    inode_unref(root);
}
