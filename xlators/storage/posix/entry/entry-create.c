/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* entry-create: create, mknod, mkdir, symlink, link: all calls that create names (spec: brick 3.9, 4.2, 4.3).
 *
 * A new object is built in this order, under the lock of its name:
 *   file, symlink  name (O_EXCL)  owner  stored keys  gfid2path  mdata  trusted.gfid  handle
 *   directory      name           owner  stored keys             mdata  handle        trusted.gfid
 * Without a gfid it does not count as an object: a lookup that meets it waits for the name's lock. If a step
 * fails, all steps before it are undone. A crash leaves a name without gfid, or a file with a gfid but
 * without a handle: lookup heals both. A directory never has a gfid without a handle: a healer that asked for
 * the gfid would make a second directory, if other bricks have renamed the first one meanwhile. A handle that
 * leads to a directory without its gfid is no object (ESTALE), and is replaced when the gfid is made anew.
 *
 * System calls, with the parent's mdata cached. Add a chown if the caller is not root, one for each stored
 * key, and two to open and close the directory (except the root; "stat parent" is then that of the opened
 * directory). For a parent that is new to the table add the read of its gfid:
 *   create   9: stat parent, open, set gfid2path, mdata, gfid, link handle, fstat, set parent's mdata, stat
 *            parent
 *   mknod    9: the same with mknod and a stat by path
 *   mkdir    9: stat handle instead of gfid2path, symlink handle
 *   symlink  9: as mknod
 *   link     9 (and, inode new to the table, stat and get gfid): stat parent, stat source, link, set
 *            gfid2path, get mdata (cold), mdata, stat, parent's mdata, stat parent
 * The first object below a .glusterfs/xx/yy creates that directory: 2 more.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/entry/entry.h"
#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/entry/pgfid.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"

#define PID_TRASH (-11) /* may omit gfid-req */
#define GFID2PATH_LINKS_MAX 500
#define LINKTO_MODE 01000 /* exactly this mode: DHT's mark of a link file */

/* The object that a call creates. */
struct making {
    struct posix_entry entry;
    struct posix_obj *obj; /* how to reach the object: entry.obj, or an fd */
    struct gfid gfid;
    mode_t mode; /* requested type and permissions */
    struct mdata mdata;
    bool has_mdata;
    struct stat st; /* of the new object, from made_iatt() */
};

static void
making_done(struct making *m)
{
    posix_entry_done(&m->entry);
}
#define MAKING(name) \
    __attribute__((cleanup(making_done))) struct making name; \
    posix_entry_empty(&name.entry)

static bool
is_internal(const struct call_stack *stk)
{
    return dict_has(stk->call.xdata, DICT_KEY_INTERNAL_FOP);
}

/* ---- checks before --------------------------------------------------------------------------- */

static int
gfid_wanted(const struct call_stack *stk, struct gfid *out)
{
    int r = dict_get_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, out);

    if (r == -ENOENT && stk->caller.pid == PID_TRASH) {
        gfid_random(out);
        return 0;
    }
    return r < 0 || gfid_is_null(out) || gfid_is_root(out) ? -EINVAL : 0;
}

/* DHT's check that the layout is unchanged: compares the parent's xattr with the value of the request (brick
 * 4.2). Returns 0 or -EIO. */
static int
parent_layout_check(struct call_stack *stk, struct posix_entry *e)
{
    const char *key = dict_get_str(stk->call.xdata, DICT_KEY_PREOP_PARENT_KEY);
    const struct dict_pair *want;
    ssize_t n;

    if (!dict_has(stk->call.xdata, DICT_KEY_PREOP_PARENT_KEY))
        return 0;
    want = key ? dict_find_text(stk->call.xdata, key) : NULL;
    if (!want || (want->type != DICT_PTR && want->type != DICT_STR && want->type != DICT_UNTYPED))
        return -EIO;
    char *found = arena_alloc(&stk->arena, want->len + 1);
    if (!found)
        return -ENOMEM;
    n = posix_obj_getxattr(&e->dir, key, found, want->len + 1);
    return n == (ssize_t)want->len && memcmp(found, want->v.bytes, want->len) == 0 ? 0 : -EIO;
}

