/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Functions for daemons that hand out volfiles: the reply to GETSPEC, and the callback for a changed
 * volfile. */
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "rpc/server/rpc-server.h"
#include "rpc/xdr/callback-program.h"
#include "rpc/xdr/handshake-program.h"

void
rpc_reply_volfile(struct rpc_request *req, const char *text, int err)
{
    const struct getspec_reply r = {
        .op_ret = err ? -1 : (int32_t)strlen(text), .op_errno = -err, .spec = text ? text : ""};
    size_t size = 8 + xdr_string_size(r.spec) + xdr_old_dict_size(NULL);
    char *body = malloc(size);
    struct xdr x;

    if (!body) {
        conn_close(req->conn); /* the client notices that at once, and connects again */
        rpc_request_drop(req);
        return;
    }
    xdr_init(&x, body, size, NULL);
    xdr_put_getspec_reply(&x, &r);
    rpc_reply(req, body, (size_t)(x.at - body), NULL, NULL, 0);
    free(body);
}

/* A client that has disconnected fetches its volfile when it connects again. */
static void
tell_volfile_changed(struct conn *c, void *arg)
{
    (void)arg;
    (void)rpc_callback(c, CALLBACK_FETCHSPEC, NULL, 0);
}

void
rpc_tell_volfiles_changed(void)
{
    if (!transport_each_guest(tell_volfile_changed, NULL))
        log_event(LOG_ERROR, NULL, "volfile-changed-memory", "no memory to tell clients of a changed volume");
}
