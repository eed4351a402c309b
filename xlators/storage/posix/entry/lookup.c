/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lookup: finds an object and its attributes (spec: brick 4.1)
 *
 * The common case takes no lock. An incomplete object (a name without gfid, an object without handle) is
 * either being created or removed at this moment, or was left by a crash. Then lookup takes the locks of name
 * and object, looks again, and heals the object if it is still incomplete.
 *
 * System calls, plus those of the xattr fill:
 *   name, inode known or no such   2: stat, stat parent; the first time after any change of a known object
 *                                  its gfid is read, too (a directory is opened for that: 4 more, or 1 if
 *                                  its xattrs are requested)
 *   name, inode new to the table   8: stat, open and stat parent, get gfid, stat handle, get mdata, close,
 *                                  stat parent: the walk through the parent's handle costs more than these
 *                                  three, and is done three times, not four
 *   gfid, inode known              1: stat
 *   gfid of a file                 2 or 3: stat, get gfid, get mdata
 *   gfid of a directory            5 or 6: stat handle, open, stat, get gfid, get mdata, close
 * The xattrs of a directory cost an open, a stat and a close, because they are read from the object at its
 * checked handle.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "xlators/storage/posix/entry/entry.h"
#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/object/stat.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"

/* ---- by gfid --------------------------------------------------------------------------------- */

/* Removes a dangling handle of a directory, which an interrupted removal has left. A handle that leads to
 * another directory stays, because a user of the machine may be moving directories. */
static void
drop_dangling(struct xlator *xl, const struct gfid *gfid)
{
    struct posix *p = posix_of(xl);
    struct posix_obj obj;
    struct stat st;
    bool is_dangling;
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(p, gfid);
    int r = posix_obj_find(p, gfid, &obj, &st, &is_dangling);

    posix_obj_done(&obj);
    if (r != -ENOENT || !is_dangling)
        return;
    if (unlinkat(p->handles_fd, HANDLE(gfid), 0) == 0)
        log_event(LOG_INFO, xl, "posix-handle-dangling",
                  "removed the handle of the directory %s, which has gone", GFID(gfid));
}

/* Finds files without a name that are open (or were at a crash). Shard's clients ask for them. */
static xl_verdict
lookup_unlinked(struct xlator *xl, struct call_stack *stk)
{
    struct posix_obj obj;
    struct stat st;

    posix_obj_unlinked(posix_of(xl), &stk->call.gfid, &obj);
    int r = posix_obj_stat(&obj, &st);
    if (r < 0)
        return r;
    iatt_from_stat(&stk->reply.stat, &st, NULL);
    stk->reply.stat.flags = IATT_FLAGS_VIRTUAL;
    stk->reply.stat.nlink = 0;
    return XL_DONE;
}

static xl_verdict
lookup_root(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    struct inode *root = inode_root(xl->graph->inodes);

    posix_obj_gfid(posix_of(xl), &gfid_root, true, &obj);
    int r = posix_iatt(xl, &obj, root, &stk->reply.stat, NULL);
    if (r == 0)
        r = posix_xattr_fill_reply(xl, stk, &obj, root, &stk->reply.stat, POSIX_FILL_LOOKUP);
    inode_unref(root);
    return r < 0 ? r : XL_DONE;
}

/* Stats a known inode's object, by the table's knowledge. */
static int
look_at_known(struct xlator *xl, struct inode *inode, struct posix_obj *obj, struct stat *st)
{
    if (!inode || posix_inode_is_gone(xl, inode))
        return -ESTALE;
    posix_obj_inode(posix_of(xl), inode, obj);
    int r = posix_obj_stat(obj, st);
    if (r == 0)
        r = posix_obj_verify(xl, obj, inode, st);
    if (r < 0)
        posix_obj_done(obj);
    return r;
}

/* Stats the object of the handle. If its type differs from that of the table's inode, drops the inode. */
static int
look_at_handle(struct xlator *xl, const struct gfid *gfid, struct inode **inode, struct posix_obj *obj,
               struct stat *st)
{
    bool is_dangling;
    int r = posix_obj_find(posix_of(xl), gfid, obj, st, &is_dangling);

    if (is_dangling)
        drop_dangling(xl, gfid);
    if (r == 0 && *inode && (*inode)->type != (st->st_mode & S_IFMT)) {
        inode_unref(*inode);
        *inode = NULL;
    }
    return r;
}

