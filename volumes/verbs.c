/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/verbs.h"

#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glusterfsd/bricks.h"
#include "glusterfsd/http.h"
#include "graph/graph.h"
#include "volumes/brick-check.h"
#include "volumes/clear-locks.h"
#include "volumes/heal-ask.h"
#include "volumes/heal-daemon.h"
#include "volumes/heal-pending.h"
#include "volumes/own-host.h"
#include "volumes/profile.h"
#include "volumes/volume-options.h"
#include "volumes/volumes.h"

static const char *dump_dir;    /* written before the last of these, only read after it, as the next */
static uint16_t volfile_port;
static atomic_uint brick_port; /* 0: no questions are answered */

void
verbs_begin(uint16_t bricks_at, uint16_t volfiles_at, const char *dumps_in)
{
    dump_dir = dumps_in;
    volfile_port = volfiles_at;
    atomic_store(&brick_port, bricks_at);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Every member must be known: what a newer kiln means by one is not guessed. */
static int __attribute__((sentinel))
get_args(json_t *args, struct problem *why, const char *format, ...)
{
    json_error_t flaw;
    va_list ap;

    va_start(ap, format);
    int err = json_vunpack_ex(args, &flaw, JSON_STRICT, format, ap);
    va_end(ap);
    if (!err)
        return 0;
    problem_set(why, -EINVAL, "the arguments cannot be understood: %s", flaw.text);
    problem_expected(why, "a kiln of the same version as kilnd, %s", PACKAGE_VERSION);
    return why->err;
}

/* ---- volume create --------------------------------------------------------------------------- */

/* "HOST:/path" or "/path". */
static int
add_brick(struct volume *v, const char *text, struct problem *why)
{
    char path[VOLUME_BRICK_PATH_MAX + 1], *host = NULL;
    const char *colon = *text == '/' ? NULL : strstr(text, ":/");
    bool is_loopback = true;

    if (colon && !(host = strndup(text, (size_t)(colon - text))))
        return problem_no_memory(why);
    int err = host ? volume_check_host(host, why) : 0;
    if (!err && host)
        err = own_host_check(host, &is_loopback, why);
    if (!err)
        err = volume_check_path(colon ? colon + 1 : text, path, why);
    /* By a loopback name no other machine would find it. */
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
        if (add_brick(v, json_string_value(one), why))
            return why->err;
    }
    return volume_check_shape(v, why);
}

static int
volume_create(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int replica = 1, arbiter = 0;
    json_t *bricks;

    if (get_args(args, why, "{s:s, s?i, s?i, s:o}", "name", &name, "replica", &replica, "arbiter", &arbiter,
                 "bricks", &bricks, NULL) ||
        volume_check_name(name, why))
        return why->err;
    if (replica < 1 || arbiter < 0 || arbiter > 1)
        return problem_set(why, -EINVAL, "replica %d arbiter %d", replica, arbiter);
    struct volume *v = volume_new(name, (unsigned)replica, arbiter != 0);
    if (!v)
        return problem_no_memory(why);
    if (add_bricks(v, bricks, why)) {
        volume_free(v);
        return why->err;
    }
    if (volume_options_of_new(v)) {
        volume_free(v);
        return problem_no_memory(why);
    }
    *out = json_pack("{ss}", "name", name);
    return volumes_create(v, why);
}

/* ---- add-brick, remove-brick, replace-brick -------------------------------------------------- */

/* A volume with these bricks alone. NULL with *why. */
static struct volume *
named_bricks(const json_t *bricks, struct problem *why)
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
    struct volume *v = named_bricks(list, why);

    json_decref(list);
    return v;
}

/* Of a brick that the volume has: its host says nothing. */
static const char *
path_of_brick(const char *text)
{
    const char *colon = *text == '/' ? NULL : strstr(text, ":/");

    return colon ? colon + 1 : text;
}

