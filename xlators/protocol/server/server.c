/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/server: receives the clients' calls. It is the top layer of every brick's graph and, once per
 * process, the listener that serves the clients of all bricks on one port.
 *
 *   handshake.c                  login
 *   door.c                       TLS and plain connections on one port
 *   session.c                    connections
 *   auth.c, squash.c, subdir.c   permission, user and root directory of a client
 *   groups.c                     the caller's groups, as this machine has them
 *   fops.c                       receiving and answering a fop
 *   resolve.c                    gfids, names and fd numbers become objects
 *   callback.c                   calls to the client
 *   bounds.c                     bounds on a client's open files and waiting calls
 *   volspec.c                    client volfiles, for kadalu
 *
 * It keeps nothing per inode or fd and nothing on disk. Per client: struct brick_client of libglusterfs/fs
 * with its fd table. Locks: see server-internal.h.
 */
#include "xlators/protocol/server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "log/dump.h"
#include "log/log.h"
#include "rpc/transport/saved.h"
#include "xlators/protocol/server/door.h"
#include "xlators/protocol/server/server-internal.h"

static const char *const transport_types[] = {"tcp", "socket", "unix", NULL};

static const struct option server_options[] = {
    OPT_BOOL(struct server_conf, root_squash, "root-squash", "off"),
    OPT_BOOL(struct server_conf, all_squash, "all-squash", "off"),
    OPT_INT(struct server_conf, anonuid, "anonuid", "65534", 0, UINT32_MAX - 1),
    OPT_INT(struct server_conf, anongid, "anongid", "65534", 0, UINT32_MAX - 1),
    OPT_INT(struct server_conf, inode_lru_limit, "inode-lru-limit", OPT_DEFAULT(INODE_LRU_LIMIT_DEFAULT), 0,
            1048576),
    /* 0: the maximum */
    OPT_INT(struct server_conf, calls_max, "rpc.outstanding-rpc-limit", "1024", 0, TRANSPORT_CALLS_MAX),
    OPT_BOOL(struct server_conf, allow_insecure, "rpc-auth-allow-insecure", "on"),
    OPT_BOOL(struct server_conf, strict_auth, "strict-auth-accept", "off"),
    OPT_BOOL(struct server_conf, dynamic_auth, "dynamic-auth", "on"),
    OPT_PREFIX("auth."),
    OPT_IGNORED("auth-path"), /* the brick's name once more */
    OPT_BOOL(struct server_conf, manage_gids, "manage-gids", "off"),
    OPT_TIME(struct server_conf, gid_timeout, "gid-timeout", "300", 0, INT32_MAX),
    TLS_OPTIONS(struct server_conf, tls),
    OPT_INT(struct server_conf, socket_port, "transport.socket.listen-port", "-1", -1, 65535),
    OPT_STR(struct server_conf, bind_address, "transport.socket.bind-address", NULL),
    OPT_TIME(struct server_conf, login_seconds, "transport.login-timeout", "30", 1, 3600),
    OPT_SIZE(struct server_conf, reply_memory, "transport.reply-memory", "256MB", 64ull << 30),
    OPT_PREFIX("transport."), /* keepalive and similar options belong to the transport */
    /* rdma is not implemented */
    OPT_ENUM(struct server_conf, transport_type, "transport-type", "tcp", transport_types),
    OPT_INT(struct server_conf, port, "listen-port", "-1", -1, 65535),
    OPT_STR(struct server_conf, statedump_path, "statedump-path", NULL),
    OPT_STR(struct server_conf, volspec_directory, "volspec-directory", NULL),
    OPT_STR(struct server_conf, volfile_path, "volfile-path", NULL),
    OPT_IGNORED("volume-id"), /* storage's option counts */
    OPT_IGNORED("tcp-window-size"),
    OPT_IGNORED("event-threads"), /* one pool of workers serves the process */
    OPT_IGNORED("config-directory"),
    OPT_IGNORED("ping-timeout"),
    OPT_IGNORED("verify-volfile-checksum"),
    OPT_IGNORED("trace"),
    OPT_IGNORED("limits.inode-lru"),
    OPT_END,
};

/* ---- the layer ------------------------------------------------------------------------------- */

