/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/brick-ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/read-section.h"
#include "bricks/bricks.h"
#include "bricks/management.h"
#include "graph/graph.h"
#include "log/log.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/saved.h"
#include "rpc/xdr/brick-op-program.h"
#include "xlators/debug/io-stats/io-stats.h"
#include "xlators/features/barrier/barrier.h"

enum { ERROR_BYTES = 1024 };

static struct brick_ops_hooks hooks;
static struct rpc_server *server;
static struct listener *listener;

/* ---- answers --------------------------------------------------------------------------------- */

static void
reply(struct rpc_request *req, int err, struct dict *output, const char *why)
{
    struct brick_op_reply r = {.op_ret = err ? -1 : 0,
                               .op_errno = -err,
                               .output = output ? output : dict_new(&req->stk.arena),
                               .op_errstr = why};
    size_t size = xdr_brick_op_reply_size(&r);
    char *body = arena_alloc(&req->stk.arena, size);
    struct xdr x;

    if (!body || !r.output) {
        conn_close(req->conn); /* the asker knows at once, and asks again */
        rpc_request_drop(req);
        return;
    }
    xdr_init(&x, body, size, NULL);
    xdr_put_brick_op_reply(&x, &r);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
}

static void
refuse(struct rpc_request *req, const char *why)
{
    reply(req, -EOPNOTSUPP, NULL, why);
}

/* False: answered, with "garbage". */
static bool
read_call(struct rpc_request *req, struct brick_op_call *call)
{
    xdr_get_brick_op_call(&req->args, call);
    if (!req->args.error)
        return true;
    rpc_reply_error(req, RPC_GARBAGE_ARGS);
    return false;
}

static struct xlator *
layer_of(struct graph *g, const char *type)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        if (strcmp(g->layers[i].type->name, type) == 0)
            return &g->layers[i];
    }
    return NULL;
}

/* The text of a pair of the request; NULL: none. */
static const char *
input_text(const struct brick_op_call *call, const char *key)
{
    const struct dict_pair *p = dict_find_text(call->input, key);

    return p ? dict_pair_str(p) : NULL;
}

static int64_t
input_number(const struct brick_op_call *call, const char *key)
{
    const struct dict_pair *p = dict_find_text(call->input, key);
    int64_t value;

    return p && dict_pair_int(p, &value) == 0 ? value : 0;
}

/* ---- profile, top, barrier, status ----------------------------------------------------------- */

/* A question to io-stats, on the request's arena. */
struct info {
    struct rpc_request *req;
    struct graph *g;       /* a pin */
    struct xlator *stats;
    const struct dict *input;
    struct dict *output;
};

static void
answer_info(struct info *i, int err)
{
    if (!err) {
        read_section_begin();
        err = io_stats_info(i->stats, i->input, i->output);
        read_section_end();
    }
    graph_unpin(i->g);
    reply(i->req, err, err ? NULL : i->output, err ? strerror(-err) : "");
}

/* In a thread that may block. */
static void
measure_and_answer(int err, const char *error, void *arg)
{
    struct info *i = arg;

    (void)error;
    answer_info(i, err ? err : io_stats_throughput(i->stats, i->input, i->output));
}

static void
xlator_info(struct rpc_request *req)
{
    struct brick_op_call call;
    char why[ERROR_BYTES];

    if (!read_call(req, &call))
        return;
    struct graph *g = bricks_find(call.name);
    struct info *i = arena_alloc(&req->stk.arena, sizeof *i);
    struct xlator *stats = g ? layer_of(g, "debug/io-stats") : NULL;
    struct dict *output = dict_new(&req->stk.arena);

    if (!stats || !output || !i) {
        if (g)
            graph_unpin(g);
        snprintf(why, sizeof why, "xlator %s is not loaded", call.name);
        reply(req, stats ? -ENOMEM : -EOPNOTSUPP, NULL, stats ? "no memory" : why);
        return;
    }
    *i = (struct info){req, g, stats, call.input, output};
    if (!io_stats_wants_throughput(stats, call.input)) {
        answer_info(i, 0);
        return;
    }
    int err = bricks_post(BRICK_WORK, NULL, NULL, measure_and_answer, i);
    if (err)
        answer_info(i, err);
}

