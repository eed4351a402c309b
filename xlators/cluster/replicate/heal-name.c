/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of one name in a directory: creates the name where it is missing, or removes it where it is stale.
 *
 *      lock       the name, on all children, as changes of the name do (entry.c)
 *      look       the counters of the directory's entries (pending xattrs); LOOKUP of the name on all
 *                 children
 *      decide     if some children are accused, others are not, and no change is in doubt, the good
 *                 children are right. Otherwise the missed changes are unknown: the name is created where
 *                 it is missing, and not removed anywhere
 *      remove     only from accused children, and only if no other child has the object. An object that
 *                 lives on under another name would lose its contents on this child, which may be the only
 *                 good ones: it is parked (heal-park.c). So are folders that are not empty
 *                 A file that only the arbiter has, while an unaccused child with data says that there is no
 *                 such name, was removed by a mount that died: the contents are gone. The arbiter's name
 *                 goes, too, because a file made from it would be empty: neither the old state nor the new
 *      make       RENAME of a parked object, or of a folder from its current place; LINK if the child has
 *                 the file under another name; else the children that have the object count its attributes
 *                 and contents as missed by the other child, and MKNOD, MKDIR or SYMLINK with the object's
 *                 gfid follows
 *      unlock
 *
 * Objects of two gfids or types under one name on good children are split-brain: -EIO. There are two
 * exceptions: a rename that was done on some children only explains both objects (half_done_rename()), or
 * both are files of one type and the volume's policy selects the winner (split-brain.c). The directory's
 * counters stay, because other names may need a heal (heal-entry.c).
 *
 * A name that needed a repair although no copy of the folder is accused was left by a mount that died
 * together with bricks. Then all names of the folder are checked in the background, too, because no mark
 * leads a healer to the name that a rename has left, and only some children list it.
 *
 * Other clients see the repair like any change of a name: on one child after the other. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "log/log.h"
#include "xlators/cluster/replicate/heal.h"

/* The objects behind the name on each child. */
struct behind {
    const char *name;
    struct inode *dir, *inode; /* inode: the object that the name shall lead to; a reference, or NULL */
    child_set has, lacks;      /* together all children, unless an error was returned */
    child_set nameless;        /* subset of `has`: children whose object has no gfid yet */
    struct iatt stat[REPLICAS_MAX];
};

/* ---- looking the name up --------------------------------------------------------------------- */

struct call_stack *
heal_lookup_make(const struct heal *h, unsigned i, struct inode *dir, const char *name)
{
    struct call_stack *stk = heal_name_call(h, FOP_lookup, i, dir, name);

    if (!stk)
        return NULL;
    if (call_xdata(stk) && !dict_set_int(stk->call.xdata, DICT_KEY_GFIDLESS_LOOKUP, 1))
        return stk;
    call_stack_free(stk);
    return NULL;
}

static int
lookup_behind_name(struct heal *h, struct behind *b)
{
    int err = 0;
    struct fan f;

    fan_begin(&f);
    for_each_child (i, h->op.r->all)
        fan_wind(&f, &h->op, i, heal_lookup_make(h, i, b->dir, b->name));
    fan_wait(&f);
    for_each_child (i, f.sent) {
        if (f.ret[i] >= 0)
            b->has |= CHILD(i);
        else if (f.ret[i] == -ENOENT)
            b->lacks |= CHILD(i);
        else
            err = f.ret[i];
        if (f.ret[i] >= 0)
            b->stat[i] = f.stk[i]->reply.stat;
        if (f.ret[i] >= 0 && gfid_is_null(&b->stat[i].gfid))
            b->nameless |= CHILD(i);
    }
    fan_end(&f);
    return err;
}

/* ---- objects without a gfid ------------------------------------------------------------------ */

static struct call_stack *
new_name_call(const struct heal *h, const struct behind *b, enum fop fop, unsigned i)
{
    struct call_stack *stk = heal_name_call(h, fop, i, b->dir, b->name);

    if (!stk)
        return NULL;
    if (call_xdata(stk) && !dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &b->inode->gfid))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* Sets the gfid of b->inode on child i's object, which has lost its gfid, or never got one. */
