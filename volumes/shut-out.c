/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/shut-out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bricks/bricks.h"
#include "data/option.h"
#include "fs/brick-client.h"
#include "graph/graph.h"
#include "rpc/transport/transport.h"
#include "volumes/volume-options.h"
#include "xlators/protocol/server/auth.h"

enum { CLIENTS_MAX = 1024 }; /* of a brick; more are not needed to refuse */

/* The addresses of the clients of a brick. */
struct peers {
    struct sockaddr_storage list[CLIENTS_MAX];
    unsigned count;
};

static void
collect_peers(struct graph *g, struct peers *p)
{
    const struct brick_client *c;

    p->count = 0;
    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link)
    {
        if (c->conn && !c->is_trusted && p->count < CLIENTS_MAX)
            p->list[p->count++] = *conn_peer(c->conn);
    }
    pthread_mutex_unlock(&g->clients_lock);
}

unsigned
shut_out_clients(const struct volume *v)
{
    struct peers *p = malloc(sizeof *p);
    unsigned most = 0;

    for (unsigned i = 0; p && i < v->brick_count; i++) {
        struct graph *g = bricks_find(v->bricks[i].path);

        if (!g)
            continue;
        collect_peers(g, p);
        graph_unpin(g);
        most = p->count > most ? p->count : most;
    }
    free(p);
    return most;
}

/* The value of a key after the change. */
static const char *
value_after(const struct volume *v, const json_t *options, const char *key)
{
    const char *text = json_string_value(json_object_get(options, key));

    return text ? text : volume_option_value(v, key);
}

/* Returns rules with the two lists alone, or NULL without memory. */
static struct auth_rules *
make_rules(const struct volume *v, const json_t *options)
{
    const char *reject = value_after(v, options, "auth.reject");
    const struct option_value values[] = {
        {.key = "auth.addr.brick.allow", .value = value_after(v, options, "auth.allow")},
        {.key = "auth.addr.brick.reject", .value = reject},
    };

    return auth_rules_new(values, *reject ? 2 : 1);
}

static bool
is_let_in(const struct auth_rules *rules, const struct sockaddr_storage *peer)
{
    bool is_trusted;

    return auth_check(rules, &(struct auth_question){.brick = "brick", .peer = peer, .subdir = "/",
                                                     .allow_insecure = true}, &is_trusted);
}

/* Counts the clients of the brick that would lose access. `first` gets the address of one of them. */
static unsigned
count_shut_out(const struct auth_rules *rules, const char *brick, struct peers *p, char first[AUTH_PEER_TEXT])
{
    struct graph *g = bricks_find(brick);
    unsigned count = 0;

    if (!g)
        return 0;
    collect_peers(g, p);
    graph_unpin(g);
    for (unsigned i = 0; i < p->count; i++) {
        if (is_let_in(rules, &p->list[i]))
            continue;
        count++;
        auth_peer_text(&p->list[i], first);
    }
    return count;
}

int
shut_out_check(const struct volume *v, const json_t *options, struct problem *why)
{
    const char *key = json_object_get(options, "auth.allow") ? "auth.allow" : "auth.reject";
    const char *value = json_string_value(json_object_get(options, key));
    char first[AUTH_PEER_TEXT] = "";
    unsigned most = 0;

    why->err = 0;
    if (!value)
        return 0;
    struct auth_rules *rules = make_rules(v, options);
    struct peers *peers = rules ? malloc(sizeof *peers) : NULL;
    for (unsigned i = 0; peers && i < v->brick_count; i++) {
        unsigned count = count_shut_out(rules, v->bricks[i].path, peers, first);

        most = count > most ? count : most; /* a client is connected to each brick */
    }
    if (!peers)
        problem_no_memory(why);
    free(peers);
    auth_rules_unref(rules);
    if (why->err || !most)
        return why->err;
    problem_set(why, -EBUSY, "%s %.200s would disconnect %u connected client%s of volume %s, among them %s",
                key, value, most, most == 1 ? "" : "s", v->name, first);
    problem_expected(why, "a list that lets them in, or no client");
    problem_type(why, "kiln volume set %s %s '%.200s' --force", v->name, key, value);
    return why->err;
}
