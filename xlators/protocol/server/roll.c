/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* roll: tells the volume's own processes which clients are logged in to the brick: the answer to a getxattr
 * of kiln.clients.
 *
 * A rebalance asks all bricks. A client that is logged in to the old bricks and not to the added ones works
 * with an old list of bricks (cluster/old-clients.h).
 *
 * The answer has a line for each login: the beginning of its process-uuid, which names the process and the
 * graph ("CTX_ID:C-GRAPH_ID:N-PID:P-HOST:H"). Logins of the volume's own processes and of self-heal daemons
 * are left out, because they write below cluster/distribute; so are those whose uuid has another form. The
 * brick passes the name on if another client asks, as a name that no layer knows. */
#include <errno.h>
#include <string.h>

#include "xlators/protocol/server/server-internal.h"

enum { ROLL_TRIES = 4, ROLL_SLACK = 4096 };

bool
roll_is_asked(const struct call_stack *stk)
{
    const char *name = stk->call.name;

    return stk->call.fop == FOP_getxattr && name && stk->client->is_trusted &&
           strcmp(name, dict_key_text(DICT_KEY_CLIENTS)) == 0;
}

/* Returns the length of the line for this client, without the newline; 0: the client is left out. */
static size_t
line_length(const struct brick_client *c)
{
    const char *end = strstr(c->uid, "-PC_NAME:"), *graph = strstr(c->uid, "-GRAPH_ID:");

    if (c->is_trusted || !end || !graph || graph > end || strcmp(c->process_name, "glustershd") == 0)
        return 0;
    return (size_t)(end - c->uid);
}

/* Writes the lines of all clients. Returns their length, which may exceed the room: then they are not all
 * written. */
static size_t
write_lines(struct graph *g, char *out, size_t room)
{
    const struct brick_client *c;
    size_t at = 0;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link)
    {
        size_t len = line_length(c);

        if (len && at + len + 1 <= room) {
            memcpy(out + at, c->uid, len);
            out[at + len] = '\n';
        }
        at += len ? len + 1 : 0;
    }
    pthread_mutex_unlock(&g->clients_lock);
    return at;
}

int
roll_answer(struct call_stack *stk)
{
    struct graph *g = stk->client->graph;
    struct dict *d = reply_dict(stk);
    size_t room = ROLL_SLACK, len = 0;

    for (unsigned n = 0; d && n < ROLL_TRIES; n++) {
        char *text = arena_alloc(&stk->arena, room);

        if (!text)
            return -ENOMEM;
        len = write_lines(g, text, room);
        if (len <= room) {
            stk->reply.op_ret = 0;
            return dict_set_bytes(d, DICT_KEY_CLIENTS, text, (uint32_t)len);
        }
        room = len + ROLL_SLACK;
    }
    return d ? -EAGAIN : -ENOMEM;
}
