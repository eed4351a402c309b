/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Verbs that change a volume: create, its bricks, start, stop, delete, set, reset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/option.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-bricks.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster-place.h"
#include "volumes/cluster/cluster-quota.h"
#include "volumes/cluster/cluster.h"
#include "volumes/heal/rebalance.h"
#include "volumes/own-host.h"
#include "volumes/quota.h"
#include "volumes/shut-out.h"
#include "volumes/tls-files.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume-options.h"
#include "volumes/volumes.h"

/* Changes of volumes of this machine, and of hosts that share a store. */
static const struct changes {
    int (*create)(struct volume *v, struct problem *why);
    int (*start)(const char *name, bool is_forced, struct problem *why);
    int (*stop)(const char *name, struct problem *why);
    int (*remove)(const char *name, struct problem *why);
    int (*set)(const char *name, const json_t *options, struct problem *why);
    int (*reset)(const char *name, const char *key, unsigned *count, struct problem *why);
    int (*add_bricks)(const char *name, const struct volume *added, unsigned replica, bool with_arbiter,
                      struct problem *why);
    int (*remove_bricks)(const char *name, const struct volume *removed, unsigned replica,
                         struct problem *why);
    int (*replace_brick)(const char *name, const char *from, const struct volume *to, struct problem *why);
    int (*take_brick_down)(const char *name, const char *brick, struct problem *why);
} plain_changes = {volumes_create,     volumes_start,         volumes_stop,
                   volumes_delete,     volumes_set,           volumes_reset,
                   volumes_add_bricks, volumes_remove_bricks, volumes_replace_brick,
                   volumes_take_brick_down},
  cluster_changes = {cluster_create,     cluster_start_volume,  cluster_stop_volume,
                     cluster_delete,     cluster_set,           cluster_reset,
                     cluster_add_bricks, cluster_remove_bricks, cluster_replace_brick,
                     cluster_take_brick_down};

static const struct changes *
changes(void)
{
    return cluster_is_on() ? &cluster_changes : &plain_changes;
}

/* ---- volume create --------------------------------------------------------------------------- */

/* With a store every brick has the name of a registered host; a brick without a name is on this host. */
static int
take_registered_host(char **host, bool *is_loopback, struct problem *why)
{
    *is_loopback = false;
    if (!*host && !(*host = strdup(brick_host_own())))
        return problem_no_memory(why);
    return cluster_check_host(*host, why);
}

/* Parses and adds a brick: "HOST:/path" or "/path". */
static int
add_brick_text(struct volume *v, const char *text, struct problem *why)
{
    char path[VOLUME_BRICK_PATH_MAX + 1], *host = NULL;
    const char *colon = *text == '/' ? NULL : strstr(text, ":/");
    bool is_loopback = true;

    if (colon && !(host = strndup(text, (size_t)(colon - text))))
        return problem_no_memory(why);
    int err = host ? volume_check_host(host, why) : 0;
    if (!err && cluster_is_on())
        err = take_registered_host(&host, &is_loopback, why);
    else if (!err && host)
        err = own_host_check(host, &is_loopback, why);
    if (!err)
        err = volume_check_path(colon ? colon + 1 : text, path, why);
    /* Other machines could not use a loopback name. */
    if (!err && volume_add_brick(v, is_loopback ? "" : host, path, false))
        err = problem_no_memory(why);
    free(host);
    return err;
}

static int
add_bricks(struct volume *v, const json_t *bricks, struct problem *why)
{
    const json_t *one;
    size_t i;

    if (json_array_size(bricks) > VOLUME_BRICKS_MAX)
        return problem_set(why, -EINVAL, "%zu bricks: a volume has %d at most", json_array_size(bricks),
                           VOLUME_BRICKS_MAX);
    json_array_foreach(bricks, i, one)
    {
        if (!json_is_string(one))
            return problem_set(why, -EINVAL, "brick %zu is no text", i + 1);
        if (add_brick_text(v, json_string_value(one), why))
            return why->err;
    }
    return volume_check_shape(v, why);
}

/* Checks a limit: a number of bytes, at least one block. Returns 0 or -EINVAL. */
static int
check_size(const char *size, struct problem *why)
{
    uint64_t bytes;

    if (option_size(size, &bytes) == 0 && bytes >= 4096 && bytes <= INT64_MAX)
        return 0;
    problem_set(why, -EINVAL, "'%.100s' is not a valid limit", size);
    problem_expected(why, "4096 bytes or more, such as 500M, 10G or 2T");
    return why->err;
}