static int
volume_add_bricks(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int replica = 0, arbiter = 0;
    json_t *bricks;

    if (get_args(args, why, "{s:s, s?i, s?i, s:o}", "name", &name, "replica", &replica, "arbiter", &arbiter,
                 "bricks", &bricks, NULL))
        return why->err;
    if (replica < 0 || replica > 16 || arbiter < 0 || arbiter > 1)
        return problem_set(why, -EINVAL, "replica %d arbiter %d", replica, arbiter);
    struct volume *added = named_bricks(bricks, why);
    if (!added)
        return why->err;
    *out = json_pack("{ss}", "name", name);
    int err = volumes_add_bricks(name, added, (unsigned)replica, arbiter != 0, why);
    volume_free(added);
    return err;
}

static int
volume_remove_bricks(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int replica = 0;
    json_t *bricks;

    if (get_args(args, why, "{s:s, s?i, s:o}", "name", &name, "replica", &replica, "bricks", &bricks, NULL))
        return why->err;
    if (replica < 0 || replica > 16)
        return problem_set(why, -EINVAL, "replica %d", replica);
    struct volume *removed = named_bricks(bricks, why);
    if (!removed)
        return why->err;
    *out = json_pack("{ss}", "name", name);
    int err = volumes_remove_bricks(name, removed, (unsigned)replica, why);
    volume_free(removed);
    return err;
}

static int
volume_replace_brick(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *from, *to;

    if (get_args(args, why, "{s:s, s:s, s:s}", "name", &name, "from", &from, "to", &to, NULL))
        return why->err;
    struct volume *fresh = named_brick(to, why);
    if (!fresh)
        return why->err;
    *out = json_pack("{ss}", "name", name);
    int err = volumes_replace_brick(name, path_of_brick(from), fresh, why);
    volume_free(fresh);
    return err;
}

static int
volume_reset_brick(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *brick;

    if (get_args(args, why, "{s:s, s:s}", "name", &name, "brick", &brick, NULL))
        return why->err;
    *out = json_pack("{ss}", "name", name);
    return volumes_take_brick_down(name, path_of_brick(brick), why);
}

/* ---- start, stop, delete --------------------------------------------------------------------- */

static int
volume_start(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    int is_forced = 0;

    if (get_args(args, why, "{s:s, s?b}", "name", &name, "force", &is_forced, NULL))
        return why->err;
    *out = json_pack("{ss}", "name", name);
    return volumes_start(name, is_forced != 0, why);
}

