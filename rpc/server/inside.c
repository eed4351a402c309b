/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Takes fops from clients of this process as calls (rpc/transport/fop-path.h). The request is the same as if
 * the record had come by the connection: it has the connection's session and bounds, the caller of the
 * credential, and a copy of the arguments. The program's handler does not see the difference.
 *
 *   call       runs
 *   short      at once, in the thread of the client: nothing is switched or woken
 *   long       on another worker, because it waits for the disk (FSYNC, synchronous and large writes): so the
 *              calls of one fan-out, and the next requests of the mount, do not wait for each other
 *   release    on this worker after its present work, because the client gives up a file in the middle of its
 *              own calls
 *
 * A short call that gets stuck in a dead disk holds only its own worker: the work behind the call (the next
 * requests of the mount, posted jobs) goes to another worker after a tick of the watchdog
 * (event/worker.h). */
#include <errno.h>
#include <fcntl.h>

#include "base/ticks.h"
#include "rpc/server/rpc-server-internal.h"
#include "rpc/transport/fop-path.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"

#define LARGE_WRITE (256u << 10)

void
inside_answer(struct rpc_request *req, int err)
{
    fop_path_answer(req->inside, req->xid, err, &req->stk.reply);
    rpc_request_drop(req);
}

const struct rpc_program *
fop_program(const struct rpc_server *s)
{
    const struct rpc_program *const *p = s->programs;

    while (*p && ((*p)->number != FOP_PROGRAM || (*p)->version != FOP_PROGRAM_VERSION))
        p++;
    return *p;
}

/* ---- copying the call ------------------------------------------------------------------------ */

static int
inside_copy_caller(struct rpc_request *req, const struct fop_message *m)
{
    const char *cred = arena_dup(&req->stk.arena, m->cred, m->cred_bytes);

    if (!cred)
        return -ENOMEM;
    req->cred_flavor = m->cred_flavor;
    req->cred_bytes = m->cred_bytes;
    req->cred = cred;
    return cred_decode(m->cred_flavor, cred, m->cred_bytes, &req->stk.caller, &req->stk.arena) ? -EINVAL : 0;
}

/* Takes over the payload's reference on success. */
static int
inside_copy(struct rpc_request *req, const struct fop_message *m)
{
    struct call_stack *stk = &req->stk;
    int err = inside_copy_caller(req, m);

    err = err ? err : fop_copy_call(m->call->fop, m->call, &stk->call, &stk->arena);
    if (err || !m->payload)
        return err;
    for (int i = 0; i < m->iov_count; i++)
        stk->call.payload[i] = m->iov[i];
    stk->call.payload_count = m->iov_count;
    stk->call.payload_iobuf = m->payload;
    return 0;
}

static int
inside_begin(struct fop_path *p, struct fop_message *m)
{
    const struct rpc_program *program = fop_program(p->server);
    size_t bytes = RPC_AUTH_BYTES_MAX + fop_call_size(m->call->fop, m->call);
    struct record r;
    int err = m->call->fop == FOP_null         ? -EAGAIN /* its handler answers by bytes */
              : bytes > TRANSPORT_RECORD_MAX ? -EMSGSIZE
                                             : conn_enter_call(p->conn, bytes, &r);

    if (err)
        return err;
    struct rpc_request *req = request_new(p->server, p->conn, &r);
    if (!req) {
        record_release(&r);
        conn_leave_call(p->conn);
        return -ENOMEM;
    }
    req->stk.arrived = ticks_now();
    req->inside = fop_path_ref(p);
    req->xid = m->xid;
    req->program = FOP_PROGRAM;
    req->version = FOP_PROGRAM_VERSION;
    req->procedure = m->call->fop;
    req->program_row = program;
    if ((err = inside_copy(req, m))) {
        rpc_request_drop(req);
        conn_leave_call(p->conn);
        return err;
    }
    if (program->waits && program->waits(req->procedure))
        (void)record_waits(&req->record); /* the handler refuses a call that was not counted (bounds.c) */
    m->begun = req;
    return 0;
}

/* ---- running the call ------------------------------------------------------------------------ */

/* The request may be freed when this returns; the caller keeps the connection. */
static void
inside_handle(struct rpc_request *req, struct conn *c)
{
    req->program_row->procedures[req->procedure].handler(req);
    conn_leave_call(c);
}

static void
inside_job(struct worker_job *job)
{
    struct rpc_request *req = caa_container_of(job, struct rpc_request, job);
    struct conn *c = conn_ref(req->conn);

    inside_handle(req, c);
    conn_unref(c);
}

static bool
is_long(const struct fop_call *c)
{
    switch (c->fop) {
    case FOP_fsync:
    case FOP_fsyncdir:
    case FOP_fallocate:
    case FOP_discard:
    case FOP_zerofill:
    case FOP_copy_file_range:
    case FOP_rchecksum:
        return true;
    case FOP_writev:
        return c->flags & (O_SYNC | O_DSYNC) || c->size >= LARGE_WRITE;
    default:
        return false;
    }
}

static int
inside_run(struct fop_path *p, struct fop_message *m, struct conn *conn)
{
    struct rpc_request *req = m->begun;

    (void)conn;
    req->job.run = inside_job;
    if (is_long(&req->stk.call))
        worker_post_any(&req->job);
    else if (req->procedure == FOP_release || req->procedure == FOP_releasedir)
        worker_post(&req->job);
    else
        inside_handle(req, p->conn); /* the sender keeps the path */
    return 0;
}

static void
inside_drop(struct fop_path *p, struct fop_message *m)
{
    struct rpc_request *req = m->begun;
    struct conn *c = p->conn;

    rpc_request_drop(req);
    conn_leave_call(c);
}

static const struct fop_path_ops inside_ops = {
    .begin = inside_begin, .run = inside_run, .drop = inside_drop};

bool
inside_take_path(struct conn *c, void *server, const struct gfid *token)
{
    struct fop_path *p = conn_is_to_self(c) ? fop_path_take(token) : NULL;

    if (!p)
        return false;
    fop_path_open(p, &inside_ops, server, c);
    fop_path_unref(p);
    return true;
}

bool
rpc_inside_accept(struct rpc_request *login, const struct gfid *token)
{
    return inside_take_path(login->conn, login->server, token);
}
