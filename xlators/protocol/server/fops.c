/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fops: receives and answers file operations: program 1298437 version 400 (spec: wire 6).
 *
 *   server_fop       decodes the arguments, squashes the caller, translates the subdirectory; resolve.c winds
 *                    the call into the brick
 *   server_fop_done  handles the brick's answer: updates the inode table, numbers an opened fd, replies
 */
#include <errno.h>
#include <string.h>

#include "base/probe.h"
#include "rpc/xdr/fop-codec.h"
#include "xlators/protocol/server/server-internal.h"

/* ---- out ------------------------------------------------------------------------------------- */

static void
fop_reply_error(struct fop_reply *reply, int err)
{
    reply->op_ret = -1;
    reply->op_errno = err;
}

/* Updates the inode table after a fop that has created or removed names. */
static void
table_learn_names(struct rpc_request *req)
{
    struct call_stack *stk = &req->stk;
    const struct fop_call *call = &stk->call;
    const struct fop_reply *reply = &stk->reply;
    struct inode_table *t = stk->client->graph->inodes;

    switch (call->fop) {
    case FOP_lookup: /* the object may have no gfid */
    case FOP_create:
    case FOP_mknod:
    case FOP_mkdir:
    case FOP_symlink:
    case FOP_put:
        if (!gfid_is_null(&reply->stat.gfid))
            inode_unref(inode_link_epoch(t, call->loc.parent, call->loc.name, &reply->stat,
                                         server_request_of(req)->name_epoch));
        break;
    case FOP_link:
        if (!gfid_is_null(&reply->stat.gfid))
            inode_unref(inode_link_epoch(t, call->loc2.parent, call->loc2.name, &reply->stat,
                                         server_request_of(req)->name_epoch));
        break;
    case FOP_unlink:
    case FOP_rmdir:
        inode_unlink(t, call->loc.parent, call->loc.name);
        break;
    case FOP_rename:
        if (gfid_is_null(&reply->stat.gfid) || gfid_equal(&reply->stat.gfid, &call->loc.inode->gfid)) {
            inode_rename(t, call->loc.parent, call->loc.name, call->loc2.parent, call->loc2.name,
                         call->loc.inode);
        } else { /* the name meant another object on the disk than in the table */
            inode_unlink(t, call->loc.parent, call->loc.name);
            inode_unlink(t, call->loc2.parent, call->loc2.name);
        }
        break;
    default:
        break;
    }
}

/* Adds listed entries to the table, because clients use them next, by gfid or to remove them. */
static void
table_learn_entries(struct rpc_request *req)
{
    const struct inode_epochs *epochs = server_request_of(req)->listed;
    struct inode *dir = req->stk.call.loc.inode;

    for (const struct dirent_entry *e = req->stk.reply.entries; e && epochs; e = e->next) {
        bool is_dot = e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]));

        if (!is_dot && !gfid_is_null(&e->iatt.gfid) && (e->iatt.mode & S_IFMT))
            inode_unref(inode_link_listed(dir->table, dir, e->name, &e->iatt, epochs));
    }
}

/* Removes a name that the disk does not have from the table. */
static void
forget_missing(const struct fop_call *call)
{
    const struct loc *loc = &call->loc;

    if (loc->parent && loc->name && loc->inode)
        inode_unlink(loc->parent->table, loc->parent, loc->name);
}

static void
give_fd_number(struct call_stack *stk)
{
    struct fd *fd = stk->reply.fd;

    if (fd)
        fd->pid = stk->caller.pid;
    int64_t number = fd ? fd_table_add(&stk->client->fds, fd_ref(fd)) : -EIO;

    if (number < 0) {
        fd_unref(fd); /* the table's reference; the reply's is dropped with the call */
        fop_reply_error(&stk->reply, (int)-number);
        return;
    }
    stk->reply.fd_nr = number;
}

void
server_fop_done(struct call_stack *stk)
{
    struct rpc_request *req = rpc_request_of(stk);
    const struct fop_call *call = &stk->call;

    if (stk->reply.op_ret < 0 && stk->reply.op_errno == FOP_NAME_CHANGED && resolve_again(req))
        return;
    if (stk->reply.op_ret >= 0) {
        table_learn_names(req);
        if (call->fop == FOP_open || call->fop == FOP_create || call->fop == FOP_opendir)
            give_fd_number(stk);
        else if (call->fop == FOP_readdirp)
            table_learn_entries(req);
    } else if (stk->reply.op_errno == ENOENT) {
        forget_missing(call);
    }
    PROBE5(fop_done, call->fop, stk, stk->client, stk->reply.op_ret, stk->reply.op_errno);
    if (!gfid_is_null(&stk->client->subdir_gfid))
        subdir_translate_reply(&stk->reply, &stk->client->subdir_gfid);
    rpc_fop_reply(req);
}

/* ---- in -------------------------------------------------------------------------------------- */

/* RELEASE and RELEASEDIR succeed for every number (wire 8.4). */
static void
release_fd(struct rpc_request *req)
{
    fd_unref(fd_table_take(&req->stk.client->fds, req->stk.call.fd_nr));
    server_fop_done(&req->stk);
}

/* A stock client's LOOKUP, the fop with the most keys, has 18 keys and a key for each replica; an XATTROP has
 * a key for each replica and another key. Layers find a key by a linear search. */
#define XDATA_PAIRS_MAX 256

