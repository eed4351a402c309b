/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs the calls of one record one after another (sequence-program.h).
 *
 * Each call is a request of its own with the connection's session, a credential, and the handler of the same
 * call in a record of its own. So no rule of the brick depends on the way that a call comes: login,
 * squashing, permissions, bounds, places in io-threads. From the beginning each call counts among the
 * connection's calls, until it is answered.
 *
 * A call of a sequence never waits for another client, because the calls behind it would wait, too, and its
 * record is not counted as a waiting one: only the fops of may_run_in_sequence() are run, and locks only if
 * they do not wait. The other calls are answered EOPNOTSUPP.
 *
 * The connection may end between any two calls. The calls behind are then not run, as calls that still lie in
 * the socket are not, and the session's end drops the locks and fds of the calls before. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "base/ticks.h"
#include "mem/iobuf.h"
#include "rpc/server/rpc-server-internal.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/sequence-program.h"

enum { ENTRY_LOCK_WAITS = 0, INODE_LOCK_WAITS = 2 }; /* wire 6.2 */

/* The replies are on the arena of the record's request, and so is this struct. */
struct sequence {
    struct rpc_request *record; /* answered after the last call */
    const struct rpc_program *fops;
    unsigned count, at; /* `at`: the call that runs */
    bool has_failed, is_dropped;
    enum rpc_accept refusal; /* RPC_SUCCESS: none */
    /* Two threads may end a call's turn: the thread that has begun the call, when the handler returns, and
     * the thread that answers the call. The later one goes on. */
    atomic_uint left;
    struct sequence_step step[SEQUENCE_STEPS_MAX];
    struct sequence_result result[SEQUENCE_STEPS_MAX];
    struct record held[SEQUENCE_STEPS_MAX]; /* places among the connection's calls */
    int64_t fd_nr[SEQUENCE_STEPS_MAX];
    struct gfid gfid[SEQUENCE_STEPS_MAX];
};

/* ---- a call ---------------------------------------------------------------------------------- */

static bool
may_run_in_sequence(const struct fop_call *call)
{
    switch (call->fop) {
    case FOP_open:
    case FOP_create:
    case FOP_xattrop:
    case FOP_fxattrop:
    case FOP_fsync:
    case FOP_flush:
    case FOP_release:
    case FOP_releasedir:
        return true;
    case FOP_inodelk:
    case FOP_finodelk:
        return call->cmd != INODE_LOCK_WAITS;
    case FOP_entrylk:
    case FOP_fentrylk:
        return call->cmd != ENTRY_LOCK_WAITS;
    default:
        return false;
    }
}

int
sequence_resolve(struct rpc_request *req)
{
    const struct sequence *s = req->sequence;
    const struct sequence_step *step = &s->step[s->at];
    struct fop_call *call = &req->stk.call;

    if (!may_run_in_sequence(call))
        return -EOPNOTSUPP;
    if (step->fd_of)
        call->fd_nr = s->fd_nr[step->fd_of - 1];
    if (step->gfid_of)
        call->gfid = s->gfid[step->gfid_of - 1];
    return 0;
}

static void sequence_go(struct sequence *s);

/* Ends the part of the answering thread in a call's turn. */
static void
turn_ends(struct sequence *s)
{
    if (atomic_fetch_sub(&s->left, 1) == 1)
        sequence_go(s);
}

static void
encode_result(struct sequence *s, const struct fop_reply *reply)
{
    struct arena *arena = &s->record->stk.arena;
    enum fop fop = (enum fop)s->step[s->at].fop;
    size_t bytes = fop_reply_size(fop, reply);
    char *room = s->result[s->at].bytes; /* FOP_REPLY_FIXED_MAX */
    struct fop_reply bare = {.op_ret = -1, .op_errno = ENOMEM};
    struct xdr x;

    if (bytes > FOP_REPLY_FIXED_MAX) {
        char *more = arena_alloc(arena, bytes);

        if (!more) { /* as for a reply in a record of its own (fop-call.c) */
            reply = &bare;
            bytes = fop_reply_size(fop, reply);
        } else {
            room = more;
        }
    }
    xdr_init(&x, room, bytes, NULL);
    (void)fop_encode_reply(fop, &x, reply); /* fits, because of the size */
    s->result[s->at] = (struct sequence_result){room, (uint32_t)bytes};
}

