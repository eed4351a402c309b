/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-server: turns records into calls and replies into messages (spec: wire 1.2 to 1.7, 2).
 *
 * There is a table of programs, each with a table of procedures. A record is decoded up to the arguments,
 * its credential becomes the request's caller, its procedure is found, and the procedure's handler runs on
 * the worker that read the record. The request is pooled and owns everything until its reply is sent:
 * record, arena, arguments, results, and a reference to its connection. A call that a layer has parked and
 * packed (stack/call-pack.h) gives all of this up except that reference and its place among the calls of
 * its connection; its request is another object afterwards.
 *
 * thread: requests of a connection may run on several workers at once, but a request runs on a single thread
 * at a time. */
#ifndef KILN_RPC_SERVER_H
#define KILN_RPC_SERVER_H

#include "rpc/transport/transport.h"
#include "rpc/xdr/rpc-message.h"
#include "rpc/xdr/xdr.h"
#include "stack/call-stack.h"

struct fop_path;
struct rpc_request;
struct sequence;

/* Decodes the arguments in the record and answers, now or later, by one of the functions below: exactly
 * once. */
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
    bool is_listed;   /* in DUMP's answer, in the order of rpc_server_new() */
    bool needs_login; /* before conn_set_trusted, calls go to `refuse` instead of their handlers */
    /* the decoders read records of several pieces (xdr.h); else a record is joined into one piece */
    bool takes_pieces;
    /* Answers a call that came before the login, by one of the functions below. NULL: GARBAGE_ARGS (wire
     * 1.4). */
    rpc_handler refuse;
    /* True if calls of this procedure may wait for other calls: they are counted separately
     * (record_waits()). NULL: none may. */
    bool (*waits)(uint32_t procedure);
};

#define RPC_REQUEST_OWN_BYTES 24

struct rpc_request {
    struct call_stack stk; /* caller is filled from the credential; stk.arena is the request's memory */
    struct conn *conn;     /* valid as long as the record is held */
    struct record record;  /* the bytes; released with the request */
    size_t reply_reserved; /* conn_reserve_reply() */
    struct xdr args;       /* at the first argument */
    uint32_t xid, program, version, procedure;
    uint32_t cred_flavor;
    uint32_t cred_bytes;
    const char *cred; /* as received; in the record */
    const struct rpc_program *program_row;
    struct rpc_server *server;
    struct fop_path *inside; /* the call came as a call, not as bytes (inside.c): a reference; else NULL */
    struct worker_job job;   /* inside.c's */
    struct sequence *sequence; /* the call is one of several of a record (sequence.c); else NULL */
    /* Private state of the program, in a struct of its own: zero when the handler is called. (A request is
     * made before its program is known, so there is room for the largest.) Packing the call keeps the state:
     * stack/call-pack.h. */
    _Alignas(8) char own[RPC_REQUEST_OWN_BYTES];
};

struct rpc_server;

/* Makes the pool of requests; once, in the main thread, after the pools of libglusterfs. 0 or -ENOMEM. */
int rpc_server_pools_init(void);

/* Makes a server, which the caller owns. `programs` ends with NULL and must outlive the server. `closed`
 * is called for each connection that ends, on a worker. NULL: no memory. */
struct rpc_server *rpc_server_new(const struct rpc_program *const *programs,
                                  void (*closed)(struct conn *c, void *arg), void *arg);
/* Sets a function that is called for each new connection; non-zero refuses it. Before the first listener
 * is opened. */
void rpc_server_set_accepted(struct rpc_server *s, int (*accepted)(struct conn *c, void *arg));
/* Sets a function that says how connections are encrypted (transport_ops.tls). Before the first listener is
 * opened. */
void rpc_server_set_tls(struct rpc_server *s, struct tls_config *(*tls)(bool *allows_plain));
/* Frees the server; called by its owner after `closed` of the last connection. */
void rpc_server_free(struct rpc_server *s);
/* The ops for listener_open_*(), with the server as arg. */
extern const struct transport_ops rpc_server_transport_ops;

