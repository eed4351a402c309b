/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/client/glusterd-calls.h"

#include <errno.h>

#include "data/dict.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/portmap-program.h"

enum {
    OP_VERSION_MIN = 1,
    OP_VERSION_MAX = 100000,
    TEXT_MAX = 4096,
    ARGS_BYTES = TEXT_MAX + 64,
    GETSPEC_WANTS_SERVERS = 1
};

/* ---- volfiles -------------------------------------------------------------------------------- */

static int
getspec_xdata(struct dict *d, const char *brick)
{
    int err = d ? dict_set_text_int(d, "min-op-version", OP_VERSION_MIN) : -ENOMEM;

    if (!err)
        err = dict_set_text_int(d, "max-op-version", OP_VERSION_MAX);
    if (!err && brick)
        err = dict_set_text(d, "brick_name", DICT_STR, brick, (uint32_t)strlen(brick) + 1);
    return err;
}

int
glusterd_getspec(struct rpc_client *c, const char *id, const char *brick, rpc_reply_fn cb, void *arg)
{
    struct arena arena = {0};
    struct getspec_call args = {
        .flags = brick ? 0 : GETSPEC_WANTS_SERVERS, .key = id, .xdata = dict_new(&arena)};
    struct rpc_call call = {
        .program = HANDSHAKE_PROGRAM,
        .version = HANDSHAKE_PROGRAM_VERSION,
        .procedure = HANDSHAKE_GETSPEC,
        .timeout_s = RPC_CALL_WAITS,
        .cb = cb,
        .arg = arg,
    };
    char bytes[2 * ARGS_BYTES];
    struct xdr x;
    int err = strlen(id) > TEXT_MAX || (brick && strlen(brick) > TEXT_MAX) ? -ENAMETOOLONG : 0;

    if (!err)
        err = getspec_xdata(args.xdata, brick);
    if (!err) {
        xdr_init(&x, bytes, sizeof bytes, NULL);
        xdr_put_getspec_call(&x, &args);
        err = rpc_client_call_xdr(c, &call, &x, bytes);
    }
    arena_release(&arena);
    return err;
}

/* Returns the error in the reply's op_ret and op_errno. A failure without an errno must not look like
 * success. */
static int
own_error(int32_t op_ret, int32_t op_errno)
{
    if (op_ret >= 0)
        return 0;
    return op_errno > 0 ? -op_errno : -ENOENT;
}

static int
check_decoded(struct rpc_reply *r, const char *what)
{
    if (r->err)
        return r->err;
    if (r->results.error == -EBADMSG || r->results.error == -EINVAL)
        rpc_reply_is_garbage(r, what);
    return r->results.error;
}

int
glusterd_getspec_reply(struct rpc_reply *r, struct arena *arena, struct glusterd_spec *out)
{
    struct getspec_reply reply = {0};

    r->results.arena = arena;
    if (!r->err && r->results.more_count)
        xdr_pull(&r->results, xdr_left_total(&r->results));
    xdr_get_getspec_reply(&r->results, &reply);
    /* the length is sent twice (management 2.2) */
    if (!r->results.error && reply.op_ret >= 0 && (size_t)reply.op_ret != strlen(reply.spec))
        xdr_fail(&r->results, -EBADMSG);
    int err = check_decoded(r, "GETSPEC");

    if (!err)
        err = own_error(reply.op_ret, reply.op_errno);
    if (!err)
        *out =
            (struct glusterd_spec){.text = reply.spec, .bytes = (size_t)reply.op_ret, .xdata = reply.xdata};
    return err;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static int
portmap_call(struct rpc_client *c, struct rpc_call *call, const struct xdr *x, const char *bytes)
{
    call->program = PORTMAP_PROGRAM;
    call->version = PORTMAP_PROGRAM_VERSION;
    return x->error == -ENOBUFS ? -ENAMETOOLONG : rpc_client_call_xdr(c, call, x, bytes);
}

static int
portmap_sign_send(struct rpc_client *c, uint32_t procedure, const struct portmap_sign *s, rpc_reply_fn cb,
                  void *arg)
{
    struct rpc_call call = {.procedure = procedure, .timeout_s = RPC_CALL_WAITS, .cb = cb, .arg = arg};
    char bytes[ARGS_BYTES];
    struct xdr x;

    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_portmap_sign(&x, s);
    return portmap_call(c, &call, &x, bytes);
}

int
portmap_signin(struct rpc_client *c, const char *brick, uint16_t port, int32_t pid, rpc_reply_fn cb,
               void *arg)
{
    return portmap_sign_send(c, PORTMAP_SIGNIN,
                             &(struct portmap_sign){.brick = brick, .port = port, .other = pid}, cb, arg);
}

int
portmap_signout(struct rpc_client *c, const char *brick, uint16_t port, rpc_reply_fn cb, void *arg)
{
    return portmap_sign_send(c, PORTMAP_SIGNOUT, &(struct portmap_sign){.brick = brick, .port = port}, cb,
                             arg);
}

int
portmap_sign_reply(struct rpc_reply *r)
{
    struct portmap_reply reply;

    xdr_get_portmap_reply(&r->results, &reply);
    int err = check_decoded(r, "a portmap call");

    return err ? err : own_error(reply.op_ret, reply.op_errno);
}

int
portmap_port(struct rpc_client *c, const char *brick, unsigned timeout_s, rpc_reply_fn cb, void *arg)
{
    struct rpc_call call = {
        .procedure = PORTMAP_PORTBYBRICK, .timeout_s = timeout_s, .is_handshake = true, .cb = cb, .arg = arg};
    char bytes[ARGS_BYTES];
    struct xdr x;

    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_string(&x, brick);
    return portmap_call(c, &call, &x, bytes);
}

int
portmap_port_reply(struct rpc_reply *r, uint16_t *port)
{
    struct port_by_brick_reply reply;

    xdr_get_port_by_brick_reply(&r->results, &reply);
    int err = check_decoded(r, "PORTBYBRICK");

    if (!err)
        err = own_error(reply.op_ret, reply.op_errno);
    if (!err && (reply.port <= 0 || reply.port > UINT16_MAX))
        err = -ENOENT;
    if (!err)
        *port = (uint16_t)reply.port;
    return err;
}
