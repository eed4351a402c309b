/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* GF-DUMP's procedures: the list of served programs, and ping. Both are allowed before login. */
#include <assert.h>

#include "rpc/server/rpc-server-internal.h"
#include "rpc/xdr/dump-program.h"

enum { LISTED_MAX = 16, BODY_BYTES = 768 };

static void
serve_dump(struct rpc_request *req)
{
    struct dump_entry entries[LISTED_MAX];
    struct dump_reply reply = {0};
    struct dump_entry **last = &reply.programs;
    char body[BODY_BYTES];
    unsigned n = 0;
    struct xdr x;

    xdr_get_dump_call(&req->args);
    if (req->args.error) {
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
        return;
    }
    for (const struct rpc_program *const *p = req->server->programs; *p && n < LISTED_MAX; p++) {
        if (!(*p)->is_listed)
            continue;
        entries[n] =
            (struct dump_entry){.name = (*p)->name, .number = (*p)->number, .version = (*p)->version};
        *last = &entries[n];
        last = &entries[n++].next;
    }
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_dump_reply(&x, &reply);
    assert(!x.error);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
}

/* op_ret, op_errno, an absent dict. */
static void
serve_ping(struct rpc_request *req)
{
    static const char zeros[12];

    rpc_reply(req, zeros, sizeof zeros, NULL, NULL, 0);
}

static const struct rpc_procedure procedures[DUMP_PROCEDURE_COUNT] = {
    [DUMP_NULL] = {"NULL", NULL},
    [DUMP_DUMP] = {"DUMP", serve_dump},
    [DUMP_PING] = {"PING", serve_ping},
};

const struct rpc_program rpc_dump_program = {
    .name = "GF-DUMP",
    .number = DUMP_PROGRAM,
    .version = DUMP_PROGRAM_VERSION,
    .procedures = procedures,
    .procedure_count = DUMP_PROCEDURE_COUNT,
    .is_listed = true,
};