static int
set_gfid_on(const struct heal *h, const struct behind *b, unsigned i)
{
    return heal_send(h, i, new_name_call(h, b, FOP_lookup, i));
}

/* ---- removing -------------------------------------------------------------------------------- */

int
heal_give_gfid(const struct heal *h, unsigned i, struct inode *dir, const char *name, struct iatt *stat)
{
    struct behind lone = {.dir = dir, .name = name};

    if (S_ISREG(stat->mode) && stat->size)
        return -EIO;
    gfid_random(&stat->gfid);
    lone.inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, stat);
    int err = lone.inode ? set_gfid_on(h, &lone, i) : -ENOMEM;

    inode_unref(lone.inode);
    return err < 0 ? err : 0;
}

static int
name_lone_object(const struct heal *h, struct behind *b, unsigned i)
{
    struct iatt a = b->stat[i];
    int err = heal_give_gfid(h, i, b->dir, b->name, &a);

    if (err)
        return err;
    b->stat[i].gfid = a.gfid;
    b->nameless &= ~CHILD(i);
    return 0;
}

/* Removes the name on child i. A directory that is not empty is parked; its contents are not examined. */
static int
remove_on(const struct heal *h, struct behind *b, unsigned i)
{
    bool is_dir = S_ISDIR(b->stat[i].mode);
    bool is_last = is_dir || b->stat[i].nlink <= 1;
    bool was_nameless = b->nameless & CHILD(i);
    int err = was_nameless ? name_lone_object(h, b, i) : 0;

    if (err)
        return err;
    log_event(LOG_INFO, h->op.r->xl, "heal-removes-name", "removing %s/%s (%s) from %s", GFID(&b->dir->gfid),
              b->name, GFID(&b->stat[i].gfid), h->op.r->xl->children[i]->name);
    if (is_last && heal_lives_elsewhere(h, i, &b->stat[i]))
        return heal_park(h, i, b->dir, b->name, &b->stat[i]);
    err = heal_send(h, i, heal_name_call(h, is_dir ? FOP_rmdir : FOP_unlink, i, b->dir, b->name));

    return err == -ENOTEMPTY && !was_nameless ? heal_park(h, i, b->dir, b->name, &b->stat[i]) : err;
}

static int
remove_from(const struct heal *h, struct behind *b, child_set from)
{
    int err = 0;

    for_each_child (i, from) {
        int ret = remove_on(h, b, i);

        if (ret >= 0) {
            b->has &= ~CHILD(i);
            b->lacks |= CHILD(i);
        } else {
            err = ret;
        }
    }
    return err;
}

/* ---- creating -------------------------------------------------------------------------------- */

/* Counts all kinds of changes as missed by child i, where the object will be created empty. */
static int
count_new(const struct heal *h, const struct behind *b, unsigned i)
{
    struct marks m = {.inode = b->inode, .accused = CHILD(i), .about.count[CHANGE_METADATA] = 1};
    uint32_t type = b->inode->type;
    struct fan f;

    m.about.count[CHANGE_DATA] = S_ISREG(type) || S_ISDIR(type);
    m.about.count[CHANGE_ENTRY] = S_ISDIR(type);
    int err = fan_ask(&f, &h->op, b->has, marks_make, &m);

    if (!err && f.good != f.sent)
        err = -fan_errno(&f);
    fan_end(&f);
    return err;
}

static int
link_on(const struct heal *h, const struct behind *b, unsigned i)
{
    struct call_stack *stk = heal_call(h, FOP_link, i);

    if (stk) {
        inode_unref(stk->call.loc.inode);
        stk->call.loc = (struct loc){.inode = inode_ref(b->inode)};
        stk->call.loc2 = (struct loc){.parent = inode_ref(b->dir), .name = b->name};
    }
    int err = heal_send(h, i, stk);

    return err ? err : heal_unpark_named(h, i, b->inode);
}

static int
symlink_on(const struct heal *h, const struct behind *b, unsigned i)
{
    unsigned from = child_first(b->has);
    struct call_stack *link = heal_call(h, FOP_readlink, from), *stk = NULL;

    if (!link)
        return -ENOMEM;
    inode_unref(link->call.loc.inode);
    link->call.loc.inode = inode_ref(b->inode);
    link->call.size = FOP_LINKNAME_MAX + 1;
    int err = coro_call(link, h->op.r->xl->children[from]);

    if (err >= 0 && (stk = new_name_call(h, b, FOP_symlink, i)))
        stk->call.name2 = link->reply.path;
    if (err >= 0)
        err = heal_send(h, i, stk);
    call_stack_free(link);
    return err;
}

