/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/trash: keeps removed files in a folder of the volume, .trashcan (spec: brick 10.9). The layer sits
 * just above storage, which does the keeping (storage/posix/entry/trash.c), because only storage knows, under
 * its locks, whether a name is the last one. This layer attaches the wish to a removal, creates the folder at
 * start, and lets no client create, move or remove the folder, or give its gfid to another object.
 *
 * Files that internal clients remove (heal, rebalance) are kept only with trash-internal-op, in
 * .trashcan/internal_op. A file that is truncated is not kept, as with stock.
 *
 * On disk: .trashcan and internal_op have fixed gfids, by which the layer finds them when trash-dir had
 * another name before. No lock, nothing per object. */
#include <errno.h>
#include <string.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "stack/xlator.h"
#include "xlators/storage/posix/trash-wish.h"

#define INTERNAL_DIR "internal_op"
#define TRASH_PID (-11)
#define DIR_MODE 0755

static const struct gfid trash_gfid = {{[15] = 5}}, internal_gfid = {{[15] = 6}};

struct trash_conf {
    bool is_on, keeps_internal;
    char *dir;
    char *eliminate; /* NULL: none */
    uint64_t size_max;
};

static const struct option trash_options[] = {
    OPT_BOOL(struct trash_conf, is_on, "trash", "off"),
    OPT_BOOL(struct trash_conf, keeps_internal, "trash-internal-op", "off"),
    OPT_STR(struct trash_conf, dir, "trash-dir", ".trashcan"),
    OPT_STR(struct trash_conf, eliminate, "trash-eliminate-path", NULL),
    OPT_SIZE(struct trash_conf, size_max, "trash-max-filesize", "5MB", INT64_MAX),
    OPT_IGNORED("brick-path"), /* storage knows the path */
    OPT_END,
};

static bool
trash_is_active(const void *conf)
{
    return ((const struct trash_conf *)conf)->is_on;
}

