/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* server-internal: the declarations that the files of protocol/server share.
 *
 *      connection --- session --- client --- graph (pinned by the client)
 *                                   |
 *                                 fd table
 *
 * A session is the state of one connection. The connection's first SETVOLUME creates it, and a successful
 * SETVOLUME assigns it to a brick. A request takes a reference to its session's client, which holds the
 * brick, and then does not need the session any more.
 *
 * Locks, in this order: a session stripe (session.c), the clients_lock of one brick. A brick's groups lock
 * (groups.c) is taken with none of these held. None is held across a call into a layer, a reply or a system
 * call.
 */
#ifndef KILN_PROTOCOL_SERVER_INTERNAL_H
#define KILN_PROTOCOL_SERVER_INTERNAL_H

#include "base/parcel.h"
#include "fs/brick-client.h"
#include "graph/graph.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/limits.h"
#include "xlators/protocol/server/auth.h"
#include "xlators/protocol/server/groups.h"
#include "xlators/protocol/server/server.h"
#include "rpc/transport/tls-options.h"

struct server_conf {
    bool root_squash, all_squash, manage_gids, allow_insecure, strict_auth, dynamic_auth;
    int64_t anonuid, anongid;
    int64_t inode_lru_limit;
    int64_t calls_max; /* of a connection */
    int64_t login_seconds;
    int64_t gid_timeout; /* seconds */
    uint64_t reply_memory;
    int transport_type;
    struct tls_options tls;
    /* Options of the process: server_process_options(). */
    int64_t socket_port, port; /* one option under two names; -1: not given */
    char *bind_address, *statedump_path;
    char *volspec_directory, *volfile_path; /* one option under two names; NULL: not given */
};

/* The instance of one brick: xl->private. All fields except the first two are under graph->clients_lock. */
struct server {
    struct groups *groups; /* lives as long as the instance */
    bool has_tls; /* set by init: a change of the option waits for the next start */
    struct cds_list_head sessions; /* the sessions logged in to this brick */
    unsigned session_count;
    bool is_stopped;               /* refuses further logins, because the brick is being detached */
    struct auth_rules *auth;
};

static inline struct server *
server_of(const struct graph *g)
{
    return g->top->private;
}

/* False for a graph that was made from a volfile without protocol/server on top, or that is not set up yet.
 * Such a graph has no clients.
 */
bool server_is_top(const struct graph *g);

/* Program tables: fops.c, handshake.c. */
extern const struct rpc_program server_fop_program, server_handshake_program;

/* callback.c: tells every connection of the brick that storage has come up or gone down. */
void server_child_event(struct graph *g, bool is_up);

/* server.c: the functions of struct server_listen. */
struct graph *server_find_brick(const char *name);
struct graph *server_first_brick(void);
bool server_is_brick_changing(const char *name);

/* handshake.c: while it is set, SETVOLUME is answered ENOENT. */
void handshake_set_shutting_down(bool is_so);

/* server.c: true if the brick's auth options permit this connection with the data of its login. Else *refusal
 * names the option that refuses. */
struct session_login;
bool server_auth(struct graph *g, struct conn *c, const struct session_login *login, bool *is_trusted,
                 const char **refusal);

/* server.c: why the brick does not accept the kind of this connection, with TLS or without; NULL: it does. */
const char *server_tls_mismatch(const struct graph *g, const struct conn *c);

/* server.c: a connection of an earlier program (rpc/transport/saved.h), served by this process's listener. */
struct conn *server_restore_conn(struct parcel *from);

/* roll.c: whether a process of the volume asks for the brick's clients, and the answer: 0 or -errno. */
bool roll_is_asked(const struct call_stack *stk);
int roll_answer(struct call_stack *stk);

/* volspec.c: the procedure GETSPEC. */
void volspec_getspec(struct rpc_request *req);

/* ---- session.c ------------------------------------------------------------------------------- */

struct session;

/* Data of a login; copied. */
struct session_login {
    const char *username, *password, *subdir;
};

/* Creates the session if there is none, before a login, from the connection's record handler. Returns 0 or
 * -ENOMEM. */
int session_begin(struct conn *c);
/* Runs when the connection has ended and none of its handlers runs. */
void session_closed(struct conn *c);
/* Returns a reference to the client that this connection is logged in as; NULL: not logged in. */
struct brick_client *session_client(struct conn *c);
/* Makes this client the connection's client, in place of the previous one. Takes over the connection counted
 * by brick_client_connect() in any case. Returns 0, -EAGAIN (the brick is being detached), -EUSERS (the brick
 * has its share of connections), -ENOTCONN (the connection has closed) or -ENOMEM. */
int session_attach(struct conn *c, struct brick_client *client, const struct session_login *login);
/* `c` is logged in as `now`. Ends earlier logins of the same layer from the same client host, with their
 * connections, fds and locks, if the brick has not noticed their end yet: the client has given them up. Their
 * locks are free on return. */