/* Answers that the layout has changed. A key in the reply tells the client the reason of the error. For a
 * mkdir only the key does, as with stock's bricks; the error number is 0. */
static int
answer_layout_changed(struct call_stack *stk)
{
    struct dict *xdata = reply_xdata(stk);

    if (!xdata || dict_set_int(xdata, DICT_KEY_PREOP_CHECK_FAILED, 1) < 0)
        return -ENOMEM;
    memset(&stk->reply.pre, 0, sizeof stk->reply.pre);
    stk->reply.op_ret = -1;
    stk->reply.op_errno = stk->call.fop == FOP_mkdir ? 0 : EIO;
    return XL_DONE;
}

/* Returns 0 or -errno. The caller passes `m` to posix_entry_done() in any case. */
static int
making_begin(struct xlator *xl, struct call_stack *stk, int hidden_errno, struct making *m)
{
    m->obj = &m->entry.obj;
    m->has_mdata = false;
    int r = gfid_wanted(stk, &m->gfid);
    if (r == 0)
        r = posix_reserve_check(xl, stk);
    if (r == 0)
        r = posix_entry_begin(xl, &stk->call.loc, hidden_errno, &m->entry, &stk->reply.pre);
    return r < 0 ? r : posix_path_check(xl, m->entry.parent, m->entry.name);
}

/* ---- building -------------------------------------------------------------------------------- */

/* Sets the owner. The kernel has given the object to the daemon's user, usually root, and to the daemon's
 * group or that of a set-gid directory. The daemon's ids do not change after the start. */
static int
set_new_owner(const struct call_stack *stk, struct making *m)
{
    uid_t uid = stk->caller.uid;
    bool is_inherited = m->entry.dir_st.st_mode & S_ISGID;
    gid_t gid = is_inherited ? (gid_t)-1 : stk->caller.gid;

    if (uid != getauxval(AT_EUID) || (gid != getauxval(AT_EGID) && !is_inherited)) {
        int r = posix_obj_chown(m->obj, uid, gid);
        if (r < 0)
            return r;
    } else if (!S_ISDIR(m->mode)) {
        return 0;
    }
    /* chown drops set-uid and set-gid of files; mkdir does not set them. */
    mode_t special = m->mode & (S_ISUID | S_ISGID);
    if (special == 0 || S_ISLNK(m->mode))
        return 0;
    mode_t mode = m->mode & 07777;
    if (S_ISDIR(m->mode) && is_inherited)
        mode |= S_ISGID;
    return posix_obj_chmod(m->obj, mode);
}

/* Returns the name under which a key of the request's xdata is stored; NULL: the key is not stored. */
static const char *
stored_name(const struct call_stack *stk, const struct dict_pair *pair)
{
    const char *consumed = dict_get_str(stk->call.xdata, DICT_KEY_PREOP_PARENT_KEY);

    /* Numbers under such keys are requests, not values. */
    if (pair->type != DICT_PTR && pair->type != DICT_STR && pair->type != DICT_UNTYPED)
        return NULL;
    if (!xattr_has_namespace(pair->key) || (consumed && strcmp(consumed, pair->key) == 0))
        return NULL;
    switch (xattr_kind_of(pair->key)) {
    case XATTR_PLAIN:
    case XATTR_ACL:
    case XATTR_SELINUX:
    case XATTR_GEOREP:
    case XATTR_QUOTA:
    case XATTR_QUOTA_SUM:
        return pair->key;
    default:
        return NULL;
    }
}

