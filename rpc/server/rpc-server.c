/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Takes a record to its handler, and answers a record without handler (wire 1.4). */
#include "rpc/server/rpc-server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/zero.h"
#include "mem/mem-ids.h"
#include "rpc/server/rpc-server-internal.h"
#include "rpc/transport/fop-path.h"
#include "rpc/xdr/cred.h"
#include "stack/call-pack.h"

static struct mem_pool *request_pool;

static_assert(offsetof(struct rpc_request, stk) == 0, "the rest is cleared as one piece");

int
rpc_server_pools_init(void)
{
    return mem_pool_make(&request_pool, MEM_ID_RPC_REQUEST, sizeof(struct rpc_request), "struct rpc_request");
}

struct rpc_server *
rpc_server_new(const struct rpc_program *const *programs, void (*closed)(struct conn *c, void *arg),
               void *arg)
{
    struct rpc_server *s = malloc(sizeof *s);

    if (s)
        *s = (struct rpc_server){.programs = programs, .closed = closed, .arg = arg};
    return s;
}

void
rpc_server_set_accepted(struct rpc_server *s, int (*accepted)(struct conn *c, void *arg))
{
    s->accepted = accepted;
}

void
rpc_server_set_tls(struct rpc_server *s, struct tls_config *(*tls)(bool *allows_plain))
{
    s->tls = tls;
}

void
rpc_server_free(struct rpc_server *s)
{
    free(s);
}

/* ---- one record ------------------------------------------------------------------------------ */

static void
send_undecodable(struct conn *c)
{
    char out[RPC_REPLY_ERROR_BYTES_MAX];

    /* A dead connection needs no answer. */
    (void)conn_send(c, out, rpc_encode_undecodable(out), NULL, NULL, 0);
}

static void
request_free(struct rpc_request *req)
{
    size_t reserved = req->reply_reserved;
    struct fop_path *inside = req->inside;
    struct sequence *sequence = req->sequence;

    if (req->stk.replied) {
        conn_tell_sent(req->conn, req->stk.replied);
        req->stk.replied = NULL;
    }
    call_stack_release(&req->stk);
    if (reserved)
        conn_unreserve_reply(req->conn, reserved);
    record_release(&req->record); /* may release the connection */
    mem_put_t(MEM_ID_RPC_REQUEST, req);
    if (inside)
        fop_path_unref(inside);
    if (sequence)
        sequence_dropped(sequence);
}

/* ---- a request that waits (stack/call-pack.h) ------------------------------------------------ */

static struct call_stack *
packed_get(void)
{
    return mem_get_t(MEM_ID_RPC_REQUEST);
}

static void
packed_put(struct call_stack *stk)
{
    mem_put_t(MEM_ID_RPC_REQUEST, rpc_request_of(stk));
}

/* Removes the record's bytes, the data decoded from them, and the credential as received. */
static bool
packed_strip(struct call_stack *copy)
{
    struct rpc_request *req = rpc_request_of(copy);

    zero(req->record.iov, sizeof req->record.iov);
    zero(req->record.bufs, sizeof req->record.bufs);
    req->record.count = 0;
    req->args = (struct xdr){0};
    req->cred = NULL;
    req->cred_bytes = 0;
    return true;
}

static void
packed_moved(struct call_stack *stk, struct call_stack *copy, size_t bytes)
{
    struct rpc_request *req = rpc_request_of(stk);

    record_shrink(&req->record, &rpc_request_of(copy)->record, bytes);
    req->reply_reserved = 0;
    req->inside = NULL;
    req->sequence = NULL;
}

static void
packed_drop(struct call_stack *shell)
{
    request_free(rpc_request_of(shell));
}

static const struct call_keeper keeper = {
    .size = sizeof(struct rpc_request),
    .get = packed_get,
    .put = packed_put,
    .strip = packed_strip,
    .moved = packed_moved,
    .drop = packed_drop,
};
static_assert(sizeof(struct rpc_request) % 8 == 0 && sizeof(struct rpc_request) <= CALL_OBJECT_MAX,
              "it can be packed");

/* ---- one record, continued ------------------------------------------------------------------- */

