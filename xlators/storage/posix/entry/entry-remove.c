/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* entry-remove: unlink, rmdir, and the handle of an object whose last name is removed (spec: brick 4.4, 4.5).
 *
 * A file's handle is removed before its last name. A crash in between leaves a name without handle, which
 * lookup heals; the other order would leave a handle that is never removed. A directory's handle is removed
 * after the directory: a call that meets the dangling handle removes it. Name and object are locked, so a
 * concurrent link, create or heal comes before or after, never in between.
 *
 * System calls, with inode and parent cached; add two to open and close the directory:
 *   unlink  6: stat parent, stat entry, unlink handle, unlink, set parent's mdata, stat parent
 *              (more links: remove gfid2path and set mdata instead of the handle; inode cold: get gfid)
 *   rmdir   6: stat parent, stat entry, rmdir, readlink handle, unlink handle, set parent's mdata,
 *           stat parent
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "xlators/storage/posix/entry/entry.h"
#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/entry/pgfid.h"
#include "xlators/storage/posix/entry/trash.h"
#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/object/stat.h"

#define LINKTO_MODE 01000

/* ---- the last link --------------------------------------------------------------------------- */

/* Moves the handle to the directory of open files without a name. */
static int
handle_keep_open(struct xlator *xl, const struct gfid *gfid, struct inode *inode,
                 enum posix_handle_fate *fate)
{
    struct posix *p = posix_of(xl);
    struct posix_inode *ctx = posix_inode_get(xl, inode);
    struct posix_obj handle, kept;

    if (!ctx)
        return -ENOMEM;
    posix_obj_gfid(p, gfid, false, &handle);
    posix_obj_unlinked(p, gfid, &kept);
    int r = posix_obj_rename(&handle, &kept);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    atomic_store(&ctx->is_kept, true);
    posix_inode_gone(xl, inode, true);
    *fate = POSIX_HANDLE_IN_UNLINK;
    return 0;
}

int
posix_handle_retire(struct xlator *xl, const struct gfid *gfid, nlink_t links, struct inode *inode,
                    enum posix_handle_fate *fate)
{
    struct posix_obj handle;

    *fate = POSIX_HANDLE_KEPT;
    if (links < 2) {
        posix_inode_gone(xl, inode, true);
        return 0;
    }
    if (inode && atomic_load(&inode->open_fds) > 0)
        return handle_keep_open(xl, gfid, inode, fate);
    posix_obj_gfid(posix_of(xl), gfid, false, &handle);
    int r = posix_obj_unlink(&handle, 0);
    if (r == 0)
        *fate = POSIX_HANDLE_GONE;
    if (r == 0 || r == -ENOENT)
        posix_inode_gone(xl, inode, true);
    return r == -ENOENT ? 0 : r;
}

void
posix_handle_unretire(struct xlator *xl, struct posix_obj *entry, const struct gfid *gfid,
                      struct inode *inode, enum posix_handle_fate fate)
{
    struct posix *p = posix_of(xl);
    int r = 0;

    if (fate == POSIX_HANDLE_IN_UNLINK) {
        struct posix_inode *ctx = inode_ctx(inode, xl);
        struct posix_obj handle, kept;

        posix_obj_gfid(p, gfid, false, &handle);
        posix_obj_unlinked(p, gfid, &kept);
        r = posix_obj_rename(&kept, &handle);
        atomic_store(&ctx->is_kept, r < 0);
    } else if (fate == POSIX_HANDLE_GONE) {
        r = posix_handle_link(entry, gfid);
    }
    posix_inode_gone(xl, inode, false);
    if (r < 0)
        log_event(LOG_ERROR, xl, "posix-handle-restore", "the handle of %s is lost: %s", GFID(gfid),
                  strerror(-r));
}