static int
store_keys(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    dict_for_each(pair, stk->call.xdata) {
        const char *name = stored_name(stk, pair);

        if (!name)
            continue;
        bool is_acl = xattr_kind_of(name) == XATTR_ACL;
        if (is_acl && (!posix_of(xl)->has_acl || S_ISLNK(m->mode)))
            continue;
        /* Create-only, except an ACL, which the kernel may have inherited from the directory. */
        int r = posix_obj_setxattr(m->obj, name, pair->v.bytes, pair->len, is_acl ? 0 : XATTR_CREATE);
        if (r < 0 && r != -EEXIST) {
            log_event(LOG_WARNING, xl, "posix-create-xattr", "cannot set %s on new %s/%s: %s", name,
                      GFID(&m->entry.parent->gfid), m->entry.name, strerror(-r));
            return r;
        }
    }
    return 0;
}

/* Runs all steps that make a new name an object of the volume. On failure the name still exists. */
static int
build_object(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    struct posix_entry *e = &m->entry;
    int r = set_new_owner(stk, m);

    if (r == 0)
        r = store_keys(xl, stk, m);
    if (r < 0)
        return r;
    if (!S_ISDIR(m->mode)) {
        posix_gfid2path_set(xl, m->obj, &e->parent->gfid, e->name);
        posix_pgfid_count(xl, m->obj, &e->parent->gfid, 1);
    }
    r = posix_mdata_create(xl, &stk->caller, m->obj, &m->mdata);
    if (r < 0)
        return r;
    m->has_mdata = r > 0;
    r = S_ISDIR(m->mode) ? posix_handle_set_dir(posix_of(xl), &m->gfid, &e->parent->gfid, e->name) : 0;
    if (r == 0)
        r = posix_obj_setxattr(m->obj, POSIX_XATTR_GFID, &m->gfid, sizeof m->gfid, XATTR_CREATE);
    return r < 0 || S_ISDIR(m->mode) ? r : posix_handle_link(&e->obj, &m->gfid);
}

/* Builds the object, or removes the name again. */
static int
build_or_undo(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    struct posix_entry *e = &m->entry;
    int r = build_object(xl, stk, m);

    if (r == 0) {
        posix_inode_reborn(xl, &m->gfid);
        return 0;
    }
    int undone = posix_obj_unlink(&e->obj, S_ISDIR(m->mode) ? AT_REMOVEDIR : 0);
    if (undone == 0 && S_ISDIR(m->mode))
        undone = posix_handle_drop_dir(posix_of(xl), &m->gfid, &e->parent->gfid, e->name);
    if (undone < 0)
        log_event(LOG_ERROR, xl, "posix-create-undo", "%s/%s was half made (%s) and cannot be removed: %s",
                  GFID(&e->parent->gfid), e->name, strerror(-r), strerror(-undone));
    return r;
}

/* Fills the new object's iatt. */
static int
made_iatt(struct making *m, struct iatt *out)
{
    int r = posix_obj_stat(m->obj, &m->st);

    if (r < 0)
        return r;
    iatt_from_stat(out, &m->st, &m->gfid);
    if (m->has_mdata)
        posix_mdata_apply(&m->mdata, out);
    return 0;
}

static mode_t
mode_for(const struct posix_conf *conf, mode_t type, mode_t mode)
{
    int64_t mask = S_ISDIR(type) ? conf->create_directory_mask : conf->create_mask;
    int64_t force = S_ISDIR(type) ? conf->force_directory_mode : conf->force_create_mode;

    /* The masks apply to permissions only: DHT recognises its link files by their sticky bit. */
    return type | ((mode & 07777) & ~(mode_t)(0777 & ~mask)) | (mode_t)(force & 0777);
}

/* ---- create ---------------------------------------------------------------------------------- */

/* Flags for the fd. O_CREAT and O_EXCL are added where they apply. */
#define CREATE_FLAGS (O_ACCMODE | O_APPEND | O_TRUNC | O_NONBLOCK | O_SYNC | O_DSYNC | O_DIRECT | O_NOATIME)

static int
create_flags(const struct xlator *xl, const struct call_stack *stk)
{
    int flags = stk->call.flags ? (int)stk->call.flags & CREATE_FLAGS : O_RDWR;

    return flags | (posix_conf(xl)->o_direct ? O_DIRECT : 0);
}

