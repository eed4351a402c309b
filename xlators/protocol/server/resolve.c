/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* resolve: finds the inodes and fds of the gfids, names and fd numbers on the wire (spec: wire 8, brick 3.2).
 *
 * At most four steps. A step that the tables can answer costs nothing more. Otherwise the step asks the disk
 * by an internal LOOKUP, which a layer may park, and continues when the answer arrives, on the thread that
 * brings it.
 *
 *   step     LOOKUP        by name                by gfid, by fd
 *   FIRST    parent        parent                 the object (-2: then an anonymous fd)
 *   CHILD    (table only)  the entry: from the disk if it must exist
 *   SECOND                 rename: new parent     link: new parent; copy_file_range: second fd
 *   TARGET                 rename: the existing target
 *
 * This file does not check that an entry must not exist, because only the disk can decide that (the table may
 * be out of date).
 *
 * Layers decide by the objects found here (permissions, sticky bit, WORM, locks); storage acts later, under
 * the lock of the name. If the name leads to another object by then, storage does nothing and answers
 * FOP_NAME_CHANGED. resolve_again() then asks the disk and winds the call once more, through all layers. So
 * the object that a CREATE opens and the objects that UNLINK, RMDIR and RENAME remove or move are the objects
 * that the layers have seen.
 */
#include <errno.h>
#include <string.h>

#include "xlators/protocol/server/server-internal.h"

enum step { STEP_FIRST, STEP_CHILD, STEP_SECOND, STEP_TARGET, STEP_WIND };

enum { FOUND = 0, ASKED = 1 }; /* results of a step; or -errno */

#define HIDDEN_DIR ".glusterfs"

static bool
is_lookup_by_name(const struct fop_call *call)
{
    return call->fop == FOP_lookup && call->name && *call->name;
}