static int
server_init(struct xlator *xl, struct reason *why)
{
    const struct volfile_section *section = xl->graph->volfile->top;
    struct server *server = calloc(1, sizeof *server);

    if (!server)
        return -ENOMEM;
    CDS_INIT_LIST_HEAD(&server->sessions);
    server->groups = groups_new(xl);
    server->auth = auth_rules_new(section->options, section->option_count);
    const char *flaw = server->auth ? auth_rules_flaw(server->auth) : NULL;
    if (!server->groups || !server->auth || flaw) {
        if (flaw)
            reason_set(why, -EINVAL, "option %s: expected addresses, ADDRESS/BITS, names or /FOLDER(...)",
                       flaw);
        auth_rules_unref(server->auth);
        groups_free(server->groups);
        free(server);
        return flaw ? -EINVAL : -ENOMEM;
    }
    int err = door_enter(xl->graph->name, &((const struct server_conf *)xlator_conf(xl))->tls, why);
    if (err) {
        auth_rules_unref(server->auth);
        groups_free(server->groups);
        free(server);
        return err;
    }
    server->has_tls = ((const struct server_conf *)xlator_conf(xl))->tls.is_on;
    xl->private = server;
    inode_table_set_limit(xl->graph->inodes,
                          (uint32_t)((const struct server_conf *)xlator_conf(xl))->inode_lru_limit);
    return 0;
}

static void
server_fini(struct xlator *xl)
{
    struct server *server = xl->private;

    door_leave(server->has_tls);
    auth_rules_unref(server->auth);
    groups_free(server->groups);
    free(server);
    xl->private = NULL;
}

static int
server_start(struct xlator *xl)
{
    struct server *server = xl->private;

    pthread_mutex_lock(&xl->graph->clients_lock);
    server->is_stopped = false;
    pthread_mutex_unlock(&xl->graph->clients_lock);
    groups_start(server->groups);
    return 0;
}

static void
server_stop(struct xlator *xl)
{
    session_close_graph(xl->graph);
    groups_stop(((struct server *)xl->private)->groups);
}

static void
set_calls_max(struct conn *c, void *arg)
{
    const struct server_conf *conf = arg;

    conn_set_calls_max(c, (unsigned)conf->calls_max);
}

static void
server_reconfigured(struct xlator *xl, const void *old)
{
    const struct server_conf *conf = xlator_conf(xl), *was = old;
    struct server *server = xl->private;
    struct volfile *fresh = xl->graph->volfile_fresh;
    struct auth_rules *rules = auth_rules_new(fresh->top->options, fresh->top->option_count);

    if (conf->inode_lru_limit != was->inode_lru_limit)
        inode_table_set_limit(xl->graph->inodes, (uint32_t)conf->inode_lru_limit);
    if (conf->calls_max != was->calls_max)
        session_each_conn(xl->graph, set_calls_max, (void *)conf);
    if (!rules) {
        log_event(LOG_ERROR, xl, "auth-no-memory",
                  "no memory for the new auth options: the old ones stay in force");
        return;
    }
    const char *flaw = auth_rules_flaw(rules);
    if (flaw) {
        log_event(LOG_ERROR, xl, "auth-list-new",
                  "option %s cannot be read: the old auth options stay in force", flaw);
        auth_rules_unref(rules);
        return;
    }
    pthread_mutex_lock(&xl->graph->clients_lock);
    struct auth_rules *replaced = server->auth;
    server->auth = rules;
    pthread_mutex_unlock(&xl->graph->clients_lock);
    auth_rules_unref(replaced);
    if (conf->dynamic_auth)
        session_check_auth(xl->graph);
}

static void
server_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    bool is_up = event == CHILD_UP;

    (void)child;
    if (atomic_exchange(&xl->graph->is_child_up, is_up) == is_up)
        return;
    server_child_event(xl->graph, is_up);
    xlator_tell_parent(xl, event);
}

static bool
server_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CHILD)
        server_notify(xl, e->child, e->change);
    return e->kind == EVENT_CHILD;
}

static void
server_dump(struct xlator *xl, struct dump *d)
{
    session_dump(xl->graph, d);
    groups_dump(((struct server *)xl->private)->groups, d);
}

const struct xlator_type protocol_server_xlator = {
    .name = "protocol/server",
    .options = server_options,
    .at_start = (const char *const[]){"transport-type", "listen-port", "transport.socket.listen-port",
                                      "transport.socket.bind-address", "transport.login-timeout",
                                      "transport.reply-memory", TLS_OPTION_KEYS, NULL},
    .conf_size = sizeof(struct server_conf),
    .init = server_init,
    .fini = server_fini,
    .reconfigured = server_reconfigured,
    .event = server_event,
    .dump = server_dump,
    .start = server_start,
    .stop = server_stop,
};

bool
server_is_top(const struct graph *g)
{
    return g->top->type == &protocol_server_xlator && server_of(g);
}

const char *
server_tls_mismatch(const struct graph *g, const struct conn *c)
{
    bool has_tls = conn_tls_name(c) != NULL;

    if (server_of(g)->has_tls == has_tls)
        return NULL;
    return has_tls ? "the brick has no TLS (server.ssl is off), and the client speaks TLS (client.ssl is on)"
                   : "the brick demands TLS (server.ssl is on), and the client speaks without (client.ssl is "
                     "off)";
}

