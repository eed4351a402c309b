/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* server-internal: what the files of protocol/server share.
 *
 *      connection --- session --- client --- graph (pinned by the client)
 *                                   |
 *                                 fd table
 *
 * A session is one connection's place here; it is made by its first SETVOLUME and belongs to a brick from a
 * successful one on. A request takes a reference to its session's client, which holds the brick, and needs
 * the session no more.
 *
 * Locks, in this order: a session stripe (session.c), one brick's clients_lock; a brick's groups (groups.c),
 * with none of these held. None is held over a call into a layer, a reply or a system call.
 */
#ifndef KILN_PROTOCOL_SERVER_INTERNAL_H
#define KILN_PROTOCOL_SERVER_INTERNAL_H

#include "fs/brick-client.h"
#include "graph/graph.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/limits.h"
#include "xlators/protocol/server/auth.h"
#include "xlators/protocol/server/groups.h"
#include "xlators/protocol/server/server.h"

struct server_conf {
    bool root_squash, all_squash, manage_gids, allow_insecure, strict_auth, dynamic_auth;
    int64_t anonuid, anongid;
    int64_t inode_lru_limit;
    int64_t calls_max; /* of a connection */
    int64_t login_seconds;
    int64_t gid_timeout; /* seconds */
    uint64_t reply_memory;
    int transport_type;
    /* Of the process: server_process_options(). */
    int64_t socket_port, port; /* by both of its names; -1: not given */
    char *bind_address, *statedump_path;
    char *volspec_directory, *volfile_path; /* one option by two names; NULL: not given */
};

/* The instance of one brick: xl->private. All but `groups` under graph->clients_lock. */
struct server {
    struct groups *groups; /* as long as the instance */
    struct cds_list_head sessions; /* logged in here */
    unsigned session_count;
    bool is_stopped;               /* no logins any more: the brick is being detached */
    struct auth_rules *auth;
};

static inline struct server *
server_of(const struct graph *g)
{
    return g->top->private;
}

/* A graph made from a volfile without protocol/server on top, or one that is not set up yet, has no clients.
 */
bool server_is_top(const struct graph *g);

/* Program tables: fops.c, handshake.c. */
extern const struct rpc_program server_fop_program, server_handshake_program;

/* callback.c: storage has come up or gone down: every connection of the brick is told. */
void server_child_event(struct graph *g, bool is_up);

/* server.c: struct server_listen's. */
struct graph *server_find_brick(const char *name);
struct graph *server_first_brick(void);
bool server_is_brick_changing(const char *name);

/* handshake.c: while it is so, SETVOLUME is answered ENOENT. */
void handshake_set_shutting_down(bool is_so);

/* server.c: true if the brick's auth options let this connection in with what it has shown. */
struct session_login;
bool server_auth(struct graph *g, struct conn *c, const struct session_login *login, bool *is_trusted);

/* volspec.c: the procedure GETSPEC. */
void volspec_getspec(struct rpc_request *req);

/* ---- session.c ------------------------------------------------------------------------------- */

struct session;

/* What a login has shown; copied. */
struct session_login {
    const char *username, *password, *subdir;
};

/* Before a login, from the connection's record handler: makes the session if there is none. 0 or -ENOMEM. */
int session_begin(struct conn *c);
/* The connection has ended; none of its handlers runs. */
void session_closed(struct conn *c);
/* A reference to the client this connection is logged in as; NULL: it is not. */
struct brick_client *session_client(struct conn *c);
/* The connection is now this client's, in place of whoever it was: takes over the connection counted by
 * brick_client_connect() in any case. 0, -EAGAIN (brick is being detached), -EUSERS (it has its share of
 * connections), -ENOTCONN (connection has closed), -ENOMEM. */
int session_attach(struct conn *c, struct brick_client *client, const struct session_login *login);
/* `c` is logged in as `now`: whoever the same layer of the same client's host has logged in as before is
 * ended, with its connection, fds and locks, if the brick has not heard yet that it has gone: the client has
 * given it up. Its locks are free when this returns. */
