/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Answers about the hosts of the store, from the copy of their records: which live, which heals a volume. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-internal.h"
#include "volumes/volumes.h"

int
cluster_check_host(const char *host, struct problem *why)
{
    char known[400] = "";
    const char *name;
    json_t *record;

    why->err = 0;
    pthread_mutex_lock(&cluster.lock);
    bool is_known = json_object_get(cluster.hosts, host) != NULL;
    json_object_foreach(cluster.hosts, name, record)
    {
        size_t n = strlen(known);

        snprintf(known + n, sizeof known - n, "%s%.60s", n ? ", " : "", name);
    }
    pthread_mutex_unlock(&cluster.lock);
    if (is_known)
        return 0;
    problem_set(why, -ENOENT, "host %.255s is not registered", host);
    problem_expected(why, "one of %s", known);
    problem_type(why, "kilnd --store %.200s --host %.200s   # on that machine", store_location(cluster.store),
                 host);
    return why->err;
}

int
cluster_check_member(const char *host, struct problem *why)
{
    if (cluster_check_host(host, why))
        problem_type(why, "kiln host list");
    return why->err;
}

bool
cluster_is_alive(const char *host)
{
    pthread_mutex_lock(&cluster.lock);
    bool is = json_object_get(cluster.alive, host) != NULL || strcmp(host, cluster.o->host) == 0;
    pthread_mutex_unlock(&cluster.lock);
    return is;
}

json_t *
cluster_host_record(const char *host)
{
    pthread_mutex_lock(&cluster.lock);
    json_t *copy = json_deep_copy(json_object_get(cluster.alive, host));
    pthread_mutex_unlock(&cluster.lock);
    return copy;
}

json_t *
cluster_live_hosts(void)
{
    pthread_mutex_lock(&cluster.lock);
    json_t *copy = json_deep_copy(cluster.alive);
    pthread_mutex_unlock(&cluster.lock);
    return copy;
}

bool
cluster_has_jobs(void)
{
    const char *id, *state;
    json_t *record;
    bool has = false;

    pthread_mutex_lock(&cluster.lock);
    json_object_foreach(cluster.jobs, id, record)
    {
        state = json_string_value(json_object_get(record, "state"));
        has |= state && strcmp(state, "running") == 0;
    }
    pthread_mutex_unlock(&cluster.lock);
    return has;
}

/* FNV-1a of both texts: spreads the volumes over their hosts. */
static uint32_t
host_name_hash(const char *a, const char *b)
{
    uint32_t h = 2166136261u;

    for (; *a; a++)
        h = (h ^ (unsigned char)*a) * 16777619u;
    for (; *b; b++)
        h = (h ^ (unsigned char)*b) * 16777619u;
    return h;
}

const char *
cluster_healer(const struct volume *v)
{
    const char *best = NULL;
    uint32_t highest = 0;

    pthread_mutex_lock(&cluster.lock);
    for (unsigned i = 0; i < v->brick_count && !cluster.is_away; i++) {
        const char *host = v->bricks[i].host;
        uint32_t h = host_name_hash(host, v->name);

        if (!json_object_get(cluster.alive, host) && strcmp(host, cluster.o->host) != 0)
            continue;
        if (!best || h > highest || (h == highest && strcmp(host, best) > 0)) {
            best = host;
            highest = h;
        }
    }
    pthread_mutex_unlock(&cluster.lock);
    return best ? best : cluster.o->host;
}

bool
cluster_heals(const struct volume *v)
{
    return !cluster.o || (brick_host_has_any(v) && strcmp(cluster_healer(v), cluster.o->host) == 0);
}

/* {"host": number of bricks, ...} */
static void
count_bricks(const struct volume *v, void *arg)
{
    json_t *counts = arg;

    for (unsigned i = 0; i < v->brick_count; i++) {
        const char *host = v->bricks[i].host;
        json_int_t n = json_integer_value(json_object_get(counts, host));

        json_object_set_new(counts, host, json_integer(n + 1));
    }
}

static json_t *
describe_host_locked(const char *name, const json_t *counts)
{
    const json_t *a = json_object_get(cluster.alive, name), *record = json_object_get(cluster.hosts, name);
    const char *version = json_string_value(json_object_get(a, "version"));
    const char *address = json_string_value(json_object_get(record, "address"));

    return json_pack("{ss ss? ss? sb sb ss? sI sI sO? sb}", "name", name, "address", address, "refused",
                     json_string_value(json_object_get(cluster.refused, name)), "registered",
                     json_object_get(record, "id") != NULL, "alive", a != NULL, "version", version,
                     "since", json_integer_value(json_object_get(a, "since")), "bricks",
                     json_integer_value(json_object_get(counts, name)), "roots", json_object_get(a, "roots"),
                     "self", strcmp(name, cluster.o->host) == 0);
}

json_t *
cluster_describe(void)
{
    json_t *list = json_array(), *counts = json_object(), *record;
    const char *name;
    int is_short = 0;

    volumes_each(count_bricks, counts);
    pthread_mutex_lock(&cluster.lock);
    json_object_foreach(cluster.hosts, name, record)
        is_short |= json_array_append_new(list, describe_host_locked(name, counts));
    json_t *json = json_pack("{so s{ss ss ss*}}", "hosts", list, "store", "location",
                             store_location(cluster.store), "state", cluster.is_away ? "away" : "answers",
                             "reason", cluster.is_away ? cluster.away_reason : NULL);
    pthread_mutex_unlock(&cluster.lock);
    json_decref(counts);
    if (!is_short)
        return json;
    json_decref(json);
    return NULL;
}