/* Chooses hosts and folders. `size` is the free space that each set of bricks must have; NULL: any. A brick
 * of a dispersed set has one of `replica` - `redundancy` parts of the data, each other brick has all. */
static int
place_bricks(struct volume *v, int sets, const char *size, struct problem *why)
{
    uint64_t bytes = 0;

    if (sets < 1 || (unsigned)sets > VOLUME_BRICKS_MAX / v->replica)
        return problem_set(why, -EINVAL, "%d sets of %u bricks: a volume has %d bricks at most", sets,
                           v->replica, VOLUME_BRICKS_MAX);
    if (size && check_size(size, why))
        return why->err;
    if (size)
        (void)option_size(size, &bytes);
    bytes = (bytes + volume_data_bricks(v) - 1) / volume_data_bricks(v);
    return cluster_place_sets(v, (unsigned)sets, bytes, why);
}

int
verb_create(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *size = NULL;
    int replica = 1, arbiter = 0, redundancy = 0, sets = 0;
    json_t *bricks;

    if (verbs_get_args(args, why, "{s:s, s?i, s?i, s?i, s?i, s:o, s?s}", "name", &name, "replica", &replica,
                       "arbiter", &arbiter, "redundancy", &redundancy, "sets", &sets, "bricks", &bricks,
                       "size", &size, NULL) ||
        volume_check_new_name(name, why))
        return why->err;
    const bool is_placed = cluster_is_on() && json_array_size(bricks) == 0;
    if (replica < 1 || arbiter < 0 || arbiter > 1 || redundancy < 0) {
        problem_set(why, -EINVAL, "replica %d arbiter %d redundancy %d", replica, arbiter, redundancy);
        problem_expected(why, "replica 2 to 16, replica 3 arbiter 1, or disperse N redundancy R");
        return why->err;
    }
    if (sets && !is_placed) {
        problem_set(why, -EINVAL, "sets %d: this kilnd chooses no folders for bricks", sets);
        problem_expected(why, "the folders, or a kilnd with --store and --brick-root");
        problem_type(why, "kiln help create");
        return why->err;
    }
    struct volume *v = volume_new(name, (unsigned)replica, arbiter != 0);
    if (!v)
        return problem_no_memory(why);
    why->err = 0;
    v->redundancy = (unsigned)redundancy;
    if (is_placed ? place_bricks(v, sets ? sets : 1, size, why) : add_bricks(v, bricks, why)) {
        volume_free(v);
        return why->err;
    }
    if (is_placed)
        size = NULL;
    if (volume_options_of_new(v))
        problem_no_memory(why);
    else if (size && check_size(size, why) == 0 && volume_set_option(v, "kiln.limit", size))
        problem_no_memory(why);
    if (why->err) {
        volume_free(v);
        return why->err;
    }
    *out = json_pack("{ss}", "name", name);
    return changes()->create(v, why);
}

/* ---- add-brick, remove-brick, replace-brick -------------------------------------------------- */

struct volume *
verbs_named_bricks(const json_t *bricks, struct problem *why)
{
    struct volume *v = volume_new("bricks", 1, false);

    why->err = 0;
    if (!v) {
        problem_no_memory(why);
    } else if (json_array_size(bricks) == 0) {
        problem_set(why, -EINVAL, "there is no brick");
    } else if (add_bricks(v, bricks, why) == 0) {
        return v;
    }
    volume_free(v);
    return NULL;
}

static struct volume *
named_brick(const char *text, struct problem *why)
{
    json_t *list = json_pack("[s]", text);
    struct volume *v = verbs_named_bricks(list, why);

    json_decref(list);
    return v;
}

int
verb_add_bricks(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int replica = 0, arbiter = 0;
    json_t *bricks;

    if (verbs_get_args(args, why, "{s:s, s?i, s?i, s:o}", "name", &name, "replica", &replica, "arbiter",
                       &arbiter, "bricks", &bricks, NULL))
        return why->err;
    if (replica < 0 || replica > 16 || arbiter < 0 || arbiter > 1)
        return problem_set(why, -EINVAL, "replica %d arbiter %d", replica, arbiter);
    struct volume *added = verbs_named_bricks(bricks, why);
    if (!added)
        return why->err;
    *out = json_pack("{ss}", "name", name);
    int err = changes()->add_bricks(name, added, (unsigned)replica, arbiter != 0, why);
    volume_free(added);
    return err;
}

