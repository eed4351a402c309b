/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-jobs.h"
#include "volumes/cluster/cluster.h"
#include "volumes/heal/heal-pending.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume.h"
#include "volumes/volumes.h"

static const struct {
    const char *name;
    int (*run)(json_t *args, json_t **out, struct problem *why);
} looks[] = {
    {"volume-status", verb_status},   {"volume-profile", verb_profile},         {"volume-heal", verb_heal},
    {"upgrade", verb_upgrade},        {"version", verb_version},
    {"volume-check", verb_check},     {"volume-clear-locks", verb_clear_locks}, {"top", verb_top},
};

int
cluster_look_here(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        if (strcmp(looks[i].name, verb) == 0)
            return looks[i].run(args, out, why);
    }
    problem_set(why, -ENOSYS, "host %s does not know the question '%.80s'", brick_host_own(), verb);
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

/* A host knows the usage of its own bricks first: the fullest replica counts. */
static void
merge_used(json_t *volume, const json_t *theirs)
{
    const json_t *used = json_object_get(theirs, "used"), *own = json_object_get(volume, "used");

    if (json_is_integer(used) &&
        (!json_is_integer(own) || json_integer_value(used) > json_integer_value(own)))
        json_object_set(volume, "used", (json_t *)used);
}

static void
merge_volume(json_t *volume, void *arg)
{
    const struct cluster_ask *ask = arg;
    const json_t *theirs = ask->answer ? same_volume(ask->answer, volume) : NULL;
    json_t *list = json_object_get(volume, "bricks"), *brick;
    size_t i;

    merge_used(volume, theirs);
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

/* ---- split-brain ----------------------------------------------------------------------------- */

/* Adds the accusations of one brick to those of its set: {gfid: [mask, mask, mask]}. */
static void
add_accused(json_t *of_set, const json_t *brick)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(brick, "accused"), i, one)
    {
        const char *gfid = json_string_value(json_array_get(one, 0));
        json_t *sum = gfid ? json_object_get(of_set, gfid) : NULL;

        if (gfid && !sum && json_object_set_new(of_set, gfid, sum = json_pack("[iii]", 0, 0, 0)))
            continue;
        for (size_t k = 0; sum && k < HEAL_PENDING_KINDS; k++)
            json_array_set_new(sum, k,
                               json_integer(json_integer_value(json_array_get(sum, k)) |
                                            json_integer_value(json_array_get(one, k + 1))));
    }
}

/* Reads the masks of an element of "accused", or of their sums. */
static void
read_masks(const json_t *array, size_t first, unsigned out[HEAL_PENDING_KINDS])
{
    for (size_t k = 0; k < HEAL_PENDING_KINDS; k++)
        out[k] = (unsigned)json_integer_value(json_array_get(array, first + k));
}

/* Adds the entries of a brick that are in split-brain, by the accusations of all bricks of the set, to its
 * list of such entries. The brick's host has listed those that its own bricks show to be split. */
static void
judge_brick(const struct volume *v, json_t *brick, const json_t *of_set)
{
    json_t *entries = json_object_get(brick, "entries"), *split = json_object_get(brick, "split_brain"), *one;
    json_int_t count = json_integer_value(json_object_get(brick, "split_brain_count"));
    size_t i;

    json_array_foreach(json_object_get(brick, "accused"), i, one)
    {
        const char *gfid = json_string_value(json_array_get(one, 0));
        const json_t *sum = gfid ? json_object_get(of_set, gfid) : NULL;
        const json_t *at = json_array_get(one, 1 + HEAL_PENDING_KINDS); /* its place in `entries` */
        unsigned by_host[HEAL_PENDING_KINDS], by_all[HEAL_PENDING_KINDS];

        read_masks(one, 1, by_host);
        read_masks(sum, 0, by_all);
        if (!sum || !at || heal_pending_is_split(v, by_host) || !heal_pending_is_split(v, by_all))
            continue;
        json_array_append(split, json_array_get(entries, (size_t)json_integer_value(at)));
        count++;
    }
    if (json_object_get(brick, "accused"))
        json_object_set_new(brick, "split_brain_count", json_integer(count));
    json_object_del(brick, "accused");
}

static void
judge_volume(json_t *volume)
{
    struct problem why;
    const char *name = json_string_value(json_object_get(volume, "name"));
    struct volume *v = volumes_find(name ? name : "", &why);
    json_t *bricks = json_object_get(volume, "bricks");

    for (size_t first = 0; v && first < json_array_size(bricks); first += v->replica) {
        json_t *of_set = json_object();

        for (size_t i = first; i < first + v->replica; i++)
            add_accused(of_set, json_array_get(bricks, i));
        for (size_t i = first; i < first + v->replica; i++)
            judge_brick(v, json_array_get(bricks, i), of_set);
        json_decref(of_set);
    }
    volume_free(v);
}

/* Heals other than info are the business of the host that heals the volume. */
static bool
is_for_healer(const char *verb, const json_t *args)
{
    const char *what = json_string_value(json_object_get(args, "what"));

    return strcmp(verb, "volume-heal") == 0 && (!what || strcmp(what, "info") != 0);
}

int
cluster_ask_healer(json_t *args, char host[CLUSTER_HOST_BYTES], json_t **out, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    struct volume *v = volumes_find(name ? name : "", why);
    struct cluster_ask ask = {.host = host};

    if (!v)
        return why->err;
    snprintf(host, CLUSTER_HOST_BYTES, "%s", cluster_healer(v)); /* a text of the volume */
    volume_free(v);
    if (strcmp(host, brick_host_own()) == 0)
        return cluster_look_here("volume-heal", args, out, why);
    cluster_ask_all(&ask, 1, "volume-heal", args, CLUSTER_CHANGE_S);
    *out = ask.answer;
    if (ask.err)
        *why = ask.why;
    return ask.err;
}

/* A full heal is a job, so that another host goes on with the heal when the healing host dies. */
static int
look_by_healer(json_t *args, json_t **out, struct problem *why)
{
    const char *what = json_string_value(json_object_get(args, "what"));
    const char *name = json_string_value(json_object_get(args, "name"));
    char host[CLUSTER_HOST_BYTES], id[GFID_TEXT_SIZE];

    if (!name || !what || strcmp(what, "full") != 0)
        return cluster_ask_healer(args, host, out, why);
    if (cluster_jobs_heal(name, id, why))
        return why->err;
    *out = json_pack("{ss ss}", "name", name, "job", id);
    return 0;
}

int
cluster_look(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    struct host_list l = {0};

    if (is_for_healer(verb, args))
        return look_by_healer(args, out, why);
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
    if (*out && strcmp(verb, "volume-heal") == 0)
        judge_volume(*out);
    json_decref(mine);
    return *out ? 0 : problem_no_memory(why);
}
