/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/volume-task.h"

#include <errno.h>
#include <string.h>

static const char *
task_member(const struct volume *v, const char *key)
{
    return json_string_value(json_object_get(v->task, key));
}

const char *
volume_task_kind(const struct volume *v)
{
    return task_member(v, "kind");
}

const char *
volume_task_state(const struct volume *v)
{
    return task_member(v, "state");
}

json_int_t
volume_task_number(const struct volume *v)
{
    return json_integer_value(json_object_get(v->task, "number"));
}

const char *
volume_task_job(const struct volume *v)
{
    return json_string_value(json_object_get(v->task, "job"));
}

bool
volume_task_is_running(const struct volume *v)
{
    return v->task && strcmp(volume_task_state(v), TASK_RUNNING) == 0;
}

bool
volume_task_leaves(const struct volume *v, unsigned brick)
{
    json_t *id;
    size_t i;

    if (!v->task || strcmp(volume_task_state(v), TASK_STOPPED) == 0)
        return false;
    json_array_foreach(json_object_get(v->task, "leaving"), i, id)
    {
        if (json_integer_value(id) == (json_int_t)v->bricks[brick].id)
            return true;
    }
    return false;
}

int
volume_task_begin(struct volume *v, const char *kind, const bool *leaving, const char *job)
{
    json_t *ids = json_array();

    for (unsigned i = 0; i < v->brick_count && leaving; i++) {
        if (leaving[i] && json_array_append_new(ids, json_integer(v->bricks[i].id)))
            return -ENOMEM;
    }
    json_t *task = json_pack("{ss ss sI so ss*}", "kind", kind, "state", TASK_RUNNING, "number",
                             volume_task_number(v) + 1, "leaving", ids, "job", job);
    if (!task)
        return -ENOMEM;
    json_decref(v->task);
    v->task = task;
    return 0;
}

int
volume_task_end(struct volume *v, const char *state, json_t *look)
{
    int err = json_object_set_new(v->task, "state", json_string(state));

    if (!err && look)
        err = json_object_set(v->task, "look", look);
    return err ? -ENOMEM : 0;
}

static bool
is_task_word(const char *text, const char *const *words)
{
    while (*words && strcmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

int
volume_task_check(const json_t *task, struct problem *why)
{
    static const char *const kinds[] = {TASK_LAYOUTS, TASK_FILES, TASK_DRAIN, NULL};
    static const char *const states[] = {TASK_RUNNING, TASK_STOPPED, "completed", "failed", NULL};
    const char *kind = json_string_value(json_object_get(task, "kind"));
    const char *state = json_string_value(json_object_get(task, "state"));
    const json_t *look = json_object_get(task, "look"), *job = json_object_get(task, "job");

    if (!kind || !is_task_word(kind, kinds) || !state || !is_task_word(state, states) ||
        !json_is_integer(json_object_get(task, "number")) ||
        !json_is_array(json_object_get(task, "leaving")) || (job && !json_is_string(job)) ||
        (look && !json_is_object(look)))
        return problem_set(why, -EINVAL, "\"task\" is no task: expected kind, state, number and leaving");
    return 0;
}
