/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The xlator types that are linked in, and the types that a stock brick volfile names but Kiln does not
 * implement. The latter are left out of the graph. If an option turns on such a type, the brick serves
 * without the feature and logs that (graph/unbuilt.h). */
#include <string.h>

#include "glusterfsd/brick-types.h"

extern const struct xlator_type storage_posix_xlator, features_locks_xlator, features_access_control_xlator,
    features_index_xlator, features_selinux_xlator, features_read_only_xlator, features_worm_xlator,
    features_barrier_xlator, features_upcall_xlator, features_arbiter_xlator, performance_io_threads_xlator,
    features_trash_xlator, features_simple_quota_xlator, debug_io_stats_xlator, protocol_server_xlator;

/* The options that the rows of graph/unbuilt.c read. */
struct asked {
    char *for_it[4];
};
#define OPT_ASKED(number, key) OPT_STR(struct asked, for_it[number], key, NULL)

static const struct option changelog_options[] = {
    OPT_ASKED(0, "changelog"),
    /* matters only while a changelog is written, and kadalu always sets it */
    OPT_IGNORED("capture-del-path"),
    OPT_ASKED(1, "changelog-barrier"),
    OPT_IGNORED("changelog-brick"),
    OPT_IGNORED("changelog-dir"),
    OPT_IGNORED("changelog-notification"),
    OPT_IGNORED("changelog-barrier-timeout"),
    OPT_IGNORED("rollover-time"),
    OPT_IGNORED("fsync-interval"),
    OPT_IGNORED("op-mode"),
    OPT_IGNORED("encoding"),
    OPT_END,
};

static const struct option bitrot_stub_options[] = {
    OPT_ASKED(0, "bitrot"),
    OPT_IGNORED("export"),
    OPT_IGNORED("signer-threads"),
    OPT_END,
};

static const struct option leases_options[] = {
    OPT_ASKED(0, "leases"),
    OPT_IGNORED("lease-lock-recall-timeout"),
    OPT_END,
};

static const struct option marker_options[] = {
    OPT_ASKED(0, "xtime"),
    OPT_ASKED(1, "gsync-force-xtime"),
    OPT_ASKED(2, "quota"),
    OPT_ASKED(3, "inode-quota"),
    OPT_IGNORED("volume-uuid"),
    OPT_IGNORED("timestamp-file"),
    OPT_IGNORED("quota-version"),
    OPT_END,
};

static const struct option quota_options[] = {
    OPT_ASKED(0, "server-quota"),
    OPT_IGNORED("volume-uuid"),
    OPT_IGNORED("timeout"),
    OPT_IGNORED("deem-statfs"),
    OPT_IGNORED("hard-timeout"),
    OPT_IGNORED("soft-timeout"),
    OPT_IGNORED("alert-time"),
    OPT_IGNORED("default-soft-limit"),
    OPT_END,
};

static const struct option sdfs_options[] = {
    OPT_ASKED(0, "pass-through"),
    OPT_END,
};

static const struct option namespace_options[] = {
    OPT_ASKED(0, "tag-namespaces"),
    OPT_END,
};

static const struct xlator_type not_built[] = {
    {.name = "features/changelog",
     .options = changelog_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
    {.name = "features/bitrot-stub",
     .options = bitrot_stub_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
    {.name = "features/leases",
     .options = leases_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
    {.name = "features/marker",
     .options = marker_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
    {.name = "features/quota",
     .options = quota_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
    {.name = "features/sdfs",
     .options = sdfs_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
    {.name = "features/namespace",
     .options = namespace_options,
     .conf_size = sizeof(struct asked),
     .traits = LAYER_NOT_BUILT},
};

static const struct xlator_type *const built[] = {
    &storage_posix_xlator,          &features_access_control_xlator, &features_locks_xlator,
    &performance_io_threads_xlator, &features_index_xlator,          &features_selinux_xlator,
    &features_read_only_xlator,     &features_worm_xlator,           &features_barrier_xlator,
    &features_upcall_xlator,        &features_arbiter_xlator,        &features_trash_xlator,
    &features_simple_quota_xlator,  &debug_io_stats_xlator,          &protocol_server_xlator,
};

enum { BUILT = sizeof built / sizeof built[0], NOT_BUILT = sizeof not_built / sizeof not_built[0] };

const struct xlator_type *
brick_type_at(size_t number)
{
    if (number < BUILT)
        return built[number];
    return number - BUILT < NOT_BUILT ? &not_built[number - BUILT] : NULL;
}

const struct xlator_type *
brick_type_find(const char *name)
{
    const struct xlator_type *type;

    for (size_t i = 0; (type = brick_type_at(i)) && strcmp(type->name, name) != 0; i++)
        ;
    return type;
}