static xl_verdict
lookup_gfid(struct xlator *xl, struct call_stack *stk)
{
    const struct gfid *gfid = stk->call.loc.inode ? &stk->call.loc.inode->gfid : &stk->call.gfid;
    struct stat st;
    POSIX_OBJ(obj);

    if (gfid_is_null(gfid))
        return -EINVAL;
    if (gfid_is_root(gfid))
        return lookup_root(xl, stk);
    if (dict_get_flag(stk->call.xdata, DICT_KEY_UNLINKED_LOOKUP))
        return lookup_unlinked(xl, stk);
    struct inode *inode = posix_inode_of(xl, stk->call.loc.inode, gfid);
    int r = look_at_known(xl, inode, &obj, &st);
    if (r < 0)
        r = look_at_handle(xl, gfid, &inode, &obj, &st);
    if (r == 0)
        r = posix_iatt_of_stat(xl, &obj, inode, gfid, &st, &stk->reply.stat);
    if (r == 0)
        r = posix_xattr_fill_reply(xl, stk, &obj, inode, &stk->reply.stat, POSIX_FILL_LOOKUP);
    inode_unref(inode);
    return r < 0 ? r : XL_DONE;
}

/* ---- by name --------------------------------------------------------------------------------- */

struct looking {
    struct inode *parent;
    const char *name;
    struct posix_obj obj; /* the name in its directory, or the object at its own address */
    bool is_own;          /* obj is the object's own address */
    struct stat st;
    struct gfid gfid;    /* null: none */
    struct inode *inode; /* of the object, a reference; NULL: the table has none */
};

/* True if the object is so new that another process may still be creating it (brick 4.1). */
static bool
is_in_the_making(const struct stat *st)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_ms = (now.tv_sec - st->st_ctim.tv_sec) * 1000 + (now.tv_nsec - st->st_ctim.tv_nsec) / 1000000;
    return age_ms < 1000;
}

static int
lookup_look(struct looking *l)
{
    int r = posix_obj_stat(&l->obj, &l->st);

    if (r < 0)
        return r;
    r = posix_obj_get_gfid(&l->obj, &l->gfid);
    if (r == -ENODATA)
        l->gfid = gfid_null;
    return r == -ENODATA ? 0 : r;
}

/* Handles an object without gfid: gives it the client's gfid, or answers without one, or fails as if the
 * object did not exist. Under the name's lock, so no call of this brick is creating the object. */
static int
heal_gfid_locked(struct xlator *xl, const struct call_stack *stk, struct looking *l)
{
    struct gfid wanted;
    struct mdata m;
    int r = dict_get_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &wanted);

    if (r < 0 || gfid_is_null(&wanted) || gfid_is_root(&wanted))
        return dict_get_flag(stk->call.xdata, DICT_KEY_GFIDLESS_LOOKUP) ? 0 : -ENODATA;
    /* With ctime, clients cannot see the age of an object without mdata. */
    if (is_in_the_making(&l->st) && !(posix_conf(xl)->ctime && posix_mdata_get(xl, &l->obj, NULL, &m) == 0))
        return -ENOENT;
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(posix_of(xl), &wanted);
    r = posix_handle_heal(&l->obj, &wanted, &l->st, &l->parent->gfid, l->name);
    if (r == 0)
        r = posix_obj_setxattr(&l->obj, POSIX_XATTR_GFID, &wanted, sizeof wanted, XATTR_CREATE);
    if (r < 0)
        return r;
    log_event(LOG_INFO, xl, "posix-gfid-healed", "%s/%s had no gfid and is now %s", GFID(&l->parent->gfid),
              l->name, GFID(&wanted));
    l->gfid = wanted;
    posix_inode_reborn(xl, &wanted);
    return posix_obj_stat(&l->obj, &l->st); /* its link count has changed */
}

/* The object's gfid belongs to another object. If the object is an empty file without a handle, the brick
 * died while it created the file, and a heal has made the file anew under another name: the remains go,
 * because no heal can remove them (-ENOENT). Otherwise the object is answered as it is. */
