/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rpc-server-internal: declarations that the files of rpc/server share. */
#ifndef KILN_RPC_SERVER_INTERNAL_H
#define KILN_RPC_SERVER_INTERNAL_H

#include "rpc/server/rpc-server.h"

struct rpc_server {
    const struct rpc_program *const *programs; /* ends with NULL */
    int (*accepted)(struct conn *c, void *arg);
    void (*closed)(struct conn *c, void *arg);
    struct tls_config *(*tls)(bool *allows_plain); /* NULL: connections are plain */
    void *arg;
};

/* Replies up to this size are built on the C stack and copied by the transport next to their neighbours:
 * the replies of all fops without a dict, list or long path. */
#define RPC_SMALL_REPLY_BYTES 1024

/* A request of connection `c`; `r` is taken over. NULL: no memory. */
struct rpc_request *request_new(struct rpc_server *s, struct conn *c, struct record *r);

/* sequence.c: takes the reply of a call of a sequence, and frees the request; notes that the call cannot be
 * decoded; notes that the request was freed without a reply. */
void sequence_answer(struct rpc_request *req);
void sequence_garbage(struct rpc_request *req, enum rpc_accept status);
void sequence_dropped(struct sequence *s);
/* sequence.c: puts the results of earlier calls into the decoded call. 0, or -errno: the call cannot be part
 * of a sequence. */
int sequence_resolve(struct rpc_request *req);

/* inside.c: answers a request that came as a call, with its reply or -errno, and frees the request. */
void inside_answer(struct rpc_request *req, int err);
/* inside.c: takes the path with this token from the connection's other end. False: there is none in this
 * process. */
bool inside_take_path(struct conn *c, void *server, const struct gfid *token);
/* The program of the server's fops. NULL: there is none. */
const struct rpc_program *fop_program(const struct rpc_server *s);

/* Sends a `message` that already has its head. Frees the request. */
void rpc_reply_head_sent(struct rpc_request *req, const char *message, size_t bytes, struct iobuf *payload,
                         const struct iovec *iov, int iov_count);

#endif