static void
begin_args(struct rpc_request *req)
{
    if (!req->record.count) /* the call did not come as bytes */
        return;
    xdr_init(&req->args, req->record.iov[0].iov_base, req->record.iov[0].iov_len, &req->stk.arena);
    req->args.more = req->record.iov + 1;
    req->args.more_count = req->record.count - 1;
}

struct rpc_request *
request_new(struct rpc_server *s, struct conn *c, struct record *r)
{
    struct rpc_request *req = mem_get_t(MEM_ID_RPC_REQUEST);

    if (!req)
        return NULL;
    call_stack_init(&req->stk);
    zero((char *)req + sizeof req->stk, sizeof *req - sizeof req->stk);
    req->stk.keeper = &keeper;
    req->stk.arrived = transport_arrived;
    req->conn = c;
    req->record = *r;
    req->server = s;
    begin_args(req);
    return req;
}

/* Finds the program. If NULL, *is_known tells whether another version of the program is served. */
static const struct rpc_program *
find_program(const struct rpc_server *s, uint32_t number, uint32_t version, bool *is_known)
{
    *is_known = false;
    for (const struct rpc_program *const *p = s->programs; *p; p++) {
        if ((*p)->number != number)
            continue;
        *is_known = true;
        if ((*p)->version == version)
            return *p;
    }
    return NULL;
}

/* Counts the request separately, which may move its record, in one piece, to another place; adjusts the
 * pointers into the record. */
static void
count_apart(struct rpc_request *req, struct rpc_call_head *head)
{
    const char *was = req->record.iov[0].iov_base;
    ptrdiff_t args = req->args.at - was, cred = head->cred - was;

    if (!record_waits(&req->record) || req->record.iov[0].iov_base == was)
        return;
    begin_args(req);
    head->cred = req->args.at + cred;
    req->args.at += args;
}

