/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/client-volume.h"

#include <stdio.h>
#include <string.h>

#include "log/log.h"

/* ---- types ----------------------------------------------------------------------------------- */

/* The types that a client's volfile may name. Built types become layers. The client leaves the types of the
 * second table out of the graph, because these layers only save time or count, and neither bricks nor other
 * clients depend on such a layer. The client refuses all other types by name, because such a layer decides
 * the contents (features/cdc, features/cloudsync), or shows other files (features/snapview-client). */
extern const struct xlator_type cluster_disperse_xlator, cluster_distribute_xlator,
    cluster_replicate_xlator, features_hard_xlator, features_read_only_xlator, features_shard_xlator,
    features_utime_xlator, performance_write_behind_xlator, protocol_client_xlator;

static const struct xlator_type *const built[] = {
    &cluster_disperse_xlator,
    &cluster_distribute_xlator,
    &cluster_replicate_xlator,
    &features_hard_xlator,
    &features_read_only_xlator,
    &features_shard_xlator,
    &features_utime_xlator,
    &performance_write_behind_xlator,
    &protocol_client_xlator,
};

static const struct option any_options[] = {OPT_PREFIX(""), OPT_END};

#define LEFT_OUT(type_name) {.name = type_name, .options = any_options, .traits = LAYER_NOT_BUILT}

static const struct xlator_type left_out[] = {
    LEFT_OUT("debug/io-stats"),            /* counts */
    LEFT_OUT("features/quiesce"),          /* holds calls back while a process of stock's is frozen */
    LEFT_OUT("performance/open-behind"),   /* here each open waits for the brick's reply */
    LEFT_OUT("performance/quick-read"),    /* a cache of a second, as the next four types */
    LEFT_OUT("performance/md-cache"),
    LEFT_OUT("performance/io-cache"),
    LEFT_OUT("performance/nl-cache"),
    LEFT_OUT("performance/read-ahead"),
    LEFT_OUT("performance/readdir-ahead"), /* the kernel asks ahead */
    LEFT_OUT("performance/io-threads"),    /* no call blocks a thread here */
};

const struct xlator_type *
client_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof built / sizeof built[0]; i++) {
        if (strcmp(built[i]->name, name) == 0)
            return built[i];
    }
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
        if (strcmp(left_out[i].name, name) == 0)
            return &left_out[i];
    }
    return NULL;
}

/* ---- features/hard --------------------------------------------------------------------------- */

/* Returns the section of the highest layer that reaches bricks. Below are only layers about the number and
 * places of bricks. The layers above, as write-behind, must not see an outage. */
static const struct volfile_section *
find_bricks_top(const struct volfile *v)
{
    const struct volfile_section *s = v->top;

    while (s->subvolume_count == 1 && strncmp(s->type, "cluster/", 8) != 0)
        s = s->subvolumes[0];
    return s;
}

int
client_volume_add_hard(struct volfile *v)
{
    return volfile_insert_above(v, find_bricks_top(v), CLIENT_HARD_NAME, "features/hard");
}

/* ---- changes --------------------------------------------------------------------------------- */

const char *
client_option_of(const struct volfile_section *s, const char *key)
{
    const char *value = "";

    for (size_t i = 0; i < s->option_count; i++) { /* the last option with the key counts */
        if (strcmp(s->options[i].key, key) == 0)
            value = s->options[i].value;
    }
    return value;
}

bool
client_is_brick(const struct volfile_section *s)
{
    return strcmp(s->type, "protocol/client") == 0;
}

/* The address of the brick, and how the client logs in. A running layer cannot change these. */
static bool
is_same_brick(const struct volfile_section *a, const struct volfile_section *b)
{
    static const char *const keys[] = {"remote-host", "remote-port", "remote-subvolume", "username",
                                       "password"};
    bool is_same = true;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        is_same = is_same && strcmp(client_option_of(a, keys[i]), client_option_of(b, keys[i])) == 0;
    return is_same;
}

enum volume_change
volume_compare(const struct volfile *before, const struct volfile *now)
{
    bool is_same = volfile_has_shape(before, now);

    for (size_t i = 0; i < before->section_count && is_same; i++)
        is_same =
            !client_is_brick(&before->sections[i]) || is_same_brick(&before->sections[i], &now->sections[i]);
    return is_same ? VOLUME_SAME_BRICKS : VOLUME_OTHER_BRICKS;
}

static void
append_type(char *out, size_t size, const char *word)
{
    size_t at = strlen(out);

    snprintf(out + at, size - at, "%s%s", at ? ", " : "", word);
}

void
client_volume_log_left_out(const struct graph *g, const char *whose)
{
    char types[512] = "";

    for (unsigned i = 0; i < g->layer_count; i++) {
        const struct xlator_type *type = g->layers[i].type;

        if (type->traits & LAYER_NOT_BUILT && !strstr(types, type->name))
            append_type(types, sizeof types, type->name);
    }
    if (*types)
        log_event(LOG_INFO, NULL, "mount-layers-left-out",
                  "%s goes without these layers of its volfile, which only save time or count: %s", whose,
                  types);
}