static void
barrier(struct rpc_request *req)
{
    struct brick_op_call call;
    const char *why = "";
    bool is_on;

    if (!read_call(req, &call))
        return;
    const char *wanted = input_text(&call, "barrier");
    struct graph *g = bricks_find(call.name);
    struct xlator *layer = g ? layer_of(g, "features/barrier") : NULL;
    int err = -EINVAL;

    if (!g)
        why = "the brick is not in this process";
    else if (!layer)
        why = "the brick has no barrier";
    else if (!wanted || option_bool(wanted, &is_on))
        why = "barrier: expected enable or disable";
    else if ((err = barrier_switch(layer, is_on)))
        why = "Failed to reconfigure barrier.";
    if (g)
        graph_unpin(g);
    reply(req, err, NULL, why);
}

static void
status(struct rpc_request *req)
{
    struct brick_op_call call;
    const char *why = "the brick is not in this process";
    int err = -ENOENT;

    if (!read_call(req, &call))
        return;
    const char *name = input_text(&call, "brick-name");
    struct graph *g = name ? bricks_find(name) : NULL;
    struct dict *output = dict_new(&req->stk.arena);

    if (g && output)
        err = status_answer(g, input_number(&call, "cmd"), &(struct status_asker){&req->stk.caller, req->xid},
                            output, &why);
    if (g)
        graph_unpin(g);
    reply(req, err, err ? NULL : output, err ? why : "");
}

/* ---- attach and terminate -------------------------------------------------------------------- */

/* The volfile id: the file's name without ".vol", for a snapshot the path from /snaps/ on (management 4.10).
 */
static char *
id_of_path(const char *path)
{
    const char *snaps = strstr(path, "/snaps/"), *slash = strrchr(path, '/');
    const char *start = snaps ? snaps : slash ? slash + 1 : path;
    size_t len = strlen(start);

    if (len > 4 && strcmp(start + len - 4, ".vol") == 0)
        len -= 4;
    return strndup(start, len);
}

struct attach {
    struct rpc_request *req;
    char name[];
};

static void
not_attached(const char *name)
{
    struct graph *g = bricks_find(name);

    management_not_attached(name, g != NULL);
    if (g)
        graph_unpin(g);
}

/* In the thread of the attach. */
static void
attached(int err, const char *error, void *arg)
{
    struct attach *a = arg;

    if (err) {
        log_event(LOG_ERROR, NULL, "brick-op-attach", "brick %s is not attached: %s", a->name, error);
        not_attached(a->name);
    } else {
        log_event(LOG_INFO, NULL, "brick-op-attached", "brick %s is attached", a->name);
    }
    reply(a->req, err, NULL, err ? error : NULL);
    free(a);
}

/* Takes the volfile over. 0: the request is answered when the attach is done. */
static int
begin_attach(struct rpc_request *req, struct volfile *v, const char *path)
{
    const char *name = graph_brick_name(v);
    struct attach *a = malloc(sizeof *a + strlen(name) + 1);
    char *id = id_of_path(path);
    int err = a && id ? management_add(name, id) : -ENOMEM;

    free(id);
    if (err) {
        volfile_free(v);
        free(a);
        return err;
    }
    a->req = req;
    memcpy(a->name, name, strlen(name) + 1);
    err = bricks_post_volfile(BRICK_ATTACH, v, NULL, attached, a);
    if (err) {
        not_attached(a->name);
        free(a);
    }
    return err;
}

static void
attach(struct rpc_request *req)
{
    struct brick_op_call call;
    char error[ERROR_BYTES] = "";
    int err = -EINVAL;

    if (!read_call(req, &call))
        return;
    struct volfile *v = volfile_read(call.name, error, sizeof error);
    if (v && (err = hooks.prepare(v, error, sizeof error))) {
        volfile_free(v);
        v = NULL;
    }
    if (v && !(err = begin_attach(req, v, call.name)))
        return;
    if (!*error)
        snprintf(error, sizeof error, "%s: %s", call.name, strerror(-err));
    log_event(LOG_ERROR, NULL, "brick-op-attach-file", "no brick is attached: %s", error);
    reply(req, err, NULL, error);
}

/* -ESHUTDOWN: the process is ending, and every brick ends with it. */
static void
detached(int err, const char *error, void *arg)
{
    (void)arg;
    if (err && err != -ENOENT && err != -ESHUTDOWN)
        log_event(LOG_ERROR, NULL, "brick-op-detach", "a brick is not detached: %s",
                  *error ? error : strerror(-err));
}

/* SIGNOUT before the answer, and the work is posted by then: an ATTACH of the same brick may come at once,
 * over another connection too (management 4.5), and is posted behind. */