static bool
is_by_name(const struct fop_call *call)
{
    return call->fop == FOP_lookup ? is_lookup_by_name(call) : fop_info[call->fop].traits & FOP_BY_NAME;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int
hidden_dir_error(enum fop fop)
{
    switch (fop) {
    case FOP_create:
    case FOP_mknod:
    case FOP_symlink:
    case FOP_link:
        return -EEXIST;
    default:
        return -EPERM;
    }
}

int
resolve_check_name(enum fop fop, const struct inode *parent, const char *name)
{
    if (!name || !*name)
        return -EINVAL;
    if (parent->type && !S_ISDIR(parent->type))
        return -EPERM;
    if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EPERM;
    if (strlen(name) > FOP_NAME_MAX)
        return -ENAMETOOLONG;
    if (gfid_is_root(&parent->gfid) && strcmp(name, HIDDEN_DIR) == 0)
        return hidden_dir_error(fop);
    return 0;
}

/* ---- asking the disk ------------------------------------------------------------------------- */

static void
resolve_fail(struct rpc_request *req, int err)
{
    req->stk.reply.op_ret = -1;
    req->stk.reply.op_errno = -err;
    server_fop_done(&req->stk);
}

/* Where to store the present step's result. */
static struct inode **
result_slot(struct rpc_request *req)
{
    struct fop_call *call = &req->stk.call;

    switch ((enum step)server_request_of(req)->step) {
    case STEP_FIRST:
        return is_by_name(call) ? &call->loc.parent : &call->loc.inode;
    case STEP_CHILD:
        return &call->loc.inode;
    case STEP_SECOND:
        return call->fop == FOP_copy_file_range ? &call->loc2.inode : &call->loc2.parent;
    default:
        return &call->loc2.inode;
    }
}

/* Returns the client's error if the disk has no such object (wire 8.2). 0: the object may be missing. */
static int
missing_error(const struct rpc_request *req, int err)
{
    const struct fop_call *call = &req->stk.call;
    bool is_fd_step = (fop_info[call->fop].traits & FOP_BY_FD) &&
                      (server_request_of(req)->step == STEP_FIRST || call->fop == FOP_copy_file_range);

    if (err != -ENOENT)
        return err;
    if (server_request_of(req)->step == STEP_TARGET ||
        (server_request_of(req)->step == STEP_CHILD && !(fop_info[call->fop].traits & FOP_NAME_MUST)))
        return 0;
    return server_request_of(req)->step == STEP_CHILD || is_fd_step ? -ENOENT : -ESTALE;
}

/* True for a removal by a healer; the stock one renames a folder to its parking place. An object that a dying
 * brick made has no gfid, and must not stay. */
static bool
is_healers_removal(const struct rpc_request *req)
{
    enum fop fop = req->stk.call.fop;

    return (fop == FOP_unlink || fop == FOP_rmdir || fop == FOP_rename) &&
           caller_is_internal(&req->stk.caller) && server_request_of(req)->step == STEP_CHILD;
}

/* True if no client can have written into the object. A folder's contents make its removal fail. */
static bool
are_remains(const struct iatt *stat)
{
    return S_ISDIR(stat->mode) || stat->size == 0;
}

static void
asked_done(struct call_stack *child)
{
    struct rpc_request *req = child->owner;
    const struct fop_reply *r = &child->reply;
    bool has_no_gfid = r->op_ret >= 0 && gfid_is_null(&r->stat.gfid);
    int err = r->op_ret < 0 ? -r->op_errno : has_no_gfid ? -ENOENT : 0;

    if (server_request_of(req)->is_remains && err == -ENOENT)
        err = -ENODATA; /* it may be too young: the healer must try again */
    if (has_no_gfid && is_healers_removal(req) && !server_request_of(req)->is_remains) {
        err = are_remains(&r->stat) ? 0 : -ENODATA;
        server_request_of(req)->is_remains = true;
        server_request_of(req)->is_child_known = false;
    } else if (!err) {
        struct inode *inode =
            inode_link_epoch(req->stk.client->graph->inodes, child->call.loc.parent, child->call.loc.name,
                             &r->stat, server_request_of(req)->name_epoch);

        *result_slot(req) = inode;
        err = inode ? 0 : -ENOMEM;
    } else {
        err = missing_error(req, err);
    }
    call_stack_free(child);
    if (err)
        resolve_fail(req, err);
    else
        resolve_and_wind(req); /* the same step again, which now has its inode or knows that there is none */
}

/* Sets how the LOOKUP treats an object without a gfid. For a CREATE, it gives a file that has lost its
 * gfid the gfid of the client's request. For a healer's removal, the first LOOKUP reports the object, and the
 * second gives it a gfid, because only objects with a gfid can be removed. A brick that dies before the
 * removal leaves an object with a gfid, which the healer removes as any other. */
static int
ask_about_gfid(const struct rpc_request *req, struct call_stack *child)
{
    struct gfid gfid;
    bool is_removal = is_healers_removal(req), gives = true;

    if (is_removal && server_request_of(req)->is_remains)
        gfid_random(&gfid);
    else
        gives = req->stk.call.fop == FOP_create &&
                dict_get_gfid(req->stk.call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0;
    if (!gives && !is_removal)
        return 0;
    child->call.xdata = dict_new(&child->arena);
    if (!child->call.xdata)
        return -ENOMEM;
    return gives ? dict_set_gfid(child->call.xdata, DICT_KEY_GFID_REQ, &gfid)
                 : dict_set_int(child->call.xdata, DICT_KEY_GFIDLESS_LOOKUP, 1);
}

/* Sends an internal LOOKUP. After ASKED the request may be freed. */
static int
resolve_ask(struct rpc_request *req, const struct gfid *gfid, struct inode *parent, const char *name)
{
    struct call_stack *child = call_stack_new(asked_done, req);

    if (!child)
        return -ENOMEM;
    child->client = brick_client_ref(req->stk.client);
    /* io-stats tells healers from users by it */
    child->caller.pid = req->stk.caller.pid < 0 ? req->stk.caller.pid : 0;
    child->call.fop = FOP_lookup;
    if (ask_about_gfid(req, child) < 0) {
        call_stack_free(child);
        return -ENOMEM;
    }
    if (name) {
        child->call.loc.parent = inode_ref(parent);
        child->call.loc.name = child->call.name = name;
        child->call.pargfid = parent->gfid;
        server_request_of(req)->name_epoch = inode_name_epoch(parent->table, parent, name);
    } else {
        child->call.gfid = *gfid;
    }
    call_stack_wind(child, req->stk.client->graph->brick);
    return ASKED;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int
resolve_gfid(struct rpc_request *req, const struct gfid *gfid, struct inode **slot)
{
    if (*slot)
        return FOUND;
    if (gfid_is_null(gfid))
        return -EINVAL;
    *slot = inode_find(req->stk.client->graph->inodes, gfid);
    return *slot ? FOUND : resolve_ask(req, gfid, NULL, NULL);
}

/* Calls on data need the fd of a file, calls on entries the fd of a directory. */
static int
check_fd_kind(enum fop fop, const struct fd *fd)
{
    switch (fop) {
    case FOP_readdir:
    case FOP_readdirp:
    case FOP_fsyncdir:
        return fd->is_dir ? 0 : -ENOTDIR;
    case FOP_readv:
    case FOP_writev:
    case FOP_ftruncate:
    case FOP_fallocate:
    case FOP_discard:
    case FOP_zerofill:
    case FOP_seek:
    case FOP_rchecksum:
    case FOP_copy_file_range:
        return fd->is_dir ? -EISDIR : 0;
    default:
        return 0;
    }
}

static int
resolve_fd(struct rpc_request *req, int64_t number, const struct gfid *gfid, struct fd **fd,
           struct inode **slot)
{
    if (number == FD_ANONYMOUS) {
        int rc = resolve_gfid(req, gfid, slot);

        if (rc != FOUND)
            return rc;
        *fd = fd_new_anonymous(*slot, req->stk.client);
        if (!*fd)
            return -ENOMEM;
    } else {
        *fd = fd_table_get(&req->stk.client->fds, number);
        if (!*fd)
            return -EBADF;
        *slot = inode_ref((*fd)->inode);
    }
    return check_fd_kind(req->stk.call.fop, *fd);
}

static int
step_first(struct rpc_request *req)
{
    struct fop_call *call = &req->stk.call;
    unsigned traits = fop_info[call->fop].traits;
    int rc;

    if (traits & FOP_BY_FD)
        return resolve_fd(req, call->fd_nr, &call->gfid, &call->fd, &call->loc.inode);
    /* libgfapi looks up "." in a folder if that is its path (fio does). It means the folder itself. */
    if (is_lookup_by_name(call) && strcmp(call->name, ".") == 0) {
        call->gfid = call->pargfid;
        call->name = "";
    }
    if (is_by_name(call)) {
        rc = resolve_gfid(req, &call->pargfid, &call->loc.parent);
        if (rc != FOUND)
            return rc;
        call->loc.name = call->name;
        rc = resolve_check_name(call->fop, call->loc.parent, call->name);
        server_request_of(req)->name_epoch =
            rc ? 0 : inode_name_epoch(call->loc.parent->table, call->loc.parent, call->name);
        return rc;
    }
    if (call->fop == FOP_lookup) { /* storage answers a LOOKUP, not the table */
        if (gfid_is_null(&call->gfid))
            return -EINVAL;
        call->name = NULL;
        call->loc.inode = inode_find(req->stk.client->graph->inodes, &call->gfid);
        return FOUND;
    }
    return traits & FOP_BY_GFID && call->fop != FOP_icreate ? resolve_gfid(req, &call->gfid, &call->loc.inode)
                                                            : FOUND;
}

static int
step_child(struct rpc_request *req)
{
    struct server_request *own = server_request_of(req);
    struct fop_call *call = &req->stk.call;
    struct loc *loc = &call->loc;

    if (!is_by_name(call) || loc->inode || own->is_child_known ||
        (call->fop == FOP_create && fop_create_is_exclusive(call)))
        return FOUND;
    if (own->rounds == 0)
        loc->inode = inode_find_child(loc->parent->table, loc->parent, loc->name);
    if (loc->inode || (own->rounds == 0 && !(fop_info[call->fop].traits & FOP_NAME_MUST)))
        return FOUND;
    own->is_child_known = true;
    return resolve_ask(req, NULL, loc->parent, loc->name);
}

static int
step_second(struct rpc_request *req)
{
    struct fop_call *call = &req->stk.call;

    if (!(fop_info[call->fop].traits & FOP_NAME2))
        return FOUND;
    if (call->fop == FOP_copy_file_range)
        return resolve_fd(req, call->fd2_nr, &call->gfid2, &call->fd2, &call->loc2.inode);
    int rc = resolve_gfid(req, &call->pargfid2, &call->loc2.parent);
    if (rc != FOUND)
        return rc;
    call->loc2.name = call->name2;
    return resolve_check_name(call->fop, call->loc2.parent, call->name2);
}

/* Rename's target may exist or not. The locks need its inode. */
static int
step_target(struct rpc_request *req)
{
    struct loc *loc = &req->stk.call.loc2;

    if (!loc->name)
        return FOUND;
    if (!loc->inode && !server_request_of(req)->is_target_known && server_request_of(req)->rounds == 0)
        loc->inode = inode_find_child(loc->parent->table, loc->parent, loc->name);
    if (req->stk.call.fop == FOP_link) {
        server_request_of(req)->name_epoch = inode_name_epoch(loc->parent->table, loc->parent, loc->name);
        return FOUND;
    }
    if (loc->inode || server_request_of(req)->is_target_known)
        return FOUND;
    server_request_of(req)->is_target_known = true;
    return resolve_ask(req, NULL, loc->parent, loc->name);
}

/* Runs a step. FOUND, ASKED or -errno. */
static int
step_run(struct rpc_request *req, enum step step)
{
    switch (step) {
    case STEP_FIRST:
        return step_first(req);
    case STEP_CHILD:
        return step_child(req);
    case STEP_SECOND:
        return step_second(req);
    default:
        return step_target(req);
    }
}

/* A call that names one object by gfid or fd needs the first step only. */
static bool
is_first_step_enough(const struct fop_call *call)
{
    return !is_by_name(call) && !(fop_info[call->fop].traits & FOP_NAME2);
}

void
resolve_and_wind(struct rpc_request *req)
{
    struct server_request *own = server_request_of(req);

    while (own->step < STEP_WIND) {
        int rc = step_run(req, own->step);

        if (rc == ASKED)
            return;
        if (rc < 0) {
            resolve_fail(req, rc);
            return;
        }
        own->step++;
        if (own->step == STEP_CHILD && is_first_step_enough(&req->stk.call))
            own->step = STEP_WIND;
    }
    call_stack_wind(&req->stk, req->stk.client->graph->brick);
}

/* Bound on the rounds. Each round needs another client that changes the name at that very moment. */
#define ROUNDS_MAX 16

bool
resolve_again(struct rpc_request *req)
{
    struct server_request *own = server_request_of(req);
    struct fop_call *call = &req->stk.call;

    if (own->rounds == ROUNDS_MAX) {
        req->stk.reply.op_errno = ESTALE;
        return false;
    }
    own->rounds++;
    own->step = STEP_FIRST;
    own->is_child_known = own->is_target_known = false;
    inode_unref(call->loc.inode);
    inode_unref(call->loc2.inode);
    call->loc.inode = call->loc2.inode = NULL;
    call_stack_again(&req->stk);
    resolve_and_wind(req);
    return true;
}
