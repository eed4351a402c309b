/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rename: moves a name, and with it the handle of a directory or the gfid2path of a file (spec: brick 4.6).
 *
 * Both names are locked, and the replaced object. A directory is renamed first, and then its handle is
 * replaced in one step; in between, paths through the handle have no target. So one thread of a brick at a
 * time does these two steps, under dir_rename_lock, and counts them in dir_renames: a call that gets ENOENT
 * on a path through a handle waits and tries again (handle.h). A process that dies between the two has noted
 * the new place before, and the next start of the brick does the second (posix_handle_note_move).
 *
 * System calls, with all inodes cached, within one directory; add two to open and close it:
 *   file       10: stat parent, stat source, stat target, rename, remove and set gfid2path, set mdata, stat,
 *              set parent's mdata, stat parent; over another file: stat target again, unlink its handle
 *   directory  13: note of the move; symlink (one exists), stat, symlink and rename of the handle instead of
 *              gfid2path
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "xlators/storage/posix/entry/entry.h"
#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/entry/pgfid.h"
#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/object/stat.h"

#define PID_HEALER (-6) /* the self-heal daemon, and mounts that heal */

struct renaming {
    struct posix_entry from, to;
    struct stat st, victim_st;
    bool has_victim;
    struct inode *inode, *victim; /* references; no victim: NULL */
    enum posix_handle_fate fate;  /* of the victim's handle */
    pthread_mutex_t *name_locks[2], *object_locks[2];
    int large_fd; /* on the victim: -1, or see posix_hold_large() */
};

static void
renaming_unlock(struct renaming *n)
{
    pthread_mutex_t **locks[] = {&n->object_locks[1], &n->object_locks[0], &n->name_locks[1],
                                 &n->name_locks[0]};

    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        if (*locks[i])
            pthread_mutex_unlock(*locks[i]);
        *locks[i] = NULL;
    }
    inode_unref(n->inode);
    inode_unref(n->victim);
    n->inode = n->victim = NULL;
}

static void
renaming_done(struct renaming *n)
{
    renaming_unlock(n);
    if (n->large_fd >= 0)
        close(n->large_fd);
    posix_entry_done(&n->from);
    posix_entry_done(&n->to);
}

static void
renaming_empty(struct renaming *n)
{
    posix_entry_empty(&n->from);
    posix_entry_empty(&n->to);
    n->inode = n->victim = NULL;
    n->fate = POSIX_HANDLE_KEPT;
    memset(n->name_locks, 0, sizeof n->name_locks);
    memset(n->object_locks, 0, sizeof n->object_locks);
    n->large_fd = -1;
}

/* Declares an empty struct renaming that releases its resources at the end of the scope. */
#define RENAMING(name) \
    __attribute__((cleanup(renaming_done))) struct renaming name; \
    renaming_empty(&name)

/* Locks two stripes of an array in the order of their index, or a single stripe if both are the same. */
static void
lock_pair(pthread_mutex_t *a, pthread_mutex_t *b, pthread_mutex_t *held[2])
{
    if (a == b || !b) {
        held[0] = a;
    } else {
        held[0] = a < b ? a : b;
        held[1] = a < b ? b : a;
    }
    pthread_mutex_lock(held[0]);
    if (held[1])
        pthread_mutex_lock(held[1]);
}

/* ---- the objects ----------------------------------------------------------------------------- */

/* Looks up both names, under their locks. -FOP_NAME_CHANGED: a name leads to another object than the layers
 * above have seen. */
static int
look_at_both(struct xlator *xl, const struct call_stack *stk, struct renaming *n)
{
    int r = posix_entry_look_known(xl, &n->from, stk->call.loc.inode, &n->st);

    if (r < 0)
        return r;
    r = posix_entry_look_known(xl, &n->to, stk->call.loc2.inode, &n->victim_st);
    if (r < 0 && r != -ENOENT)
        return r;
    n->has_victim = r == 0;
    return 0;
}

static bool
renaming_is_same_object(const struct renaming *n)
{
    return n->has_victim && n->st.st_ino == n->victim_st.st_ino && n->st.st_dev == n->victim_st.st_dev;
}

static int
may_replace(const struct renaming *n)
{
    bool is_dir = S_ISDIR(n->st.st_mode), is_victim_dir;

    if (!n->has_victim)
        return 0;
    is_victim_dir = S_ISDIR(n->victim_st.st_mode);
    if (is_dir && !is_victim_dir)
        return -ENOTDIR;
    return !is_dir && is_victim_dir ? -EISDIR : 0;
}