static int
make_empty_object(const struct heal *h, const struct behind *b, unsigned i)
{
    const struct iatt *stat = &b->stat[child_first(b->has)];
    bool is_dir = S_ISDIR(stat->mode);

    if (S_ISLNK(stat->mode))
        return symlink_on(h, b, i);
    struct call_stack *stk = new_name_call(h, b, is_dir ? FOP_mkdir : FOP_mknod, i);

    if (stk) {
        stk->call.mode = is_dir ? stat->mode & 07777 : stat->mode;
        stk->call.rdev = makedev((unsigned)(stat->rdev >> 32), (unsigned)stat->rdev);
    }
    return heal_send(h, i, stk);
}

/* Copies the times from a good child to child i's object, which got the name by RENAME or LINK: those calls
 * carry no times. A wrong time is no reason to fail. */
static void
copy_times_to(const struct heal *h, const struct behind *b, unsigned i)
{
    child_set good = b->has & h->way.sources;
    struct call_stack *stk = good ? heal_call(h, FOP_setattr, i) : NULL;

    if (!stk)
        return;
    inode_unref(stk->call.loc.inode);
    stk->call.loc.inode = inode_ref(b->inode);
    stk->call.stbuf = b->stat[child_first(good)];
    stk->call.valid = SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME;
    (void)heal_send(h, i, stk);
}

/* Gives the name to the object that child i has in another place. */
static int
place_on(const struct heal *h, const struct behind *b, unsigned i, bool is_dir)
{
    int err = heal_bring_back(h, i, b->inode, b->dir, b->name);

    if (err == -EBUSY)
        err = is_dir ? heal_move_folder(h, i, b->inode, b->dir, b->name) : link_on(h, b, i);
    if (err >= 0)
        copy_times_to(h, b, i);
    return err;
}

/* Returns whether the object is a link file of cluster/distribute. */
static bool
is_link_file(const struct iatt *stat)
{
    return S_ISREG(stat->mode) && (stat->mode & 07777) == S_ISVTX && !stat->size;
}

/* A link file that the child has under another name may be accused of missing changes, like a new one. */
static int
create_on(const struct heal *h, const struct behind *b, unsigned i)
{
    struct iatt stat;
    int err = heal_look_by_gfid(h, i, b->inode, &stat);

    if (!err) {
        err = place_on(h, b, i, S_ISDIR(stat.mode));
        if (err >= 0 && is_link_file(&stat))
            heal_new_object_soon(h->op.r, b->inode);
        return err;
    }
    if (err != -ENOENT)
        return err;
    err = count_new(h, b, i);
    if (!err)
        err = make_empty_object(h, b, i);
    if (err >= 0)
        heal_new_object_soon(h->op.r, b->inode);
    return err;
}

/* Sets a gfid on all objects of the name if no child knows a gfid: the new gfid in the LOOKUP request that
 * has found this, or the daemon's. Other clients do the same under the same lock, or find it done. */
static int
set_fresh_gfid(const struct heal *h, struct behind *b)
{
    struct iatt a = b->stat[child_first(b->has)];
    int err = 0;

    a.gfid = h->fresh;
    if (h->gives_gfids)
        gfid_random(&a.gfid);
    for_each_child (i, b->has)
        err = (b->stat[i].mode ^ a.mode) & S_IFMT ? -EIO : err;
    if (err || gfid_is_null(&a.gfid))
        return -EIO;
    b->inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, &a);
    if (!b->inode)
        return -ENOMEM;
    for_each_child (i, b->has) {
        int ret = set_gfid_on(h, b, i);

        err = ret < 0 ? ret : err;
        b->stat[i].gfid = a.gfid;
    }
    inode_unref(b->inode);
    b->inode = NULL;
    b->nameless = 0;
    return err;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static bool