/* Opens the file that the layers above have seen under the name. After a crash it may lack its handle. */
static int
open_existing(struct xlator *xl, const struct call_stack *stk, struct making *m, int flags, struct iatt *iatt)
{
    struct posix_entry *e = &m->entry;
    struct inode *known = stk->call.loc.inode;
    struct stat st;

    posix_obj_set_inode(&e->obj, known);
    int r = posix_entry_look_known(xl, e, known, &st);
    if (r < 0) /* the name is free: the layers must check the creation of a new file */
        return r == -ENOENT ? -FOP_NAME_CHANGED : r;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
    int sysfd = posix_obj_open_file(xl, &e->obj, known, flags, &st);
    if (sysfd < 0)
        return sysfd;

    POSIX_OBJ(by_fd);
    posix_obj_fd(e->obj.p, sysfd, &by_fd);
    m->gfid = known->gfid;
    r = posix_handle_link(&e->obj, &m->gfid);
    if (r == 0 && flags & O_TRUNC)
        r = posix_mdata_update(xl, &stk->caller, &by_fd, known, NULL);
    if (r == 0)
        r = posix_obj_stat(&by_fd, &st);
    if (r == 0)
        r = posix_iatt_of_stat(xl, &by_fd, known, &m->gfid, &st, iatt);
    if (r < 0) {
        close(sysfd);
        return r;
    }
    return sysfd;
}

/* Returns a descriptor with the iatt of the object, which is new (*is_new) or was found. */
static int
create_file(struct xlator *xl, const struct call_stack *stk, struct making *m, struct iatt *iatt,
            bool *is_new)
{
    struct posix_entry *e = &m->entry;
    int flags = create_flags(xl, stk);

    *is_new = fop_create_is_exclusive(&stk->call) || !stk->call.loc.inode;
    if (!*is_new)
        return open_existing(xl, stk, m, flags, iatt);
    int sysfd = posix_obj_open(&e->obj, flags | O_CREAT | O_EXCL, m->mode & 07777);
    if (sysfd < 0)
        return sysfd == -EEXIST && !fop_create_is_exclusive(&stk->call) ? -FOP_NAME_CHANGED : sysfd;

    POSIX_OBJ(by_fd);
    posix_obj_fd(e->obj.p, sysfd, &by_fd);
    m->obj = &by_fd;
    int r = build_or_undo(xl, stk, m);
    if (r == 0)
        r = made_iatt(m, iatt);
    m->obj = &e->obj;
    if (r < 0) {
        close(sysfd);
        return r;
    }
    return sysfd;
}

/* Puts the fd into the reply. Takes over sysfd. */
static int
reply_fd(struct xlator *xl, struct call_stack *stk, struct making *m, int sysfd, bool is_new)
{
    uint32_t flags = (uint32_t)create_flags(xl, stk);
    struct posix_fd *pfd = posix_fd_new(posix_of(xl), sysfd, flags, false);

    if (!pfd)
        return -ENOMEM;
    struct inode *inode = inode_link(xl->graph->inodes, m->entry.parent, m->entry.name, &stk->reply.stat);
    struct fd *fd = inode ? fd_new(inode, stk->client, flags, false) : NULL;
    if (fd) {
        fd_ctx_set(fd, xl, pfd);
        stk->reply.fd = fd;
        if (is_new) {
            posix_mdata_seed(xl, inode, m->has_mdata ? &m->mdata : NULL);
            unsigned births = posix_inode_births(xl, inode);

            posix_inode_met(xl, inode, &m->st, births);
            posix_inode_led(xl, inode, births);
        }
    } else {
        posix_fd_free(pfd);
    }
    inode_unref(inode);
    return fd ? 0 : -ENOMEM;
}

