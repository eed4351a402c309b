/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Verbs of a kilnd without --state, whose bricks come from a glusterd or from volfiles. Such a daemon knows
 * no volumes, only its bricks, and the volume that the volfile of each brick names. The answers have the form
 * of verbs-ask.c; fields about a whole volume, such as limits, are absent. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bricks/bricks.h"
#include "bricks/figures.h"
#include "graph/graph.h"
#include "volumes/bricks/profile.h"
#include "volumes/verbs/verbs-internal.h"

/* The bricks of the process as an object: {"VOLUME": [BRICK, ...], ...}. */
struct grouping {
    const char *only; /* a volume; NULL: all */
    json_t *volumes;
    json_t *(*describe)(struct graph *g);
    bool is_short;
};

static void
group_brick(struct graph *g, void *arg)
{
    struct grouping *all = arg;
    char volume[FIGURES_VOLUME_SIZE];

    figures_name_volume(g, volume);
    if (all->only && strcmp(all->only, volume) != 0)
        return;
    json_t *list = json_object_get(all->volumes, volume), *brick = all->describe(g);
    if (!list && (list = json_array()))
        all->is_short |= json_object_set_new(all->volumes, volume, list) < 0;
    if (brick) {
        json_object_set_new(brick, "host", json_string("localhost"));
        json_object_set_new(brick, "path", json_string(g->name));
    }
    all->is_short |= json_array_append_new(list, brick) < 0;
}

/* Returns the grouped bricks, or NULL with *why: -ENOENT for a volume without bricks here. */
static json_t *
group_bricks(const char *only, json_t *(*describe)(struct graph *g), struct problem *why)
{
    struct grouping all = {.only = only, .volumes = json_object(), .describe = describe};

    why->err = 0;
    if (!all.volumes || !bricks_each(group_brick, &all) || all.is_short) {
        problem_no_memory(why);
    } else if (only && json_object_size(all.volumes) == 0) {
        problem_set(why, -ENOENT, "this kilnd serves no brick of a volume %.200s", only);
        problem_type(why, "kiln list");
    }
    if (!why->err)
        return all.volumes;
    json_decref(all.volumes);
    return NULL;
}

static json_t *
describe_name_only(struct graph *g)
{
    (void)g;
    return json_object();
}

int
verb_process_list(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    json_t *volumes, *list, *bricks;

    if (verbs_get_args(args, why, "{}", NULL) || !(volumes = group_bricks(NULL, describe_name_only, why)))
        return why->err;
    list = json_array();
    json_object_foreach(volumes, name, bricks)
        json_array_append_new(list, json_string(name));
    json_decref(volumes);
    *out = json_pack("{so}", "volumes", list);
    return 0;
}

static json_t *
describe_served(struct graph *g)
{
    return json_pack("{sb sb si si sf so so}", "arbiter", 0, "online", 1, "port", (int)verbs_brick_port(),
                     "pid", (int)getpid(), "cpu_seconds", profile_cpu_seconds(g), "not_built",
                     verbs_list_unbuilt(g), "heal_pending", verbs_heal_pending(g));
}

int
verb_process_status(json_t *args, json_t **out, struct problem *why)
{
    const char *only = NULL, *name;
    json_t *volumes, *list, *bricks;

    if (verbs_get_args(args, why, "{s?s}", "name", &only, NULL) ||
        !(volumes = group_bricks(only, describe_served, why)))
        return why->err;
    list = json_array();
    json_object_foreach(volumes, name, bricks)
        json_array_append_new(list, json_pack("{ss ss sO sn sn sn}", "name", name, "status", "Started",
                                              "bricks", bricks, "self-heal", "limit", "used"));
    json_decref(volumes);
    *out = json_pack("{so sb}", "volumes", list, "of_process", 1);
    return 0;
}

int
verb_process_profile(json_t *args, json_t **out, struct problem *why)
{
    const char *name;
    json_t *volumes;

    if (verbs_get_args(args, why, "{s:s}", "name", &name, NULL) ||
        !(volumes = group_bricks(name, profile_of_graph, why)))
        return why->err;
    *out = json_pack("{ss sO}", "name", name, "bricks", json_object_get(volumes, name));
    json_decref(volumes);
    return 0;
}
