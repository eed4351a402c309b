/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/verbs.h"

#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coro/pool-control.h"
#include "glusterfsd/http.h"
#include "log/log.h"
#include "volumes/hooks.h"
#include "volumes/verbs-internal.h"
#include "volumes/volume.h"
#include "volumes/volumes.h"

/* written before brick_port is set, read only afterwards, like the next variable */
static const char *dump_dir;
static uint16_t volfile_port;
static atomic_uint brick_port; /* 0: verbs about volumes are refused */

void
verbs_begin(uint16_t bricks_at, uint16_t volfiles_at, const char *dumps_in)
{
    dump_dir = dumps_in;
    volfile_port = volfiles_at;
    atomic_store(&brick_port, bricks_at);
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

/* Sends the signal SIGUSR1, on which the main thread writes the statedump. */
static int
verb_statedump(json_t *args, json_t **out, struct problem *why)
{
    if (verbs_get_args(args, why, "{}", NULL))
        return why->err;
    if (kill(getpid(), SIGUSR1) < 0)
        return problem_set(why, -errno, "no statedump: %s", strerror(errno));
    *out = json_pack("{ss si}", "folder", dump_dir, "pid", (int)getpid());
    return 0;
}

static int
verb_version(json_t *args, json_t **out, struct problem *why)
{
    if (verbs_get_args(args, why, "{}", NULL))
        return why->err;
    *out = json_pack("{ss si}", "version", PACKAGE_VERSION, "pid", (int)getpid());
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

static int
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
    bool is_of_process; /* works without --state, too */
    const char *hook;   /* the hook scripts to run before and after; NULL: none */
} verbs[] = {
    {"pools", verb_pools, true, NULL},
    {"statedump", verb_statedump, false, NULL},
    {"version", verb_version, false, NULL},
    {"volume-add-brick", verb_add_bricks, false, "add-brick"},
    {"volume-check", verb_check, false, NULL},
    {"volume-clear-locks", verb_clear_locks, false, NULL},
    {"volume-create", verb_create, false, "create"},
    {"volume-delete", verb_delete, false, "delete"},
    {"volume-get", verb_get, false, NULL},
    {"volume-heal", verb_heal, false, NULL},
    {"volume-info", verb_info, false, NULL},
    {"volume-limit", verb_limit, false, NULL},
    {"volume-list", verb_list, false, NULL},
    {"volume-mount", verb_mount, false, NULL},
    {"volume-profile", verb_profile, false, NULL},
    {"volume-quota", verb_quota, false, NULL},
    {"volume-remove-brick", verb_remove_bricks, false, "remove-brick"},
    {"volume-replace-brick", verb_replace_brick, false, "replace-brick"},
    {"volume-reset", verb_reset, false, "reset"},
    {"volume-reset-brick", verb_reset_brick, false, "reset-brick"},
    {"volume-set", verb_set, false, "set"},
    {"volume-start", verb_start, false, "start"},
    {"volume-status", verb_status, false, NULL},
    {"volume-stop", verb_stop, false, "stop"},
};

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

static int
verb_run_named(size_t verb, const char *body, size_t bytes, json_t **out, struct problem *why)
{
    json_error_t flaw;
    json_t *args = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &flaw);

    why->err = 0;
    if (!args)
        return problem_set(why, -EINVAL, "the arguments are not JSON: %s", flaw.text);
    const char *hook = verbs[verb].hook;

    if (hook && may_run_hooks(hook, args))
        hooks_run(hook, "pre", args);
    int err = verbs[verb].run(args, out, why);
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

int
verbs_run(const char *verb, const char *body, size_t bytes, json_t **out, struct problem *why)
{
    *out = NULL;
    bool has_volumes = atomic_load(&brick_port) != 0;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, verb) == 0 && (has_volumes || verbs[i].is_of_process))
            return verb_run_named(i, body, bytes, out, why);
    }
    if (!has_volumes)
        return problem_set(why, -EAGAIN,
                           "this kilnd is still starting, or was started without --state");
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

    /* A path may have bytes that are not UTF-8. */
    if (!json)
        return json_pack("{ss si}", "error", "the error has bytes that are not UTF-8", "errno", -why->err);
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