void
sequence_answer(struct rpc_request *req)
{
    struct sequence *s = req->sequence;
    const struct fop_reply *reply = &req->stk.reply;

    encode_result(s, reply);
    s->fd_nr[s->at] = reply->op_ret >= 0 ? reply->fd_nr : -1;
    s->gfid[s->at] = reply->stat.gfid;
    s->has_failed |= reply->op_ret < 0;
    req->sequence = NULL;
    rpc_request_drop(req);
    turn_ends(s);
}

void
sequence_garbage(struct rpc_request *req, enum rpc_accept status)
{
    struct sequence *s = req->sequence;

    s->refusal = status;
    req->sequence = NULL;
    rpc_request_drop(req);
    turn_ends(s);
}

void
sequence_dropped(struct sequence *s)
{
    s->is_dropped = true;
    turn_ends(s);
}

/* Returns the request of the call `at`; NULL: out of memory, or the credential is refused, as s->refusal
 * tells. */
static struct rpc_request *
step_request(struct sequence *s)
{
    struct rpc_request *outer = s->record;
    const struct sequence_step *step = &s->step[s->at];
    struct rpc_request *req = request_new(outer->server, outer->conn, &s->held[s->at]);

    if (!req)
        return NULL;
    s->held[s->at] = (struct record){0};
    req->stk.arrived = ticks_now();
    req->xid = outer->xid;
    req->program = FOP_PROGRAM;
    req->version = FOP_PROGRAM_VERSION;
    req->procedure = step->fop;
    req->program_row = s->fops;
    req->cred_flavor = outer->cred_flavor;
    req->cred_bytes = step->cred ? step->cred_bytes : outer->cred_bytes;
    req->cred = step->cred ? step->cred : outer->cred;
    xdr_init(&req->args, step->args, step->args_bytes, &req->stk.arena);
    int err = cred_decode(req->cred_flavor, req->cred, req->cred_bytes, &req->stk.caller, &req->stk.arena);

    if (err) {
        s->refusal = err == -ENOMEM ? RPC_SUCCESS : RPC_GARBAGE_ARGS;
        rpc_request_drop(req);
        return NULL;
    }
    if (s->fops->waits && s->fops->waits(req->procedure))
        (void)record_waits(&req->record); /* the handler refuses a call that was not counted (bounds.c) */
    req->sequence = s;
    return req;
}

/* ---- the sequence ---------------------------------------------------------------------------- */

static void
free_places(struct sequence *s)
{
    for (unsigned i = 0; i < s->count; i++)
        record_release(&s->held[i]);
}

static void
send_results(struct sequence *s)
{
    struct rpc_request *record = s->record;
    size_t bytes = xdr_sequence_results_size(s->result, s->count);
    char small[RPC_SMALL_REPLY_BYTES - RPC_REPLY_SUCCESS_BYTES];
    struct iobuf *buf = bytes > sizeof small ? iobuf_get(RPC_REPLY_HEAD_BYTES + bytes) : NULL;
    struct xdr x;

    if (bytes > sizeof small && !buf) { /* the client learns from the end of the connection */
        conn_close(record->conn);
        rpc_request_drop(record);
        return;
    }
    xdr_init(&x, buf ? buf->bytes + RPC_REPLY_HEAD_BYTES : small, bytes, NULL);
    xdr_put_sequence_results(&x, s->result, s->count);
    assert(!x.error && x.at == x.end);
    if (buf)
        rpc_reply_iobuf(record, buf, RPC_REPLY_HEAD_BYTES + bytes);
    else
        rpc_reply(record, small, bytes, NULL, NULL, 0);
}