xl_verdict
posix_fop_create(struct xlator *xl, struct call_stack *stk)
{
    MAKING(m);
    bool is_new;
    int r = making_begin(xl, stk, EEXIST, &m);

    if (r == 0)
        r = parent_layout_check(stk, &m.entry);
    if (r == -EIO)
        return answer_layout_changed(stk);
    if (r < 0)
        return r;
    m.mode = mode_for(posix_conf(xl), S_IFREG, stk->call.mode);
    {
        POSIX_LOCKED pthread_mutex_t *lock =
            posix_name_lock(posix_of(xl), &m.entry.parent->gfid, m.entry.name);

        r = create_file(xl, stk, &m, &stk->reply.stat, &is_new);
        /* Under the lock, because an unlink of the name must see that the file is open. */
        if (r >= 0)
            r = reply_fd(xl, stk, &m, r, is_new);
    }
    if (r == 0)
        r = is_new ? posix_entry_end(xl, &stk->caller, &m.entry, &stk->reply.post)
                   : posix_iatt(xl, &m.entry.dir, m.entry.parent, &stk->reply.post, NULL);
    return r < 0 ? r : XL_DONE;
}

/* ---- mknod, mkdir, symlink ------------------------------------------------------------------- */

/* The object has a name again: moves its handle back from the directory of open files without a name. */
static int
revive_handle(struct xlator *xl, const struct gfid *gfid, struct posix_obj *kept, struct posix_obj *handle)
{
    int r = posix_obj_rename(kept, handle);
    struct inode *inode = r == 0 ? inode_find(xl->graph->inodes, gfid) : NULL;
    struct posix_inode *ctx = inode ? inode_ctx(inode, xl) : NULL;

    if (ctx)
        atomic_store(&ctx->is_kept, false);
    if (r == 0)
        posix_inode_gone(xl, inode, false);
    inode_unref(inode);
    return r;
}

/* DHT creates a second name for an existing gfid: a hard link (brick 4.2). Returns 0, -ENOENT: there is no
 * such file; -errno. An object without a name keeps its state if it gets no name. */
static int
link_to_gfid(struct xlator *xl, struct making *m)
{
    struct posix *p = posix_of(xl);
    struct posix_entry *e = &m->entry;
    struct stat st;
    POSIX_OBJ(handle);
    POSIX_OBJ(kept);
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(p, &m->gfid);

    posix_obj_gfid(p, &m->gfid, false, &handle);
    int r = posix_obj_stat(&handle, &st);
    bool is_kept = r == -ENOENT;

    if (is_kept) {
        posix_obj_unlinked(p, &m->gfid, &kept);
        r = posix_obj_stat(&kept, &st);
    }
    if (r < 0)
        return r;
    if (S_ISLNK(st.st_mode))
        return -EEXIST;
    r = posix_obj_link(is_kept ? &kept : &handle, &e->obj);
    if (r == 0 && is_kept) {
        r = revive_handle(xl, &m->gfid, &kept, &handle);
        if (r < 0)
            (void)posix_obj_unlink(&e->obj, 0); /* the name without a handle would be healed by a lookup */
    }
    if (r < 0)
        return r;
    posix_gfid2path_set(xl, &handle, &e->parent->gfid, e->name);
    posix_pgfid_count(xl, &handle, &e->parent->gfid, 1);
    return 0;
}

/* If the name is a link file of DHT that leads to another object than the new one, removes it. Returns 0:
 * removed. */
static int
drop_stale_linkto(struct xlator *xl, struct making *m)
{
    struct posix_entry *e = &m->entry;
    struct stat st;
    struct gfid found;
    enum posix_handle_fate fate = POSIX_HANDLE_KEPT;
    int r = posix_entry_look(e, &st, &found);

    if (r < 0)
        return r;
    if (!S_ISREG(st.st_mode) || (st.st_mode & 07777) != LINKTO_MODE || gfid_equal(&found, &m->gfid) ||
        posix_obj_getxattr(&e->obj, POSIX_XATTR_LINKTO, NULL, 0) < 0)
        return -EEXIST;
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(posix_of(xl), &found);
    struct inode *inode = posix_inode_of(xl, NULL, &found);
    if (!gfid_is_null(&found) && st.st_nlink <= 2)
        r = posix_handle_retire(xl, &found, st.st_nlink, inode, &fate);
    if (r == 0)
        r = posix_obj_unlink(&e->obj, 0);
    if (r < 0)
        posix_handle_unretire(xl, &e->obj, &found, inode, fate);
    inode_unref(inode);
    if (r == 0)
        inode_unlink(xl->graph->inodes, e->parent, e->name);
    return r;
}