static int
handle_is_taken(struct xlator *xl, struct looking *l)
{
    bool is_remains = S_ISREG(l->st.st_mode) && l->st.st_size == 0 && l->st.st_nlink == 1 &&
                      !is_in_the_making(&l->st);
    int r = is_remains ? posix_obj_unlink(&l->obj, 0) : 0;

    log_event(LOG_WARNING, xl, "posix-handle-taken", "%s/%s has the gfid %s of another object%s%s",
              GFID(&l->parent->gfid), l->name, GFID(&l->gfid), is_remains ? ": " : "",
              !is_remains ? "" : r < 0 ? strerror(-r) : "an empty file of a dead process, removed");
    return is_remains && r == 0 ? -ENOENT : 0;
}

/* Looks again with the locks held, and heals an incomplete object. */
static int
look_with_locks(struct xlator *xl, const struct call_stack *stk, struct looking *l)
{
    struct posix *p = posix_of(xl);
    POSIX_LOCKED pthread_mutex_t *lock = posix_name_lock(p, &l->parent->gfid, l->name);
    int r = lookup_look(l);

    if (r < 0)
        return r;
    if (gfid_is_null(&l->gfid))
        return heal_gfid_locked(xl, stk, l);
    POSIX_LOCKED pthread_mutex_t *object = posix_object_lock(p, &l->gfid);
    r = posix_obj_stat(&l->obj, &l->st); /* the janitor removes names under this lock alone */
    if (r < 0)
        return r;
    r = posix_handle_heal(&l->obj, &l->gfid, &l->st, &l->parent->gfid, l->name);
    if (r == -EEXIST)
        return handle_is_taken(xl, l);
    if (r < 0)
        return r;
    /* The inode's knowledge may be about another object, which had this handle and was removed. */
    posix_inode_reborn(xl, &l->gfid);
    return posix_obj_stat(&l->obj, &l->st);
}

/* Addresses the object by its own handle from here on, so that later reads cannot reach another object that
 * gets the name meanwhile. */
static void
use_own_address(struct looking *l, struct posix_obj *own)
{
    posix_obj_done(&l->obj);
    l->obj = *own;
    l->is_own = true;
}

/* True if the handle leads to the same object as the name. One stat for a file. */
static bool
take_handle(struct xlator *xl, struct looking *l)
{
    bool is_known = l->inode && l->inode->type == (l->st.st_mode & S_IFMT);
    struct posix_obj own;
    struct stat st;

    if (is_known)
        posix_obj_inode(posix_of(xl), l->inode, &own);
    else
        posix_obj_gfid(posix_of(xl), &l->gfid, S_ISDIR(l->st.st_mode), &own);
    /* posix_obj_verify() learns the inode's number, so the next LOOKUP knows the inode by it. */
    if (posix_obj_stat(&own, &st) == 0 && st.st_ino == l->st.st_ino && st.st_dev == l->st.st_dev &&
        (!is_known || posix_obj_verify(xl, &own, l->inode, &st) == 0)) {
        if (is_known)
            posix_inode_led(xl, l->inode, own.births);
        use_own_address(l, &own);
        return true;
    }
    posix_obj_done(&own);
    return false;
}

/* The name leads to another object than in the table, or the table has none: opens the name's directory. */
static int
lookup_cold(struct xlator *xl, const struct call_stack *stk, struct looking *l)
{
    int r = posix_obj_get_gfid(&l->obj, &l->gfid);

    if (r < 0 && r != -ENODATA)
        return r;
    if (r == 0) {
        l->inode = posix_inode_of(xl, stk->call.loc.inode, &l->gfid);
        if (take_handle(xl, l))
            return 0;
        inode_unref(l->inode);
        l->inode = NULL;
    }
    r = look_with_locks(xl, stk, l);
    if (r == 0)
        l->inode = posix_inode_of(xl, stk->call.loc.inode, &l->gfid);
    return r;
}

/* True if the object with this inode's number still has its gfid and handle. A user of this machine may have
 * removed either, or changed the gfid. *own: the object at its own address. */
static bool
is_still_its_object(struct xlator *xl, struct inode *inode, const struct stat *st, unsigned births,
                    struct posix_obj *own)
{
    struct gfid found;

    posix_obj_inode(posix_of(xl), inode, own);
    if (posix_inode_is_unchanged(xl, inode, st))
        return true;
    if (posix_obj_get_gfid(own, &found) == 0 && gfid_equal(&found, &inode->gfid)) {
        posix_inode_met(xl, inode, st, births);
        return true;
    }
    posix_obj_done(own);
    posix_inode_doubt(xl, inode);
    return false;
}

