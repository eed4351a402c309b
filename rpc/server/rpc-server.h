/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-server: records become calls, replies become messages (spec: wire 1.2 to 1.7, 2).
 *
 * A table of programs, each a table of procedures. A record is decoded up to the arguments, its credential becomes the
 * request's caller, its row is found, and the row's handler runs on the worker that read it. The request is pooled and owns
 * everything until its reply is sent.
 */
#ifndef KILN_RPC_SERVER_H
#define KILN_RPC_SERVER_H

#include "rpc/transport/transport.h"
#include "rpc/xdr/xdr.h"
#include "stack/call-stack.h"

struct rpc_request;

enum rpc_accept { RPC_SUCCESS = 0, RPC_PROG_UNAVAIL, RPC_PROG_MISMATCH, RPC_PROC_UNAVAIL, RPC_GARBAGE_ARGS };

/* Decodes the rest of the record and answers, now or later, by rpc_reply() or rpc_reply_error(): exactly once. */
typedef void (*rpc_handler)(struct rpc_request *req);

struct rpc_procedure {
    const char *name;
    rpc_handler handler; /* NULL: PROC_UNAVAIL */
};

struct rpc_program {
    const char *name; /* as listed by DUMP */
    uint32_t number, version;
    const struct rpc_procedure *procedures;
    uint32_t procedure_count;
    bool is_listed; /* in DUMP's answer */
    bool needs_login; /* GARBAGE_ARGS before conn_set_trusted (wire 12.4) */
};

struct rpc_request {
    struct call_stack stk; /* caller is filled from the credential; stk.arena is the request's memory */
    struct conn *conn;     /* a reference */
    struct record record;  /* the bytes; released with the request */
    struct xdr args;       /* at the first argument */
    uint32_t xid, program, version, procedure;
    uint32_t cred_flavor;
    const struct rpc_program *program_row;
    void *user;            /* protocol/server's: the session */
    unsigned resolve_step; /* protocol/server's */
};

struct rpc_server;
/* `programs` ends with NULL and lives as long as the server. `closed` is told of each connection that ends. */
struct rpc_server *rpc_server_new(const struct rpc_program *const *programs,
                                  void (*closed)(struct conn *c, void *arg), void *arg);
void rpc_server_free(struct rpc_server *s);
/* The ops to hand to listener_open_*(), with the server as arg. */
extern const struct transport_ops rpc_server_transport_ops;

/* Sends a reply: accepted, success, then `body` (encoded XDR). Frees the request. */
void rpc_reply(struct rpc_request *req, const void *body, size_t bytes, struct iobuf *payload, const struct iovec *iov,
               int iov_count);
/* Body in an iobuf whose first RPC_REPLY_HEAD_BYTES were left free. Frees the request. */
#define RPC_REPLY_HEAD_BYTES (TRANSPORT_MARK_BYTES + 24)
void rpc_reply_iobuf(struct rpc_request *req, struct iobuf *buf, size_t bytes_with_head);
/* Accept status other than success. Frees the request. */
void rpc_reply_error(struct rpc_request *req, enum rpc_accept status);
/* No reply at all (a connection that is being dropped). */
void rpc_request_drop(struct rpc_request *req);

/* A call to the peer (program Callback); not answered. 0 or -errno. */
int rpc_callback(struct conn *c, uint32_t procedure, const void *body, size_t bytes);

#endif