void session_end_formers(struct conn *c, const struct brick_client *now);
/* Takes one connection off a client; cleans up after the last one. */
void session_logout(struct brick_client *client);
/* Ends every connection of a brick, and lets no other log in. */
void session_close_graph(struct graph *g);
/* Looks at each logged-in connection again after the auth options have changed. */
void session_check_auth(struct graph *g);
/* Calls fn for each connection of the brick, with a reference held, without locks. */
void session_each_conn(struct graph *g, void (*fn)(struct conn *c, void *arg), void *arg);
void session_dump(struct graph *g, struct dump *d);

/* ---- a request ------------------------------------------------------------------------------- */

/* What is kept of a fop here: rpc_request.own. */
struct server_request {
    /* readdirp: when it began; on the arena. NULL: its names are not remembered */
    struct inode_epochs *listed;
    unsigned step; /* resolve.c's, as all below */
    uint32_t name_epoch;
    uint8_t rounds; /* how often the name has changed under the call */
    bool is_child_known, is_target_known; /* the disk was asked in this round */
};
_Static_assert(sizeof(struct server_request) <= RPC_REQUEST_OWN_BYTES, "a request has room for it");

static inline struct server_request *
server_request_of(const struct rpc_request *req)
{
    return (struct server_request *)(void *)req->own;
}

/* ---- resolve.c ------------------------------------------------------------------------------- */

/* Turns the call's gfids, names and fd numbers into inodes and fds, then winds it into the brick. Whatever
 * happens, the reply is sent. */
void resolve_and_wind(struct rpc_request *req);

/* Of a call that was answered FOP_NAME_CHANGED: looks its names up on the disk and winds it once more. False:
 * it has had its rounds, and the answer is now ESTALE. After true the request may be gone. */
bool resolve_again(struct rpc_request *req);

/* What is wrong with `name` as an entry of the directory `parent` for this fop: 0 or -errno (wire 8.2). */
int resolve_check_name(enum fop fop, const struct inode *parent, const char *name);

/* ---- fops.c ---------------------------------------------------------------------------------- */

/* The brick's answer has come (or the call failed before it got there): stk.reply is filled. */
void server_fop_done(struct call_stack *stk);

/* ---- bounds.c -------------------------------------------------------------------------------- */

/* The program's: the calls that may wait for others. */
bool bounds_waits(uint32_t procedure);
/* Its connection is gone, and it would change nothing. */
bool bounds_is_pointless(const struct rpc_request *req);
/* Before a decoded call is wound: reserves room for its reply. 0, or -errno: -ENOBUFS no room, -ENOLCK and
 * -EAGAIN too many calls of its connection wait for others, -EMFILE and -ENFILE its client, its brick or the
 * process has enough files open. */
int bounds_let_in(struct rpc_request *req);

/* ---- subdir.c -------------------------------------------------------------------------------- */

/* The client sees directory `top` as its root. */
void subdir_translate_call(struct fop_call *call, const struct gfid *top);
void subdir_translate_reply(struct fop_reply *reply, const struct gfid *top);
void subdir_translate_invalidation(struct cache_invalidation *what, const struct gfid *top);
/* Walks `path` from the brick's root, asking the disk. `walked` is called once, from any thread, with 0 or
 * -errno. */
struct subdir_walk {
    struct graph *graph; /* pinned by the caller */
    const char *rest;    /* of the path; the bytes live until `walked` */
    struct inode *dir;   /* a reference while it walks */
    struct gfid at;      /* the result: where it has come to */
    unsigned depth;      /* components walked */
    void (*walked)(struct subdir_walk *w, int err);
    char name[FOP_NAME_MAX + 1];
};
/* A client that may not yet be trusted has a worker look up every component: so many at most, else
 * -ENAMETOOLONG. */
#define SUBDIR_DEPTH_MAX 256
void subdir_walk(struct subdir_walk *w);

/* ---- squash.c -------------------------------------------------------------------------------- */

/* 0 or -ENOMEM. Then the groups of whom it has become may be looked up (groups.h), and squash_groups() is
 * called for what was found. */
int squash_groups(const struct server_conf *conf, const struct brick_client *client, struct caller *caller,
                  struct arena *arena);
int squash_caller(const struct server_conf *conf, const struct brick_client *client, struct caller *caller,
                  struct arena *arena);

#endif
