/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The index's directories as clients see them (spec: brick 7.5, 7.6).
 *
 * getxattr returns the gfids of the three directories. A LOOKUP of a name in them finds the entry, under a
 * gfid made for that reply. Only a directory of entry-changes can be used under that gfid: the inode's
 * context stores the directory of the changes, and the inode is forgotten like any other inode. All other
 * operations on a virtual directory fail with ENOENT.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/graph.h"
#include "log/log.h"
#include "xlators/features/index/index-internal.h"

static enum index_virtual
virtual_of_gfid(const struct xlator *xl, const struct gfid *gfid)
{
    const struct index_private *priv = index_private(xl);

    if (memcmp(gfid, &priv->virtual_gfid, GFID_BYTES - 1) != 0 || gfid->b[GFID_BYTES - 1] >= INDEX_TYPES)
        return VIRTUAL_NO;
    return (enum index_virtual)(VIRTUAL_XATTROP + gfid->b[GFID_BYTES - 1]);
}

static struct gfid
gfid_of_type(const struct xlator *xl, enum index_type type)
{
    struct gfid gfid = index_private(xl)->virtual_gfid;

    gfid.b[GFID_BYTES - 1] = (uint8_t)type;
    return gfid;
}

enum index_virtual
index_virtual_of(const struct xlator *xl, struct inode *inode)
{
    if (!inode)
        return VIRTUAL_NO;
    const struct index_ctx *ctx = inode_ctx(inode, xl);
    return ctx && ctx->is_subdir ? VIRTUAL_SUBDIR : virtual_of_gfid(xl, &inode->gfid);
}

void
index_virtual_path(struct xlator *xl, struct inode *inode, enum index_virtual v, char path[INDEX_PATH_MAX])
{
    if (v == VIRTUAL_SUBDIR) {
        const struct index_ctx *ctx = inode_ctx(inode, xl);

        snprintf(path, INDEX_PATH_MAX, "%s/%s", index_dir_names[INDEX_ENTRY_CHANGES], GFID(&ctx->subdir_of));
    } else {
        snprintf(path, INDEX_PATH_MAX, "%s", index_dir_names[v - VIRTUAL_XATTROP]);
    }
}

