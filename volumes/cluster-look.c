/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster-look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/cluster-ask.h"
#include "volumes/cluster.h"
#include "volumes/verbs-internal.h"
#include "volumes/volume.h"
#include "volumes/volumes.h"

static const struct {
    const char *name;
    int (*run)(json_t *args, json_t **out, struct problem *why);
} looks[] = {
    {"volume-status", verb_status},   {"volume-profile", verb_profile},         {"volume-heal", verb_heal},
    {"volume-check", verb_check},     {"volume-clear-locks", verb_clear_locks},
};

int
cluster_look_here(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        if (strcmp(looks[i].name, verb) == 0)
            return looks[i].run(args, out, why);
    }
    problem_set(why, -ENOSYS, "host %s does not know '%.80s'", brick_host_own(), verb);
    problem_expected(why, "the same version of kilnd on all hosts");
    return why->err;
}

/* ---- putting answers together ---------------------------------------------------------------- */

static const char *
host_of(const json_t *brick)
{
    const char *host = json_string_value(json_object_get(brick, "host"));

    return host ? host : "";
}

/* Calls fn with each volume of an answer: the members of "volumes", or the answer itself. */
static void
each_volume(json_t *answer, void (*fn)(json_t *volume, void *arg), void *arg)
{
    json_t *list = json_object_get(answer, "volumes"), *v;
    size_t i;

    if (!list)
        fn(answer, arg);
    json_array_foreach(list, i, v) fn(v, arg);
}

struct host_list {
    struct cluster_ask *asks;
    unsigned count;
    bool is_short;
};

static void
collect_hosts(json_t *volume, void *arg)
{
    struct host_list *l = arg;
    json_t *brick;
    size_t i;

    json_array_foreach(json_object_get(volume, "bricks"), i, brick)
    {
        const char *host = host_of(brick);
        unsigned k = 0;

        if (!*host || strcmp(host, brick_host_own()) == 0)
            continue;
        while (k < l->count && strcmp(l->asks[k].host, host) != 0)
            k++;
        if (k < l->count)
            continue;
        struct cluster_ask *more = reallocarray(l->asks, l->count + 1, sizeof *more);
        if (!more) {
            l->is_short = true;
            return;
        }
        l->asks = more;
        l->asks[l->count++] = (struct cluster_ask){.host = host};
    }
}

/* The volume of the same name in a host's answer, or NULL. */
static const json_t *
same_volume(const json_t *answer, const json_t *volume)
{
    const json_t *list = json_object_get(answer, "volumes"), *v;
    const json_t *name = json_object_get(volume, "name");
    size_t i;

    if (!list)
        return answer;
    json_array_foreach(list, i, v)
    {
        if (json_equal(json_object_get(v, "name"), name))
            return v;
    }
    return NULL;
}

/* The brick of the same path of the host in its answer, or NULL. */
static json_t *
same_brick(const json_t *volume, const json_t *brick)
{
    json_t *b;
    size_t i;

    json_array_foreach(json_object_get(volume, "bricks"), i, b)
    {
        if (json_equal(json_object_get(b, "path"), json_object_get(brick, "path")) &&
            json_equal(json_object_get(b, "host"), json_object_get(brick, "host")))
            return b;
    }
    return NULL;
}

static void
merge_volume(json_t *volume, void *arg)
{
    const struct cluster_ask *ask = arg;
    const json_t *theirs = ask->answer ? same_volume(ask->answer, volume) : NULL;
    json_t *list = json_object_get(volume, "bricks"), *brick;
    size_t i;

    json_array_foreach(list, i, brick)
    {
        json_t *found = strcmp(host_of(brick), ask->host) == 0 ? same_brick(theirs, brick) : NULL;

        if (found)
            (void)json_array_set(list, i, found);
        else if (strcmp(host_of(brick), ask->host) == 0)
            json_object_set_new(brick, "error",
                                json_string(ask->err ? ask->why.wrong : "the host does not have the volume"));
    }
}

/* Heals other than info are the business of the host that heals the volume. */
static bool
is_for_healer(const char *verb, const json_t *args)
{
    const char *what = json_string_value(json_object_get(args, "what"));

    return strcmp(verb, "volume-heal") == 0 && (!what || strcmp(what, "info") != 0);
}

static int
ask_healer(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    struct volume *v = volumes_find(name ? name : "", why);
    struct cluster_ask ask = {.host = v ? cluster_healer(v) : NULL};

    if (!v)
        return why->err;
    bool is_own = strcmp(ask.host, brick_host_own()) == 0;
    if (!is_own)
        cluster_ask_all(&ask, 1, verb, args, CLUSTER_CHANGE_S);
    volume_free(v);
    if (is_own)
        return cluster_look_here(verb, args, out, why);
    *out = ask.answer;
    if (ask.err)
        *why = ask.why;
    return ask.err;
}

int
cluster_look(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    struct host_list l = {0};

    if (is_for_healer(verb, args))
        return ask_healer(verb, args, out, why);
    int err = cluster_look_here(verb, args, out, why);

    if (err || !*out)
        return err;
    each_volume(*out, collect_hosts, &l);
    if (l.is_short) {
        free(l.asks);
        return problem_no_memory(why);
    }
    json_t *const mine = *out; /* the names of hosts belong to its bricks */
    *out = json_deep_copy(mine);
    cluster_ask_all(l.asks, l.count, verb, args, CLUSTER_LOOK_S);
    for (unsigned i = 0; i < l.count && *out; i++)
        each_volume(*out, merge_volume, &l.asks[i]);
    cluster_asks_end(l.asks, l.count);
    free(l.asks);
    json_decref(mine);
    return *out ? 0 : problem_no_memory(why);
}
