/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The types that a client's volfile may name. Built types become layers. The mount leaves the types of the
 * second table out of the graph, because these layers only save time or count, and neither bricks nor other
 * clients depend on such a layer. The mount refuses all other types by name, because such a layer decides the
 * contents (features/cdc, features/cloudsync), or shows other files (features/snapview-client). */
#include <string.h>

#include "mount/types.h"

extern const struct xlator_type cluster_disperse_xlator, cluster_distribute_xlator,
    cluster_replicate_xlator, features_hard_xlator, features_read_only_xlator, features_shard_xlator,
    features_utime_xlator, mount_fuse_xlator, performance_write_behind_xlator, protocol_client_xlator;

static const struct xlator_type *const built[] = {
    &cluster_disperse_xlator,
    &cluster_distribute_xlator,
    &cluster_replicate_xlator,
    &features_hard_xlator,
    &features_read_only_xlator,
    &features_shard_xlator,
    &features_utime_xlator,
    &mount_fuse_xlator,
    &performance_write_behind_xlator,
    &protocol_client_xlator,
};

static const struct option any_options[] = {OPT_PREFIX(""), OPT_END};

#define LEFT_OUT(type_name) {.name = type_name, .options = any_options, .is_not_built = true}

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
mount_type_find(const char *name)
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