/* Checks the option, because a volfile may contain any text: glusterd does not check it. */
static bool
is_dir_name(const char *name)
{
    return *name && strlen(name) <= FOP_NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strcmp(name, ".glusterfs") != 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static char *
arena_copy_text(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = arena_alloc(arena, bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

static xl_verdict
trash_unlink(struct xlator *xl, struct call_stack *stk)
{
    const struct trash_conf *conf = xlator_conf(xl);
    bool is_internal = caller_is_internal(&stk->caller);

    if ((is_internal && !conf->keeps_internal) || !is_dir_name(conf->dir))
        return XL_PASS;
    struct trash_wish *wish = arena_alloc(&stk->arena, sizeof *wish);
    if (!wish)
        return -ENOMEM;
    *wish = (struct trash_wish){
        .dir = arena_copy_text(&stk->arena, conf->dir),
        .inner_dir = is_internal ? INTERNAL_DIR : NULL,
        .eliminate = arena_copy_text(&stk->arena, conf->eliminate ? conf->eliminate : ""),
        .size_max = conf->size_max,
    };
    if (!wish->dir || !wish->eliminate)
        return -ENOMEM;
    stk->call.hint = (struct call_hint){HINT_TRASH, wish};
    return XL_PASS;
}

static bool
is_own_dir(const struct xlator *xl, const struct loc *loc)
{
    const struct trash_conf *conf = xlator_conf(xl);

    if (!loc->parent || !loc->name)
        return false;
    if (gfid_is_root(&loc->parent->gfid))
        return strcmp(loc->name, conf->dir) == 0;
    return gfid_equal(&loc->parent->gfid, &trash_gfid) && strcmp(loc->name, INTERNAL_DIR) == 0;
}

/* No other object may get the gfids by which the folders are found. (LOOKUP gives a gfid to an object that
 * has none.) */
static bool
wants_own_gfid(const struct call_stack *stk)
{
    struct gfid gfid;

    return dict_get_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0 &&
           (gfid_equal(&gfid, &trash_gfid) || gfid_equal(&gfid, &internal_gfid));
}

static xl_verdict
trash_name(struct xlator *xl, struct call_stack *stk)
{
    return is_own_dir(xl, &stk->call.loc) ? -EPERM : XL_PASS;
}

static xl_verdict
trash_make(struct xlator *xl, struct call_stack *stk)
{
    return is_own_dir(xl, &stk->call.loc) || wants_own_gfid(stk) ? -EPERM : XL_PASS;
}

static xl_verdict
trash_lookup(struct xlator *xl, struct call_stack *stk)
{
    if (wants_own_gfid(stk) && !is_own_dir(xl, &stk->call.loc))
        dict_remove(stk->call.xdata, DICT_KEY_GFID_REQ);
    return XL_PASS;
}

static xl_verdict
trash_rename(struct xlator *xl, struct call_stack *stk)
{
    return is_own_dir(xl, &stk->call.loc) || is_own_dir(xl, &stk->call.loc2) ? -EPERM : XL_PASS;
}

/* ---- the folders ----------------------------------------------------------------------------- */

/* An internal call. Storage is the next layer and answers at once. */
struct trash_call {
    int err;
    struct iatt stat;
    char path[2 * FOP_NAME_MAX]; /* result of a getxattr */
};

static void
trash_call_done(struct call_stack *stk)
{
    struct trash_call *own = stk->owner;
    const char *path;

    own->err = stk->reply.op_ret < 0 ? -stk->reply.op_errno : 0;
    own->stat = stk->reply.stat;
    if (!own->err && stk->call.fop == FOP_getxattr) {
        path = stk->reply.dict ? dict_get_str(stk->reply.dict, DICT_KEY_ANCESTRY_PATH) : NULL;
        if (!path || strlen(path) >= sizeof own->path)
            own->err = -ENODATA;
        else
            strcpy(own->path, path);
    }
    call_stack_free(stk);
}

static struct call_stack *
trash_call(struct trash_call *own, enum fop fop)
{
    struct call_stack *stk = call_stack_new(trash_call_done, own);

    own->err = -ENOMEM;
    if (!stk)
        return NULL;
    stk->caller.pid = TRASH_PID;
    stk->call.fop = fop;
    return stk;
}

static int
trash_call_run(struct xlator *xl, struct call_stack *stk, const struct trash_call *own)
{
    call_stack_wind_below(stk, xl);
    return own->err;
}

/* Returns the inode with a reference; NULL: not found. */
static struct inode *
find_by_gfid(struct xlator *xl, const struct gfid *gfid)
{
    struct trash_call own;
    struct call_stack *stk = trash_call(&own, FOP_lookup);

    if (!stk)
        return NULL;
    stk->call.gfid = *gfid;
    return trash_call_run(xl, stk, &own) == 0 ? inode_link(xl->graph->inodes, NULL, NULL, &own.stat) : NULL;
}

static int
find_by_name(struct xlator *xl, struct inode *parent, const char *name, struct inode **found)
{
    struct trash_call own;
    struct call_stack *stk = trash_call(&own, FOP_lookup);

    if (!stk)
        return -ENOMEM;
    stk->call.loc = (struct loc){.parent = inode_ref(parent), .name = name};
    stk->call.name = name;
    stk->call.pargfid = parent->gfid;
    if (trash_call_run(xl, stk, &own) < 0)
        return own.err;
    if (!S_ISDIR(own.stat.mode))
        return -ENOTDIR;
    *found = inode_link(xl->graph->inodes, parent, name, &own.stat);
    return *found ? 0 : -ENOMEM;
}

static int
trash_make_dir(struct xlator *xl, struct inode *parent, const char *name, const struct gfid *gfid)
{
    struct trash_call own;
    struct call_stack *stk = trash_call(&own, FOP_mkdir);

    if (!stk)
        return -ENOMEM;
    stk->call.loc = (struct loc){.parent = inode_ref(parent), .name = name};
    stk->call.name = name;
    stk->call.pargfid = parent->gfid;
    stk->call.mode = DIR_MODE;
    stk->call.xdata = dict_new(&stk->arena);
    if (!stk->call.xdata || dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, gfid) < 0) {
        call_stack_free(stk);
        return -ENOMEM;
    }
    return trash_call_run(xl, stk, &own);
}

/* Gives the folder to root, because a user may have created it before the trash was switched on. */
static int
make_roots(struct xlator *xl, struct inode *dir)
{
    struct trash_call own;
    struct call_stack *stk = trash_call(&own, FOP_stat);

    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(dir);
    if (trash_call_run(xl, stk, &own) < 0 || own.stat.uid == 0)
        return own.err;
    if (!(stk = trash_call(&own, FOP_setattr)))
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(dir);
    stk->call.valid = SETATTR_MODE | SETATTR_UID | SETATTR_GID;
    stk->call.stbuf.mode = DIR_MODE;
    return trash_call_run(xl, stk, &own);
}

/* A directory with the trash's gfid but another name is the trash under its old name: renames it. */
static int
trash_rename_old(struct xlator *xl, struct inode *root, struct inode *was, const char *name)
{
    struct trash_call own;
    struct call_stack *stk = trash_call(&own, FOP_getxattr);

    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(was);
    stk->call.name = "glusterfs.ancestry.path";
    stk->call.has_name = 1;
    if (trash_call_run(xl, stk, &own) < 0)
        return own.err;
    const char *old = own.path + 1;
    if (strcmp(old, name) == 0 || strchr(old, '/'))
        return 0;
    struct trash_call move;
    if (!(stk = trash_call(&move, FOP_rename)))
        return -ENOMEM;
    stk->call.loc = (struct loc){.inode = inode_ref(was), .parent = inode_ref(root), .name = old};
    stk->call.loc2 = (struct loc){.parent = inode_ref(root), .name = name};
    stk->call.pargfid = stk->call.pargfid2 = root->gfid;
    stk->call.name = old;
    stk->call.name2 = name;
    if (trash_call_run(xl, stk, &move) == 0)
        inode_rename(xl->graph->inodes, root, old, root, name, was);
    return move.err == -FOP_NAME_CHANGED ? -EEXIST : move.err; /* the new name is taken */
}

static int
prepare_in(struct xlator *xl, const struct trash_conf *conf, struct inode *root)
{
    struct inode *was = find_by_gfid(xl, &trash_gfid), *dir = NULL;
    int err = was ? trash_rename_old(xl, root, was, conf->dir) : 0;

    inode_unref(was);
    if (err < 0)
        return err;
    err = find_by_name(xl, root, conf->dir, &dir);
    if (err == -ENOENT && !(err = trash_make_dir(xl, root, conf->dir, &trash_gfid)))
        err = find_by_name(xl, root, conf->dir, &dir);
    if (err == 0)
        err = make_roots(xl, dir);
    if (err == 0 && conf->keeps_internal)
        err = trash_make_dir(xl, dir, INTERNAL_DIR, &internal_gfid);
    inode_unref(dir);
    return err == -EEXIST ? 0 : err;
}

/* A failure is only logged, because a brick must serve even without its trash. */
static void
trash_prepare(struct xlator *xl)
{
    const struct trash_conf *conf = xlator_conf(xl);
    struct inode *root = inode_root(xl->graph->inodes);
    int err = -EINVAL;

    if (is_dir_name(conf->dir))
        err = prepare_in(xl, conf, root);
    if (err < 0)
        log_event(LOG_ERROR, xl, "trash-no-folder",
                  "the folder %s cannot be created: %s. Removed files are not kept", conf->dir,
                  strerror(-err));
    inode_unref(root);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
trash_init(struct xlator *xl, struct reason *why)
{
    const struct trash_conf *conf = xlator_conf(xl);

    if (is_dir_name(conf->dir))
        return 0;
    reason_set(why, -EINVAL, "option trash-dir: expected the name of a folder, not \"%s\"", conf->dir);
    return -EINVAL;
}

static int
trash_start(struct xlator *xl)
{
    read_section_begin();
    if (xlator_is_on(xl))
        trash_prepare(xl);
    read_section_end();
    return 0;
}

static void
trash_reconfigured(struct xlator *xl, const void *old)
{
    (void)old;
    read_section_begin();
    if (trash_is_active(xlator_conf(xl)))
        trash_prepare(xl);
    read_section_end();
}

const struct xlator_type features_trash_xlator = {
    .name = "features/trash",
    .conf_size = sizeof(struct trash_conf),
    .options = trash_options,
    .is_active = trash_is_active,
    .init = trash_init,
    .start = trash_start,
    .reconfigured = trash_reconfigured,
    .ops = &(const struct xlator_ops){
        .unlink = trash_unlink,
        .rmdir = trash_name,
        .mkdir = trash_make,
        .create = trash_make,
        .mknod = trash_make,
        .symlink = trash_make,
        .lookup = trash_lookup,
        .rename = trash_rename,
        .link = trash_rename,
    },
};