static void
terminate(struct rpc_request *req)
{
    struct brick_op_call call;
    bool is_last;

    if (!read_call(req, &call))
        return;
    char *name = strdup(call.name);
    if (!name) {
        reply(req, -ENOMEM, NULL, "no memory");
        return;
    }
    bool was_here = management_remove(name, &is_last);
    int err = was_here && !is_last ? bricks_post(BRICK_DETACH, NULL, name, detached, NULL) : 0;

    if (err)
        detached(err, "", NULL);
    reply(req, 0, NULL, NULL);
    if (was_here && is_last) {
        log_event(LOG_INFO, NULL, "brick-op-terminate-last", "brick %s was the last: ending", name);
        hooks.none_left();
    }
    free(name);
}

/* ---- requests for other processes ------------------------------------------------------------ */

static void
for_others(struct rpc_request *req)
{
    struct brick_op_call call;

    if (read_call(req, &call))
        refuse(req, "this is a brick process: it does not do that");
}

/* The self-heal daemon's and the scrubber's: a brick has nothing to say, and that is no error
 * (management 4.4). */
static void
nothing_to_say(struct rpc_request *req)
{
    struct brick_op_call call;

    if (read_call(req, &call))
        reply(req, 0, NULL, NULL);
}

static const struct rpc_procedure procedures[BRICK_OP_PROCEDURE_COUNT] = {
    [BRICK_OP_NULL] = {"NULL", nothing_to_say},
    [BRICK_OP_TERMINATE] = {"TERMINATE", terminate},
    [BRICK_OP_XLATOR_INFO] = {"XLATOR_INFO", xlator_info},
    [BRICK_OP_XLATOR_OP] = {"XLATOR_OP", nothing_to_say},
    [BRICK_OP_STATUS] = {"STATUS", status},
    [BRICK_OP_XLATOR_DEFRAG] = {"XLATOR_DEFRAG", for_others},
    [BRICK_OP_NODE_PROFILE] = {"NODE_PROFILE", for_others},
    [BRICK_OP_NODE_STATUS] = {"NODE_STATUS", for_others},
    [BRICK_OP_VOLUME_BARRIER_OP] = {"VOLUME_BARRIER_OP", for_others},
    [BRICK_OP_BARRIER] = {"BARRIER", barrier},
    [BRICK_OP_NODE_BITROT] = {"NODE_BITROT", nothing_to_say},
    [BRICK_OP_ATTACH] = {"ATTACH", attach},
    [BRICK_OP_DUMP_METRICS] = {"DUMP_METRICS", for_others},
    [BRICK_OP_SVC_ATTACH] = {"SVC_ATTACH", for_others},
    [BRICK_OP_SVC_DETACH] = {"SVC_DETACH", nothing_to_say},
};

static const struct rpc_program brick_op_program = {
    .name = "Gluster Brick operations",
    .number = BRICK_OP_PROGRAM,
    .version = BRICK_OP_PROGRAM_VERSION,
    .procedures = procedures,
    .procedure_count = BRICK_OP_PROCEDURE_COUNT,
    .is_listed = true,
};

static const struct rpc_program *const programs[] = {&rpc_dump_program, &brick_op_program, NULL};

/* ---- life ------------------------------------------------------------------------------------ */

/* Only root can connect: the socket is mode 0600. */
static int
accepted(struct conn *c, void *arg)
{
    (void)arg;
    conn_set_trusted(c);
    return 0;
}

static void
closed(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
}

int
brick_ops_listen(const char *path, const struct brick_ops_hooks *wanted)
{
    int err = 0;

    hooks = *wanted;
    server = rpc_server_new(programs, closed, NULL);
    if (!server)
        return -ENOMEM;
    rpc_server_set_accepted(server, accepted);
    listener = listener_open_unix(path, &rpc_server_transport_ops, server, &err);
    return listener ? 0 : err;
}

void
brick_ops_save(struct parcel *to)
{
    conns_save(server, to);
}

void
brick_ops_restore(struct parcel *from)
{
    conns_restore(from, &rpc_server_transport_ops, server);
}

void
brick_ops_stop(void)
{
    if (listener)
        listener_stop(listener);
}

void
brick_ops_free(void)
{
    if (server)
        rpc_server_free(server);
    server = NULL;
    if (listener)
        listener_close(listener);
    listener = NULL;
}