void
posix_drop_unlinked(struct xlator *xl, struct inode *inode, struct posix_inode *ctx)
{
    struct posix_obj kept;

    /* A read-modify-write, not a load: either it sees that the last fd is closed, or the close of that fd,
     * which decrements after it, sees the mark set before it and comes here itself (posix_fd_closed). */
    if (!atomic_load(&ctx->is_kept) || atomic_fetch_add(&inode->open_fds, 0) > 0)
        return;
    posix_obj_unlinked(posix_of(xl), &inode->gfid, &kept);
    int r = posix_obj_unlink(&kept, 0);
    if (r < 0 && r != -ENOENT)
        log_event(LOG_WARNING, xl, "posix-unlinked-remove", "cannot remove the unlinked file %s: %s",
                  GFID(&inode->gfid), strerror(-r));
    atomic_store(&ctx->is_kept, false);
}

void
posix_unlinked_recheck(struct xlator *xl, struct inode *inode)
{
    posix_drop_unlinked(xl, inode, inode_ctx(inode, xl));
}

void
posix_fd_closed(struct xlator *xl, struct fd *fd)
{
    struct posix_inode *ctx = inode_ctx(fd->inode, xl);

    if (ctx && atomic_load(&ctx->kept_dir) > 0)
        posix_drop_kept_dir(fd->inode, ctx);
    if (!ctx || !atomic_load(&ctx->is_kept))
        return;
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(posix_of(xl), &fd->inode->gfid);
    posix_drop_unlinked(xl, fd->inode, ctx);
}

#define LARGE_BLOCKS (64 * 2048) /* 64 MiB in use */

int
posix_hold_large(struct posix_obj *obj, const struct stat *st)
{
    int fd = S_ISREG(st->st_mode) && st->st_blocks >= LARGE_BLOCKS ? posix_obj_open(obj, O_PATH, 0) : -1;

    return fd < 0 ? -1 : fd;
}

/* ---- unlink ---------------------------------------------------------------------------------- */

struct victim {
    struct stat st;
    struct inode *inode; /* a reference */
    pthread_mutex_t *lock;
    int large_fd; /* -1: none; see posix_hold_large() */
};

static void
victim_done(struct victim *v)
{
    if (v->lock)
        pthread_mutex_unlock(v->lock);
    inode_unref(v->inode);
    v->lock = NULL;
    v->inode = NULL;
}

/* Locks the object of the name and stats it after that, so its link count is valid until victim_done(). The
 * caller holds the name lock. -FOP_NAME_CHANGED: the object is not `known`. */
static int
victim_lock(struct xlator *xl, struct posix_entry *e, struct inode *known, struct victim *v)
{
    *v = (struct victim){.large_fd = -1};
    if (!known) /* returns an error in any case */
        return posix_entry_look_known(xl, e, NULL, &v->st);
    v->inode = inode_ref(known);
    v->lock = posix_object_lock(posix_of(xl), &known->gfid);
    return posix_entry_look_known(xl, e, known, &v->st);
}

static int
unlink_allowed(const struct call_stack *stk, struct posix_entry *e, const struct victim *v)
{
    const struct dict *xdata = stk->call.xdata;

    if (S_ISDIR(v->st.st_mode))
        return -EISDIR;
    if (dict_get_flag(xdata, DICT_KEY_DONT_UNLINK_FOR_OPEN_FD) &&
        atomic_load(&v->inode->open_fds) > 0)
        return -EBUSY;
    if (dict_get_flag(xdata, DICT_KEY_UNLINK_ONLY_LINKTO) &&
        ((v->st.st_mode & 07777) != LINKTO_MODE ||
         posix_obj_getxattr(&e->obj, POSIX_XATTR_LINKTO, NULL, 0) < 0))
        return -EBUSY;
    return 0;
}

/* Fills the reply's xdata with the requested facts about the object (brick 4.4). They are read before the
 * removal, and adjusted to the state after it. */