static void
dispatch_request(struct rpc_request *req, bool is_known)
{
    const struct rpc_program *row = req->program_row;

    if (!row) {
        rpc_reply_error(req, is_known ? RPC_PROG_MISMATCH : RPC_PROG_UNAVAIL);
        return;
    }
    if (req->procedure >= row->procedure_count || !row->procedures[req->procedure].handler) {
        rpc_reply_error(req, RPC_PROC_UNAVAIL);
        return;
    }
    if (row->needs_login && !conn_is_trusted(req->conn)) {
        if (row->refuse)
            row->refuse(req);
        else
            rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    if (req->args.more_count && !row->takes_pieces)
        xdr_pull(&req->args, xdr_left_total(&req->args));
    row->procedures[req->procedure].handler(req);
}

/* Decodes the head, then the caller, then runs the procedure. */
static void
run_request(struct rpc_request *req)
{
    struct rpc_call_head head;
    bool is_known;
    int err = rpc_decode_call_head(&req->args, &head);

    if (err == -EBADMSG)
        send_undecodable(req->conn);
    else if (err)
        conn_close(req->conn);
    if (err) {
        rpc_request_drop(req);
        return;
    }
    req->program_row = find_program(req->server, head.program, head.version, &is_known);
    if (req->program_row && req->program_row->waits && req->program_row->waits(head.procedure))
        count_apart(req, &head);
    req->xid = head.xid;
    req->program = head.program;
    req->version = head.version;
    req->procedure = head.procedure;
    req->cred_flavor = head.cred_flavor;
    req->cred_bytes = head.cred_bytes;
    req->cred = head.cred;
    err = cred_decode(head.cred_flavor, head.cred, head.cred_bytes, &req->stk.caller, &req->stk.arena);
    if (err) {
        rpc_reply_denied(req, RPC_AUTH_OK); /* stock's auth status for a refused credential is 0 */
        return;
    }
    dispatch_request(req, is_known);
}

static void
record_arrived(struct conn *c, struct record *r, void *arg)
{
    struct rpc_request *req;

    if (r->count == 0) { /* an empty record has no header */
        record_release(r);
        send_undecodable(c);
        return;
    }
    req = request_new(arg, c, r);
    if (!req) { /* no memory for an answer, but the client's call must not hang */
        record_release(r);
        conn_close(c);
        return;
    }
    run_request(req);
}

static int
conn_accepted(struct conn *c, void *arg)
{
    struct rpc_server *s = arg;

    return s->accepted ? s->accepted(c, s->arg) : 0;
}

static void
conn_closed(struct conn *c, void *arg)
{
    struct rpc_server *s = arg;

    if (s->closed)
        s->closed(c, s->arg);
}

static struct tls_config *
conn_tls_config(void *arg, bool *allows_plain)
{
    const struct rpc_server *s = arg;

    return s->tls ? s->tls(allows_plain) : NULL;
}

const struct transport_ops rpc_server_transport_ops = {
    .tls = conn_tls_config,
    .accepted = conn_accepted,
    .record = record_arrived,
    .closed = conn_closed,
    .path_offered = inside_take_path,
};

/* ---- replies --------------------------------------------------------------------------------- */

/* Results of conn_send() are ignored here: a connection that is gone needs no answer, and conn_send()
 * closes a connection when it has no memory. */

void
rpc_reply_head_sent(struct rpc_request *req, const char *message, size_t bytes, struct iobuf *payload,
                    const struct iovec *iov, int iov_count)
{
    (void)conn_send(req->conn, message, bytes, payload, iov, iov_count);
    request_free(req);
}

void
rpc_reply(struct rpc_request *req, const void *body, size_t bytes, struct iobuf *payload,
          const struct iovec *iov, int iov_count)
{
    char message[RPC_SMALL_REPLY_BYTES];
    struct iobuf *buf;

    if (RPC_REPLY_SUCCESS_BYTES + bytes <= sizeof message) {
        rpc_encode_success(message, req->xid);
        if (bytes)
            memcpy(message + RPC_REPLY_SUCCESS_BYTES, body, bytes);
        rpc_reply_head_sent(req, message, RPC_REPLY_SUCCESS_BYTES + bytes, payload, iov, iov_count);
        return;
    }
    buf = iobuf_get(RPC_REPLY_HEAD_BYTES + bytes);
    if (!buf) {
        iobuf_unref(payload);
        conn_close(req->conn);
        request_free(req);
        return;
    }
    memcpy(buf->bytes + RPC_REPLY_HEAD_BYTES, body, bytes);
    if (!payload) {
        rpc_reply_iobuf(req, buf, RPC_REPLY_HEAD_BYTES + bytes);
        return;
    }
    rpc_encode_success(buf->bytes + TRANSPORT_MARK_BYTES, req->xid);
    (void)conn_send(req->conn, buf->bytes + TRANSPORT_MARK_BYTES, RPC_REPLY_SUCCESS_BYTES + bytes, payload,
                    iov, iov_count);
    iobuf_unref(buf);
    request_free(req);
}

void
rpc_reply_iobuf(struct rpc_request *req, struct iobuf *buf, size_t bytes_with_head)
{
    rpc_encode_success(buf->bytes + TRANSPORT_MARK_BYTES, req->xid);
    (void)conn_send_iobuf(req->conn, buf, bytes_with_head - TRANSPORT_MARK_BYTES);
    request_free(req);
}

void
rpc_reply_error(struct rpc_request *req, enum rpc_accept status)
{
    char out[RPC_REPLY_ERROR_BYTES_MAX];

    assert(status != RPC_SUCCESS);
    if (req->sequence) {
        sequence_garbage(req, status);
        return;
    }
    if (req->inside) {
        inside_answer(req, -ENOTCONN); /* as the client takes such a reply (wire 1.6) */
        return;
    }
    rpc_reply_head_sent(req, out, rpc_encode_error(out, req->xid, status), NULL, NULL, 0);
}

void
rpc_reply_denied(struct rpc_request *req, uint32_t auth_status)
{
    char out[RPC_REPLY_ERROR_BYTES_MAX];

    rpc_reply_head_sent(req, out, rpc_encode_denied(out, req->xid, auth_status), NULL, NULL, 0);
}

void
rpc_request_drop(struct rpc_request *req)
{
    request_free(req);
}