static int
mknod_once(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    if (is_internal(stk)) {
        int r = link_to_gfid(xl, m);
        if (r != -ENOENT)
            return r;
    }
    int r = posix_obj_mknod(&m->entry.obj, m->mode, (dev_t)stk->call.rdev);
    return r < 0 ? r : build_or_undo(xl, stk, m);
}

static int
make_node(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    int r = mknod_once(xl, stk, m);

    if (r != -EEXIST || !dict_has(stk->call.xdata, DICT_KEY_FORCE_REPLACE))
        return r;
    r = drop_stale_linkto(xl, m);
    if (r == -ENOENT) /* the name is free, so the gfid was taken */
        return -EEXIST;
    return r < 0 ? r : mknod_once(xl, stk, m);
}

/* A directory may take over a gfid from another directory (DHT's heal of a rename does that) if the caller
 * might move that directory, but not from a file. */
static int
make_directory(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    struct posix *p = posix_of(xl);
    struct posix_entry *e = &m->entry;
    struct stat st;
    bool is_dangling;
    POSIX_OBJ(owner);
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(p, &m->gfid);
    int r = posix_obj_find(p, &m->gfid, &owner, &st, &is_dangling);

    if ((r == 0 && !S_ISDIR(st.st_mode)) || (r == -ESTALE && !is_dangling))
        return -EEXIST;
    if (r < 0 && r != -ENOENT && !is_dangling)
        return r;
    bool is_reused = r == 0;
    if (is_reused)
        r = posix_may_take_over(xl, &stk->caller, &m->gfid, &st, &e->parent->gfid);
    if (is_reused && r < 0)
        return r;
    r = posix_obj_mkdir(&e->obj, m->mode & 07777);
    if (r < 0)
        return r;
    if (is_reused)
        log_event(LOG_WARNING, xl, "posix-mkdir-gfid-reused", "gfid %s of another directory now means %s/%s",
                  GFID(&m->gfid), GFID(&e->parent->gfid), e->name);
    return build_or_undo(xl, stk, m);
}

static int
make_symlink(struct xlator *xl, const struct call_stack *stk, struct making *m)
{
    int r = posix_obj_symlink(&m->entry.obj, stk->call.name2);

    return r < 0 ? r : build_or_undo(xl, stk, m);
}

/* Creates the object under the name's lock, and fills its iatt. */
static int
make_entry(struct xlator *xl, struct call_stack *stk, struct making *m,
           int (*make)(struct xlator *, const struct call_stack *, struct making *))
{
    {
        POSIX_LOCKED pthread_mutex_t *lock =
            posix_name_lock(posix_of(xl), &m->entry.parent->gfid, m->entry.name);
        int r = make(xl, stk, m);

        if (r == 0)
            r = m->has_mdata ? made_iatt(m, &stk->reply.stat)
                             : posix_iatt(xl, m->obj, NULL, &stk->reply.stat, NULL);
        if (r < 0)
            return r;
    }
    int r = posix_entry_end(xl, &stk->caller, &m->entry, &stk->reply.post);
    return r < 0 ? r : XL_DONE;
}

