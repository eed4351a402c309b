/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/volfile-server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bricks/bricks.h"
#include "data/dict.h"
#include "graph/graph.h"
#include "log/log.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/tls-config.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/portmap-program.h"
#include "volumes/cluster/cluster.h"
#include "volumes/volfile-text.h"
#include "volumes/volumes.h"

/* Written before the listener opens, read only afterwards. */
static uint16_t brick_port;
static struct rpc_server *server;
static struct listener *listener;

/* ---- GETSPEC --------------------------------------------------------------------------------- */

/* Extracts the volume from a key: "/VOL", "VOL" or "VOL.tcp". Returns NULL if the key is not one of a
 * volume. */
static const char *
volume_of_key(const char *key, char name[VOLUME_NAME_MAX + 1])
{
    key += *key == '/';
    size_t len = strcspn(key, ".");

    if (len == 0 || len > VOLUME_NAME_MAX || (key[len] && strcmp(key + len, ".tcp") != 0))
        return NULL;
    memcpy(name, key, len);
    name[len] = '\0';
    return name;
}

/* Formats the address at which the client reached this process, for use in its volfile. */
static int
own_address_text(const struct conn *c, char text[INET6_ADDRSTRLEN], struct volfile_place *place)
{
    struct sockaddr_storage a;
    int err = conn_local(c, &a);

    *place = (struct volfile_place){.host = text};
    if (err)
        return err;
    const struct sockaddr_in6 *six = (const void *)&a;
    if (a.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, INET6_ADDRSTRLEN);
    } else if (a.ss_family == AF_INET6) {
        place->is_ipv6 = true;
        inet_ntop(AF_INET6, &six->sin6_addr, text, INET6_ADDRSTRLEN);
    } else {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)&a)->sin_addr, text, INET6_ADDRSTRLEN);
    }
    return 0;
}