is_same_object(const struct iatt *a, const struct iatt *b)
{
    return gfid_equal(&a->gfid, &b->gfid) && (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

/* Returns the children of `set` that have the same object as child i. */
static child_set
children_with_object_of(const struct behind *b, child_set set, unsigned i)
{
    child_set same = 0;

    for_each_child (k, set)
        same |= is_same_object(&b->stat[k], &b->stat[i]) ? CHILD(k) : 0;
    return same;
}

/* Returns whether the objects have one type, other than folders: the sizes and times of folders do not tell
 * which contents are right. */
static bool
may_policy_decide(const struct behind *b, child_set set)
{
    bool are = !S_ISDIR(b->stat[child_first(set)].mode);

    for_each_child (i, set)
        are &= (b->stat[i].mode & S_IFMT) == (b->stat[child_first(set)].mode & S_IFMT);
    return are;
}

/* Returns whether all children of `set` have the object, under any name. */
static bool
lives_on(const struct heal *h, child_set set, const struct iatt *stat)
{
    struct inode *inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, stat);
    bool lives = inode != NULL;

    for_each_child (i, inode ? set : 0)
        lives &= heal_look_by_gfid(h, i, inode, NULL) == 0;
    inode_unref(inode);
    return lives;
}

/* Returns the children that a copy of `set` accuses in any kind; all children if a copy does not answer. */
static child_set
accused_by(const struct heal *h, child_set set, const struct iatt *stat)
{
    struct replicate *r = h->op.r;
    child_set accused = 0;

    for_each_child (i, set) {
        struct inode *inode = inode_link(r->xl->graph->inodes, NULL, NULL, stat);
        struct call_stack *stk = inode ? heal_call(h, FOP_lookup, i) : NULL;
        struct replica copy = {0};

        if (stk) {
            inode_unref(stk->call.loc.inode);
            stk->call.loc.inode = inode_ref(inode);
        }
        bool is_asked = stk && call_xdata(stk) && !view_ask(r, stk->call.xdata, true) &&
                        coro_call(stk, r->xl->children[i]) >= 0;
        if (is_asked)
            replica_read(r, stk, &copy);
        for (unsigned k = 0; k < r->count; k++) {
            for (unsigned w = 0; w < CHANGES; w++)
                accused |= !is_asked || copy.about[k].count[w] ? CHILD(k) : 0;
        }
        if (stk)
            call_stack_free(stk);
        inode_unref(inode);
    }
    return accused;
}

/* Handles a name that leads to two objects on children of `set`, none of which is accused of the folder's
 * names. (An accused child was away during the rename; it gets the winner's object.) A rename that replaced
 * one object by the other was done on some children only, because the mount and bricks died together before
 * the reply. The moved object still exists on the other children, under its old name. The replaced object
 * has gone from the children that have done the rename, or has another name there. The rename is completed
 * on the other children, unless a mount has since changed the replaced object: then the copies of that
 * object accuse a child without it. Returns a child with the object that the name shall lead to; -1: it was
 * no such rename, or both objects have changed. */
static int
half_done_rename(const struct heal *h, const struct behind *b, child_set set)
{
    unsigned x = child_first(set);
    child_set with_x = children_with_object_of(b, set, x), with_y = set & ~with_x;

    if (set & ~h->way.sources || (h->way.sources != h->op.r->all && h->way.is_dirty) || !with_y)
        return -1;
    unsigned y = child_first(with_y);

    if (children_with_object_of(b, with_y, y) != with_y)
        return -1;
    bool x_moved = lives_on(h, with_y, &b->stat[x]), y_moved = lives_on(h, with_x, &b->stat[y]);
    bool x_changed = accused_by(h, with_x, &b->stat[x]) & with_y;
    bool y_changed = accused_by(h, with_y, &b->stat[y]) & with_x;

    if ((!x_moved && !y_moved) || (x_changed && y_changed))
        return -1;
    if (x_changed || y_changed)
        return x_changed ? (int)x : (int)y;
    return x_moved ? (int)x : (int)y;
}

/* Makes the name lead to the object of child `ref` on all children. */
static int
spread_from(const struct heal *h, struct behind *b, unsigned ref)
{
    child_set same = children_with_object_of(b, b->has & ~b->nameless, ref);
    int err = remove_from(h, b, b->has & ~b->nameless & ~same);

    if (err)
        return err;
    b->inode = inode_link(h->op.r->xl->graph->inodes, NULL, NULL, &b->stat[ref]);
    if (!b->inode)
        return -ENOMEM;
    child_set nameless = b->nameless;

    b->has = same;
    for_each_child (i, nameless) {
        bool is_alike = (b->stat[i].mode & S_IFMT) == (b->stat[ref].mode & S_IFMT);
        int ret = is_alike ? set_gfid_on(h, b, i) : remove_from(h, b, CHILD(i));

        err = ret < 0 ? ret : err;
    }
    for_each_child (i, b->lacks) {
        int ret = create_on(h, b, i);

        err = ret < 0 ? ret : err;
    }
    return err;
}

/* Returns whether the name leads to a file of which only the arbiter is left, which stores no contents,
 * while a child with data that no copy of the folder accuses lacks the name. (If the arbiter accuses all
 * other children, the volume's quorum let a client make the file on the arbiter alone: the file stays.) */
static bool
is_only_on_arbiter(const struct heal *h, const struct behind *b)
{
    int arbiter = h->op.r->arbiter;

    return arbiter >= 0 && b->has == CHILD(arbiter) && S_ISREG(b->stat[arbiter].mode) &&
           b->lacks & h->way.sources && !heal_lives_elsewhere(h, (unsigned)arbiter, &b->stat[arbiter]);
}

static int
mend_name(struct heal *h, struct behind *b)
{
    bool is_clear = h->way.sources && h->way.sinks && !h->way.is_dirty;
    child_set believed = is_clear ? b->has & h->way.sources : b->has;

    if (!b->has)
        return 0;
    if ((is_clear && !believed) || is_only_on_arbiter(h, b))
        return remove_from(h, b, b->has);
    if (b->nameless == b->has) {
        int err = set_fresh_gfid(h, b);

        if (err)
            return err;
    }
    believed &= ~b->nameless;
    if (!believed)
        return -EIO; /* only stale copies know the gfid */
    if (children_with_object_of(b, believed, child_first(believed)) == believed)
        return spread_from(h, b, child_first(believed));
    int winner = h->has_chosen && believed & CHILD(h->chosen) ? (int)h->chosen
                                                              : half_done_rename(h, b, believed);

    if (winner < 0 && may_policy_decide(b, believed))
        winner = split_favorite(h->op.r, b->stat, believed);

    return winner < 0 ? -EIO : spread_from(h, b, (unsigned)winner);
}

static bool
is_name_whole(const struct behind *b)
{
    return !b->has ||
           (!b->lacks && !b->nameless && children_with_object_of(b, b->has, child_first(b->has)) == b->has);
}

bool
heal_name_is_whole(struct heal *h, const char *name)
{
    struct behind b = {.dir = h->op.inode, .name = name};

    return !lookup_behind_name(h, &b) && is_name_whole(&b);
}

int
heal_name_locked(struct heal *h, const char *name)
{
    struct behind b = {.dir = h->op.inode, .name = name};
    int err = lookup_behind_name(h, &b);
    bool differs = !err && !is_name_whole(&b);

    if (!err)
        err = mend_name(h, &b);
    if (err < 0 && err != -EIO)
        log_event(LOG_DEBUG, h->op.r->xl, "heal-name-waits", "%s/%s: %s", GFID(&b.dir->gfid), name,
                  strerror(-err));
    inode_unref(b.inode);
    return err < 0 ? err : differs;
}

int
heal_name(struct op *op)
{
    struct lock_entity e = {.is_entry = true, .inode = op->dir, .name = op->name};
    struct heal h;

    if (heal_is_hidden(op->r, op->dir))
        return 0; /* heal-park.c */
    heal_begin(&h, op->r, op->dir);
    if (op->stk->call.xdata)
        (void)dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &h.fresh); /* null: missing */
    int err = heal_lock(&h, &e);

    if (!err) {
        err = heal_look(&h, CHANGE_ENTRY);
        if (!err)
            err = heal_name_locked(&h, op->name);
        heal_unlock(&h, &e);
    }
    if (err > 0 && h.way.sources == op->r->all && !h.way.is_dirty)
        heal_all_names_soon(op->r, op->dir);
    heal_end(&h);
    return err < 0 ? err : 0;
}
