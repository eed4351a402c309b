/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/verbs/verbs.h"

#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bricks/upgrade.h"
#include "coro/pool-control.h"
#include "daemon/http.h"
#include "log/log.h"
#include "volumes/cluster/cluster-look.h"
#include "volumes/cluster/cluster.h"
#include "volumes/hooks.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume.h"
#include "volumes/volumes.h"

/* written before brick_port is set, read only afterwards */
static int (*write_dump)(char path[4096]);
static uint16_t volfile_port; /* written before has_volumes is set, read only afterwards */
static atomic_uint brick_port; /* 0: kilnd is starting, and verbs about bricks are refused */
static atomic_bool has_volumes; /* of a kilnd with --state: set before brick_port */

void
verbs_begin_process(uint16_t bricks_at, int (*writes_dump)(char path[4096]))
{
    write_dump = writes_dump;
    atomic_store(&brick_port, bricks_at);
}

void
verbs_begin(uint16_t volfiles_at)
{
    volfile_port = volfiles_at;
    atomic_store(&has_volumes, true);
}

uint16_t
verbs_brick_port(void)
{
    return (uint16_t)atomic_load(&brick_port);
}

uint16_t
verbs_volfile_port(void)
{
    return volfile_port;
}

/* ---- arguments ------------------------------------------------------------------------------- */

int
verbs_get_args(json_t *args, struct problem *why, const char *format, ...)
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

/* ---- statedump, version ---------------------------------------------------------------------- */

int
verb_statedump(json_t *args, json_t **out, struct problem *why)
{
    char path[4096];

    if (verbs_get_args(args, why, "{}", NULL))
        return why->err;
    int err = write_dump(path);
    if (err) {
        problem_set(why, err, "no statedump: %s", strerror(-err));
        problem_type(why, "journalctl -u kilnd   # the log of kilnd names the file");
        return err;
    }
    *out = json_pack("{ss si}", "file", path, "pid", (int)getpid());
    return 0;
}

int
verb_version(json_t *args, json_t **out, struct problem *why)
{
    if (verbs_get_args(args, why, "{}", NULL))
        return why->err;
    struct upgrade_figures f;

    upgrade_figures(&f);
    *out = json_pack("{ss si si si si si si si si ss}", "version", PACKAGE_VERSION, "pid", (int)getpid(),
                     "upgrades", (int)f.count, "connections", (int)f.connections, "files", (int)f.files,
                     "lost_clients", (int)f.lost_clients, "mounts", (int)f.mounts, "lost_mounts",
                     (int)f.lost_mounts, "stall_ms", (int)f.stall_ms, "upgrade_error",
                     f.error);
    return 0;
}

int
verb_upgrade(json_t *args, json_t **out, struct problem *why)
{
    const char *program = NULL;
    char error[512];

    if (verbs_get_args(args, why, "{s?s}", "program", &program, NULL))
        return why->err;
    int err = upgrade_ask(program, error, sizeof error);
    if (err)
        return problem_set(why, err, "%s", error);
    *out = json_object();
    return 0;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Sets all options, or puts the first wrong one into *why. */
static int
set_pool_options(json_t *options, struct problem *why)
{
    const char *key;
    json_t *value;

    json_object_foreach(options, key, value)
    {
        char text[128];

        snprintf(text, sizeof text, "%.40s=%.60s", key,
                 json_is_string(value) ? json_string_value(value) : "");
        if (pool_control_set(text)) {
            problem_set(why, -EINVAL, "'%s' is not a valid option of the memory pools", text);
            problem_expected(why, "%s", pool_control_expected(text));
            return why->err;
        }
        log_event(LOG_INFO, NULL, "pools-set-by-verb", "memory pools: %s", text);
    }
    return 0;
}

int
verb_pools(json_t *args, json_t **out, struct problem *why)
{
    json_t *options = NULL;
    const char *trim = NULL;
    size_t bytes = 0;

    if (verbs_get_args(args, why, "{s?o s?s}", "set", &options, "trim", &trim, NULL) ||
        set_pool_options(options, why))
        return why->err;
    if (trim && strcmp(trim, "soft") != 0 && strcmp(trim, "hard") != 0) {
        problem_set(why, -EINVAL, "trim %.40s is not built", trim);
        problem_expected(why, "soft or hard");
        return why->err;
    }
    if (trim)
        bytes = pool_control_trim(*trim == 'h');
    char *text = pool_control_json();
    json_t *figures = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    *out = figures ? json_pack("{sI so}", "returned_bytes", (json_int_t)bytes, "figures", figures) : NULL;
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(json_t *args, json_t **out, struct problem *why);
    /* of a daemon without --state; NULL: such a daemon refuses the verb */
    int (*run_of_process)(json_t *args, json_t **out, struct problem *why);
    /* with a store: how the verb runs for volumes of several hosts */
    enum { BY_THIS_HOST, BY_ALL_HOSTS } of_hosts;
    enum { LOOKS, CHANGES } change;
    const char *hook; /* the hook scripts to run before and after; NULL: none */
} verbs[] = {
#define VERB(name, run, run_of_process, of_hosts, change, hook)                                              \
    {name, run, run_of_process, of_hosts, change, hook},
#include "volumes/verbs/verbs.def"
#undef VERB
};

/* The place to which the volumes have moved. */
static pthread_mutex_t frozen_lock = PTHREAD_MUTEX_INITIALIZER;
static char frozen[512]; /* guarded by frozen_lock; "": kilnd takes changes */

void
verbs_freeze(const char *location)
{
    pthread_mutex_lock(&frozen_lock);
    snprintf(frozen, sizeof frozen, "%s", location ? location : "");
    pthread_mutex_unlock(&frozen_lock);
}

static int
check_not_moved(size_t verb, struct problem *why)
{
    pthread_mutex_lock(&frozen_lock);
    if (*frozen && verbs[verb].change == CHANGES) {
        problem_set(why, -EPERM, "the volumes move or have moved to %s: this kilnd takes no changes", frozen);
        problem_expected(why, "a kilnd that was started anew, with the options that kiln store move printed");
    } else {
        why->err = 0;
    }
    pthread_mutex_unlock(&frozen_lock);
    return why->err;
}

/* Hooks run before the verb checks its arguments, so this checks that the volume exists or that its name
 * is valid. */
static bool
may_run_hooks(const char *hook, const json_t *args)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    struct problem why = {0};

    if (!name || strcmp(hook, "create") == 0)
        return name && volume_check_new_name(name, &why) == 0;
    struct volume *v = volumes_find(name, &why);
    volume_free(v);
    return v != NULL;
}