static bool
op_version(const struct dict *d, const char *key, uint32_t *out)
{
    const struct dict_pair *p = d ? dict_find_text(d, key) : NULL;
    int64_t value;

    if (!p || dict_pair_int(p, &value) || value < 0 || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* Reads the op-versions that the client supports. A client that sends none supports none, as glusterd
 * assumes. */
static struct op_versions
op_versions_of(const struct dict *d)
{
    struct op_versions known;
    bool is_said = op_version(d, "min-op-version", &known.min) && op_version(d, "max-op-version", &known.max);

    return is_said ? known : (struct op_versions){.min = 1, .max = 0};
}

static char *
spec_of(struct rpc_request *req, const struct getspec_call *call, uint32_t *needed, int *err)
{
    const struct op_versions known = op_versions_of(call->xdata);
    char name[VOLUME_NAME_MAX + 1], address[INET6_ADDRSTRLEN];
    struct volfile_place place;

    if (!cluster_has_read()) { /* the copy of the volume may be old */
        *err = -EHOSTDOWN;
        return NULL;
    }
    if (!volume_of_key(call->key, name)) {
        *err = -ENOENT;
        return NULL;
    }
    *err = own_address_text(req->conn, address, &place);
    char *text = *err ? NULL : volumes_client_volfile(name, &place, &known, needed, err);
    if (!text)
        return NULL;
    /* As a guest the client is notified of all later changes. A change just before this point is in the
     * second text. */
    conn_set_guest(req->conn);
    free(text);
    return volumes_client_volfile(name, &place, &known, needed, err);
}

static void
getspec(struct rpc_request *req)
{
    struct getspec_call call;
    uint32_t needed = 0;
    int err;

    xdr_get_getspec_call(&req->args, &call);
    if (req->args.error) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    char *text = spec_of(req, &call, &needed, &err);
    if (!text && err == -EOPNOTSUPP) {
        log_event(
            LOG_WARNING, NULL, "volfile-op-version",
            "a client asks for the volfile '%.200s' and is too old for it: it does not know op-version %u",
            call.key, needed);
    } else if (!text) {
        log_event(LOG_WARNING, NULL, "volfile-refused", "a client asks for the volfile '%.200s': %s",
                  call.key,
                  err == -EAGAIN      ? "the volume is not started"
                  : err == -EHOSTDOWN ? "this host has not reached its store yet"
                                      : strerror(-err));
    }
    rpc_reply_volfile(req, text, text ? 0 : err);
    free(text);
}

/* ---- GET_VOLUME_INFO ------------------------------------------------------------------------- */

/* Puts the id of the volume that the client names into *out. Returns 0 or -errno. */
static int
volume_info_of(const struct dict *asked, struct dict **out, struct arena *arena)
{
    const struct dict_pair *name = asked ? dict_find_text(asked, "volname") : NULL;
    const char *text = name ? dict_pair_str(name) : NULL;
    struct gfid id;
    int err = cluster_has_read() ? 0 : -EHOSTDOWN; /* the copy of the volume may be old */

    if (!err)
        err = text ? volumes_id(text, &id) : -EINVAL;
    if (err)
        return err;
    *out = dict_new(arena);
    return *out ? dict_set_text(*out, "volume_id", DICT_STR, GFID(&id), GFID_TEXT_SIZE) : -ENOMEM;
}

static void
get_volume_info(struct rpc_request *req)
{
    struct dict *info = NULL, *asked = xdr_get_old_dict(&req->args);

    if (req->args.error) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    int err = volume_info_of(asked, &info, &req->stk.arena);
    const struct volume_info_reply r = {.op_ret = err ? -1 : 0,
                                        .op_errno = -err,
                                        .op_errstr = err ? strerror(-err) : "",
                                        .dict = err ? NULL : info};
    char body[256];
    struct xdr x;

    _Static_assert(sizeof body >= 8 + 4 + 128 + 4 + 64, "an error's text, or the dict with the id");
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_volume_info_reply(&x, &r);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
}

/* Replies with op_ret 0, op_errno 0 and no dict. */
static void
reply_zeros(struct rpc_request *req)
{
    static const char body[COMMON_REPLY_BYTES_MIN];

    rpc_reply(req, body, sizeof body, NULL, NULL, 0);
}

/* ---- the port map ---------------------------------------------------------------------------- */

static void
port_by_brick(struct rpc_request *req)
{
    struct port_by_brick_reply r = {.op_ret = -1};
    const char *brick;
    char body[16];
    struct xdr x;

    xdr_get_string(&req->args, &brick, PORTMAP_BRICK_MAX, -EBADMSG);
    if (req->args.error) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    struct graph *g = bricks_find(brick);
    if (g) {
        r = (struct port_by_brick_reply){.port = brick_port};
        graph_unpin(g);
    }
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_port_by_brick_reply(&x, &r);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
}

static const struct rpc_procedure handshake_procedures[] = {
    [HANDSHAKE_NULL] = {"NULL", reply_zeros},
    [HANDSHAKE_SETVOLUME] = {"SETVOLUME", NULL}, /* only the port of the bricks has it */
    [HANDSHAKE_GETSPEC] = {"GETSPEC", getspec},
    [HANDSHAKE_PING] = {"PING", reply_zeros},
    [HANDSHAKE_SET_LK_VER] = {"SET_LK_VER", NULL},
    [HANDSHAKE_GET_VOLUME_INFO] = {"GET_VOLUME_INFO", get_volume_info},
};

static const struct rpc_program handshake_program = {
    .name = "Gluster Handshake",
    .number = HANDSHAKE_PROGRAM,
    .version = HANDSHAKE_PROGRAM_VERSION,
    .procedures = handshake_procedures,
    .procedure_count = sizeof handshake_procedures / sizeof handshake_procedures[0],
    .is_listed = true,
};

static const struct rpc_procedure portmap_procedures[] = {
    [PORTMAP_NULL] = {"NULL", NULL},
    [PORTMAP_PORTBYBRICK] = {"PORTBYBRICK", port_by_brick},
};

static const struct rpc_program portmap_program = {
    .name = "Gluster Portmap",
    .number = PORTMAP_PROGRAM,
    .version = PORTMAP_PROGRAM_VERSION,
    .procedures = portmap_procedures,
    .procedure_count = sizeof portmap_procedures / sizeof portmap_procedures[0],
    .is_listed = true, /* clients see by the list that bricks have another port */
};

static const struct rpc_program *const programs[] = {&rpc_dump_program, &handshake_program, &portmap_program,
                                                     NULL};

/* With management TLS no volfile leaves in clear. */
static struct tls_config *
management_config(bool *allows_plain)
{
    *allows_plain = false;
    return tls_management() ? tls_config_ref(tls_management()) : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int
volfile_server_start(uint16_t port, uint16_t bricks_at, char *error, size_t error_size)
{
    int err = 0;

    brick_port = bricks_at;
    server = rpc_server_new(programs, NULL, NULL);
    if (!server) {
        snprintf(error, error_size, "no memory");
        return -ENOMEM;
    }
    rpc_server_set_tls(server, management_config);
    listener = listener_open_tcp(NULL, port, &rpc_server_transport_ops, server, &err);
    if (!listener)
        snprintf(error, error_size, "cannot listen on port %u, where clients ask for volfiles: %s%s", port,
                 strerror(-err), err == -EADDRINUSE ? " (does a glusterd run?)" : "");
    return err;
}

void
volfile_server_stop(void)
{
    if (listener)
        listener_close(listener);
    listener = NULL;
}

void
volfile_server_free(void)
{
    if (server)
        rpc_server_free(server);
    server = NULL;
}