/* Locks names and objects and looks up both names. */
static int
renaming_lock(struct xlator *xl, const struct call_stack *stk, struct renaming *n)
{
    struct posix *p = posix_of(xl);

    lock_pair(posix_name_stripe(p, &n->from.parent->gfid, n->from.name),
              posix_name_stripe(p, &n->to.parent->gfid, n->to.name), n->name_locks);
    int r = look_at_both(xl, stk, n);
    if (r < 0)
        return r;
    n->inode = inode_ref(stk->call.loc.inode);
    n->victim = n->has_victim ? inode_ref(stk->call.loc2.inode) : NULL;
    lock_pair(posix_object_stripe(p, &n->inode->gfid),
              n->victim ? posix_object_stripe(p, &n->victim->gfid) : NULL, n->object_locks);
    if (!n->has_victim)
        return 0;
    /* The link count may have changed before the lock was taken. */
    return posix_obj_stat(&n->to.obj, &n->victim_st);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static int
victim_fill(struct call_stack *stk, const struct renaming *n)
{
    const struct dict *asked = stk->call.xdata;
    uint64_t links = 0;
    struct dict *xdata;
    int r = 0;

    if (!dict_has(asked, DICT_KEY_GET_LINK_COUNT) && !dict_has(asked, DICT_KEY_REQUEST_LINK_COUNT))
        return 0;
    xdata = reply_xdata(stk);
    if (!xdata)
        return -ENOMEM;
    if (n->has_victim)
        links = n->victim_st.st_nlink - (S_ISDIR(n->victim_st.st_mode) ? 0 : 1);
    if (dict_has(asked, DICT_KEY_GET_LINK_COUNT))
        r = dict_set_uint(xdata, DICT_KEY_GET_LINK_COUNT, links);
    if (r == 0 && dict_has(asked, DICT_KEY_REQUEST_LINK_COUNT))
        r = dict_set_uint(xdata, DICT_KEY_RESPONSE_LINK_COUNT, links);
    return r;
}

/* The name has been moved. If its handle cannot follow, the name is moved back, because a directory that
 * cannot be reached by its gfid is useless. */
static int
move_dir_handle(struct xlator *xl, struct renaming *n)
{
    struct posix *p = posix_of(xl);
    int r;

    if (n->has_victim) {
        r = posix_handle_drop_dir(p, &n->victim->gfid, &n->to.parent->gfid, n->to.name);
        if (r < 0)
            log_event(LOG_WARNING, xl, "posix-rename-victim-handle",
                      "the handle of the replaced %s stays: %s", GFID(&n->victim->gfid), strerror(-r));
    }
    r = posix_handle_set_dir(p, &n->inode->gfid, &n->to.parent->gfid, n->to.name);
    /* -EEXIST: the directory had no handle before either, because its gfid belongs to a file now */
    if (r == 0 || r == -EEXIST)
        return 0;
    int back = posix_obj_rename(&n->to.obj, &n->from.obj);
    log_event(LOG_ERROR, xl, "posix-rename-handle",
              "the handle of %s cannot be moved to %s/%s: %s; the rename is %s", GFID(&n->inode->gfid),
              GFID(&n->to.parent->gfid), n->to.name, strerror(-r), back == 0 ? "undone" : "left half done");
    return r;
}

static int
move_dir(struct xlator *xl, struct renaming *n)
{
    struct posix *p = posix_of(xl);

    /* The look comes before the lock, because the walk to a folder in a deep place takes the lock, too. */
    bool lives_on = n->has_victim && posix_handle_leads_elsewhere(p, &n->victim->gfid, &n->victim_st);

    pthread_mutex_lock(&p->dir_rename_lock);
    atomic_fetch_add(&p->dir_renames, 1);
    int held = n->has_victim && !lives_on ? posix_hold_dir(n->victim, &n->to.obj) : -1;
    posix_inode_leaves(xl, n->victim);
    int r = posix_handle_note_move(p, &n->inode->gfid, &n->to.parent->gfid, n->to.name);
    if (r < 0)
        log_event(LOG_WARNING, xl, "posix-rename-note",
                  "the move of %s is not noted: %s; its handle is lost if the process dies now",
                  GFID(&n->inode->gfid), strerror(-r));
    r = posix_obj_rename(&n->from.obj, &n->to.obj);
    posix_inode_gone(xl, n->victim, r == 0 && !lives_on);
    if (r == 0)
        posix_keep_dir(xl, n->victim, held);
    else if (held >= 0)
        close(held);
    if (r == 0)
        r = move_dir_handle(xl, n);
    atomic_fetch_add(&p->dir_renames, 1);
    pthread_mutex_unlock(&p->dir_rename_lock);
    return r == -EEXIST ? -ENOTEMPTY : r;
}

static int
renaming_move_file(struct xlator *xl, const struct call_stack *stk, struct renaming *n)
{
    bool is_last = n->has_victim && n->victim_st.st_nlink <= 2;
    struct posix_obj handle;
    int r = 0;

    if (n->has_victim)
        n->large_fd = posix_hold_large(&n->to.obj, &n->victim_st);
    if (is_last)
        r = posix_handle_retire(xl, &n->victim->gfid, n->victim_st.st_nlink, n->victim, &n->fate);
    if (r < 0)
        return r;
    r = posix_obj_rename(&n->from.obj, &n->to.obj);
    if (r < 0) {
        if (is_last)
            posix_handle_unretire(xl, &n->to.obj, &n->victim->gfid, n->victim, n->fate);
        return r;
    }
    if (n->fate == POSIX_HANDLE_IN_UNLINK)
        posix_unlinked_recheck(xl, n->victim);
    if (n->has_victim && !is_last) {
        posix_obj_gfid(posix_of(xl), &n->victim->gfid, false, &handle);
        posix_gfid2path_remove(xl, &handle, &n->to.parent->gfid, n->to.name);
        posix_pgfid_count(xl, &handle, &n->to.parent->gfid, -1);
        r = posix_mdata_update(xl, &stk->caller, &handle, n->victim, NULL);
    }
    posix_gfid2path_remove(xl, &n->to.obj, &n->from.parent->gfid, n->from.name);
    posix_gfid2path_set(xl, &n->to.obj, &n->to.parent->gfid, n->to.name);
    if (n->from.parent != n->to.parent) {
        posix_pgfid_count(xl, &n->to.obj, &n->from.parent->gfid, -1);
        posix_pgfid_count(xl, &n->to.obj, &n->to.parent->gfid, 1);
    }
    return r;
}

/* Tells whether both names are the same name in the same folder. The folders are compared on the disk,
 * because two gfids may lead to one folder for a while. */
static bool
renaming_is_same_name(const struct renaming *n)
{
    return strcmp(n->from.name, n->to.name) == 0 && n->from.dir_st.st_ino == n->to.dir_st.st_ino &&
           n->from.dir_st.st_dev == n->to.dir_st.st_dev;
}

/* For two names of one file POSIX demands that rename does nothing. But a healer that moves one name of a
 * file out of a folder, to the place of another of its names, interprets success as the removal of the first
 * name. A name that is moved to itself stays, for a healer too: it may be the file's only name. */
static int
join_names(struct xlator *xl, const struct call_stack *stk, struct renaming *n)
{
    if (stk->caller.pid != PID_HEALER || !caller_is_internal(&stk->caller) || renaming_is_same_name(n))
        return 0;
    int r = posix_obj_unlink(&n->from.obj, 0);

    if (r < 0)
        return r;
    posix_gfid2path_remove(xl, &n->to.obj, &n->from.parent->gfid, n->from.name);
    posix_pgfid_count(xl, &n->to.obj, &n->from.parent->gfid, -1);
    return posix_mdata_update(xl, &stk->caller, &n->to.obj, n->inode, NULL);
}

/* Under all locks. */
static int
rename_locked(struct xlator *xl, struct call_stack *stk, struct renaming *n)
{
    int r = may_replace(n);

    if (r == 0)
        r = victim_fill(stk, n);
    if (r < 0)
        return r;
    if (renaming_is_same_object(n)) {
        r = join_names(xl, stk, n);
    } else {
        r = S_ISDIR(n->st.st_mode) ? move_dir(xl, n) : renaming_move_file(xl, stk, n);
        if (r == 0)
            r = posix_mdata_update(xl, &stk->caller, &n->to.obj, n->inode, NULL);
    }
    return r < 0 ? r : posix_iatt(xl, &n->to.obj, n->inode, &stk->reply.stat, NULL);
}

static int
parents_after(struct xlator *xl, struct call_stack *stk, struct renaming *n)
{
    int r = posix_entry_end(xl, &stk->caller, &n->from, &stk->reply.post);

    if (r == 0 && n->from.parent != n->to.parent)
        return posix_entry_end(xl, &stk->caller, &n->to, &stk->reply.post2);
    stk->reply.post2 = stk->reply.post;
    return r;
}

xl_verdict
posix_fop_rename(struct xlator *xl, struct call_stack *stk)
{
    RENAMING(n);

    int r = posix_entry_begin(xl, &stk->call.loc, ENOENT, &n.from, &stk->reply.pre);
    if (r == 0 && stk->call.loc.parent == stk->call.loc2.parent) {
        stk->reply.pre2 = stk->reply.pre;
        r = posix_entry_begin_beside(&n.from, &stk->call.loc2, ENOTEMPTY, &n.to);
    } else if (r == 0) {
        r = posix_entry_begin(xl, &stk->call.loc2, ENOTEMPTY, &n.to, &stk->reply.pre2);
    }
    if (r == 0)
        r = posix_path_check(xl, n.to.parent, n.to.name);
    if (r == 0)
        r = renaming_lock(xl, stk, &n);
    if (r == 0)
        r = rename_locked(xl, stk, &n);
    renaming_unlock(&n);
    if (r == 0)
        r = parents_after(xl, stk, &n);
    return r < 0 ? r : XL_DONE;
}
