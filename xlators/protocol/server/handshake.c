/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* handshake: the program that logs a connection in to a brick, and a few procedures of old clients (spec:
 * wire 3).
 *
 * SETVOLUME's checks run in stock's order, because clients react differently to each error: EACCES ends a
 * mount, EAGAIN is retried.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "rpc/transport/fop-path.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "xlators/protocol/server/server-internal.h"

static atomic_bool is_shutting_down;

/* A running SETVOLUME, on its request's arena. */
struct login {
    struct rpc_request *req;
    struct dict *args;
    struct graph *graph; /* pinned, until brick_client_connect() takes over the pin */
    const char *uid;
    struct session_login shown;
    struct brick_client_facts facts;
    struct subdir_walk walk;
    const char *refusal; /* the option that refuses the login, for the log alone */
};

void
handshake_set_shutting_down(bool is_so)
{
    atomic_store(&is_shutting_down, is_so);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
reply_common(struct rpc_request *req, const struct common_reply *reply)
{
    size_t size = xdr_common_reply_size(reply);
    char *body = arena_alloc(&req->stk.arena, size);
    struct xdr x;

    if (!body) {
        /* without memory for the answer, at least this error is sent */
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    xdr_init(&x, body, size, NULL);
    xdr_put_common_reply(&x, reply);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
}

static void
login_refuse(struct login *l, int err, bool is_down, const char *why)
{
    struct common_reply reply = {.op_ret = -1, .op_errno = err, .dict = dict_new(&l->req->stk.arena)};

    char address[AUTH_PEER_TEXT];

    auth_peer_text(conn_peer(l->req->conn), address);
    log_event(LOG_WARNING, l->graph ? l->graph->top : NULL, "login-refused",
              "%s: login refused: %s (%s)%s%s; %s", address, why, strerror(err), l->refusal ? ": " : "",
              l->refusal ? l->refusal : "", l->uid ? l->uid : "a client without a name");
    if (reply.dict) { /* the texts appear in the client's log */
        (void)dict_set_str(reply.dict, DICT_KEY_ERROR, why);
        if (is_down)
            (void)dict_set_int(reply.dict, DICT_KEY_CHILD_UP, 0);
    }
    if (l->graph)
        graph_unpin(l->graph);
    l->graph = NULL;
    reply_common(l->req, &reply);
}

/* The same for the lifetime of the process. */
static char process_uuid[GFID_TEXT_SIZE];

static void
make_process_uuid(void)
{
    struct gfid g;

    gfid_random(&g);
    gfid_text(&g, process_uuid);
}

static void
accept_login(struct login *l, const struct brick_client *client)
{
    struct common_reply reply = {.dict = dict_new(&l->req->stk.arena)};
    struct dict *d = reply.dict;
    const struct graph *g = client->graph;
    int err = d ? 0 : -ENOMEM;
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_process_uuid);
    if (!err)
        err = dict_set_str(d, DICT_KEY_ERROR, "Success");
    if (!err)
        err = dict_set_str(d, DICT_KEY_PROCESS_UUID, process_uuid);
    if (!err && !gfid_is_null(&g->volume_id))
        err = dict_set_str(d, DICT_KEY_SV_VOLUME_ID, GFID(&g->volume_id));
    if (!err)
        err = dict_set_int(d, DICT_KEY_CHILD_UP, 1);
    if (!err)
        err = dict_set_int(d, DICT_KEY_CLNT_LK_VERSION, 0);
    if (!err)
        err = dict_set_uint(d, DICT_KEY_TRANSPORT_PTR, client->id);
    if (!err) /* tells Kiln's client that it need not take such locks before a removal */
        err = dict_set_int(d, DICT_KEY_REMOVALS_PASS, 1);
    if (!err) /* ... and may keep a lock on a folder's names until another client waits for the lock */
        err = dict_set_int(d, DICT_KEY_NAMES_NOTICES, 1);
    if (!err) /* ... and may ask for notes about names that a rename changes */
        err = dict_set_int(d, DICT_KEY_KEEPS_NAME_NOTES, 1);
    struct gfid token; /* of a client in this process that offers to call without bytes */
    const struct dict_pair *inside = dict_find_text(l->args, FOP_PATH_KEY);

    if (inside && (inside->type == DICT_STR || inside->type == DICT_UNTYPED) &&
        inside->len == GFID_TEXT_SIZE && !gfid_parse(inside->v.bytes, GFID_TEXT_SIZE - 1, &token))
        (void)rpc_inside_accept(l->req, &token); /* else the client's fops come as bytes */
    (void)err; /* current clients need none of these keys (wire 3.3) */
    reply_common(l->req, &reply);
}

/* ---- SETVOLUME ------------------------------------------------------------------------------- */

/* Connections with the same uid and the same credential belong to the same client (wire 3.5). */
static uint32_t
credential_key(const struct rpc_request *req, uint8_t key[BRICK_CLIENT_CRED_MAX])
{
    const struct caller *c = &req->stk.caller;
    uint32_t head[] = {req->cred_flavor, (uint32_t)c->pid, c->uid, c->gid, c->group_count};
    size_t groups = c->group_count * sizeof c->groups[0];

    if (req->cred_flavor == CRED_NONE || sizeof head + groups + c->lk_owner.len > BRICK_CLIENT_CRED_MAX)
        return 0;
    memcpy(key, head, sizeof head);
    if (groups)
        memcpy(key + sizeof head, c->groups, groups);
    if (c->lk_owner.len)
        memcpy(key + sizeof head + groups, c->lk_owner.bytes, c->lk_owner.len);
    return (uint32_t)(sizeof head + groups + c->lk_owner.len);
}

static void
log_in(struct login *l)
{
    uint8_t cred[BRICK_CLIENT_CRED_MAX];
    struct brick_client_key key = {.uid = l->uid, .cred = cred, .cred_bytes = credential_key(l->req, cred)};
    struct brick_client *client = brick_client_connect(l->graph, &key, &l->facts);

    if (!client) {
        login_refuse(l, ENOMEM, false, "no memory");
        return;
    }
    l->graph = NULL; /* now the client's */
    /* a reference for this function, because the session may drop its own at any time */
    brick_client_ref(client);
    int err = session_attach(l->req->conn, client, &l->shown);
    if (err) {
        if (err == -EUSERS)
            login_refuse(l, EAGAIN, false, "the brick has as many connections as are left for all others");
        else
            login_refuse(l, -err, err == -EAGAIN, "the brick is being detached");
    } else {
        const struct server_conf *conf = xlator_conf(client->graph->top);

        conn_set_calls_max(l->req->conn, (unsigned)conf->calls_max);
        conn_set_trusted(l->req->conn);
        char address[AUTH_PEER_TEXT];

        auth_peer_text(conn_peer(l->req->conn), address);
        log_event(LOG_INFO, client->graph->top, "login", "%s (%s, %s) is connected%s: %s", address,
                  client->process_name, client->version, client->is_trusted ? ", trusted" : "", client->uid);
        session_end_formers(l->req->conn, client);
        accept_login(l, client);
    }
    brick_client_unref(client);
}

static void
subdir_found(struct subdir_walk *w, int err)
{
    struct login *l = caa_container_of(w, struct login, walk);

    if (err) {
        login_refuse(l, -err, false, "subdir-mount cannot be found");
        return;
    }
    if (!gfid_is_root(&w->at))
        l->facts.subdir_gfid = w->at;
    log_in(l);
}

/* Checks 4 to 9 of the table, up to those that need the disk. */
static void
login_check_brick(struct login *l)
{
    const char *volume_id = dict_get_str(l->args, DICT_KEY_SV_VOLUME_ID), *mismatch;
    struct graph *g = l->graph;
    struct gfid id;
    int64_t version;

    if (g && !atomic_load(&g->is_child_up)) {
        login_refuse(l, EAGAIN, true, "the brick is down");
    } else if (!l->uid) {
        login_refuse(l, EINVAL, false, "no usable process-uuid in the request");
    } else if (g && volume_id && !gfid_is_null(&g->volume_id) &&
               (gfid_parse(volume_id, strlen(volume_id), &id) || !gfid_equal(&id, &g->volume_id))) {
        login_refuse(l, EINVAL, false, "volume-id is another volume's");
    } else if (g && atomic_load(&g->is_draining)) {
        login_refuse(l, EAGAIN, true, "the brick is being detached");
    } else if (dict_get_int(l->args, DICT_KEY_FOPS_VERSION, &version) || version != FOP_PROGRAM) {
        login_refuse(l, EINVAL, false, "fops-version is not 1298437");
    } else if (!g && server_is_brick_changing(dict_get_str(l->args, DICT_KEY_REMOTE_SUBVOLUME))) {
        login_refuse(l, EAGAIN, true, "the brick is being attached or detached");
    } else if (!g) {
        login_refuse(l, ENOENT, false, "remote-subvolume is no brick of this process");
    } else if ((mismatch = server_tls_mismatch(g, l->req->conn))) {
        login_refuse(l, EACCES, false, mismatch);
    } else if (!server_auth(g, l->req->conn, &l->shown, &l->facts.is_trusted, &l->refusal)) {
        login_refuse(l, EACCES, false, "authentication failed");
    } else {
        l->walk = (struct subdir_walk){
            .graph = g, .rest = l->shown.subdir ? l->shown.subdir : "", .walked = subdir_found};
        subdir_walk(&l->walk);
    }
}

/* Returns the text if it may appear in logs and statedumps, else `otherwise`. */
static const char *
text_or(const struct dict *d, enum dict_key key, const char *otherwise)
{
    const char *text = dict_get_str(d, key);

    if (!text || !*text || strlen(text) > BRICK_CLIENT_UID_MAX)
        return otherwise;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return otherwise;
    return text;
}

static void
read_facts(struct login *l)
{
    int64_t opversion = 0;

    (void)dict_get_int(l->args, DICT_KEY_OPVERSION, &opversion); /* may be missing */
    l->uid = text_or(l->args, DICT_KEY_PROCESS_UUID, NULL);
    l->facts = (struct brick_client_facts){.process_name = text_or(l->args, DICT_KEY_PROCESS_NAME, "unknown"),
                                     .version = text_or(l->args, DICT_KEY_CLIENT_VERSION, ""),
                                     .opversion = (int)opversion};
    l->shown = (struct session_login){dict_get_str(l->args, DICT_KEY_USERNAME),
                                      dict_get_str(l->args, DICT_KEY_PASSWORD),
                                      dict_get_str(l->args, DICT_KEY_SUBDIR_MOUNT)};
}

static void
handshake_setvolume(struct rpc_request *req)
{
    struct login *l = arena_zalloc(&req->stk.arena, sizeof *l);
    struct xdr outer;
    uint32_t len;

    xdr_pull(&req->args, xdr_left_total(&req->args));
    outer = req->args;
    xdr_get_opaque(&outer, UINT32_MAX, &len);
    if (!l || outer.error || session_begin(req->conn)) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    l->req = req;
    l->args = xdr_get_old_dict(&req->args);
    const char *brick = dict_get_str(l->args, DICT_KEY_REMOTE_SUBVOLUME);
    if (!l->args) {
        login_refuse(l, EINVAL, false, "the request's dict cannot be read");
    } else if (!brick) {
        login_refuse(l, EINVAL, false, "no remote-subvolume in the request");
    } else if (atomic_load(&is_shutting_down)) {
        login_refuse(l, ENOENT, false, "the process is shutting down");
    } else {
        read_facts(l);
        l->graph = server_find_brick(brick);
        if (l->graph && !server_is_top(l->graph)) {
            graph_unpin(l->graph);
            l->graph = NULL;
        }
        login_check_brick(l);
    }
}

/* ---- other procedures ------------------------------------------------------------------------ */

static void
answer_zeros(struct rpc_request *req)
{
    reply_common(req, &(struct common_reply){0});
}

static void
set_lk_ver(struct rpc_request *req)
{
    struct set_lk_ver call;
    char body[16];
    struct xdr x;

    xdr_pull(&req->args, xdr_left_total(&req->args));
    xdr_get_set_lk_ver_call(&req->args, &call);
    if (req->args.error) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_set_lk_ver_reply(&x, call.version);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
}

static const struct rpc_procedure procedures[HANDSHAKE_PROCEDURE_COUNT] = {
    [HANDSHAKE_NULL] = {"NULL", answer_zeros},
    [HANDSHAKE_SETVOLUME] = {"SETVOLUME", handshake_setvolume},
    [HANDSHAKE_GETSPEC] = {"GETSPEC", volspec_getspec},
    [HANDSHAKE_PING] = {"PING", answer_zeros},
    [HANDSHAKE_SET_LK_VER] = {"SET_LK_VER", set_lk_ver},
};

const struct rpc_program server_handshake_program = {
    .name = "GlusterFS Handshake",
    .number = HANDSHAKE_PROGRAM,
    .version = HANDSHAKE_PROGRAM_VERSION,
    .procedures = procedures,
    .procedure_count = HANDSHAKE_PROCEDURE_COUNT,
    .is_listed = true,
};