/* True for fops whose xdata is not a list of requested keys but the xattrs of an object, to be stored or
 * removed. An object may have more xattrs than the bound. */
static bool
has_xattrs_in_xdata(enum fop fop)
{
    switch (fop) {
    case FOP_create:
    case FOP_mknod:
    case FOP_mkdir:
    case FOP_symlink:
    case FOP_put:
    case FOP_removexattr:
    case FOP_fremovexattr:
        return true;
    default:
        return false;
    }
}

static bool
has_too_many_keys(const struct fop_call *c)
{
    const struct dict *counters = c->fop == FOP_xattrop || c->fop == FOP_fxattrop ? c->dict : NULL;

    return (c->xdata && c->xdata->count > XDATA_PAIRS_MAX && !has_xattrs_in_xdata(c->fop)) ||
           (counters && counters->count > XDATA_PAIRS_MAX);
}

/* Without memory the listed names are not added to the table. */
static void
note_epochs(struct rpc_request *req)
{
    struct inode_epochs *epochs = arena_alloc(&req->stk.arena, sizeof *epochs);

    if (epochs)
        inode_epochs_take(req->stk.client->graph->inodes, epochs);
    server_request_of(req)->listed = epochs;
}

/* Returns 0 or -errno. */
static int
fop_prepare(struct rpc_request *req)
{
    struct call_stack *stk = &req->stk;
    const struct brick_client *client = stk->client;

    if (has_too_many_keys(&stk->call))
        return -E2BIG;

    if (!gfid_is_null(&client->subdir_gfid))
        subdir_translate_call(&stk->call, &client->subdir_gfid);
    if (stk->call.fop == FOP_readdirp)
        note_epochs(req);
    return squash_caller(xlator_conf(client->graph->top), client, &stk->caller, &stk->arena);
}

static void
fop_fail(struct rpc_request *req, int err)
{
    fop_reply_error(&req->stk.reply, -err);
    server_fop_done(&req->stk);
}

static void
answer_roll(struct rpc_request *req)
{
    int err = roll_answer(&req->stk);

    if (err)
        fop_fail(req, err);
    else
        server_fop_done(&req->stk);
}

/* Continues when the caller's groups are known. */
static void
fop_enter(struct rpc_request *req)
{
    if (req->stk.call.fop == FOP_release || req->stk.call.fop == FOP_releasedir)
        release_fd(req);
    else if (roll_is_asked(&req->stk))
        answer_roll(req);
    else
        resolve_and_wind(req);
}

static void
groups_came(struct rpc_request *req, int err)
{
    struct call_stack *stk = &req->stk;

    if (!err)
        err = squash_groups(xlator_conf(stk->client->graph->top), stk->client, &stk->caller, &stk->arena);
    if (err)
        fop_fail(req, err);
    else
        fop_enter(req);
}

/* Uses this machine's groups of the user, not those of the client's credential. */
static void
look_up_groups(struct rpc_request *req)
{
    struct graph *g = req->stk.client->graph;
    const struct server_conf *conf = xlator_conf(g->top);
    int rc =
        groups_of_caller(server_of(g)->groups, req, (uint64_t)conf->gid_timeout * 1000000000, groups_came);

    if (rc != GROUPS_ASKED)
        groups_came(req, rc);
}

static bool
call_needs_groups(const struct call_stack *stk)
{
    const struct server_conf *conf = xlator_conf(stk->client->graph->top);

    return conf->manage_gids && stk->call.fop != FOP_release && stk->call.fop != FOP_releasedir;
}

static void
server_fop(struct rpc_request *req)
{
    struct call_stack *stk = &req->stk;

    stk->client = session_client(req->conn);
    if (!stk->client) { /* trusted once, but its brick is gone */
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    if (atomic_load_explicit(&stk->client->graph->is_draining, memory_order_relaxed)) {
        conn_close(req->conn);
        rpc_request_drop(req);
        return;
    }
    stk->done = server_fop_done;
    PROBE3(fop_start, req->procedure, stk, stk->client);
    if (!rpc_fop_decode(req))
        return;
    int err = bounds_let_in(req);
    if (err == BOUNDS_POINTLESS) {
        rpc_request_drop(req);
        return;
    }
    if (!err)
        err = fop_prepare(req);
    if (err)
        fop_fail(req, err);
    else if (call_needs_groups(stk))
        look_up_groups(req);
    else
        fop_enter(req);
}

/* Answers fops before the login. Stock answers GARBAGE_ARGS, and nothing to RELEASE. */
static void
server_refuse(struct rpc_request *req)
{
    if (req->procedure == FOP_release)
        rpc_request_drop(req);
    else
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
}

static void
server_null(struct rpc_request *req)
{
    static const char zeros[12];

    rpc_reply(req, zeros, sizeof zeros, NULL, NULL, 0);
}

static const struct rpc_procedure procedures[FOP_COUNT] = {
#define FOP(fop, ...) [FOP_##fop] = {#fop, FOP_##fop == FOP_null ? server_null : server_fop},
#include "stack/fops.def"
#undef FOP
};

const struct rpc_program server_fop_program = {
    .name = "GlusterFS 4.x v1",
    .number = FOP_PROGRAM,
    .version = FOP_PROGRAM_VERSION,
    .procedures = procedures,
    .procedure_count = FOP_COUNT,
    .is_listed = true,
    .needs_login = true,
    .takes_pieces = true,
    .refuse = server_refuse,
    .waits = bounds_waits,
};