bool
server_auth(struct graph *g, struct conn *c, const struct session_login *login, bool *is_trusted,
            const char **refusal)
{
    const struct server_conf *conf = xlator_conf(g->top);
    const struct auth_question question = {.brick = g->name,
                                           .peer = conn_peer(c),
                                           .username = login->username,
                                           .password = login->password,
                                           .tls_name = conn_tls_name(c),
                                           .subdir = login->subdir ? login->subdir : "/",
                                           .allow_insecure = conf->allow_insecure,
                                           .is_strict = conf->strict_auth};

    pthread_mutex_lock(&g->clients_lock);
    struct auth_rules *rules = auth_rules_ref(server_of(g)->auth);
    pthread_mutex_unlock(&g->clients_lock);

    bool is_accepted = auth_check(rules, &question, is_trusted);
    *refusal = is_accepted ? NULL : auth_refusal(rules, &question);
    auth_rules_unref(rules);
    return is_accepted;
}

/* ---- the process's listeners ----------------------------------------------------------------- */

static struct rpc_server *rpc_server;
static struct listener *tcp_listener;
/* this and the next two: set before the first listener is open */
static struct graph *(*find_brick)(const char *name);
static struct graph *(*first_brick)(void);
static bool (*is_brick_changing)(const char *name);

static void
connection_closed(struct conn *c, void *arg)
{
    (void)arg;
    session_closed(c);
}

struct graph *
server_find_brick(const char *name)
{
    return find_brick(name);
}

struct graph *
server_first_brick(void)
{
    return first_brick ? first_brick() : NULL;
}

bool
server_is_brick_changing(const char *name)
{
    return is_brick_changing && is_brick_changing(name);
}

struct conn *
server_restore_conn(struct parcel *from)
{
    return conn_restore(from, &rpc_server_transport_ops, rpc_server);
}

struct server_process_options
server_process_options(const struct graph *g)
{
    struct server_process_options o = {.port = -1};

    if (server_is_top(g)) {
        const struct server_conf *conf = xlator_conf(g->top);

        o.port = conf->socket_port >= 0 ? conf->socket_port : conf->port;
        o.bind_address = conf->bind_address;
        o.statedump_path = conf->statedump_path;
        o.volspec_directory = conf->volspec_directory ? conf->volspec_directory : conf->volfile_path;
    }
    return o;
}

void
server_set_limits(const struct graph *g)
{
    const struct server_conf *conf = xlator_conf(g->top);

    if (!server_is_top(g))
        return;
    transport_limits.login_ms = (unsigned)conf->login_seconds * 1000;
    transport_limits.reply_bytes_all = conf->reply_memory;
}

int
server_listen_start(const struct server_listen *listen, uint16_t *port_out, char *error, size_t error_size)
{
    static const struct rpc_program *const all[] = {&server_fop_program, &rpc_dump_program,
                                                    &server_handshake_program, &rpc_sequence_program, NULL};
    static const struct rpc_program *const singles[] = {&server_fop_program, &rpc_dump_program,
                                                        &server_handshake_program,
                                                        &rpc_unlisted_sequence_program, NULL};
    const struct rpc_program *const *programs = listen->no_sequences ? singles : all;
    int err = 0;

    handshake_set_shutting_down(false);
    rpc_server = rpc_server_pools_init() == 0 ? rpc_server_new(programs, connection_closed, NULL) : NULL;
    if (!rpc_server) {
        snprintf(error, error_size, "no memory");
        return -ENOMEM;
    }
    rpc_server_set_tls(rpc_server, door_config);
    find_brick = listen->find_brick;
    first_brick = listen->first_brick;
    is_brick_changing = listen->is_brick_changing;
    if (listen->restore)
        listen->restore();
    tcp_listener = listener_open_tcp(listen->host, listen->port, &rpc_server_transport_ops, rpc_server, &err);
    if (!tcp_listener) {
        snprintf(error, error_size, "cannot listen on %s port %u: %s",
                 listen->host ? listen->host : "any address", listen->port, strerror(-err));
        transport_close_all(); /* restored ones */
        rpc_server_free(rpc_server);
        rpc_server = NULL;
        return err;
    }
    if (port_out)
        *port_out = listener_port(tcp_listener);
    return 0;
}

void
server_listen_stop(void)
{
    if (!rpc_server)
        return;
    listener_close(tcp_listener);
    tcp_listener = NULL;
    handshake_set_shutting_down(true);
    transport_quiesce();
    transport_close_all(); /* after this, all calls of session_closed() have returned */
    rpc_server_free(rpc_server);
    rpc_server = NULL;
}