static int
unlink_fill(struct xlator *xl, struct call_stack *stk, struct posix_entry *e, const struct victim *v)
{
    const struct dict *asked = stk->call.xdata;
    struct dict *xdata;
    uint64_t links = v->st.st_nlink > 0 ? v->st.st_nlink - 1 : 0;
    struct iatt iatt;
    int r = 0;

    if (!asked || asked->count == 0)
        return 0;
    xdata = reply_xdata(stk);
    if (!xdata)
        return -ENOMEM;
    r = dict_set_uint(xdata, DICT_KEY_GET_LINK_COUNT, dict_has(asked, DICT_KEY_GET_LINK_COUNT) ? links : 0);
    if (r == 0 && dict_has(asked, DICT_KEY_REQUEST_LINK_COUNT))
        r = dict_set_uint(xdata, DICT_KEY_RESPONSE_LINK_COUNT, links);
    if (r == 0 && dict_has(asked, DICT_KEY_FILE_BLOCK_COUNT))
        r = dict_set_uint(xdata, DICT_KEY_FILE_BLOCK_COUNT, (uint64_t)v->st.st_blocks);
    if (r < 0 || !dict_has(asked, DICT_KEY_IATT_IN_XATTR))
        return r;
    r = posix_iatt_of_stat(xl, &e->obj, v->inode, &v->inode->gfid, &v->st, &iatt);
    if (iatt.nlink > 0)
        iatt.nlink--;
    if (r == 0)
        r = dict_set_iatt(xdata, DICT_KEY_IATT_IN_XATTR, &iatt);
    return r < 0 ? r : dict_set_iatt(xdata, DICT_KEY_POSTSTAT, &iatt);
}

/* Removes one of several names. */
static int
unlink_name(struct xlator *xl, struct call_stack *stk, struct posix_entry *e, struct victim *v)
{
    struct posix_obj handle;

    posix_gfid2path_remove(xl, &e->obj, &e->parent->gfid, e->name);
    int r = posix_obj_unlink(&e->obj, 0);
    if (r < 0) {
        posix_gfid2path_set(xl, &e->obj, &e->parent->gfid, e->name);
        return r;
    }
    posix_obj_gfid(posix_of(xl), &v->inode->gfid, false, &handle);
    posix_pgfid_count(xl, &handle, &e->parent->gfid, -1);
    r = posix_mdata_update(xl, &stk->caller, &handle, v->inode, NULL);
    if (r < 0)
        log_event(LOG_WARNING, xl, "posix-unlink-mdata", "times of %s: %s", GFID(&v->inode->gfid),
                  strerror(-r));
    return 0;
}

static int
unlink_last(struct xlator *xl, struct posix_entry *e, struct victim *v)
{
    enum posix_handle_fate fate;
    int r = posix_handle_retire(xl, &v->inode->gfid, v->st.st_nlink, v->inode, &fate);

    if (r < 0)
        return r;
    r = posix_obj_unlink(&e->obj, 0);
    if (r < 0) {
        posix_handle_unretire(xl, &e->obj, &v->inode->gfid, v->inode, fate);
        return r;
    }
    if (fate == POSIX_HANDLE_IN_UNLINK)
        posix_unlinked_recheck(xl, v->inode);
    return 0;
}

/* Under the locks of name and object. */
static int
unlink_locked(struct xlator *xl, struct call_stack *stk, struct posix_entry *e, struct victim *v)
{
    int r = unlink_allowed(stk, e, v);

    if (r == 0)
        r = unlink_fill(xl, stk, e, v);
    if (r < 0)
        return r;
    /* The two links are the handle and this name, or there is only this name. */
    bool is_last = v->st.st_nlink <= 2;
    if (is_last && stk->call.hint.kind == HINT_TRASH) {
        r = posix_trash_keep(xl, stk, e, &v->st, v->inode);
        if (r != POSIX_TRASH_NOT)
            return r;
    }
    v->large_fd = posix_hold_large(&e->obj, &v->st);
    return is_last ? unlink_last(xl, e, v) : unlink_name(xl, stk, e, v);
}