/* "drained": only if the files of exactly these bricks have been moved. */
int
verb_remove_bricks(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int replica = 0, is_drained = 0;
    json_t *bricks;

    if (verbs_get_args(args, why, "{s:s, s?i, s?b, s:o}", "name", &name, "replica", &replica, "drained",
                       &is_drained, "bricks", &bricks, NULL))
        return why->err;
    if (replica < 0 || replica > 16)
        return problem_set(why, -EINVAL, "replica %d", replica);
    struct volume *removed = verbs_named_bricks(bricks, why);
    if (!removed)
        return why->err;
    *out = json_pack("{ss}", "name", name);
    int err = is_drained ? rebalance_check_drained(name, removed, why) : 0;
    err = err ? err : changes()->remove_bricks(name, removed, (unsigned)replica, why);
    volume_free(removed);
    return err;
}

int
verb_replace_brick(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *from, *to;

    if (verbs_get_args(args, why, "{s:s, s:s, s:s}", "name", &name, "from", &from, "to", &to, NULL))
        return why->err;
    struct volume *fresh = named_brick(to, why);
    if (!fresh)
        return why->err;
    *out = json_pack("{ss}", "name", name);
    int err = changes()->replace_brick(name, from, fresh, why);
    volume_free(fresh);
    return err;
}

int
verb_reset_brick(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *brick;

    if (verbs_get_args(args, why, "{s:s, s:s}", "name", &name, "brick", &brick, NULL))
        return why->err;
    *out = json_pack("{ss}", "name", name);
    return changes()->take_brick_down(name, brick, why);
}

/* ---- start, stop, delete --------------------------------------------------------------------- */

int
verb_start(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int is_forced = 0;

    if (verbs_get_args(args, why, "{s:s, s?b}", "name", &name, "force", &is_forced, NULL))
        return why->err;
    int err = changes()->start(name, is_forced != 0, why);

    if (!err)
        *out = json_pack("{ss ss*}", "name", name, "without", is_forced && why->wrong[0] ? why->wrong : NULL);
    return err;
}