/* For verbs that have a volume's name and no other argument. */
static int
act_on_name(json_t *args, json_t **out, struct problem *why,
            int (*act)(const char *name, struct problem *why))
{
    const char *name;

    if (get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    *out = json_pack("{ss}", "name", name);
    return act(name, why);
}

static int
volume_stop(json_t *args, json_t **out, struct problem *why)
{
    return act_on_name(args, out, why, volumes_stop);
}

static int
volume_delete(json_t *args, json_t **out, struct problem *why)
{
    return act_on_name(args, out, why, volumes_delete);
}

/* A copy of a volume that is started; NULL with *why. */
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

/* What a client on this machine needs to know. */
static int
volume_mount(json_t *args, json_t **out, struct problem *why)
{
    const char *name;

    if (get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    struct volume *v = find_started(name, why);
    volume_free(v);
    *out = json_pack("{ss si}", "name", name, "port", (int)volfile_port);
    return why->err;
}

/* ---- info, list, status ---------------------------------------------------------------------- */

/* Builds a list of what `describe` makes of one volume, or of all. */
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

static const char *
shown_host(const struct volume_brick *b)
{
    static __thread char own[256];

    if (*b->host)
        return b->host;
    if (gethostname(own, sizeof own - 1) < 0)
        strcpy(own, "localhost");
    return own;
}

static json_t *
describe_bricks(const struct volume *v, bool with_state)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < v->brick_count && list; i++) {
        json_t *b = json_pack("{ss ss sb}", "host", shown_host(&v->bricks[i]), "path", v->bricks[i].path,
                              "arbiter", (int)volume_is_arbiter(v, i));
        struct graph *g = with_state ? bricks_find(v->bricks[i].path) : NULL;

        if (with_state && b) {
            json_object_set_new(b, "online", json_boolean(g != NULL));
            json_object_set_new(b, "port", g ? json_integer(atomic_load(&brick_port)) : json_null());
            json_object_set_new(b, "pid", g ? json_integer(getpid()) : json_null());
            json_object_set_new(b, "cpu_seconds", g ? json_real(profile_cpu_seconds(g)) : json_null());
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
    return json_pack("{ss ss ss ss si si so so}", "name", v->name, "type", volume_type_text(v), "id",
                     GFID(&v->id), "status", volume_status_text(v->status), "replica", (int)v->replica,
                     "arbiter", (int)v->has_arbiter, "bricks", describe_bricks(v, false), "options",
                     describe_options(v));
}

static int
volume_info(json_t *args, json_t **out, struct problem *why)
{
    const char *name = NULL;

    if (get_args(args, why, "{s?s}", "name", &name, NULL))
        return why->err;
    return list_volumes(name, describe_info, out, why);
}

static json_t *
describe_name(const struct volume *v)
{
    return json_string(v->name);
}

static int
volume_list(json_t *args, json_t **out, struct problem *why)
{
    return get_args(args, why, "{}", NULL) ? why->err : list_volumes(NULL, describe_name, out, why);
}

/* Null: the volume has nothing to heal, or is not to be. */
static json_t *
describe_heal(const struct volume *v)
{
    static const char *const words[] = {[HEAL_NONE] = "off",
                                        [HEAL_RUNNING] = "running",
                                        [HEAL_WAITING] = "starting again",
                                        [HEAL_MISSING] = "not installed"};
    struct heal_daemon_look look;

    if (v->replica == 1)
        return json_null();
    heal_daemon_look(v->name, &look);
    json_t *json = json_pack("{ss si si}", "state", words[look.state], "pid", (int)look.pid, "restarts",
                             (int)look.restarts);
    if (json && *look.reason)
        json_object_set_new(json, "ended", json_string(look.reason));
    if (json && look.state == HEAL_MISSING)
        json_object_set_new(json, "type", json_string("apt install glusterfs-client"));
    return json;
}

static json_t *
describe_status(const struct volume *v)
{
    return json_pack("{ss ss so so}", "name", v->name, "status", volume_status_text(v->status), "bricks",
                     describe_bricks(v, true), "self-heal", describe_heal(v));
}

static int
volume_status(json_t *args, json_t **out, struct problem *why)
{
    const char *name = NULL;

    if (get_args(args, why, "{s?s}", "name", &name, NULL))
        return why->err;
    return list_volumes(name, describe_status, out, why);
}

/* ---- heal ------------------------------------------------------------------------------------ */

static int
ask_heal_daemon(const struct volume *v, enum heal_ask what, json_t **said, struct problem *why)
{
    struct heal_daemon_look look;
    char socket[HEAL_DAEMON_SOCKET_SIZE];

    heal_daemon_look(v->name, &look);
    if (look.state == HEAL_MISSING) {
        problem_set(why, -ENOENT, "volume %s is not healed: " HEAL_DAEMON_PROGRAM " is missing", v->name);
        problem_type(why, "apt install glusterfs-client");
        return why->err;
    }
    if (heal_daemon_wake(v->name, socket) == 0)
        return heal_ask(socket, v, what, said, why);
    if (v->status != VOLUME_STARTED) {
        problem_set(why, -EINVAL, "volume %s has no self-heal daemon: it is not started", v->name);
        problem_type(why, "kiln volume start %s", v->name);
    } else {
        problem_set(why, -EINVAL, "volume %s has no self-heal daemon: it is switched off", v->name);
        problem_type(why, "kiln volume set %s cluster.self-heal-daemon on", v->name);
    }
    return why->err;
}

static int
heal_now(const struct volume *v, enum heal_ask what, json_t **out, struct problem *why)
{
    json_t *said = NULL;

    if (ask_heal_daemon(v, what, &said, why) == 0)
        *out = json_pack("{ss}", "name", v->name);
    json_decref(said);
    return why->err;
}

/* What the daemon says of look `n` of a brick of a set; NULL: there was none. */
static json_t *
describe_look(const json_t *said, unsigned set, unsigned in_set, unsigned n)
{
    static const struct {
        const char *key, *theirs;
    } parts[] = {{"type", "crawl_type"},     {"started", "strt_time"},   {"ended", "end_time"},
                 {"healed", "healed_cnt"},   {"split_brain", "sb_cnt"}, {"failed", "heal_failed_cnt"},
                 {"under_way", "inprogress"}};
    json_t *look = json_object();
    char key[80];

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(key, sizeof key, "statistics_%s-%u-%u-%u", parts[i].theirs, set, in_set, n);
        const char *text = json_string_value(json_object_get(said, key));
        if (text) /* times end with a newline */
            json_object_set_new(look, parts[i].key, json_stringn(text, strcspn(text, "\n")));
    }
    if (json_object_size(look) > 0)
        return look;
    json_decref(look);
    return NULL;
}

static json_t *
describe_looks(const struct volume *v, unsigned brick, const json_t *said)
{
    json_t *list = json_array(), *look;

    for (unsigned n = 0; (look = describe_look(said, brick / v->replica, brick % v->replica, n)); n++)
        json_array_append_new(list, look);
    return json_pack("{ss ss so}", "host", shown_host(&v->bricks[brick]), "path", v->bricks[brick].path,
                     "looks", list);
}

static int
heal_statistics(const struct volume *v, json_t **out, struct problem *why)
{
    json_t *said = NULL, *list = json_array();

    if (ask_heal_daemon(v, HEAL_ASK_STATISTICS, &said, why)) {
        json_decref(list);
        return why->err;
    }
    for (unsigned i = 0; i < v->brick_count; i++)
        json_array_append_new(list, describe_looks(v, i, said));
    json_decref(said);
    *out = json_pack("{ss so}", "name", v->name, "bricks", list);
    return 0;
}

/* What `look` says of each brick, with the brick's name. */
static int
list_bricks(const struct volume *v, json_t *(*look)(const struct volume *v, unsigned brick), json_t **out,
            struct problem *why)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < v->brick_count; i++) {
        struct graph *g = bricks_find(v->bricks[i].path);
        json_t *one = look(v, i);

        if (one) {
            json_object_set_new(one, "host", json_string(shown_host(&v->bricks[i])));
            json_object_set_new(one, "path", json_string(v->bricks[i].path));
            json_object_set_new(one, "online", json_boolean(g != NULL));
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

static int
heal_volume(const struct volume *v, const char *what, json_t **out, struct problem *why)
{
    if (v->replica == 1) {
        problem_set(why, -EINVAL, "volume %s is not replicated: there is nothing to heal", v->name);
        return why->err;
    }
    if (strcmp(what, "index") == 0)
        return heal_now(v, HEAL_ASK_INDEX, out, why);
    if (strcmp(what, "full") == 0)
        return heal_now(v, HEAL_ASK_FULL, out, why);
    if (strcmp(what, "statistics") == 0)
        return heal_statistics(v, out, why);
    if (strcmp(what, "info") == 0)
        return list_bricks(v, heal_pending_of_brick, out, why);
    problem_set(why, -EOPNOTSUPP, "heal %.40s is not built", what);
    problem_expected(why, "heal, heal full, heal info, heal info split-brain, or heal statistics");
    return why->err;
}

static int
volume_heal(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *what = "index";

    if (get_args(args, why, "{s:s, s?s}", "name", &name, "what", &what, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    int err = heal_volume(v, what, out, why);
    volume_free(v);
    return err;
}

/* ---- check ----------------------------------------------------------------------------------- */

static json_t *
check_brick(const struct volume *v, unsigned brick)
{
    json_t *json = brick_check(v->bricks[brick].path), *pending = heal_pending_of_brick(v, brick);

    if (json && pending)
        json_object_set(json, "pending", json_object_get(pending, "count"));
    json_decref(pending);
    return json;
}

static int
check_volume(const struct volume *v, void *arg, struct problem *why)
{
    return list_bricks(v, check_brick, arg, why);
}

static int
volume_check(json_t *args, json_t **out, struct problem *why)
{
    const char *name;

    if (get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    return volumes_at_rest(name, check_volume, out, why);
}

/* ---- profile, statedump ---------------------------------------------------------------------- */

static int
volume_profile(json_t *args, json_t **out, struct problem *why)
{
    const char *name;

    if (get_args(args, why, "{s:s}", "name", &name, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    int err = list_bricks(v, profile_of_brick, out, why);
    volume_free(v);
    return err;
}

static int
volume_clear_locks(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *path, *kind, *state, *range = NULL;

    if (get_args(args, why, "{s:s, s:s, s:s, s:s, s?s}", "name", &name, "path", &path, "kind", &kind, "state",
                 &state, "range", &range, NULL))
        return why->err;
    struct volume *v = find_started(name, why);
    if (!v)
        return why->err;
    int err = clear_locks(v, path, kind, state, range, out, why);
    volume_free(v);
    return err;
}

/* As on the signal: the main thread writes it. */
static int
statedump(json_t *args, json_t **out, struct problem *why)
{
    if (get_args(args, why, "{}", NULL))
        return why->err;
    if (kill(getpid(), SIGUSR1) < 0)
        return problem_set(why, -errno, "no statedump: %s", strerror(errno));
    *out = json_pack("{ss si}", "folder", dump_dir, "pid", (int)getpid());
    return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

static int
volume_set(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    json_t *options;

    if (get_args(args, why, "{s:s, s:o}", "name", &name, "options", &options, NULL))
        return why->err;
    if (!json_is_object(options) || json_object_size(options) == 0)
        return problem_set(why, -EINVAL, "there is nothing to set");
    *out = json_pack("{ss sO}", "name", name, "options", options);
    return volumes_set(name, options, why);
}

static int
volume_reset(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *key;
    unsigned count = 0;

    if (get_args(args, why, "{s:s, s:s}", "name", &name, "key", &key, NULL) ||
        volumes_reset(name, key, &count, why))
        return why->err;
    *out = json_pack("{ss si}", "name", name, "count", (int)count);
    return 0;
}

static json_t *
describe_option(const struct volume *v, const char *key)
{
    return json_pack("{ss ss sb}", "option", key, "value", volume_option_value(v, key), "set",
                     volume_option_of(v, key) != NULL);
}

static int
get_all(const struct volume *v, json_t *list)
{
    const struct volume_key *k;
    int err = 0;

    for (unsigned i = 0; (k = volume_keys(i)); i++) {
        if (volume_key_find(k->key) == k) /* the first of several rows */
            err |= json_array_append_new(list, describe_option(v, k->key));
    }
    for (unsigned i = 0; i < v->option_count; i++) {
        if (!volume_key_find(v->options[i].key))
            err |= json_array_append_new(list, describe_option(v, v->options[i].key));
    }
    return err;
}

static int
get_one(const struct volume *v, const char *key, json_t *list, struct problem *why)
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

static int
volume_get(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *key;

    if (get_args(args, why, "{s:s, s:s}", "name", &name, "key", &key, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    json_t *list = json_array();
    int err = 0;
    if (strcmp(key, "all") != 0)
        err = get_one(v, key, list, why);
    else if (get_all(v, list))
        err = problem_no_memory(why);
    volume_free(v);
    *out = json_pack("{so}", "options", list);
    return err;
}

static int
version(json_t *args, json_t **out, struct problem *why)
{
    if (get_args(args, why, "{}", NULL))
        return why->err;
    *out = json_pack("{ss si}", "version", PACKAGE_VERSION, "pid", (int)getpid());
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(json_t *args, json_t **out, struct problem *why);
} verbs[] = {
    {"statedump", statedump},
    {"version", version},
    {"volume-add-brick", volume_add_bricks},
    {"volume-check", volume_check},
    {"volume-clear-locks", volume_clear_locks},
    {"volume-create", volume_create},
    {"volume-delete", volume_delete},
    {"volume-get", volume_get},
    {"volume-heal", volume_heal},
    {"volume-info", volume_info},
    {"volume-list", volume_list},
    {"volume-mount", volume_mount},
    {"volume-profile", volume_profile},
    {"volume-remove-brick", volume_remove_bricks},
    {"volume-replace-brick", volume_replace_brick},
    {"volume-reset", volume_reset},
    {"volume-reset-brick", volume_reset_brick},
    {"volume-set", volume_set},
    {"volume-start", volume_start},
    {"volume-status", volume_status},
    {"volume-stop", volume_stop},
};

static int
run_verb(size_t verb, const char *body, size_t bytes, json_t **out, struct problem *why)
{
    json_error_t flaw;
    json_t *args = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &flaw);

    why->err = 0;
    if (!args)
        return problem_set(why, -EINVAL, "the arguments are no JSON: %s", flaw.text);
    int err = verbs[verb].run(args, out, why);
    json_decref(args);
    if (!err && !*out)
        err = problem_no_memory(why);
    if (err) {
        json_decref(*out);
        *out = NULL;
    }
    return err;
}

int
verbs_run(const char *verb, const char *body, size_t bytes, json_t **out, struct problem *why)
{
    *out = NULL;
    if (atomic_load(&brick_port) == 0)
        return problem_set(why, -EAGAIN,
                           "this kilnd is starting, or keeps no volumes (it was started without --state)");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, verb) == 0)
            return run_verb(i, body, bytes, out, why);
    }
    problem_set(why, -ENOSYS, "kilnd %s does not know '%.80s'", PACKAGE_VERSION, verb);
    problem_expected(why, "a kiln of the same version");
    return why->err;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static unsigned
http_status(int err)
{
    switch (err) {
    case -EINVAL:
        return 400;
    case -ENOENT:
    case -ENODATA:
        return 404;
    case -EEXIST:
    case -EBUSY:
    case -EALREADY:
        return 409;
    case -EAGAIN:
        return 503;
    case -ENOSYS:
    case -EOPNOTSUPP:
        return 501;
    default:
        return 500;
    }
}

static json_t *
problem_to_json(const struct problem *why)
{
    json_t *json = json_pack("{ss? si}", "error", why->wrong, "errno", -why->err);

    /* A path may hold bytes that are no UTF-8. */
    if (!json)
        return json_pack("{ss si}", "error", "what was wrong cannot be shown", "errno", -why->err);
    if (*why->expected)
        json_object_set_new(json, "expected", json_string(why->expected));
    if (*why->type)
        json_object_set_new(json, "type", json_string(why->type));
    return json;
}

void
verbs_handle(const struct http_request *req, struct http_answer *answer)
{
    struct problem why = {0};
    json_t *out;
    int err = verbs_run(req->rest, req->body, req->body_bytes, &out, &why);

    if (err) {
        answer->status = http_status(err);
        out = problem_to_json(&why);
    }
    char *text = out ? json_dumps(out, JSON_INDENT(2)) : NULL;
    json_decref(out);
    if (!text) {
        http_fail(answer, 500, "no memory for the answer");
        return;
    }
    answer->content_type = "application/json";
    http_put(answer, text, strlen(text));
    http_put(answer, "\n", 1);
    free(text);
}