xl_verdict
posix_fop_unlink(struct xlator *xl, struct call_stack *stk)
{
    POSIX_ENTRY(e);
    struct victim v;
    int r = posix_entry_begin(xl, &stk->call.loc, ENOENT, &e, &stk->reply.pre);

    if (r < 0)
        return r;
    {
        POSIX_LOCKED pthread_mutex_t *lock = posix_name_lock(posix_of(xl), &e.parent->gfid, e.name);

        r = victim_lock(xl, &e, stk->call.loc.inode, &v);
        if (r == 0)
            r = unlink_locked(xl, stk, &e, &v);
        victim_done(&v);
    }
    if (v.large_fd >= 0)
        close(v.large_fd);
    if (r == 0)
        r = posix_entry_end(xl, &stk->caller, &e, &stk->reply.post);
    return r < 0 ? r : XL_DONE;
}

/* ---- rmdir ----------------------------------------------------------------------------------- */

/* Moves the directory with its contents to the landfill, where the janitor removes it. */
static int
rmdir_to_landfill(struct xlator *xl, struct posix_entry *e, const struct gfid *gfid)
{
    struct posix *p = posix_of(xl);
    struct gfid unique = *gfid;
    struct posix_obj to;
    int r = -ENOTEMPTY;

    /* The gfid is the name in the landfill, unless an object with that gfid lies there already. */
    for (int i = 0; i < 2 && (r == -ENOTEMPTY || r == -EEXIST); i++) {
        posix_obj_hidden(p, "landfill", GFID(&unique), &to);
        r = posix_obj_rename(&e->obj, &to);
        gfid_random(&unique);
    }
    if (r == 0)
        posix_janitor_wake(p);
    return r;
}

static int
rmdir_locked(struct xlator *xl, struct call_stack *stk, struct posix_entry *e)
{
    struct posix *p = posix_of(xl);
    struct inode *inode = stk->call.loc.inode;
    struct stat st;

    if (!inode) /* returns an error in any case */
        return posix_entry_look_known(xl, e, NULL, &st);
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(p, &inode->gfid);
    int r = posix_entry_look_known(xl, e, inode, &st);
    if (r < 0)
        return r;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    bool lives_on = posix_handle_leads_elsewhere(p, &inode->gfid, &st);
    int held = lives_on ? -1 : posix_hold_dir(inode, &e->obj);
    posix_inode_leaves(xl, inode);
    r = stk->call.flags ? rmdir_to_landfill(xl, e, &inode->gfid) : posix_obj_unlink(&e->obj, AT_REMOVEDIR);
    posix_inode_gone(xl, inode, r == 0 && !lives_on);
    if (r == 0)
        posix_keep_dir(xl, inode, held);
    else if (held >= 0)
        close(held);
    if (r < 0)
        return r == -EEXIST ? -ENOTEMPTY : r;
    r = posix_handle_drop_dir(p, &inode->gfid, &e->parent->gfid, e->name);
    if (r < 0)
        log_event(LOG_WARNING, xl, "posix-rmdir-handle", "the handle of the removed %s/%s stays: %s",
                  GFID(&e->parent->gfid), e->name, strerror(-r));
    return 0;
}

xl_verdict
posix_fop_rmdir(struct xlator *xl, struct call_stack *stk)
{
    POSIX_ENTRY(e);
    int r = posix_entry_begin(xl, &stk->call.loc, EPERM, &e, &stk->reply.pre);

    if (r < 0)
        return r;
    {
        POSIX_LOCKED pthread_mutex_t *lock = posix_name_lock(posix_of(xl), &e.parent->gfid, e.name);

        r = rmdir_locked(xl, stk, &e);
    }
    if (r == 0)
        r = posix_entry_end(xl, &stk->caller, &e, &stk->reply.post);
    return r < 0 ? r : XL_DONE;
}