void session_end_formers(struct conn *c, const struct brick_client *now);
/* Subtracts one connection from a client, and cleans up after the last one. */
void session_logout(struct brick_client *client);
/* Ends every connection of a brick, and refuses further logins. */
void session_close_graph(struct graph *g);
/* Checks each logged-in connection again after the auth options have changed. */
void session_check_auth(struct graph *g);
/* Calls fn for each login of the brick, under clients_lock. */
void session_each_login(struct graph *g,
                        void (*fn)(struct conn *c, const struct brick_client *client,
                                   const struct session_login *login, void *arg),
                        void *arg);
/* Calls fn for each connection of the brick, with a reference held, without locks. */
void session_each_conn(struct graph *g, void (*fn)(struct conn *c, void *arg), void *arg);
void session_dump(struct graph *g, struct dump *d);

/* ---- a request ------------------------------------------------------------------------------- */

/* The server's state of a fop: rpc_request.own. */
struct server_request {
    /* readdirp: epochs of its start; on the arena. NULL: its names are not added to the table */
    struct inode_epochs *listed;
    unsigned step; /* used by resolve.c, as all fields below */
    uint32_t name_epoch;
    uint8_t rounds; /* how often the name has changed during the call */
    bool is_child_known, is_target_known; /* the disk was asked in this round */
    bool is_remains; /* the object has no gfid and no contents: the next LOOKUP gives it a gfid */
};
_Static_assert(sizeof(struct server_request) <= RPC_REQUEST_OWN_BYTES, "a request has room for it");

static inline struct server_request *
server_request_of(const struct rpc_request *req)
{
    return (struct server_request *)(void *)req->own;
}

/* ---- resolve.c ------------------------------------------------------------------------------- */

/* Replaces the call's gfids, names and fd numbers by inodes and fds, and winds it into the brick. A reply is
 * sent in all cases. */
void resolve_and_wind(struct rpc_request *req);

/* Handles a call that was answered FOP_NAME_CHANGED: looks its names up on the disk and winds it once more.
 * Returns false if the call has used up its rounds; its error is then ESTALE. After true the request may be
 * freed. */
bool resolve_again(struct rpc_request *req);

/* Checks `name` as an entry of the directory `parent` for this fop. Returns 0 or -errno (wire 8.2). */
int resolve_check_name(enum fop fop, const struct inode *parent, const char *name);

/* ---- fops.c ---------------------------------------------------------------------------------- */

/* Runs when the brick has answered, or the call failed before it got there: stk.reply is filled. */
void server_fop_done(struct call_stack *stk);

/* ---- bounds.c -------------------------------------------------------------------------------- */

/* The program's callback: true for calls that may wait for other calls. */
bool bounds_waits(uint32_t procedure);
enum { BOUNDS_POINTLESS = 1 };
/* Reserves room for the reply of a decoded call before it is wound. Returns 0; BOUNDS_POINTLESS: the
 * connection is gone, and the call would change nothing, so the caller drops it; or -errno: -ENOBUFS: no
 * room; -ENOLCK and -EAGAIN: too many calls of its connection wait for other calls; -EMFILE and -ENFILE: its
 * client, its brick or the process has too many open files. */
int bounds_let_in(struct rpc_request *req);

/* ---- subdir.c -------------------------------------------------------------------------------- */

/* Translate between the brick's root and the client's: the client sees directory `top` as its root. */
void subdir_translate_call(struct fop_call *call, const struct gfid *top);
void subdir_translate_reply(struct fop_reply *reply, const struct gfid *top);
void subdir_translate_invalidation(struct cache_invalidation *what, const struct gfid *top);
/* Walks `path` from the brick's root, asking the disk. Calls `walked` once, from any thread, with 0 or
 * -errno. */
struct subdir_walk {
    struct graph *graph; /* pinned by the caller */
    const char *rest;    /* unread part of the path; the bytes must live until `walked` */
    struct inode *dir;   /* a reference during the walk */
    struct gfid at;      /* the result: the directory reached */
    unsigned depth;      /* components walked */
    void (*walked)(struct subdir_walk *w, int err);
    char name[FOP_NAME_MAX + 1];
};
/* Bound on the components, else -ENAMETOOLONG, because a client that is not trusted yet makes a worker look
 * up each of them. */
#define SUBDIR_DEPTH_MAX 256
void subdir_walk(struct subdir_walk *w);

/* ---- squash.c -------------------------------------------------------------------------------- */

/* Both return 0 or -ENOMEM. After squash_caller() the groups of the resulting user may be looked up
 * (groups.h), and squash_groups() is then applied to these. */
int squash_groups(const struct server_conf *conf, const struct brick_client *client, struct caller *caller,
                  struct arena *arena);
/* squash_caller() where the options squash callers. */
int squash_by_options(const struct server_conf *conf, const struct brick_client *client,
                      struct caller *caller, struct arena *arena);
static inline int
squash_caller(const struct server_conf *conf, const struct brick_client *client, struct caller *caller,
              struct arena *arena)
{
    if (conf->root_squash || conf->all_squash)
        return squash_by_options(conf, client, caller, arena);
    caller->standing = client->is_trusted || caller->uid == 0 ? PID_COUNTS : PID_COUNTS_NOT;
    return 0;
}

#endif