/* GF-DUMP: program discovery and ping (wire 2.3, 1.7); to be listed in the table of rpc_server_new(). */
extern const struct rpc_program rpc_dump_program;

/* Sequences of fops in one record (sequence-program.h), for a server that also serves the fops. A server
 * without the offer has the second: clients that an earlier program of this process has told go on. */
extern const struct rpc_program rpc_sequence_program, rpc_unlisted_sequence_program;

/* The functions that answer are called by the thread that has the request, which is freed. They do not
 * block and cannot fail: if a reply cannot be sent, the connection is gone already, or is closed. Sizes
 * are bytes. */

/* Sends a reply: accepted, success, then `body` (encoded XDR, copied), then `payload`'s bytes by reference
 * (the reference is taken over; NULL: none). Frees the request. */
void rpc_reply(struct rpc_request *req, const void *body, size_t bytes, struct iobuf *payload,
               const struct iovec *iov, int iov_count);
/* Sends a reply whose body is in an iobuf with RPC_REPLY_HEAD_BYTES left free at the beginning;
 * `bytes_with_head` counts them. The reference is taken over. Frees the request. */
#define RPC_REPLY_HEAD_BYTES (TRANSPORT_MARK_BYTES + RPC_REPLY_SUCCESS_BYTES)
void rpc_reply_iobuf(struct rpc_request *req, struct iobuf *buf, size_t bytes_with_head);
/* Sends an accept status other than success. Frees the request. */
void rpc_reply_error(struct rpc_request *req, enum rpc_accept status);
/* Sends a denial: AUTH_ERROR with this auth status (wire 1.4). Frees the request. */
void rpc_reply_denied(struct rpc_request *req, uint32_t auth_status);
/* Frees the request without a reply (because the connection is being dropped). */
void rpc_request_drop(struct rpc_request *req);

/* Decodes req's arguments for the fop of the procedure number. True: req->stk.call is filled. False: the
 * request has been answered and freed (GARBAGE_ARGS, or a reply of that fop with the error). */
bool rpc_fop_decode(struct rpc_request *req);
/* Encodes req->stk.reply as the reply of req->stk.call.fop and sends it. Frees the request. */
void rpc_fop_reply(struct rpc_request *req);
/* Like rpc_fop_reply(), with only an error (positive errno). */
void rpc_fop_reply_error(struct rpc_request *req, int err);

/* The request that a call stack is part of. */
static inline struct rpc_request *
rpc_request_of(struct call_stack *stk)
{
    return (struct rpc_request *)(void *)((char *)stk - offsetof(struct rpc_request, stk));
}

/* Calls the peer (program Callback), which does not answer. `body` is encoded XDR, copied. Any thread that
 * has a reference. 0, or as conn_send(); -ENOBUFS: more than RPC_CALLBACK_BYTES_MAX with its head. */
#define RPC_CALLBACK_BYTES_MAX 8192
int rpc_callback(struct conn *c, uint32_t procedure, const void *body, size_t bytes);

/* Lets the client of this process that has offered a path with this token (fop-path.h) call the fops of the
 * request's connection without bytes. Called before the request, a login, is answered. False: there is no
 * such offer. */
bool rpc_inside_accept(struct rpc_request *login, const struct gfid *token);

/* Answers a GETSPEC with a volfile's text, or with an -errno and `text` (NULL: no text). The receiver of a
 * volfile must be a guest (conn_set_guest()) before the text is read, so that the receiver learns of the next
 * change. */
void rpc_reply_volfile(struct rpc_request *req, const char *text, int err);
/* Tells all guests that their volfiles may have changed (FETCHSPEC). A guest then fetches its volfile again.
 * Any thread. */
void rpc_tell_volfiles_changed(void);

#endif