static void
fill_iatt(struct iatt *out, const struct gfid *gfid, uint32_t mode)
{
    *out = (struct iatt){.gfid = *gfid,
                         .flags = IATT_FLAGS_VIRTUAL,
                         .ino = UINT64_MAX,
                         .nlink = S_ISDIR(mode) ? 2 : 1,
                         .mode = mode,
                         .blksize = 4096};
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* A successful LOOKUP always has a dict, so this one has too. */
static int
fill_xdata(struct call_stack *stk, enum index_virtual v)
{
    struct dict *xdata = reply_xdata(stk);

    if (!xdata)
        return -ENOMEM;
    if (!dict_has(stk->call.xdata, DICT_KEY_INDEX_TYPE_REQ))
        return 0;
    return dict_set_uint(xdata, DICT_KEY_INDEX_TYPE_RSP, v == VIRTUAL_ENTRY_CHANGES ? 2 : 1);
}

/* Links the inode of entry-changes/<gfid>, with a context that marks it as a subdirectory. */
static int
link_subdir(struct xlator *xl, struct inode *parent, const char *name, const struct gfid *dir,
            const struct iatt *iatt)
{
    struct inode *inode = inode_link(xl->graph->inodes, parent, name, iatt);
    struct index_ctx *ctx = inode ? index_ctx_new(xl) : NULL;

    if (!ctx) {
        inode_unref(inode);
        return -ENOMEM;
    }
    ctx->is_subdir = true;
    ctx->subdir_of = *dir;
    if (inode_ctx_install(inode, xl, ctx) != ctx)
        index_ctx_free(ctx);
    inode_unref(inode);
    return 0;
}

/* Finds entry-changes/<dir>, and links a new inode for it if necessary. */
static int
lookup_subdir(struct xlator *xl, struct call_stack *stk, const char *name)
{
    struct inode *parent = stk->call.loc.parent, *known = inode_find_child(parent->table, parent, name);
    struct gfid dir, gfid;
    int rc = 0;

    if (gfid_parse(name, strlen(name), &dir)) {
        inode_unref(known);
        return -ENOENT;
    }
    if (known && index_virtual_of(xl, known) == VIRTUAL_SUBDIR) {
        fill_iatt(&stk->reply.stat, &known->gfid, S_IFDIR | 0600);
    } else {
        gfid_random(&gfid);
        fill_iatt(&stk->reply.stat, &gfid, S_IFDIR | 0600);
        rc = link_subdir(xl, parent, name, &dir, &stk->reply.stat);
    }
    inode_unref(known);
    return rc;
}

static xl_verdict
lookup_in_virtual(struct xlator *xl, struct call_stack *stk, enum index_virtual v)
{
    const struct loc *loc = &stk->call.loc;
    char dir[INDEX_PATH_MAX], path[2 * INDEX_PATH_MAX];
    struct gfid gfid;
    struct stat st;
    int rc = 0;

    index_virtual_path(xl, loc->parent, v, dir);
    snprintf(path, sizeof path, "%s/%s", dir, loc->name);
    if (fstatat(index_private(xl)->base_fd, path, &st, AT_SYMLINK_NOFOLLOW))
        return -errno;
    if (S_ISDIR(st.st_mode)) {
        rc = lookup_subdir(xl, stk, loc->name);
    } else {
        gfid_random(&gfid);
        fill_iatt(&stk->reply.stat, &gfid, S_IFREG);
    }
    fill_iatt(&stk->reply.post, &loc->parent->gfid, S_IFDIR | 0600);
    stk->reply.op_ret = 0;
    if (rc == 0 && !reply_xdata(stk))
        rc = -ENOMEM;
    return rc ? rc : XL_DONE;
}

/* Looks up a virtual directory itself. */
static xl_verdict
lookup_virtual(struct xlator *xl, struct call_stack *stk, const struct gfid *gfid, enum index_virtual v,
               struct inode *inode)
{
    char path[INDEX_PATH_MAX];
    struct stat st;

    if (v == VIRTUAL_SUBDIR)
        index_virtual_path(xl, inode, v, path);
    else
        snprintf(path, sizeof path, "%s", index_dir_names[v - VIRTUAL_XATTROP]);
    fill_iatt(&stk->reply.stat, gfid, S_IFDIR | 0600);
    if (fstatat(index_private(xl)->base_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        iatt_from_stat(&stk->reply.stat, &st, gfid);
        stk->reply.stat.flags = IATT_FLAGS_VIRTUAL;
        stk->reply.stat.ino = UINT64_MAX;
    } else if (v == VIRTUAL_SUBDIR) {
        /* a subdirectory can be removed. Of the three others, one that was never created counts as empty */
        return -errno;
    }
    stk->reply.op_ret = 0;
    int rc = fill_xdata(stk, v);
    return rc ? rc : XL_DONE;
}

/* Reports whether any object needs healing, also in the reply for a name that does not exist. */
static xl_verdict
link_count_cb(struct frame *f, struct call_stack *stk)
{
    struct dict *xdata = reply_xdata(stk);
    bool has_any = atomic_load(&index_private(f->xl)->counts[INDEX_XATTROP]) > 0;

    /* Without the count the client only inspects more objects, so the call does not fail. */
    if (xdata)
        (void)dict_set_int(xdata, DICT_KEY_LINK_COUNT, has_any);
    return XL_PASS;
}

/* Prepares a LOOKUP or FSTAT of an object that is not virtual. */
static xl_verdict
prepare_answers(struct xlator *xl, struct call_stack *stk)
{
    const char *asked = dict_get_str(stk->call.xdata, DICT_KEY_LINK_COUNT);

    if (asked && strcmp(asked, "glusterfs.xattrop_index_count") == 0 && !frame_push(stk, xl, link_count_cb))
        return -ENOMEM;
    if (stk->call.fop != FOP_lookup)
        return XL_PASS;
    xl_verdict verdict = index_dead_lookup(xl, stk);

    return verdict == XL_PASS ? index_names_lookup(xl, stk) : verdict;
}

xl_verdict
index_lookup(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    enum index_virtual v;

    if (c->loc.parent) {
        v = index_virtual_of(xl, c->loc.parent);
        return v == VIRTUAL_NO ? prepare_answers(xl, stk) : lookup_in_virtual(xl, stk, v);
    }
    const struct gfid *gfid = c->loc.inode ? &c->loc.inode->gfid : &c->gfid;
    v = c->loc.inode ? index_virtual_of(xl, c->loc.inode) : virtual_of_gfid(xl, gfid);
    return v == VIRTUAL_NO ? prepare_answers(xl, stk) : lookup_virtual(xl, stk, gfid, v, c->loc.inode);
}

/* ---- other fops ------------------------------------------------------------------------------ */

/* Catches calls about a virtual directory that have no function here, because they must not reach storage. */
xl_verdict
index_any(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    bool is_about = index_virtual_of(xl, c->loc.inode) || index_virtual_of(xl, c->loc.parent) ||
                    index_virtual_of(xl, c->loc2.parent) || (c->fd && index_virtual_of(xl, c->fd->inode));

    if (!is_about)
        return XL_PASS;
    switch (c->fop) {
    case FOP_flush:
    case FOP_fsyncdir:
    case FOP_release:
    case FOP_releasedir:
        stk->reply.op_ret = 0;
        return XL_DONE;
    case FOP_readdirp:
        return -EINVAL; /* the reader falls back to READDIR */
    default:
        return -ENOENT;
    }
}

xl_verdict
index_fstat(struct xlator *xl, struct call_stack *stk)
{
    xl_verdict verdict = index_any(xl, stk);

    return verdict == XL_PASS ? prepare_answers(xl, stk) : verdict;
}

bool
index_may_use(const struct caller *c)
{
    return c->uid == 0 || caller_is_internal(c);
}

xl_verdict
index_opendir(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;

    if (index_virtual_of(xl, inode) == VIRTUAL_NO)
        return index_names_opendir(xl, stk);
    if (!index_may_use(&stk->caller))
        return -EACCES;
    stk->reply.fd = fd_new(inode, stk->client, O_RDONLY | O_DIRECTORY, true);
    if (!stk->reply.fd)
        return -ENOMEM;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

/* ---- removal of entries ---------------------------------------------------------------------- */

/* Removes an entry. If the object is in memory, resets the state in its context, which the caller must have
 * entered. */
static int
index_forget_entry(struct xlator *xl, struct inode *object, enum index_type type, const struct gfid *gfid)
{
    int rc = index_entry_remove(xl, type, gfid);

    if (object)
        ((struct index_ctx *)inode_ctx(object, xl))->state[type] = INDEX_UNKNOWN;
    return rc;
}

static xl_verdict
reply_removed(struct call_stack *stk, int rc)
{
    if (rc)
        return rc;
    fill_iatt(&stk->reply.pre, &stk->call.loc.parent->gfid, S_IFDIR | 0600);
    stk->reply.post = stk->reply.pre;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

/* unlink(virtual xattrop or dirty, <gfid>). The caller has entered the context of the object's inode, if
 * there is one. */
static xl_verdict
unlink_go(struct xlator *xl, struct call_stack *stk)
{
    enum index_virtual v = index_virtual_of(xl, stk->call.loc.parent);
    enum index_type type = (enum index_type)(v - VIRTUAL_XATTROP);
    struct inode *object = stk->call.loc2.inode;
    struct gfid gfid;

    gfid_parse(stk->call.loc.name, strlen(stk->call.loc.name), &gfid);
    int rc = index_forget_entry(xl, object, type, &gfid);
    if (object)
        index_leave(inode_ctx(object, xl));
    return reply_removed(stk, rc);
}

static xl_verdict
unlink_entry(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.loc.name;
    struct gfid gfid;

    if (gfid_parse(name, strlen(name), &gfid))
        return -ENOENT;
    struct inode *object = inode_find(xl->graph->inodes, &gfid);
    struct index_ctx *ctx = object ? index_ctx_get(xl, object) : NULL;
    if (object && !ctx) {
        inode_unref(object);
        return -ENOMEM;
    }
    stk->call.loc2.inode = object; /* UNLINK has no second object, so the call can hold this reference */
    xl_verdict verdict = ctx ? index_enter(xl, ctx, stk, unlink_go) : XL_PASS;
    return verdict == XL_PASS ? unlink_go(xl, stk) : verdict;
}

/* Removes the changes recorded for a folder that RMDIR, or a RENAME over it, has removed. A healer that makes
 * the folder anew finds no counter, and leaves these names for ever. A brick that dies before this step
 * leaves them, too: they cost a comparison of names when the folder is healed next. */
static xl_verdict
folder_removed_cb(struct frame *f, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    const struct gfid *gfid = c->fop == FOP_rename ? &c->loc2.inode->gfid : &c->loc.inode->gfid;
    int rc = stk->reply.op_ret < 0 ? 0 : index_changes_forget(f->xl, gfid);

    if (rc)
        log_event(LOG_WARNING, f->xl, "index-names-stay", "the changes of the removed folder %s stay: %s",
                  GFID(gfid), strerror(-rc));
    return XL_PASS;
}

xl_verdict
index_folder_removal(struct xlator *xl, struct call_stack *stk, const struct inode *folder)
{
    if (!folder || inode_type(folder) != S_IFDIR)
        return XL_PASS;
    return frame_push(stk, xl, folder_removed_cb) ? XL_PASS : -ENOMEM;
}

xl_verdict
index_unlink(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    enum index_virtual v = index_virtual_of(xl, c->loc.parent);
    char dir[INDEX_PATH_MAX], path[2 * INDEX_PATH_MAX];
    bool is_rmdir = c->fop == FOP_rmdir;
    struct gfid gfid;

    if (v == VIRTUAL_NO) {
        xl_verdict verdict = index_any(xl, stk);

        if (verdict != XL_PASS)
            return verdict;
        return is_rmdir ? index_folder_removal(xl, stk, c->loc.inode) : index_names_unlink(xl, stk);
    }
    if (!index_may_use(&stk->caller))
        return -EACCES;
    if (!is_rmdir && (v == VIRTUAL_XATTROP || v == VIRTUAL_DIRTY))
        return unlink_entry(xl, stk);
    index_virtual_path(xl, c->loc.parent, v, dir);
    snprintf(path, sizeof path, "%s/%s", dir, c->loc.name);
    /* Stock removes the contents with or without the flag for it, and its reader relies on that. */
    if (is_rmdir && v == VIRTUAL_ENTRY_CHANGES && !gfid_parse(c->loc.name, strlen(c->loc.name), &gfid))
        return reply_removed(stk, index_changes_purge(xl, c->loc.name));
    return reply_removed(stk, unlinkat(index_private(xl)->base_fd, path, is_rmdir ? AT_REMOVEDIR : 0) ? -errno
                                                                                                      : 0);
}

/* ---- getxattr -------------------------------------------------------------------------------- */

static xl_verdict
get_gfid(struct xlator *xl, struct call_stack *stk, enum dict_key key, enum index_type type)
{
    struct gfid gfid = gfid_of_type(xl, type);
    struct dict *dict = reply_dict(stk);

    if (!dict || dict_set_bytes(dict, key, &gfid, sizeof gfid))
        return -ENOMEM;
    stk->reply.op_ret = sizeof gfid;
    return XL_DONE;
}

static xl_verdict
get_count(struct xlator *xl, struct call_stack *stk, enum dict_key key, enum index_type type)
{
    int64_t n = index_count(xl, index_dir_names[type]);
    struct dict *dict = n < 0 ? NULL : reply_dict(stk);

    if (n < 0)
        return (int)n;
    if (!dict || dict_set_uint(dict, key, (uint64_t)n))
        return -ENOMEM;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

xl_verdict
index_getxattr(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.name;
    enum dict_key key = name ? dict_key_find(name, strlen(name)) : DICT_KEY_UNKNOWN;

    switch (key) {
    case DICT_KEY_XATTROP_INDEX_GFID:
        return get_gfid(xl, stk, key, INDEX_XATTROP);
    case DICT_KEY_XATTROP_DIRTY_GFID:
        return get_gfid(xl, stk, key, INDEX_DIRTY);
    case DICT_KEY_XATTROP_ENTRY_CHANGES_GFID:
        return get_gfid(xl, stk, key, INDEX_ENTRY_CHANGES);
    case DICT_KEY_XATTROP_INDEX_COUNT:
        return get_count(xl, stk, key, INDEX_XATTROP);
    case DICT_KEY_XATTROP_DIRTY_COUNT:
        return get_count(xl, stk, key, INDEX_DIRTY);
    case DICT_KEY_NAME_NOTES:
        return index_names_list(xl, stk);
    case DICT_KEY_DEAD_CHANGES:
        return index_dead_list(xl, stk);
    default:
        return index_any(xl, stk);
    }
}
