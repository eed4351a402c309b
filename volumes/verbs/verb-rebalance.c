/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verbs rebalance, and drain: remove-brick with start, status or stop. */
#include <errno.h>
#include <string.h>

#include "volumes/heal/rebalance.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume-task.h"
#include "volumes/volumes.h"

/* ---- status ---------------------------------------------------------------------------------- */

/* Returns the estimated seconds until the end; -1: not known. */
static json_int_t
seconds_left(const json_t *look)
{
    json_int_t looked = json_integer_value(json_object_get(look, "looked"));
    json_int_t expected = json_integer_value(json_object_get(look, "expected"));
    json_int_t seconds = json_integer_value(json_object_get(look, "seconds"));

    if (looked <= 0 || seconds <= 0 || expected <= 0)
        return -1;
    return expected > looked ? (json_int_t)((double)seconds * (double)(expected - looked) / (double)looked)
                             : 0;
}

static int
task_status(const char *name, bool is_drain, json_t **out, struct problem *why)
{
    struct volume *v = volumes_find(name, why);
    json_t *status = v && v->task && (strcmp(volume_task_kind(v), TASK_DRAIN) == 0) == is_drain
                         ? rebalance_status(v)
                         : NULL;

    if (!v)
        return why->err;
    volume_free(v);
    if (!status) {
        problem_set(why, -ENOENT, is_drain ? "volume %s drains no brick" : "volume %s has had no rebalance",
                    name);
        problem_type(
            why, is_drain ? "kiln volume remove-brick %s BRICK... start" : "kiln volume rebalance %s start",
            name);
        return why->err;
    }
    json_object_set_new(status, "name", json_string(name));
    if (strcmp(json_string_value(json_object_get(status, "state")), TASK_RUNNING) == 0)
        json_object_set_new(status, "seconds_left",
                            json_integer(seconds_left(json_object_get(status, "look"))));
    *out = status;
    return 0;
}

/* ---- rebalance ------------------------------------------------------------------------------- */

int
verb_rebalance(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *what;
    int layouts = 0;

    if (verbs_get_args(args, why, "{s:s, s:s, s?b}", "name", &name, "what", &what, "layouts", &layouts, NULL))
        return why->err;
    if (strcmp(what, "status") == 0)
        return task_status(name, false, out, why);
    *out = json_pack("{ss}", "name", name);
    if (strcmp(what, "start") == 0)
        return rebalance_start(name, layouts ? TASK_LAYOUTS : TASK_FILES, why);
    if (strcmp(what, "stop") == 0)
        return rebalance_stop(name, false, why);
    problem_set(why, -EINVAL, "rebalance %.40s is not known", what);
    problem_expected(why, "start, status or stop");
    problem_type(why, "kiln volume rebalance %.200s status", name);
    return why->err;
}

/* ---- remove-brick start, status, stop -------------------------------------------------------- */

int
verb_drain(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *what;
    json_t *bricks;

    if (verbs_get_args(args, why, "{s:s, s:s, s:o}", "name", &name, "what", &what, "bricks", &bricks, NULL))
        return why->err;
    if (strcmp(what, "status") == 0)
        return task_status(name, true, out, why);
    *out = json_pack("{ss}", "name", name);
    if (strcmp(what, "stop") == 0)
        return rebalance_stop(name, true, why);
    struct volume *removed = verbs_named_bricks(bricks, why);
    if (!removed)
        return why->err;
    if (strcmp(what, "start") == 0) {
        (void)rebalance_start_drain(name, removed, why);
    } else {
        problem_set(why, -EINVAL, "drain %.40s is not known", what);
        problem_expected(why, "start, status, stop, commit or force");
        problem_type(why, "kiln volume remove-brick %.200s BRICK... status", name);
    }
    volume_free(removed);
    return why->err;
}