/* Runs `act` for verbs whose only argument is the name of a volume. */
static int
act_on_name(json_t *args, json_t **out, struct problem *why,
            int (*act)(const char *name, struct problem *why))
{
    const char *name;

    if (verbs_get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    *out = json_pack("{ss}", "name", name);
    return act(name, why);
}

/* The answer has the number of clients that lose the volume. */
int
verb_stop(json_t *args, json_t **out, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    struct volume *v = name ? volumes_find(name, why) : NULL;
    unsigned clients = v ? shut_out_clients(v) : 0;

    volume_free(v);
    why->err = 0;
    int err = act_on_name(args, out, why, changes()->stop);
    if (!err && *out)
        json_object_set_new(*out, "clients", json_integer(clients));
    return err;
}

int
verb_delete(json_t *args, json_t **out, struct problem *why)
{
    return act_on_name(args, out, why, changes()->remove);
}

/* ---- options --------------------------------------------------------------------------------- */

/* Refuses a change that would disconnect clients, if not forced, and TLS without certificates. TLS of one
 * side alone disconnects all of them. */
static int
check_clients(const char *name, const json_t *options, bool is_forced, struct problem *why)
{
    struct volume *v = volumes_find(name, why);
    int err = v ? tls_files_check(v, options, why) : why->err;

    err = err || is_forced ? err : tls_sides_check(v, options, why);
    err = err || is_forced ? err : shut_out_check(v, options, why);

    volume_free(v);
    return err;
}

int
verb_set(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    json_t *options;
    int is_forced = 0;

    if (verbs_get_args(args, why, "{s:s, s:o, s?b}", "name", &name, "options", &options, "force", &is_forced,
                       NULL))
        return why->err;
    if (!json_is_object(options) || json_object_size(options) == 0)
        return problem_set(why, -EINVAL, "there is nothing to set");
    *out = json_pack("{ss sO}", "name", name, "options", options);
    if (check_clients(name, options, is_forced, why))
        return why->err;
    return changes()->set(name, options, why);
}

/* A reset of server.ssl or client.ssl turns TLS off for that side. */
static int
check_reset(const char *name, const char *key, struct problem *why)
{
    bool is_of_tls = strcmp(key, "server.ssl") == 0 || strcmp(key, "client.ssl") == 0;
    json_t *options = is_of_tls ? json_pack("{ss}", key, "off") : NULL;
    struct volume *v = options ? volumes_find(name, why) : NULL;
    int err = v ? tls_sides_check(v, options, why) : is_of_tls ? why->err : 0;

    volume_free(v);
    json_decref(options);
    return err;
}

int
verb_reset(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *key;
    unsigned count = 0;

    if (verbs_get_args(args, why, "{s:s, s:s}", "name", &name, "key", &key, NULL) ||
        check_reset(name, key, why) || changes()->reset(name, key, &count, why))
        return why->err;
    *out = json_pack("{ss si}", "name", name, "count", (int)count);
    return 0;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int
limit_volume(const char *name, const char *size, struct problem *why)
{
    json_t *options = json_pack("{ss}", "kiln.limit", size);
    int err = options ? changes()->set(name, options, why) : problem_no_memory(why);

    json_decref(options);
    return err;
}

static int
unlimit_volume(const char *name, struct problem *why)
{
    struct volume *v = volumes_find(name, why);
    unsigned count;

    if (!v)
        return why->err;
    if (!volume_option_of(v, "kiln.limit")) {
        problem_set(why, -ENODATA, "volume %s has no limit", name);
        problem_type(why, "kiln volume limit %s 10G", name);
    } else {
        if (!cluster_is_on()) /* each host of a store clears its bricks when it applies the change */
            quota_clear(v);
        (void)changes()->reset(name, "kiln.limit", &count, why);
    }
    volume_free(v);
    return why->err;
}

int
verb_limit(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *size;

    if (verbs_get_args(args, why, "{s:s, s:s}", "name", &name, "size", &size, NULL))
        return why->err;
    *out = json_pack("{ss ss}", "name", name, "size", size);
    if (strcmp(size, "none") == 0)
        return unlimit_volume(name, why);
    return check_size(size, why) ? why->err : limit_volume(name, size, why);
}

/* Turns the usage counting of the bricks on if it is off. */
static int
switch_counting_on(const struct volume *v, struct problem *why)
{
    if (!volume_option_bool(v, "feature.simple-quota-pass-through"))
        return 0;
    json_t *options = json_pack("{ss}", "feature.simple-quota-pass-through", "off");
    int err = options ? changes()->set(v->name, options, why) : problem_no_memory(why);

    json_decref(options);
    return err;
}

static int
check_folder(const struct volume *v, const char *path, struct problem *why)
{
    return cluster_is_on() ? cluster_quota_check(v, path, why) : quota_check(v, path, why);
}

static int
set_folder(const struct volume *v, const char *path, uint64_t bytes, struct problem *why)
{
    return cluster_is_on() ? cluster_quota_set(v, path, bytes, why) : quota_set(v, path, bytes, why);
}

static int
change_folder(const struct volume *v, const char *what, const char *path, const char *size,
              struct problem *why)
{
    uint64_t bytes = 0;

    if (!path || *path != '/' || strcmp(path, "/") == 0) {
        problem_set(why, -EINVAL, "'%.400s' is not a folder of volume %s", path ? path : "", v->name);
        problem_expected(
            why, "a path from the volume's root, such as /home/ann; for the whole volume: kiln volume limit");
        return why->err;
    }
    if (strcmp(what, "remove") == 0)
        return set_folder(v, path, 0, why);
    /* the folder is checked before an option changes */
    if (check_size(size ? size : "", why) || check_folder(v, path, why) || switch_counting_on(v, why))
        return why->err;
    (void)option_size(size, &bytes);
    return set_folder(v, path, bytes, why);
}

int
verb_quota(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *what, *path = NULL, *size = NULL;

    if (verbs_get_args(args, why, "{s:s, s:s, s?s, s?s}", "name", &name, "what", &what, "path", &path, "size",
                       &size, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    if (v->status != VOLUME_STARTED) {
        problem_set(why, -EINVAL, "volume %s is not started", name);
        problem_type(why, "kiln volume start %s", name);
    } else if (strcmp(what, "list") == 0) {
        (void)(cluster_is_on() ? cluster_quota_list(v, out, why) : quota_list(v, out, why));
    } else if (strcmp(what, "set") == 0 || strcmp(what, "remove") == 0) {
        *out = json_pack("{ss ss}", "name", name, "path", path ? path : "");
        (void)change_folder(v, what, path, size, why);
    } else {
        problem_set(why, -EINVAL, "there is no quota '%.40s'", what);
        problem_expected(why, "list, set or remove");
    }
    volume_free(v);
    return why->err;
}