xl_verdict
posix_fop_mknod(struct xlator *xl, struct call_stack *stk)
{
    MAKING(m);
    mode_t type = stk->call.mode & S_IFMT;
    int r = making_begin(xl, stk, EEXIST, &m);

    if (r < 0)
        return r;
    if (type == 0)
        type = S_IFREG;
    if (!S_ISREG(type) && !S_ISFIFO(type) && !S_ISSOCK(type) && !S_ISBLK(type) && !S_ISCHR(type))
        return -EINVAL;
    m.mode = mode_for(posix_conf(xl), type, stk->call.mode);
    return make_entry(xl, stk, &m, make_node);
}

xl_verdict
posix_fop_mkdir(struct xlator *xl, struct call_stack *stk)
{
    MAKING(m);
    int r = making_begin(xl, stk, EPERM, &m);

    if (r == 0)
        r = parent_layout_check(stk, &m.entry);
    if (r == -EIO)
        return answer_layout_changed(stk);
    if (r < 0)
        return r;
    m.mode = mode_for(posix_conf(xl), S_IFDIR, stk->call.mode);
    return make_entry(xl, stk, &m, make_directory);
}

xl_verdict
posix_fop_symlink(struct xlator *xl, struct call_stack *stk)
{
    MAKING(m);
    int r = making_begin(xl, stk, EEXIST, &m);

    if (r < 0)
        return r;
    m.mode = S_IFLNK | 0777;
    return make_entry(xl, stk, &m, make_symlink);
}

/* ---- link ------------------------------------------------------------------------------------ */

/* Under the object's lock, because a concurrent unlink must not take the handle for the last link. */
static int
link_object(struct xlator *xl, struct call_stack *stk, struct making *m, struct posix_obj *source)
{
    struct posix_entry *e = &m->entry;
    int64_t max = posix_conf(xl)->max_hardlinks;
    struct stat st;
    POSIX_LOCKED pthread_mutex_t *lock = posix_object_lock(posix_of(xl), &m->gfid);
    int r = posix_obj_stat(source, &st);

    if (r < 0)
        return r;
    if (max > 0 && (int64_t)st.st_nlink - 1 >= max)
        return -EMLINK;
    r = posix_obj_link(source, &e->obj);
    if (r < 0)
        return r;
    if (st.st_nlink < GFID2PATH_LINKS_MAX)
        posix_gfid2path_set(xl, source, &e->parent->gfid, e->name);
    posix_pgfid_count(xl, source, &e->parent->gfid, 1);
    return posix_mdata_update(xl, &stk->caller, source, stk->call.loc.inode, NULL);
}

xl_verdict
posix_fop_link(struct xlator *xl, struct call_stack *stk)
{
    MAKING(m);
    struct inode *inode = stk->call.loc.inode;
    POSIX_OBJ(source);

    if (S_ISDIR(inode->type))
        return -EPERM;
    int r = posix_reserve_check(xl, stk);
    if (r == 0)
        r = posix_entry_begin(xl, &stk->call.loc2, EEXIST, &m.entry, &stk->reply.pre);
    if (r == 0)
        r = posix_path_check(xl, m.entry.parent, m.entry.name);
    if (r < 0)
        return r;
    m.gfid = inode->gfid;
    /* An object without a name gets no new one, even if an fd is open on it. */
    r = posix_inode_is_gone(xl, inode) ? -ENOENT : posix_obj_of_loc(xl, &stk->call.loc, &source);
    if (r < 0)
        return r;
    {
        POSIX_LOCKED pthread_mutex_t *lock =
            posix_name_lock(posix_of(xl), &m.entry.parent->gfid, m.entry.name);

        r = link_object(xl, stk, &m, &source);
        if (r == -EEXIST && dict_has(stk->call.xdata, DICT_KEY_FORCE_REPLACE)) {
            r = drop_stale_linkto(xl, &m);
            if (r == 0)
                r = link_object(xl, stk, &m, &source);
        }
    }
    if (r == 0)
        r = posix_iatt(xl, &source, inode, &stk->reply.stat, NULL);
    if (r == 0)
        r = posix_entry_end(xl, &stk->caller, &m.entry, &stk->reply.post);
    return r < 0 ? r : XL_DONE;
}
