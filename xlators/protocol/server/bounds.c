/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* bounds: the conditions for executing a fop: room for its reply, a place among the waiting calls, and a
 * client that still waits for the answer (numbers: rpc/transport/limits.h). */
#include <errno.h>

#include "log/log.h"
#include "stack/lock-cmd.h"
#include "xlators/protocol/server/server-internal.h"

/* Largest replies, reserved before the fop is executed. Smaller replies are a few bytes per call, and the
 * number of calls is bounded. */
#define READ_MAX (128u << 20)    /* storage/posix refuses larger reads */
#define CONTENT_MAX (1u << 20)   /* storage sends no more with a LOOKUP */
#define LISTING_MAX (128u << 10) /* storage clamps a listing to this */
#define XATTR_BYTES (64u << 10)  /* bytes of a value, or of all names */


bool
bounds_waits(uint32_t procedure)
{
    return procedure < FOP_COUNT && (fop_info[procedure].traits & FOP_WAITS);
}

static size_t
at_most(uint64_t bytes, size_t max)
{
    return bytes < max ? bytes : max;
}

static size_t
reply_bytes_max(const struct fop_call *call)
{
    int64_t content;

    switch (call->fop) {
    case FOP_readv:
        return call->size > READ_MAX ? 0 : call->size;
    case FOP_readdir:
    case FOP_readdirp:
        return at_most(call->size, LISTING_MAX);
    case FOP_getxattr:
    case FOP_fgetxattr:
        return XATTR_BYTES;
    case FOP_lookup:
        return call->xdata && dict_get_int(call->xdata, DICT_KEY_CONTENT, &content) == 0 && content > 0
                   ? at_most((uint64_t)content, CONTENT_MAX)
                   : 0;
    default:
        return 0;
    }
}

/* Returns the error for a call that would wait for another one when too many calls wait; 0 if this call never
 * waits, like an unlock. */
static int
waiting_error(const struct fop_call *call)
{
    switch (call->fop) {
    case FOP_lk:
        return call->cmd == LK_SET_WAIT && call->type != FLOCK_UNLOCK ? -ENOLCK : 0;
    case FOP_inodelk:
    case FOP_finodelk:
        return call->cmd == LK_SET_WAIT && call->type != FLOCK_UNLOCK ? -ENOLCK : 0;
    case FOP_entrylk:
    case FOP_fentrylk:
        return call->cmd == ENTRYLK_WAIT ? -ENOLCK : 0;
    default:
        return -EAGAIN;
    }
}

static int
file_error(const struct brick_client *client, int err)
{
    uint32_t limit, used = fd_files_used(&limit);

    log_event(LOG_WARNING, client->graph->top, "server-too-many-files",
              "%s may not open one more file: %u are open for clients, %u of them here, of at most %u (3/8 "
              "of the limit of descriptors: see kilnd(8))",
              client->uid, used, atomic_load(&client->graph->files), limit);
    return err;
}

int
bounds_let_in(struct rpc_request *req)
{
    const struct fop_call *call = &req->stk.call;
    size_t bytes = reply_bytes_max(call);
    int err;

    req->stk.is_asker_gone = conn_gone_flag(req->conn);
    if (atomic_load_explicit(req->stk.is_asker_gone, memory_order_relaxed) &&
        (fop_info[call->fop].traits & FOP_LOOKS))
        return BOUNDS_POINTLESS;
    if ((fop_info[call->fop].traits & FOP_WAITS) && !req->record.is_waiting && (err = waiting_error(call)))
        return err;
    if ((call->fop == FOP_open || call->fop == FOP_create || call->fop == FOP_opendir) &&
        (err = fd_table_may_add(&req->stk.client->fds)))
        return file_error(req->stk.client, err);
    if (bytes && (err = conn_reserve_reply(req->conn, bytes)))
        return err;
    req->reply_reserved = bytes;
    return 0;
}