/* Runs a verb of a daemon with --state. */
static int
run_for_volumes(size_t verb, json_t *args, json_t **out, struct problem *why)
{
    if (!cluster_is_on() || verbs[verb].of_hosts == BY_THIS_HOST)
        return verbs[verb].run(args, out, why);
    return cluster_look(verbs[verb].name, args, out, why);
}

static int
verb_run_named(size_t verb, bool is_of_process, const char *body, size_t bytes, json_t **out,
               struct problem *why)
{
    json_error_t flaw;
    json_t *args = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &flaw);

    why->err = 0;
    if (!args)
        return problem_set(why, -EINVAL, "the arguments are not JSON: %s", flaw.text);
    const char *hook = is_of_process ? NULL : verbs[verb].hook;

    if (hook && may_run_hooks(hook, args))
        hooks_run(hook, "pre", args);
    int err =
        is_of_process ? verbs[verb].run_of_process(args, out, why) : run_for_volumes(verb, args, out, why);
    if (hook && !err)
        hooks_run(hook, "post", args);
    json_decref(args);
    if (!err && !*out)
        err = problem_no_memory(why);
    if (err) {
        json_decref(*out);
        *out = NULL;
    }
    return err;
}

static int
refuse_of_process(const char *verb, struct problem *why)
{
    problem_set(why, -EAGAIN, "this kilnd keeps no volumes: it serves bricks of a glusterd or of volfiles");
    problem_expected(why,
                     "a kilnd with --state; of other bricks kiln shows list, status, profile, top, pools, "
                     "statedump and explain");
    if (strncmp(verb, "volume-", strlen("volume-")) == 0)
        problem_type(why, "gluster volume %.40s   # if a glusterd started this kilnd",
                     verb + strlen("volume-"));
    return why->err;
}

int
verbs_run(const char *verb, const char *body, size_t bytes, json_t **out, struct problem *why)
{
    *out = NULL;
    bool is_of_process = !atomic_load(&has_volumes);
    size_t i = 0;

    while (i < sizeof verbs / sizeof verbs[0] && strcmp(verbs[i].name, verb) != 0)
        i++;
    if (i == sizeof verbs / sizeof verbs[0]) {
        problem_set(why, -ENOSYS, "kilnd %s does not know '%.80s'", PACKAGE_VERSION, verb);
        problem_expected(why, "a kiln of the same version");
        return why->err;
    }
    if (atomic_load(&brick_port) == 0 && verbs[i].run != verb_pools && verbs[i].run != verb_version)
        return problem_set(why, -EAGAIN, "this kilnd is still starting");
    if (is_of_process && !verbs[i].run_of_process)
        return refuse_of_process(verb, why);
    return check_not_moved(i, why) ? why->err : verb_run_named(i, is_of_process, body, bytes, out, why);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static unsigned
http_status(int err)
{
    switch (err) {
    case -EINVAL:
    case -EPERM:
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

    /* A path may have bytes that are not UTF-8. */
    if (!json)
        return json_pack("{ss si}", "error", "the error has bytes that are not UTF-8", "errno", -why->err);
    if (*why->expected)
        json_object_set_new(json, "expected", json_string(why->expected));
    if (*why->type)
        json_object_set_new(json, "try", json_string(why->type));
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