static void
sequence_end(struct sequence *s)
{
    free_places(s);
    if (s->is_dropped)
        rpc_request_drop(s->record);
    else if (s->refusal)
        rpc_reply_error(s->record, s->refusal);
    else
        send_results(s);
}

/* Moves `at` to the next call to run. Returns false if there is none. */
static bool
sequence_next(struct sequence *s)
{
    if (s->is_dropped || s->refusal)
        return false;
    for (s->at++; s->at < s->count; s->at++) {
        if (!s->has_failed || s->step[s->at].flags & SEQUENCE_ALWAYS)
            return true;
    }
    return false;
}

/* Begins the call `at`. Without memory for its request the call is not run, and the client sends it again. */
static void
step_begin(struct sequence *s)
{
    struct conn *c = s->record->conn;
    struct rpc_request *req = NULL;

    if (!conn_begin_call(c)) {
        s->is_dropped = true;
        atomic_fetch_sub(&s->left, 1); /* nobody answers this call */
        return;
    }
    req = step_request(s);
    if (req) {
        s->fops->procedures[req->procedure].handler(req);
    } else {
        s->has_failed = true;
        atomic_fetch_sub(&s->left, 1);
    }
    conn_leave_call(c);
}

/* Runs calls until one is not answered at once; the thread that answers goes on. */
static void
sequence_go(struct sequence *s)
{
    struct conn *c = conn_ref(s->record->conn);

    while (sequence_next(s)) {
        atomic_store(&s->left, 2);
        step_begin(s);
        if (atomic_fetch_sub(&s->left, 1) != 1) {
            conn_unref(c);
            return;
        }
    }
    sequence_end(s);
    conn_unref(c);
}

/* Returns NULL: out of memory. */
static struct sequence *
sequence_new(struct rpc_request *req, const struct sequence_step *steps, unsigned count)
{
    struct sequence *s = arena_zalloc(&req->stk.arena, sizeof *s);
    char *room = s ? arena_alloc(&req->stk.arena, count * FOP_REPLY_FIXED_MAX) : NULL;

    if (!room)
        return NULL;
    s->record = req;
    s->fops = fop_program(req->server);
    s->count = count;
    s->at = (unsigned)-1;
    memcpy(s->step, steps, count * sizeof *steps);
    for (unsigned i = 0; i < count; i++) {
        s->result[i].bytes = room + (size_t)i * FOP_REPLY_FIXED_MAX;
        s->fd_nr[i] = -1; /* a call that is not run gives the calls behind it no fd */
        conn_count_call(req->conn, steps[i].args_bytes, &s->held[i]);
    }
    return s;
}

static void
serve_sequence(struct rpc_request *req)
{
    struct sequence_step steps[SEQUENCE_STEPS_MAX];
    unsigned count = xdr_get_sequence(&req->args, steps);
    struct sequence *s;

    if (!count) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    s = sequence_new(req, steps, count);
    if (!s) {
        conn_close(req->conn);
        rpc_request_drop(req);
        return;
    }
    sequence_go(s);
}

static const struct rpc_procedure procedures[SEQUENCE_PROCEDURE_COUNT] = {
    [SEQUENCE_NULL] = {"NULL", NULL},
    [SEQUENCE_RUN] = {"RUN", serve_sequence},
};

#define SEQUENCE_ROW                                                                                         \
    .name = "Kiln sequences", .number = SEQUENCE_PROGRAM, .version = SEQUENCE_PROGRAM_VERSION,               \
    .procedures = procedures, .procedure_count = SEQUENCE_PROCEDURE_COUNT, .needs_login = true

const struct rpc_program rpc_sequence_program = {SEQUENCE_ROW, .is_listed = true};
const struct rpc_program rpc_unlisted_sequence_program = {SEQUENCE_ROW};
