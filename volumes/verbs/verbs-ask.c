/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Verbs that read and do not change the definition of a volume: mount, info, list, status, check,
 * profile, clear-locks, get. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bricks/bricks.h"
#include "bricks/figures.h"
#include "graph/graph.h"
#include "graph/unbuilt.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-check.h"
#include "volumes/bricks/clear-locks.h"
#include "volumes/bricks/profile.h"
#include "volumes/heal/heal-pending.h"
#include "volumes/heal/healer.h"
#include "volumes/quota.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume-options.h"
#include "volumes/volumes.h"

/* Returns a copy of a started volume, or NULL with *why. */
static struct volume *
find_started(const char *name, struct problem *why)
{
    struct volume *v = volumes_find(name, why);

    if (!v || v->status == VOLUME_STARTED)
        return v;
    problem_set(why, -EINVAL, "volume %s is not started", name);
    problem_type(why, "kiln volume start %s", name);
    volume_free(v);
    return NULL;
}

/* Returns the data that a client on this machine needs for a mount. */
int
verb_mount(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *dir = NULL;

    if (verbs_get_args(args, why, "{s:s, s?s}", "name", &name, "dir", &dir, NULL))
        return why->err;
    struct volume *v = find_started(name, why);
    volume_free(v);
    if (!v || (dir && volumes_check_mount_point(name, dir, why)))
        return why->err;
    *out = json_pack("{ss si}", "name", name, "port", (int)verbs_volfile_port());
    return why->err;
}

/* ---- info, list, status ---------------------------------------------------------------------- */

/* A list of the results of `describe` for one volume, or for all. */
struct listing {
    json_t *list;
    json_t *(*describe)(const struct volume *v);
    bool is_short;
};

static void
list_one(const struct volume *v, void *arg)
{
    struct listing *l = arg;

    if (json_array_append_new(l->list, l->describe(v)) < 0)
        l->is_short = true;
}

static int
list_volumes(const char *name, json_t *(*describe)(const struct volume *v), json_t **out, struct problem *why)
{
    struct listing l = {json_array(), describe, false};
    struct volume *v = name ? volumes_find(name, why) : NULL;

    if (name && !v) {
        json_decref(l.list);
        return why->err;
    }
    if (v)
        list_one(v, &l);
    else
        volumes_each(list_one, &l);
    volume_free(v);
    *out = json_pack("{so}", "volumes", l.list);
    return l.is_short || !*out ? problem_no_memory(why) : 0;
}

const char *
verbs_shown_host(const struct volume_brick *b)
{
    static __thread char own[256];

    if (*b->host)
        return b->host;
    if (gethostname(own, sizeof own - 1) < 0)
        strcpy(own, "localhost");
    return own;
}

static void
describe_unbuilt(const struct unbuilt_feature *f, void *arg)
{
    json_array_append_new(
        arg, json_pack("{ss ss ss}", "layer", f->layer, "option", f->option, "without", f->without));
}

json_t *
verbs_list_unbuilt(const struct graph *g)
{
    json_t *list = json_array();

    if (g && list)
        graph_each_unbuilt(g, describe_unbuilt, list);
    return list;
}

json_t *
verbs_heal_pending(const struct graph *g)
{
    int64_t pending = g ? figures_heal_pending(g) : -1;

    return pending < 0 ? json_null() : json_integer((json_int_t)pending);
}

