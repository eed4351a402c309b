/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fop-path: the way of fops from a client to a brick: bytes on the connection, or a call inside of this
 * process.
 *
 *      rpc/client   rpc_client_fop()            a slot for the answer, the credential
 *                       |
 *                   fop_path_ops                begin, run, drop
 *                    /        \
 *      bytes (rpc-fop.c)     inside (rpc/server/inside.c): the program's handler is called with a copy of the
 *                            call; the reply is handed over by fop_path_answer()
 *
 * The login, pings and callbacks of the brick always go by the connection, and the connection's end is the
 * end of the path: the brick then drops the client's fds and locks, and the client fails its waiting calls,
 * as for any other client. An answer that comes later finds no call and is dropped. So no rule of the brick
 * and no state of the client depends on the way that a call goes.
 *
 * A client offers a path at the login with a random token, which it sends only to its own process. The brick
 * takes the token, fills in its side, and only then accepts the login:
 *
 *      client: fop_path_offer(), token --SETVOLUME--> brick: fop_path_take(), fop_path_open()
 *      client: fop_path_is_open()? <---- accepted ----
 *
 * Deaths: both sides are one process and die together. If the brick is detached, or closes the connection,
 * between any two steps, the client's fop_path_close() ends the path; an offer that was not taken goes with
 * it.
 *
 * thread: any, unless a comment says otherwise. A path's lock is a leaf lock. */
#ifndef KILN_TRANSPORT_FOP_PATH_H
#define KILN_TRANSPORT_FOP_PATH_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "base/gfid.h"
#include "base/refcount.h"
#include "mem/iobuf.h"
#include "stack/fop.h"

/* The pair of SETVOLUME's dict with the token, as text. */
#define FOP_PATH_KEY "kiln.inside"

struct conn;
struct fop_path;

/* A fop on its way out. Lies on the sender's stack; all pointers are lent until `begin` returns. */
struct fop_message {
    const struct fop_call *call; /* its wire members */
    uint32_t cred_flavor, cred_bytes;
    const char *cred;
    struct iobuf *payload; /* holds the bytes of `iov`; NULL: no payload */
    const struct iovec *iov;
    int iov_count;
    uint32_t xid; /* names the call in its answer */
    void *begun;  /* for the path, between begin and run or drop */
};

struct fop_path_ops {
    /* Makes a copy of the call, which does not need the sender's memory any more. 0: `run` or `drop` follows
     * in the same thread, and the path has the payload's reference. Otherwise nothing has happened: -EAGAIN:
     * no room, the call may go as bytes; -ENOMEM, -EMSGSIZE, -EINVAL, -ENAMETOOLONG; -ENOTCONN: the path has
     * ended. */
    int (*begin)(struct fop_path *p, struct fop_message *m);
    /* Sends the call. `conn` is the sender's connection. 0: an answer follows, perhaps before this returns,
     * or the connection ends. Otherwise nothing was sent. */
    int (*run)(struct fop_path *p, struct fop_message *m, struct conn *conn);
    /* Gives the copy up. */
    void (*drop)(struct fop_path *p, struct fop_message *m);
};

/* The client's side. Both functions run with the path's lock not held. */
struct fop_path_client_ops {
    /* Keeps the client until `answered` has returned. Under the path's lock: must not block. */
    void (*hold)(void *client);
    /* The answer to call `xid`; `reply` is lent until return. `err` 0, or -ENOTCONN: refused without a
     * reply. Drops the reference of `hold`. In a read section. */
    void (*answered)(void *client, uint32_t xid, int err, const struct fop_reply *reply);
};

struct fop_path {
    struct refcount refs;
    pthread_mutex_t lock; /* guards `client` */
    void *client;         /* NULL: closed */
    const struct fop_path_client_ops *client_ops;
    /* the brick's side; set once, before the login is answered. NULL ops: not taken */
    _Atomic(const struct fop_path_ops *) ops;
    void *server;
    struct conn *conn; /* the brick's end of the connection: a reference */
    struct cds_list_head offered;
    bool is_offered; /* this and `offered` are under the lock of the list of offers */
    struct gfid token;
};

/* Makes a path and offers it. The caller has one reference. NULL: no memory. */
struct fop_path *fop_path_offer(const struct fop_path_client_ops *ops, void *client);
/* Takes the path with this token off the list, with a reference; NULL: none. */
struct fop_path *fop_path_take(const struct gfid *token);
/* Sets the brick's side; takes a reference to `conn` (NULL: the path needs none). Called once, before the
 * client can know. */
void fop_path_open(struct fop_path *p, const struct fop_path_ops *ops, void *server, struct conn *conn);
static inline bool
fop_path_is_open(struct fop_path *p)
{
    return atomic_load_explicit(&p->ops, memory_order_acquire) != NULL;
}
/* Ends the path for the client: later answers are dropped, and the offer is withdrawn. An answer that has
 * begun may still run. The client calls the function once, and keeps its reference. */
void fop_path_close(struct fop_path *p);
/* Drops a reference; NULL allowed. */
void fop_path_unref(struct fop_path *p);
static inline struct fop_path *
fop_path_ref(struct fop_path *p)
{
    refcount_get(&p->refs);
    return p;
}
/* Hands an answer to the client, if the path is not closed. */
void fop_path_answer(struct fop_path *p, uint32_t xid, int err, const struct fop_reply *reply);

#endif