/* Finds the object of the name. */
static int
lookup_entry(struct xlator *xl, const struct call_stack *stk, struct looking *l)
{
    struct posix *p = posix_of(xl);
    struct inode *known = stk->call.loc.inode;
    unsigned births = posix_inode_births(xl, known);
    struct posix_obj own;
    int r = posix_obj_peek(&l->obj, &l->st);

    if (r < 0 && r != -ENOENT)
        r = posix_obj_stat(&l->obj, &l->st);
    if (r < 0)
        return r;
    if (l->st.st_ino == p->handles_ino && l->st.st_dev == p->dev)
        return -ENOENT;
    if (!posix_inode_is(xl, known, &l->st) || !posix_inode_has_handle(xl, known) ||
        !is_still_its_object(xl, known, &l->st, births, &own))
        return lookup_cold(xl, stk, l);
    l->inode = inode_ref(known);
    l->gfid = known->gfid;
    use_own_address(l, &own);
    return 0;
}

/* Stats the parent afterwards. If the entry was not found, this shows whether the parent was removed, which
 * is a different error. */
static int
lookup_parent(struct xlator *xl, struct looking *l, struct iatt *out)
{
    POSIX_OBJ(dir);

    posix_obj_entry(posix_of(xl), l->parent, ".", &dir);
    int r = posix_iatt(xl, &dir, l->parent, out, NULL);
    return r == -ENOENT ? -ESTALE : r;
}

static int
lookup_answer(struct xlator *xl, struct call_stack *stk, struct looking *l)
{
    int r = posix_iatt_of_stat(xl, &l->obj, l->inode, gfid_is_null(&l->gfid) ? NULL : &l->gfid, &l->st,
                               &stk->reply.stat);

    return r < 0 ? r
                 : posix_xattr_fill_reply(xl, stk, &l->obj, l->inode, &stk->reply.stat, POSIX_FILL_LOOKUP);
}

/* The object was removed during the lookup. But the name may exist, because a rename may have put another
 * object there. */
static int
lookup_once_more(struct xlator *xl, struct call_stack *stk, struct looking *l)
{
    posix_obj_done(&l->obj);
    inode_unref(l->inode);
    l->inode = NULL;
    l->is_own = false;
    stk->reply.xdata = NULL;
    posix_obj_entry(posix_of(xl), l->parent, l->name, &l->obj);
    int r = look_with_locks(xl, stk, l);
    if (r < 0)
        return r;
    l->inode = posix_inode_of(xl, stk->call.loc.inode, &l->gfid);
    return lookup_answer(xl, stk, l);
}

static xl_verdict
posix_lookup_name(struct xlator *xl, struct call_stack *stk)
{
    struct looking l;
    struct iatt after;

    l.parent = stk->call.loc.parent;
    l.name = stk->call.loc.name;
    l.gfid = gfid_null;
    l.inode = NULL;
    l.is_own = false;
    int r = posix_name_check(&stk->call.loc, EPERM);
    if (r < 0)
        return r;
    posix_obj_entry(posix_of(xl), l.parent, l.name, &l.obj);
    r = lookup_entry(xl, stk, &l);
    if (r == 0)
        r = lookup_answer(xl, stk, &l);
    if (l.is_own && (r == -ENOENT || r == -ESTALE))
        r = lookup_once_more(xl, stk, &l);
    inode_unref(l.inode);
    posix_obj_done(&l.obj);
    if (r == 0)
        r = lookup_parent(xl, &l, &stk->reply.post);
    else if (r == -ENOENT && lookup_parent(xl, &l, &after) == -ESTALE)
        r = -ESTALE;
    return r < 0 ? r : XL_DONE;
}

/* A successful reply has a dict, an empty one if no key was requested: the disperse client adds its results
 * to the dict, and without one its heal of attributes ends half-way and silently (brick 4.1). */
xl_verdict
posix_fop_lookup(struct xlator *xl, struct call_stack *stk)
{
    bool has_name = stk->call.loc.parent && stk->call.loc.name && stk->call.loc.name[0] != '\0';
    int r = has_name ? posix_lookup_name(xl, stk) : lookup_gfid(xl, stk);

    if (r != XL_DONE)
        stk->reply.xdata = NULL;
    else if (reply_xdata(stk) == NULL)
        return -ENOMEM;
    return r;
}