static json_t *
describe_bricks(const struct volume *v, bool with_state)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < v->brick_count && list; i++) {
        json_t *b = json_pack("{ss ss sb}", "host", verbs_shown_host(&v->bricks[i]), "path",
                              v->bricks[i].path, "arbiter", (int)volume_is_arbiter(v, i));
        struct graph *g =
            with_state && brick_host_is_here(&v->bricks[i]) ? bricks_find(v->bricks[i].path) : NULL;

        if (with_state && b) {
            json_object_set_new(b, "online", json_boolean(g && !bricks_has_failed(v->bricks[i].path)));
            json_object_set_new(b, "port", g ? json_integer(verbs_brick_port()) : json_null());
            json_object_set_new(b, "pid", g ? json_integer(getpid()) : json_null());
            json_object_set_new(b, "cpu_seconds", g ? json_real(profile_cpu_seconds(g)) : json_null());
            json_object_set_new(b, "heal_pending", verbs_heal_pending(g));
            json_object_set_new(b, "not_built", verbs_list_unbuilt(g));
        }
        if (g)
            graph_unpin(g);
        if (json_array_append_new(list, b) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *
describe_options(const struct volume *v)
{
    json_t *object = json_object();

    for (unsigned i = 0; i < v->option_count && object; i++) {
        if (json_object_set_new(object, v->options[i].key, json_string(v->options[i].value)) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *
describe_info(const struct volume *v)
{
    return json_pack("{ss ss ss ss si si si so so}", "name", v->name, "type", volume_type_text(v), "id",
                     GFID(&v->id), "status", volume_status_text(v->status), "replica", (int)v->replica,
                     "arbiter", (int)v->has_arbiter, "redundancy", (int)v->redundancy, "bricks",
                     describe_bricks(v, false), "options", describe_options(v));
}

int
verb_info(json_t *args, json_t **out, struct problem *why)
{
    const char *name = NULL;

    if (verbs_get_args(args, why, "{s?s}", "name", &name, NULL))
        return why->err;
    return list_volumes(name, describe_info, out, why);
}

static json_t *
describe_name(const struct volume *v)
{
    return json_string(v->name);
}

int
verb_list(json_t *args, json_t **out, struct problem *why)
{
    return verbs_get_args(args, why, "{}", NULL) ? why->err : list_volumes(NULL, describe_name, out, why);
}

/* Returns null for a volume that is not replicated. */
static json_t *
describe_heal(const struct volume *v)
{
    static const char *const words[] = {[HEALER_NONE] = "off",
                                        [HEALER_RUNNING] = "running",
                                        [HEALER_WAITING] = "starting again",
                                        [HEALER_MISSING] = "not installed"};
    struct healer_look look;

    if (v->replica == 1)
        return json_null();
    healer_look(&look);
    bool is_off = v->status != VOLUME_STARTED || !volume_option_bool(v, "cluster.self-heal-daemon");
    json_t *json = json_pack("{ss si si}", "state", is_off ? "off" : words[look.state], "pid",
                             is_off ? 0 : (int)look.pid, "restarts", (int)look.restarts);
    if (json && *look.reason && !is_off)
        json_object_set_new(json, "ended", json_string(look.reason));
    if (json && look.state == HEALER_MISSING && !is_off)
        json_object_set_new(json, "type", json_string("apt install --reinstall kiln"));
    return json;
}

/* Returns null for a missing limit and for unknown usage. */
static json_t *
describe_bytes(bool is_there, uint64_t bytes)
{
    return is_there ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *
describe_status(const struct volume *v)
{
    struct quota_usage usage;

    quota_usage(v, &usage);
    return json_pack("{ss ss so so so so}", "name", v->name, "status", volume_status_text(v->status),
                     "bricks", describe_bricks(v, true), "self-heal", describe_heal(v), "limit",
                     describe_bytes(usage.limit > 0, usage.limit), "used",
                     describe_bytes(usage.is_known, usage.used));
}

int
verb_status(json_t *args, json_t **out, struct problem *why)
{
    const char *name = NULL;

    if (verbs_get_args(args, why, "{s?s}", "name", &name, NULL))
        return why->err;
    return list_volumes(name, describe_status, out, why);
}

/* ---- lists of bricks ------------------------------------------------------------------------- */

int
verbs_list_bricks(const struct volume *v, json_t *(*look)(const struct volume *v, unsigned brick),
                  json_t **out, struct problem *why)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < v->brick_count; i++) {
        const bool is_here = brick_host_is_here(&v->bricks[i]);
        struct graph *g = is_here ? bricks_find(v->bricks[i].path) : NULL;
        json_t *one = is_here ? look(v, i) : json_object(); /* its host describes it */

        if (one) {
            json_object_set_new(one, "host", json_string(verbs_shown_host(&v->bricks[i])));
            json_object_set_new(one, "path", json_string(v->bricks[i].path));
            json_object_set_new(one, "online", json_boolean(g && !bricks_has_failed(v->bricks[i].path)));
        }
        if (g)
            graph_unpin(g);
        if (json_array_append_new(list, one)) {
            json_decref(list);
            return problem_no_memory(why);
        }
    }
    *out = json_pack("{ss so}", "name", v->name, "bricks", list);
    return 0;
}

/* ---- check ----------------------------------------------------------------------------------- */

static json_t *
check_one_brick(const struct volume *v, unsigned brick)
{
    json_t *json = brick_check(v->bricks[brick].path), *pending = heal_pending_of_brick(v, brick, NULL, NULL);

    if (json && pending)
        json_object_set(json, "pending", json_object_get(pending, "count"));
    json_decref(pending);
    return json;
}

static int
check_volume(const struct volume *v, void *arg, struct problem *why)
{
    return verbs_list_bricks(v, check_one_brick, arg, why);
}

int
verb_check(json_t *args, json_t **out, struct problem *why)
{
    const char *name;

    if (verbs_get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    return volumes_at_rest(name, check_volume, out, why);
}

/* ---- profile, clear-locks -------------------------------------------------------------------- */

int
verb_profile(json_t *args, json_t **out, struct problem *why)
{
    const char *name;

    if (verbs_get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    int err = verbs_list_bricks(v, profile_of_brick, out, why);
    volume_free(v);
    return err;
}

int
verb_clear_locks(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *path, *kind, *state, *range = NULL;

    if (verbs_get_args(args, why, "{s:s, s:s, s:s, s:s, s?s}", "name", &name, "path", &path, "kind", &kind,
                       "state", &state, "range", &range, NULL))
        return why->err;
    struct volume *v = find_started(name, why);
    if (!v)
        return why->err;
    int err = clear_locks(v, path, kind, state, range, out, why);
    volume_free(v);
    return err;
}

/* ---- get ------------------------------------------------------------------------------------- */

static json_t *
describe_option(const struct volume *v, const char *key)
{
    return json_pack("{ss ss sb}", "option", key, "value", volume_option_value(v, key), "set",
                     volume_option_of(v, key) != NULL);
}

static int
get_all_options(const struct volume *v, json_t *list)
{
    const struct volume_key *k;
    int err = 0;

    for (unsigned i = 0; (k = volume_keys(i)); i++) {
        if (volume_key_find(k->key) == k) /* only the first row of a key */
            err |= json_array_append_new(list, describe_option(v, k->key));
    }
    for (unsigned i = 0; i < v->option_count; i++) {
        if (!volume_key_find(v->options[i].key))
            err |= json_array_append_new(list, describe_option(v, v->options[i].key));
    }
    return err;
}

static int
get_one_option(const struct volume *v, const char *key, json_t *list, struct problem *why)
{
    if (volume_key_find(key) || volume_option_of(v, key))
        return json_array_append_new(list, describe_option(v, key)) ? problem_no_memory(why) : 0;
    const char *like = volume_key_like(key);
    problem_set(why, -ENOENT, "there is no option '%.200s'", key);
    if (like)
        problem_expected(why, "did you mean %s?", like);
    problem_type(why, "kiln volume get %s all", v->name);
    return why->err;
}

int
verb_get(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *key;

    if (verbs_get_args(args, why, "{s:s, s:s}", "name", &name, "key", &key, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    json_t *list = json_array();
    int err = 0;
    if (strcmp(key, "all") != 0)
        err = get_one_option(v, key, list, why);
    else if (get_all_options(v, list))
        err = problem_no_memory(why);
    volume_free(v);
    *out = json_pack("{so}", "options", list);
    return err;
}

